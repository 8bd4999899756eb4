/* NeoBERT. conversion/bert.py, NeoBert. */
#include "base/text.h"
#include "models/families/bert/bert.h"

#include <math.h>

static const struct relation_row tensors[] = {
    {"decoder*", NULL},
    {"dense", "cls"},
    {"classifier", "cls.output"},
    {"encoder", "token_embd", .parallel = "row"},
    {"layer_norm", "enc.output_norm"},
    {"transformer_encoder.{}.qkv", "blk.{}.attn_qkv", "(head part d) ...", "head"},
    {"transformer_encoder.{}.wo", "blk.{}.attn_output", .parallel = "column"},
    {"transformer_encoder.{}.ffn.w12", "blk.{}.ffn_up", "(gate + up) ...", "gate up"},
    {"transformer_encoder.{}.ffn.w3", "blk.{}.ffn_down", .parallel = "column"},
    {"transformer_encoder.{}.attention_norm", "blk.{}.attn_norm"},
    {"transformer_encoder.{}.ffn_norm", "blk.{}.ffn_norm"},
    {0},
};

static bool compute_feed_forward(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double width;
    if (!builder_number(builder, "intermediate_size", 0, &width, error))
        return false;
    *ret_value = trunc(2 * width / 3);
    return true;
}

static const struct key_row keys[] = {
    {"feed_forward_length", GGUF_U32, .compute = compute_feed_forward},
    {"rope.freq_base", GGUF_F32, ALWAYS, .value = 10000},
    {"rope.scaling.type", GGUF_STRING, ALWAYS, .text = "none"},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, OR_DEFAULT, "norm_eps", 1e-6},
    {"pooling_type", GGUF_U32, ALWAYS, .value = 2}, /* the first token */
    {0},
};

/* Returns the width before the class reduces it to two thirds. */
static const char *make_width(const struct config_material *material)
{
    double width;
    bool known = config_number_of_layer(material, "feed_forward_length", 0, &width);
    return known ? arena_printf(material->arena, "%.0f", ceil(width * 3 / 2)) : NULL;
}

static const char *rename_tensor(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    return text_starts_with(name, "dense.") ? name : bert_rename(arena, dimensions, direction, name, "model.");
}

static const struct config_row common_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'SwiGLU'"},
    {"intermediate_size", .make = make_width},
    {"max_length", FROM_KEY, "context_length"},
    {0},
};

const struct family neo_bert_family = {
    .name = "neo-bert",
    .summary = "NeoBERT",
    .hf = FAMILY_NAMES({"NeoBERT"}, {"NeoBERTLMHead"}, {"NeoBERTForSequenceClassification"}),
    .tensors = {tensors},
    .forms = CONFIG_FORMS({"NeoBERTForSequenceClassification", "neobert", "tensor:cls.output.weight",
                           CONFIG_TABLES(common_rows, bert_label_rows), OWN_CLASS_NOTE},
                          {"NeoBERT", "neobert", NULL, CONFIG_TABLES(common_rows), OWN_CLASS_NOTE}),
    .keys = {base_keys, bert_keys, keys},
    .vocabs = {&wordpiece_vocab},
    .dropped_prefixes = TEXTS("model."),
    .add_dimensions = bert_add_dimensions,
    .rename = rename_tensor,
};
