/* EmbeddingGemma. conversion/gemma.py. With the option dense-modules, also the dense layers that follow the model in
 * folders of their own (models/derive/folder.c). */
#include "base/text.h"
#include "formats/components.h"
#include "formats/documents.h"
#include "models/families/gemma/gemma.h"

#include <string.h>

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
    .keys = {base_keys, gemma3_keys, KEYS({.emit = emit_window}, {.emit = emit_dense}, {.emit = emit_pooling_type})},
    .vocabs = {&spm_vocab, &hf_gemma_vocab, &bpe_vocab},
    .add_extras = add_dense,
    .rename = rename_tensor,
    .adjust = gemma3_count_tokens,
    .after_vocab = gemma3_after_vocab,
};
