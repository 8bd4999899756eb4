/* EuroBERT, Jina v5. conversion/bert.py. */
#include "models/families/shared.h"

const struct family eurobert_family = {
    .name = "eurobert",
    .summary = "EuroBERT, Jina v5",
    .hf = FAMILY_NAMES({"EuroBertModel", "model."}, {"JinaEmbeddingsV5Model", "model."}),
    .tensors = {decoder_tensors},
    .forms = CONFIG_FORMS({"EuroBertModel", "eurobert", NULL,
                           CONFIG_TABLES(silu_rows, attention_bias_rows, mlp_bias_rows,
                                         CONFIG_ROWS({"mask_token_id", FROM_KEY, ".tokenizer.ggml.mask_token_id"}))}),
    .keys = {base_keys, KEYS({"attention.causal", GGUF_BOOL, ALWAYS, .value = 0},
                             {"rope.scaling.type", GGUF_STRING, ALWAYS, .text = "none"}, {.emit = emit_pooling_type})},
    .vocabs = {&bpe_vocab},
    .dropped_prefixes = TEXTS("model."),
    .keys_before_vocab = KEYS({".tokenizer.ggml.add_bos_token", GGUF_BOOL, ALWAYS, .value = 0}),
};
