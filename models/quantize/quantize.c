#include "models/quantize/quantize.h"

#include "base/arena.h"
#include "base/sort.h"
#include "models/quantize/prune.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUANTIZATION_VERSION = 2 };

/* Facts that depend on the names and shapes of tensors only, computed once for the dozens of files of a model. */
struct quantize_outline {
    const uint32_t *order; /* the set's indices, by the N of "blk.N." (tensors without layer first), then by name */
    const struct mix_traits *traits; /* by tensor of the set */
};

static int compare_layers(const void *context, uint32_t a, uint32_t b)
{
    const uint64_t *layers = context; /* counted from 1; 0: none */
    return (layers[a] > layers[b]) - (layers[a] < layers[b]);
}

static const uint32_t *order_of(const struct tensor_set *set, struct arena *arena)
{
    uint64_t *layers = memory_alloc(set->n_tensors * sizeof *layers);
    uint32_t *order = arena_array(arena, set->n_tensors, sizeof *order);
    for (size_t i = 0; i < set->n_tensors; i++) {
        uint64_t layer;
        bool in_layer = mix_layer_of(set->tensors[i].name, &layer);
        layers[i] = in_layer ? layer + (layer < UINT64_MAX) : 0;
        order[i] = set->by_name[i];
    }
    sort_indices(order, set->n_tensors, compare_layers, layers);
    free(layers);
    return order;
}

const struct quantize_outline *quantize_outline_of(const struct gguf_model *model, struct arena *arena)
{
    if (model->family == NULL && !model->is_gguf)
        return NULL;
    const struct tensor_set *set = model->tensors;
    struct quantize_outline *outline = arena_alloc(arena, sizeof *outline);
    struct mix_traits *traits = arena_array(arena, set->n_tensors, sizeof *traits);
    for (size_t i = 0; i < set->n_tensors; i++)
        traits[i] = mix_traits(&set->tensors[i]);
    *outline = (struct quantize_outline){order_of(set, arena), traits};
    return outline;
}

static int compare_by_place(const void *a, const void *b)
{
    const struct tensor *x = ((const struct kept_tensor *)a)->original, *y = ((const struct kept_tensor *)b)->original;
    return (x > y) - (x < y);
}

/* The tensors of a file, in the order of the file. */
struct kept_tensors {
    struct kept_tensor *items;
    size_t n_items;
    uint64_t n_layers; /* set if layers are pruned */
};

/* Takes the model's tensors without the pruned layers, in the tool's order, or with keep_split in the model's. */
static bool keep_tensors(const struct gguf_model *model, const uint32_t *by_layer,
                         const struct quantize_options *options, struct arena *arena, struct kept_tensors *ret_kept,
                         struct error *error)
{
    const struct tensor_set *set = model->tensors;
    struct kept_tensors kept = {.items = arena_array(arena, set->n_tensors, sizeof *kept.items),
                                .n_items = set->n_tensors};
    bool is_pruned = options->pruned.n_layers > 0, in_order = options->keep_split && !is_pruned;
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[in_order ? i : by_layer[i]];
        kept.items[i] = (struct kept_tensor){tensor, tensor};
    }
    if (is_pruned && !prune_layers(&options->pruned, set, arena, kept.items, &kept.n_items, &kept.n_layers, error))
        return false;
    if (options->keep_split && is_pruned)
        qsort(kept.items, kept.n_items, sizeof *kept.items, compare_by_place);
    *ret_kept = kept;
    return true;
}

/* Returns the whole number of an architecture's key, or the first of its array; `otherwise` if the key is missing. */
static uint64_t model_number(const struct gguf_kvs *kvs, const char *architecture, const char *name, uint64_t otherwise)
{
    char key[256];
    uint64_t number = otherwise;
    struct gguf_array array;
    struct error error;
    struct arena *arena = arena_new();
    snprintf(key, sizeof key, "%s.%s", architecture, name);
    if (!gguf_get_u64(kvs, key, &number) && gguf_get_array(kvs, key, arena, &array, &error) && array.count > 0)
        gguf_array_u64(&array, 0, &number);
    arena_free(arena);
    return number;
}

static struct mix_model describe_model(const struct gguf_kvs *kvs, const char *architecture)
{
    uint64_t n_heads = model_number(kvs, architecture, "attention.head_count", 0);
    return (struct mix_model){
        .architecture = architecture,
        .n_layers = model_number(kvs, architecture, "block_count", 0),
        .n_heads = n_heads,
        .n_kv_heads = model_number(kvs, architecture, "attention.head_count_kv", n_heads),
        .n_experts = model_number(kvs, architecture, "expert_count", 0),
    };
}

/* Returns the type that the tool reads: the GGUF's own, or F32 converted from another model. */
static const struct dtype *input_type(const struct gguf_model *model, const struct tensor *tensor)
{
    const struct dtype *stored = gguf_stored_type(model, tensor);
    return stored != NULL ? stored : &f32_dtype;
}

static bool is_embedding(const char *name)
{
    return strcmp(name, "token_embd.weight") == 0 || strcmp(name, "per_layer_token_embd.weight") == 0;
}

/* Finds the importances of a quantized tensor: they must fit, and if they are missing the type must not need them. */
static bool find_importance(const struct mix *mix, const struct quantize_options *options,
                            const struct kept_tensor *kept, struct mix_traits traits, struct artifact_tensor *written,
                            struct error *error)
{
    const struct tensor *tensor = kept->tensor;
    const struct dtype *type = written->encoding.dtype;
    const struct imatrix_entry *entry = imatrix_find(options->imatrix, &options->filter, kept->original->name);
    const struct importance importance = imatrix_importance(entry, tensor);
    if (entry != NULL && importance.columns == NULL && !is_embedding(tensor->name))
        return error_set(
            error, "%s has %" PRIu64 " values for tensor '%s', which has %" PRIu64 " columns in %" PRIu64 " matrices",
            options->imatrix->file, entry->n_values, tensor->name, importance.n_columns, importance.n_matrices);
    written->encoding.importance = importance.columns;
    if (importance.columns != NULL || !mix_needs_importance(mix, traits, type))
        return true;
    if (options->imatrix == NULL)
        return error_set(error, "tensor '%s' as %s needs an importance matrix (-o imatrix=FILE)", tensor->name,
                         type->name);
    return error_set(error, "%s has no data for tensor '%s', which needs an importance matrix for %s",
                     options->imatrix->file, tensor->name, type->name);
}

size_t quantize_unweighed(const struct gguf_edition *edition, const struct quantize_options *options, size_t *ret_n,
                          const char **ret_first)
{
    const struct tensor_set *set = edition->model->tensors;
    size_t n_unweighed = 0;
    uint64_t layer;
    *ret_n = 0;
    for (size_t i = 0; i < set->n_tensors; i++) {
        const char *name = set->tensors[i].name;
        if (!edition->outline->traits[i].may_be_quantized || !mix_layer_of(name, &layer))
            continue;
        ++*ret_n;
        if (imatrix_find(options->imatrix, &options->filter, name) != NULL)
            continue;
        *ret_first = n_unweighed == 0 ? name : *ret_first;
        n_unweighed++;
    }
    return n_unweighed;
}

/* The keys that the tool does not copy. */
static const char *const dropped[] = {"general.quantization_version", "general.file_type", "split.no", "split.count",
                                      "split.tensors.count"};

/* Moves a text key to the end, with at most 127 bytes of `text`, which may be empty. */
static void move_text(struct gguf_kvs *kvs, const char *key, const char *text)
{
    enum { MOST_BYTES = 127 };
    struct gguf_kv kv = {.key = memory_strdup(key), .type = GGUF_STRING};
    gguf_append_string(&kv.value, text, strnlen(text, MOST_BYTES));
    gguf_kvs_remove(kvs, key);
    gguf_kvs_add(kvs, &kv);
}

static void move_number(struct gguf_kvs *kvs, const char *key, uint64_t number)
{
    gguf_kvs_remove(kvs, key);
    gguf_set_u32(kvs, key, (uint32_t)number);
}

static void add_imatrix_keys(const struct quantize_options *options, struct gguf_kvs *kvs)
{
    const struct imatrix *imatrix = options->imatrix;
    size_t n_entries = imatrix_count(imatrix, &options->filter);
    if (n_entries == 0)
        return;
    move_text(kvs, "quantize.imatrix.file", imatrix->file);
    if (imatrix->dataset != NULL)
        move_text(kvs, "quantize.imatrix.dataset", imatrix->dataset);
    move_number(kvs, "quantize.imatrix.entries_count", n_entries);
    if (imatrix->n_chunks > 0)
        move_number(kvs, "quantize.imatrix.chunks_count", imatrix->n_chunks);
}

static void fill_keys(const struct gguf_edition *edition, const struct mix *mix, const struct quantize_options *options,
                      struct artifact *artifact)
{
    artifact->metadata = gguf_kvs_copy(&edition->model->kvs);
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
        gguf_kvs_remove(&artifact->metadata, dropped[i]);
    gguf_set_u32(&artifact->metadata, "general.quantization_version", QUANTIZATION_VERSION);
    gguf_set_u32(&artifact->metadata, "general.file_type", mix->file_type);
    gguf_edit(&artifact->metadata, edition->edits, edition->model->chat_template_place);
    add_imatrix_keys(options, &artifact->metadata);
}

/* Fills in the tensors of the artifact, with their types and importances, and the number of layers. */
static bool fill_tensors(const struct gguf_edition *edition, const char *architecture, const struct mix *mix,
                         const struct quantize_options *options, struct artifact *artifact, struct error *error)
{
    struct kept_tensors kept;
    const struct gguf_model *model = edition->model;
    const struct quantize_outline *outline = edition->outline;
    if (!keep_tensors(model, outline->order, options, artifact->arena, &kept, error))
        return false;
    const struct tensor **tensors = arena_array(artifact->arena, kept.n_items, sizeof *tensors);
    struct mix_traits *traits = arena_array(artifact->arena, kept.n_items, sizeof *traits);
    const struct dtype **types = arena_array(artifact->arena, kept.n_items, sizeof *types);
    for (size_t i = 0; i < kept.n_items; i++) {
        tensors[i] = kept.items[i].tensor;
        traits[i] = outline->traits[kept.items[i].original - model->tensors->tensors];
        types[i] = input_type(model, kept.items[i].original);
    }
    struct mix_model mix_model = describe_model(&artifact->metadata, architecture);
    mix_model.references = &model->references;
    if (!mix_choose_types(mix, options, &mix_model, tensors, traits, types, kept.n_items, error))
        return false;
    if (options->pruned.n_layers > 0)
        move_number(&artifact->metadata, arena_printf(artifact->arena, "%s.block_count", architecture), kept.n_layers);
    artifact_reserve(artifact, kept.n_items);
    bool found = true;
    for (size_t i = 0; i < kept.n_items && found; i++) {
        artifact->tensors[i] = (struct artifact_tensor){tensors[i], encoding_of(types[i])};
        artifact->tensors[i].encoding.rule = types[i] == &q4_0_dtype ? options->q4_0_rule : NULL;
        found = types[i] == input_type(model, kept.items[i].original) ||
                find_importance(mix, options, &kept.items[i], traits[i], &artifact->tensors[i], error);
    }
    return found;
}

bool quantize_artifact(const struct gguf_edition *edition, const struct mix *mix,
                       const struct quantize_options *options, struct artifact *ret_artifact, struct error *error)
{
    struct artifact artifact = {.container = &ggml_container, .arena = arena_new()};
    fill_keys(edition, mix, options, &artifact);
    const char *architecture = gguf_get_text(&artifact.metadata, "general.architecture", artifact.arena);
    bool made = edition->outline != NULL && architecture != NULL
                    ? imatrix_check(options->imatrix, &options->filter, error) &&
                          fill_tensors(edition, architecture, mix, options, &artifact, error)
                    : error_set(error, "llama-quantize accepts only architectures it knows");
    if (made)
        *ret_artifact = artifact;
    else
        artifact_free(&artifact);
    return made;
}
