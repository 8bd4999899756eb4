/* EmbeddingGemma. conversion/gemma.py. */
#include "base/text.h"
#include "models/families/gemma.h"

/* Sets the window as in the file: transformers halves it for bidirectional attention. */
static bool emit_window(struct model_builder *builder, struct error *error)
{
    uint64_t window;
    if (!json_u64(json_get(hparams_raw(builder->model->hparams), "sliding_window"), &window) || window > UINT32_MAX)
        return error_set(error, "config.json: sliding_window is missing, or not a whole number of 32 bits");
    gguf_set_u32(&builder->model->kvs, builder_key(builder, "attention.sliding_window"), (uint32_t)window);
    return true;
}

static const char *rename_tensor(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    return direction == BACKWARD && text_starts_with(name, "model.") ? name + 6 : name;
}

static const struct config_row config_rows[] = {
    {"query_pre_attn_scalar", FROM_KEY, "attention.key_length"},
    {"use_bidirectional_attention", FROM_TEXT, .text = "true"},
    {0},
};

const struct family gemma_embedding_family = {
    .name = "gemma-embedding",
    .summary = "EmbeddingGemma",
    .hf = FAMILY_NAMES({"Gemma3TextModel", "model."}),
    .tensors = {gemma3_tensors, gemma2_tensors, gemma_tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"Gemma3TextModel", "gemma3_text", NULL, CONFIG_TABLES(attention_bias_rows, gemma3_config_rows, config_rows)}),
    .keys = {base_keys, gemma3_keys, KEYS({.emit = emit_window}, {.emit = emit_pooling_type})},
    .vocabs = {&spm_vocab, &hf_gemma_vocab, &bpe_vocab},
    .rename = rename_tensor,
    .adjust = gemma3_count_tokens,
    .after_vocab = gemma3_after_vocab,
};
