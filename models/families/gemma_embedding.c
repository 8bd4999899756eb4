/* EmbeddingGemma. conversion/gemma.py. */
#include "models/families/gemma.h"

static const struct family_name names[] = {{"Gemma3TextModel", "model."}, {0}};

/* As in the file: transformers halves the window of models that look both ways. */
static bool emit_window(struct draft *draft, struct error *error)
{
    uint64_t window;
    if (!json_u64(json_get(hparams_raw(draft->model->hparams), "sliding_window"), &window) || window > UINT32_MAX)
        return error_set(error, "config.json: sliding_window is missing, or no whole number of 32 bits");
    gguf_set_u32(&draft->model->kvs, draft_key(draft, "attention.sliding_window"), (uint32_t)window);
    return true;
}

static const struct key_row keys[] = {{.emit = emit_window}, {.emit = emit_pooling_type}, {0}};

const struct family gemma_embedding_family = {
    .name = "gemma-embedding",
    .summary = "EmbeddingGemma",
    .hf = names,
    .tensors = {gemma3_tensors, gemma2_tensors, gemma_tensors, decoder_tensors},
    .keys = {base_keys, gemma3_keys, keys},
    .vocabs = {&spm_vocab, &bpe_vocab},
    .adjust = gemma3_count_tokens,
    .after_vocab = gemma3_after_vocab,
};
