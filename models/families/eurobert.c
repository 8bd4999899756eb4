/* EuroBERT, Jina v5. conversion/bert.py. */
#include "models/families/family.h"

static const struct family_name names[] = {{"EuroBertModel", "model."}, {"JinaEmbeddingsV5Model", "model."}, {0}};

static const struct key_row keys[] = {
    {"attention.causal", GGUF_BOOL, ALWAYS, .value = 0},
    {"rope.scaling.type", GGUF_STRING, ALWAYS, .text = "none"},
    {.emit = emit_pooling_type},
    {0},
};

static const char *const prefixes[] = {"model.", NULL};

static bool begin_no_texts(struct draft *draft, const struct vocab_input *input, struct error *error)
{
    (void)input, (void)error;
    gguf_set_bool(&draft->model->kvs, "tokenizer.ggml.add_bos_token", false);
    return true;
}

static const struct config_row config_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'silu'"},
    {"attention_bias", FROM_TENSOR, "blk.0.attn_q.bias"},
    {"mlp_bias", FROM_TENSOR, "blk.0.ffn_up.bias"},
    {"mask_token_id", FROM_KEY, ".tokenizer.ggml.mask_token_id"},
    {0},
};

static const struct config_form forms[] = {{"EuroBertModel", "eurobert", NULL, config_rows}, {0}};

const struct family eurobert_family = {
    .name = "eurobert",
    .summary = "EuroBERT, Jina v5",
    .hf = names,
    .tensors = {decoder_tensors},
    .forms = forms,
    .keys = {base_keys, keys},
    .vocabs = {&bpe_vocab},
    .dropped_prefixes = prefixes,
    .before_vocab = begin_no_texts,
};
