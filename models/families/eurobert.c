/* EuroBERT, Jina v5. conversion/bert.py. */
#include "models/families/shared.h"

static const struct key_row keys[] = {
    {"attention.causal", GGUF_BOOL, ALWAYS, .value = 0},
    {"rope.scaling.type", GGUF_STRING, ALWAYS, .text = "none"},
    {.emit = emit_pooling_type},
    {0},
};

static bool begin_no_texts(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    gguf_set_bool(&builder->model->kvs, "tokenizer.ggml.add_bos_token", false);
    return true;
}

static const struct config_row config_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'silu'"},
    {"attention_bias", FROM_TENSOR, "blk.0.attn_q.bias"},
    {"mlp_bias", FROM_TENSOR, "blk.0.ffn_up.bias"},
    {"mask_token_id", FROM_KEY, ".tokenizer.ggml.mask_token_id"},
    {0},
};

const struct family eurobert_family = {
    .name = "eurobert",
    .summary = "EuroBERT, Jina v5",
    .hf = FAMILY_NAMES({"EuroBertModel", "model."}, {"JinaEmbeddingsV5Model", "model."}),
    .tensors = {decoder_tensors},
    .forms = CONFIG_FORMS({"EuroBertModel", "eurobert", NULL, config_rows}),
    .keys = {base_keys, keys},
    .vocabs = {&bpe_vocab},
    .dropped_prefixes = TEXTS("model."),
    .before_vocab = begin_no_texts,
};
