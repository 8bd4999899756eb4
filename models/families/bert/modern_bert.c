/* ModernBERT. conversion/bert.py, ModernBertModel. */
#include "base/text.h"
#include "models/families/bert/bert.h"

static const struct relation_row tensors[] = {
    {"embeddings.tok_embeddings", "token_embd", .parallel = "row"},
    {"embeddings.norm", "token_embd_norm"},
    {"final_norm", "output_norm"},
    {"layers.{}.attn_norm", "blk.{}.attn_norm"},
    {"layers.{}.attn.Wqkv", "blk.{}.attn_qkv", "(part head d) ...", "head"},
    {"layers.{}.attn.Wo", "blk.{}.attn_output", .parallel = "column"},
    {"layers.{}.mlp_norm", "blk.{}.ffn_norm"},
    {"layers.{}.mlp.Wi", "blk.{}.ffn_up", "(gate + up) ...", "gate up"},
    {"layers.{}.mlp.Wo", "blk.{}.ffn_down", .parallel = "column"},
    {"head.dense", "cls"},
    {"head.norm", "cls.norm"},
    {"classifier", "cls.output"},
    {"decoder*", NULL},
    {0},
};

static const struct key_row keys[] = {
    {"attention.sliding_window", GGUF_U32, REQUIRED, "local_attention"},
    {"attention.sliding_window_pattern", GGUF_U32, IF_PRESENT, "global_attn_every_n_layers"},
    {"rope.scaling.type", GGUF_STRING, ALWAYS, .text = "none"},
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"hidden_activation", GGUF_STRING, IF_PRESENT, "hidden_activation"},
    {0},
};

static const char *rename_tensor(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    return text_starts_with(name, "head.") ? name : bert_rename(arena, dimensions, direction, name, "model.");
}

static const struct config_row common_rows[] = {
    {"global_rope_theta", FROM_KEY, "rope.freq_base"},
    {"local_rope_theta", FROM_KEY, "rope.freq_base_swa"},
    {"rope_theta", FROM_NOWHERE},
    {"cls_token_id", FROM_KEY, ".tokenizer.ggml.bos_token_id"},
    {"sep_token_id", FROM_KEY, ".tokenizer.ggml.eos_token_id"},
    {"norm_bias", FROM_TENSOR, "output_norm.bias"},
    {"attention_bias", FROM_TENSOR, "blk.0.attn_qkv.bias"},
    {0},
};

/* Notes that the converter writes norm_eps under a key that llama.cpp does not read for this architecture. */
static void note_epsilon(const struct model_builder *builder)
{
    if (hparams_find(builder->model->hparams, "layer_norm_eps|layer_norm_epsilon|norm_epsilon") == NULL)
        checkpoint_note(builder->model->checkpoint, SUBJECT_GGUF,
                        "llama.cpp refuses this file without attention.layer_norm_epsilon, which the"
                        " converter does not write from norm_eps; give it the value of norm_eps with"
                        " -o override-kv=modern-bert.attention.layer_norm_epsilon=float:1e-05");
}

/* Notes that the head for masked words, on which the converter fails, is left out. */
static bool add_notes(struct model_builder *builder, struct error *error)
{
    const struct checkpoint *checkpoint = builder->model->checkpoint;
    note_epsilon(builder);
    for (size_t i = 0; i < checkpoint->tensors->n_tensors; i++)
        if (text_starts_with(checkpoint->tensors->tensors[i].name, "decoder.")) {
            checkpoint_note(checkpoint, SUBJECT_GGUF,
                            "the head for masked words is left out; the converter fails on it");
            break;
        }
    return true;
}

const struct family modern_bert_family = {
    .name = "modern-bert",
    .summary = "ModernBERT",
    .hf = FAMILY_NAMES({"ModernBertModel"}, {"ModernBertForMaskedLM"}, {"ModernBertForSequenceClassification"}),
    .tensors = {tensors},
    .forms = CONFIG_FORMS({"ModernBertForSequenceClassification", "modernbert", "tensor:cls.output.weight",
                           CONFIG_TABLES(mlp_bias_rows, common_rows, bert_label_rows,
                                         CONFIG_ROWS({"classifier_bias", FROM_TENSOR, "cls.bias"}))},
                          {"ModernBertModel", "modernbert", NULL, CONFIG_TABLES(mlp_bias_rows, common_rows)}),
    .keys = {base_keys, bert_keys, keys},
    .vocabs = {&bpe_vocab},
    .dropped_prefixes = TEXTS("model."),
    .add_dimensions = bert_add_dimensions,
    .rename = rename_tensor,
    .adjust = add_notes,
    .keys_before_vocab = KEYS({".tokenizer.ggml.add_bos_token", GGUF_BOOL, ALWAYS, .value = 1},
                              {".tokenizer.ggml.add_eos_token", GGUF_BOOL, ALWAYS, .value = 1},
                              {".tokenizer.ggml.add_sep_token", GGUF_BOOL, ALWAYS, .value = 1}),
};
