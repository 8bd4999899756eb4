/* Gemma 1 to 3, and EmbeddingGemma. conversion/gemma.py. */
#include "models/families/gemma/gemma.h"

#include "base/text.h"
#include "formats/components.h"
#include "formats/documents.h"

#include <math.h>
#include <string.h>

/* Gemma 1. conversion/gemma.py. */

const struct relation_row gemma_tensors[] = {
    {"lm_head.weight", NULL},
    {"model.norm", "output_norm", .map = &plus_one},
    {"model.layers.{}.input_layernorm", "blk.{}.attn_norm", .map = &plus_one},
    {"model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm", .map = &plus_one},
    {0},
};

const struct key_row gemma_keys[] = {
    {"context_length", GGUF_U32, REQUIRED, "max_position_embeddings"},
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size"},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size"},
    {"attention.head_count", GGUF_U32, REQUIRED, "num_attention_heads"},
    {"attention.head_count_kv", GGUF_U32, REQUIRED, "num_key_value_heads|num_attention_heads"},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, REQUIRED, "rms_norm_eps"},
    {"attention.key_length", GGUF_U32, REQUIRED, "head_dim"},
    {"attention.value_length", GGUF_U32, REQUIRED, "head_dim"},
    FILE_TYPE_KEY,
    {.emit = note_lost_rope},
    {0},
};

bool gemma_after_vocab(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    gguf_set_bool(&builder->model->kvs, "tokenizer.ggml.add_space_prefix", false);
    return true;
}

static bool after_vocab(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    enum { END_OF_TURN = 107 };
    return special_vocab_set_eot(&builder->model->kvs, input, END_OF_TURN, error) &&
           gemma_after_vocab(builder, input, error);
}

static const struct config_row gemma1_config_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'gelu_pytorch_tanh'"},
    {"hidden_activation", FROM_TEXT, .text = "'gelu_pytorch_tanh'"},
    {"rope_theta", FROM_TEXT, .text = "10000.0"},
    {0},
};

const struct family gemma_family = {
    .name = "gemma",
    .summary = "Gemma 1",
    .hf = FAMILY_NAMES({"GemmaForCausalLM"}),
    .tensors = {gemma_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"GemmaForCausalLM", "gemma", NULL, CONFIG_TABLES(attention_bias_rows, gemma1_config_rows)}),
    .keys = {gemma_keys},
    .vocabs = {&spm_vocab, &hf_gemma_vocab},
    .after_vocab = after_vocab,
};

/* Gemma 2. conversion/gemma.py. */

const struct relation_row gemma2_tensors[] = {
    {"model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm", .map = &plus_one},
    {"model.layers.{}.pre_feedforward_layernorm", "blk.{}.ffn_norm", .map = &plus_one},
    {"model.layers.{}.post_feedforward_layernorm", "blk.{}.post_ffw_norm", .map = &plus_one},
    {0},
};

/* MERaLiON 2's audio tensors, on which the converter fails. */
static const struct relation_row foreign_tensors[] = {{"ln_speech.*", NULL}, {"speech_encoder.*", NULL}, {0}};

/* No key has the scale of queries: the size of a head, but hidden_size divided by the heads in the widest model, which
 * llama.cpp, too, recognizes by its layers. */
static const struct config_row common_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'gelu_pytorch_tanh'"},
    {"hidden_activation", FROM_TEXT, .text = "'gelu_pytorch_tanh'"},
    {"rope_theta", FROM_TEXT, .text = "10000.0"},
    {0},
};

static const struct config_row gemma2_config_rows[] = {{"query_pre_attn_scalar", FROM_KEY, "attention.key_length"},
                                                       {0}};
static const struct config_row gemma2_config_27b_rows[] = {
    {"query_pre_attn_scalar", FROM_QUOTIENT, "embedding_length", "attention.head_count"}, {0}};

const struct family gemma2_family = {
    .name = "gemma2",
    .summary = "Gemma 2",
    .hf = FAMILY_NAMES({"Gemma2ForCausalLM"}),
    .tensors = {foreign_tensors, gemma2_tensors, gemma_tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"Gemma2ForCausalLM", "gemma2", "tensor:blk.45.attn_q.weight !tensor:blk.46.attn_q.weight",
         CONFIG_TABLES(attention_bias_rows, common_rows, gemma2_config_27b_rows)},
        {"Gemma2ForCausalLM", "gemma2", NULL, CONFIG_TABLES(attention_bias_rows, common_rows, gemma2_config_rows)}),
    .keys = {gemma_keys, KEYS({"attn_logit_softcapping", GGUF_F32, REQUIRED, "attn_logit_softcapping"},
                              {"final_logit_softcapping", GGUF_F32, REQUIRED, "final_logit_softcapping"},
                              {"attention.sliding_window", GGUF_U32, REQUIRED, "sliding_window"})},
    .vocabs = {&spm_vocab, &hf_gemma_vocab},
    .dropped_prefixes = TEXTS("text_decoder."),
    .after_vocab = gemma_after_vocab,
};

/* Gemma 3, the text model. conversion/gemma.py. */

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

static const struct config_row gemma3_head_rows[] = {{"query_pre_attn_scalar", FROM_KEY, "attention.key_length"}, {0}};

/* The scale of the widest model, with 62 layers, is not the size of a head, as in Gemma 2. */
static const struct config_row gemma3_config_27b_rows[] = {
    {"query_pre_attn_scalar", FROM_QUOTIENT, "embedding_length", "attention.head_count"}, {0}};

const struct family gemma3_family = {
    .name = "gemma3",
    .summary = "Gemma 3 (language model)",
    .hf = FAMILY_NAMES({"Gemma3ForCausalLM"}, {"Gemma3ForConditionalGeneration"}),
    .tensors = {gemma3_tensors, gemma2_tensors, gemma_tensors, decoder_tensors},
    .forms =
        CONFIG_FORMS({"Gemma3ForCausalLM", "gemma3_text", "tensor:blk.61.attn_q.weight !tensor:blk.62.attn_q.weight",
                      CONFIG_TABLES(attention_bias_rows, gemma3_config_rows, gemma3_config_27b_rows)},
                     {"Gemma3ForCausalLM", "gemma3_text", NULL,
                      CONFIG_TABLES(attention_bias_rows, gemma3_config_rows, gemma3_head_rows)}),
    .keys = {base_keys, gemma3_keys},
    .vocabs = {&spm_vocab, &hf_gemma_vocab, &bpe_vocab},
    .adjust = gemma3_count_tokens,
    .after_vocab = gemma3_after_vocab,
};

/* EmbeddingGemma. conversion/gemma.py. With the option dense-modules, also the dense layers that follow the model in
 * folders of their own (models/derive/attached.c). */

/* Sets the window as in the file: transformers halves it for bidirectional attention. */
static bool emit_window(struct model_builder *builder, struct error *error)
{
    uint64_t window;
    if (!json_u64(json_get(hparams_raw(builder->model->hparams), "sliding_window"), &window) || window > UINT32_MAX)
        return error_set(error, "config.json: sliding_window is missing, or not a whole number of 32 bits");
    gguf_set_u32(&builder->model->kvs, builder_key(builder, "attention.sliding_window"), (uint32_t)window);
    return true;
}

/* A dense layer in a folder of its own. */
struct dense {
    const char *folder, *prefix; /* its name in the GGUF: "dense_2" */
    const struct checkpoint *checkpoint;
};

/* Finds the next dense layer from component *number on; false: none is left. */
static bool next_dense(const struct checkpoint *checkpoint, size_t *number, struct dense *ret_dense)
{
    const struct components *components = checkpoint->components;
    for (; components != NULL && *number < components->count; ++*number) {
        const struct component *component = &components->items[*number];
        bool is_second = strcmp(component->name, "2_Dense") == 0;
        const struct checkpoint *inside = checkpoint_base(checkpoint, is_second ? BASE_DENSE_2 : BASE_DENSE_3);
        if (inside == NULL || component->class_name == NULL || !text_ends_with(component->class_name, "Dense"))
            continue;
        *ret_dense = (struct dense){component->name, is_second ? "dense_2" : "dense_3", inside};
        ++*number;
        return true;
    }
    return false;
}

static bool add_dense(struct model_builder *builder, struct error *error)
{
    static const char name[] = "linear.weight";
    struct gguf_model *model = builder->model;
    struct dense dense;
    for (size_t i = 0; model->references.converter.dense_modules && next_dense(model->checkpoint, &i, &dense);) {
        const struct tensor *matrix = tensor_set_find_text(dense.checkpoint->tensors, name);
        const char *target = arena_printf(model->arena, "%s.weight", dense.prefix);
        if (matrix == NULL || matrix->refusal != NULL || matrix->rank != 2 ||
            dtype_kernels(matrix->dtype).decode == NULL)
            return error_set(error, "%s: no readable matrix %s", dense.folder, name);
        for (size_t j = 0; j < model->tensors->n_tensors; j++)
            if (strcmp(model->tensors->tensors[j].name, target) == 0)
                return error_set(error, "%s: modules.json names more dense layers than a GGUF can have", dense.folder);
        tensor_set_add_view(model->tensors, target, tensor_view(matrix, model->arena));
    }
    return true;
}

/* Sets the widths that the configuration of a dense layer states, unless one is null. */
static bool emit_widths(struct model_builder *builder, const struct dense *dense, struct error *error)
{
    static const char *const keys[][2] = {{"in_features", "feat_in"}, {"out_features", "feat_out"}};
    struct arena *arena = builder->model->arena;
    struct document *config;
    uint64_t widths[2];
    if (checkpoint_side_file(dense->checkpoint, "config.json") == NULL)
        return true;
    if (!document_open(dense->checkpoint, "config.json", &config, error))
        return error_prefix(error, "%s", dense->folder);
    bool is_null = false, is_valid = true;
    for (size_t i = 0; i < 2; i++) {
        const struct json *width = json_get(document_root(config), keys[i][0]);
        is_null |= width != NULL && json_is(width, JSON_NULL);
        is_valid &=
            (width != NULL && json_is(width, JSON_NULL)) || (json_u64(width, &widths[i]) && widths[i] <= UINT32_MAX);
    }
    document_close(config);
    if (!is_valid)
        return error_set(error, "%s/config.json: in_features or out_features is missing, or not a whole number",
                         dense->folder);
    for (size_t i = 0; i < 2 && !is_null; i++)
        gguf_set_u32(&builder->model->kvs,
                     builder_key(builder, arena_printf(arena, "%s_%s", dense->prefix, keys[i][1])),
                     (uint32_t)widths[i]);
    return true;
}

static bool emit_dense(struct model_builder *builder, struct error *error)
{
    struct dense dense;
    for (size_t i = 0;
         builder->model->references.converter.dense_modules && next_dense(builder->model->checkpoint, &i, &dense);)
        if (!emit_widths(builder, &dense, error))
            return false;
    return true;
}

static const char *rename_tensor(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    return direction == BACKWARD && text_starts_with(name, "model.") ? name + 6 : name;
}

static const struct config_row gemma_embedding_config_rows[] = {
    {"query_pre_attn_scalar", FROM_KEY, "attention.key_length"},
    {"use_bidirectional_attention", FROM_TEXT, .text = "true"},
    {0},
};

const struct family gemma_embedding_family = {
    .name = "gemma-embedding",
    .summary = "EmbeddingGemma",
    .hf = FAMILY_NAMES({"Gemma3TextModel", "model."}),
    .tensors = {gemma3_tensors, gemma2_tensors, gemma_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Gemma3TextModel", "gemma3_text", NULL,
                           CONFIG_TABLES(attention_bias_rows, gemma3_config_rows, gemma_embedding_config_rows)}),
    .keys = {base_keys, gemma3_keys, KEYS({.emit = emit_window}, {.emit = emit_dense}, {.emit = emit_pooling_type})},
    .vocabs = {&spm_vocab, &hf_gemma_vocab, &bpe_vocab},
    .add_extras = add_dense,
    .rename = rename_tensor,
    .adjust = gemma3_count_tokens,
    .after_vocab = gemma3_after_vocab,
};
