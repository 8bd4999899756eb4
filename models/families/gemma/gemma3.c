/* Gemma 3, the text model. conversion/gemma.py. */
#include "formats/documents.h"
#include "models/families/gemma/gemma.h"

#include <math.h>
#include <string.h>

const struct relation_row gemma3_tensors[] = {
    {"model.embed_tokens", "token_embd", "(token + unused) c -> token c", "row"},
    {"lm_head.weight", "output.weight", .parallel = "row"},
    {"model.layers.{}.self_attn.q_norm", "blk.{}.attn_q_norm", .map = &plus_one},
    {"model.layers.{}.self_attn.k_norm", "blk.{}.attn_k_norm", .map = &plus_one},
    {0},
};

/* Reports whether the class halves a bidirectional window: Gemma 3's text model does, related classes do not. */
static bool window_is_halved(const struct hparams *hparams)
{
    const char *model_type = json_string(hparams_get(hparams, "model_type"), NULL);
    if (model_type == NULL)
        return false;
    bool is_gemma3 = strcmp(model_type, "gemma3_text") == 0 || strcmp(model_type, "gemma3") == 0;
    return is_gemma3 && json_bool(hparams_get(hparams, "use_bidirectional_attention"), false);
}

static bool compute_window(const struct model_builder *builder, double *ret_value, struct error *error)
{
    double window;
    if (!builder_number(builder, "sliding_window", -1, &window, error))
        return false;
    if (window < 0)
        return error_set(error, "config.json: sliding_window is missing");
    *ret_value = window_is_halved(builder->model->hparams) ? floor(window / 2) + 1 : window;
    return true;
}

static bool emit_sliding_window(struct model_builder *builder, struct error *error)
{
    static const struct key_row rows[] = {{"attention.sliding_window", GGUF_U32, .compute = compute_window}, {0}};
    uint64_t pattern;
    if (json_u64(hparams_get(builder->model->hparams, "sliding_window_pattern"), &pattern) && pattern == 1)
        return true;
    return builder_emit(builder, rows, error);
}

/* The converter sets most of these keys again; a key is here if the common emitter may lack its value. */
const struct key_row gemma3_keys[] = {
    {"context_length", GGUF_U32, OR_DEFAULT, "max_position_embeddings", 131072},
    {"attention.head_count", GGUF_U32, OR_DEFAULT, "num_attention_heads", 8},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, OR_DEFAULT, "rms_norm_eps", 1e-6},
    {"attention.key_length", GGUF_U32, OR_DEFAULT, "head_dim", 256},
    {"attention.value_length", GGUF_U32, OR_DEFAULT, "head_dim", 256},
    {"rope.freq_base", GGUF_F32, OR_DEFAULT, "rope.rope_theta", 1e6},
    {"final_logit_softcapping", GGUF_F32, IF_TRUE, "final_logit_softcapping"},
    {.emit = emit_sliding_window},
    {"attention.head_count_kv", GGUF_U32, OR_DEFAULT, "num_key_value_heads", 4},
    {0},
};

static void known_tokens(struct model_builder *builder, uint64_t n_tokens)
{
    if (n_tokens == 0)
        return;
    dimensions_forget(&builder->dimensions, "unused");
    dimensions_set_limit(&builder->dimensions, "token", n_tokens);
}

bool gemma3_count_tokens(struct model_builder *builder, struct error *error)
{
    dimensions_set(&builder->dimensions, "unused", 0);
    const struct checkpoint *checkpoint = builder->model->checkpoint;
    if (checkpoint_side_file(checkpoint, "tokenizer.model") != NULL) {
        uint64_t n_tokens;
        if (json_u64(hparams_find(builder->model->hparams, "vocab_size_per_layer_input|vocab_size"), &n_tokens))
            known_tokens(builder, n_tokens);
        return true;
    }
    struct document *tokenizer;
    if (!document_open(checkpoint, "tokenizer.json", &tokenizer, error))
        return false;
    const struct json *root = document_root(tokenizer), *vocab = json_get(json_get(root, "model"), "vocab");
    known_tokens(builder, json_count(vocab) + json_count_members(vocab) + json_count(json_get(root, "added_tokens")));
    document_close(tokenizer);
    return true;
}

bool gemma3_after_vocab(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    if (checkpoint_side_file(input->checkpoint, "tokenizer.model") == NULL)
        return true;
    return gemma_after_vocab(builder, input, error);
}

const struct config_row gemma3_config_rows[] = {
    {"hidden_activation", FROM_TEXT, .text = "'gelu_pytorch_tanh'"},
    {"sliding_window", FROM_KEY, "attention.sliding_window"},
    {"rope_local_base_freq", FROM_KEY, "rope.freq_base_swa", .text = "10000.0"},
    {0},
};

static const struct config_row config_rows[] = {{"query_pre_attn_scalar", FROM_KEY, "attention.key_length"}, {0}};

/* The scale of the widest model, with 62 layers, is not the size of a head, as in Gemma 2. */
static const struct config_row config_27b_rows[] = {
    {"query_pre_attn_scalar", FROM_QUOTIENT, "embedding_length", "attention.head_count"}, {0}};

const struct family gemma3_family = {
    .name = "gemma3",
    .summary = "Gemma 3 (language model)",
    .hf = FAMILY_NAMES({"Gemma3ForCausalLM"}, {"Gemma3ForConditionalGeneration"}),
    .tensors = {gemma3_tensors, gemma2_tensors, gemma_tensors, decoder_tensors},
    .forms =
        CONFIG_FORMS({"Gemma3ForCausalLM", "gemma3_text", "tensor:blk.61.attn_q.weight !tensor:blk.62.attn_q.weight",
                      CONFIG_TABLES(attention_bias_rows, gemma3_config_rows, config_27b_rows)},
                     {"Gemma3ForCausalLM", "gemma3_text", NULL,
                      CONFIG_TABLES(attention_bias_rows, gemma3_config_rows, config_rows)}),
    .keys = {base_keys, gemma3_keys},
    .vocabs = {&spm_vocab, &hf_gemma_vocab, &bpe_vocab},
    .adjust = gemma3_count_tokens,
    .after_vocab = gemma3_after_vocab,
};
