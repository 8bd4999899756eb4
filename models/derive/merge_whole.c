/* Tensors of an adapter outside its pairs: trained copies of whole modules (modules_to_save, and embeddings that peft
 * saved because the vocabulary was resized), and trained rows of an embedding (trainable_token_indices).
 *
 * Sources: peft, utils/other.py (ModulesToSaveWrapper), utils/save_and_load.py, tuners/trainable_tokens/layer.py. */
#include "base/arena.h"
#include "base/text.h"
#include "formats/shape.h"
#include "models/derive/merging.h"
#include "quant/views/convert.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROWS = 1 << 14, MAX_ADDED = 1 << 10 };

static const char saved[] = "modules_to_save.";
static const char rows[] = ".token_adapter.trainable_tokens_delta";

/* Ends of the names of embeddings, and of outputs that may be tied to them. */
static const char *const embeddings[] = {"embed_tokens.weight", "wte.weight", "word_embeddings.weight",
                                         "embed_in.weight"};
static const char *const outputs[] = {"lm_head.weight", "embed_out.weight"};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool ends_with_any(const char *name, const char *const *ends, size_t n_ends)
{
    for (size_t i = 0; i < n_ends; i++)
        if (text_ends_with(name, ends[i]))
            return true;
    return false;
}

bool merging_is_output(const char *name)
{
    return ends_with_any(name, outputs, COUNT(outputs));
}

const struct tensor *merging_tied(const struct merging *merging, const char *name)
{
    const struct tensor *found = NULL;
    if (!merging_is_output(name) || merging_tensor(merging, name) != NULL)
        return NULL;
    for (size_t i = 0; i < merging->named->n_tensors && found == NULL; i++)
        if (ends_with_any(merging->named->tensors[i].name, embeddings, COUNT(embeddings)))
            found = &merging->named->tensors[i];
    return found;
}

bool merging_stays_tied(const struct merging *merging, const char *name)
{
    return json_bool(json_get(merging->adapter->config, "ensure_weight_tying"), false) &&
           merging_tied(merging, name) != NULL;
}

static bool same_shape(const struct tensor *a, const struct tensor *b)
{
    return a->rank == b->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0;
}

static bool check_values(const struct merging *merging, const struct tensor *whole)
{
    if (whole->refusal == NULL && dtype_kernels(whole->dtype).decode != NULL)
        return true;
    return error_set(merging->error, "tensor '%.200s' is %s, which adapters cannot have", whole->name,
                     whole->dtype->name);
}

static bool misfit(const struct merging *merging, const struct tensor *whole, const struct tensor *tensor,
                   const char *name)
{
    char of_base[SHAPE_MAX_RANK * 22], of_adapter[SHAPE_MAX_RANK * 22];
    return error_set(merging->error, "tensor '%.200s' is %s in the base, but %s in the adapter", name,
                     shape_text(tensor->shape, tensor->rank, of_base, sizeof of_base),
                     shape_text(whole->shape, whole->rank, of_adapter, sizeof of_adapter));
}

bool merging_check_whole(const struct merging *merging, const struct tensor *whole, const struct tensor *tensor,
                         const char *name)
{
    return merging_check(merging, tensor, name) && check_values(merging, whole) &&
           (same_shape(whole, tensor) || misfit(merging, whole, tensor, name));
}

/* Returns the name of the tensor that a whole tensor replaces: its own without peft's insertions. */
static const char *replaced_name(const struct merging *merging, const char *name)
{
    static const char *const parts[] = {"modules_to_save.default.", saved, "base_layer."};
    for (size_t i = 0; i < COUNT(parts); i++) {
        const char *found = strstr(name, parts[i]);
        if (found != NULL)
            return arena_printf(merging->adapter->arena, "%.*s%s", (int)(found - name), name, found + strlen(parts[i]));
    }
    return name;
}

/* Reports whether the adapter also has the trained copy of a tensor, below modules_to_save: of the two, equal if peft
 * saved both (save_embedding_layers), that copy counts. */
static bool has_trained_copy(const struct merging *merging, const struct tensor *whole)
{
    const struct tensor_set *set = merging->adapter->checkpoint->tensors;
    struct arena *arena = merging->adapter->arena;
    for (const char *dot = strchr(whole->name, '.'); dot != NULL; dot = strchr(dot + 1, '.')) {
        int stem = (int)(dot + 1 - whole->name);
        if (tensor_set_find_text(set, arena_printf(arena, "%.*s%s%s", stem, whole->name, saved, dot + 1)) != NULL ||
            tensor_set_find_text(set, arena_printf(arena, "%.*s%sdefault.%s", stem, whole->name, saved, dot + 1)) !=
                NULL)
            return true;
    }
    return false;
}

bool merging_is_of_vocabulary(const struct tensor *tensor)
{
    return tensor->rank == 2 && (ends_with_any(tensor->name, embeddings, COUNT(embeddings)) ||
                                 ends_with_any(tensor->name, outputs, COUNT(outputs)));
}

/* Reports whether a tensor has another number of rows than the base's embedding or output. */
static bool is_resized(const struct tensor *whole, const struct tensor *tensor)
{
    return merging_is_of_vocabulary(tensor) && whole->rank == 2 && whole->shape[0] > 0 &&
           whole->shape[0] != tensor->shape[0] && whole->shape[1] == tensor->shape[1];
}

/* Adds a module that the base lacks, in the dtype of the base's first matrix. */
static bool add_module(struct merging *merging, const struct tensor *whole, const char *name)
{
    struct arena *arena = merging->merged->arena;
    const struct dtype *dtype = &f32_dtype;
    if (merging->gguf != NULL || merging->n_added == MAX_ADDED)
        return error_set(merging->error, "tensor '%.200s' is not in the base", name);
    if (!check_values(merging, whole))
        return false;
    for (size_t i = merging->named->n_tensors; i-- > 0;)
        if (merging->named->tensors[i].rank == 2 && merging->named->tensors[i].dtype->kind == DTYPE_FLOAT)
            dtype = merging->named->tensors[i].dtype;
    merging->added = memory_resize(merging->added, (merging->n_added + 1) * sizeof *merging->added);
    const struct view *view = view_convert(arena, tensor_view(whole, arena), dtype);
    merging->added[merging->n_added++] = tensor_of_view(arena_strdup(arena, name), view);
    merging->has_new_shapes = true;
    merging_note_classifier(merging, whole);
    checkpoint_note(merging->merged, SUBJECT_SOURCE, "%.200s, a trained module that the base lacks, is added", name);
    return true;
}

/* Reports whether an output is a copy of the embedding: of a model that ties both, peft saves both, or the base's
 * values beside the output's pair (save_embedding_layers). */
static bool is_tied_copy(const struct merging *merging, const struct tensor *whole, const char *name)
{
    const struct adapter *adapter = merging->adapter;
    bool found = strstr(whole->name, ".base_layer.") != NULL;
    if (merging_tied(merging, name) == NULL)
        return false;
    for (size_t i = 0; i < adapter->n_others && !found; i++)
        found = ends_with_any(adapter->other_names[i], embeddings, COUNT(embeddings));
    return found;
}

static bool replace_tensor(struct merging *merging, const struct tensor *whole, const char *name)
{
    struct arena *arena = merging->merged->arena;
    const struct tensor *tensor = merging_tensor(merging, name);
    if (tensor == NULL && is_tied_copy(merging, whole, name))
        return true;
    if (tensor == NULL && strstr(whole->name, saved) == NULL && !merging_is_saved_module(merging, name))
        return error_set(merging->error, "tensor '%.200s' is not in the base", name);
    if (tensor == NULL)
        return add_module(merging, whole, name);
    bool is_new_shape = merging->gguf == NULL && is_resized(whole, tensor);
    if (!merging_check(merging, tensor, name) || !check_values(merging, whole) ||
        (!is_new_shape && !merging_check_whole(merging, whole, tensor, name)) ||
        !merging_change(merging, tensor, REPLACED, name))
        return false;
    const struct view *view = view_convert(arena, tensor_view(whole, arena), &f32_dtype);
    if (merging->gguf != NULL) {
        gguf_merging_replace(merging->gguf, tensor->name, view);
        return true;
    }
    *merging_view(merging, tensor) = view;
    if (is_new_shape) {
        merging->has_new_shapes = true;
        merging->n_rows = whole->shape[0];
        merging->resized_by = merging->adapter->checkpoint;
    }
    return true;
}

/* Returns the tokens of the rows for a module: of all embeddings, or of those that the configuration names. */
static const struct json *tokens_of(const struct json *config, const char *module)
{
    const struct json *tokens = json_get(config, "trainable_token_indices");
    for (struct json_member member = {0}; json_next_member(tokens, &member);)
        if (text_ends_with(module, member.key))
            return member.value;
    return json_count_members(tokens) > 0 ? NULL : tokens;
}

/* Reads the tokens, which must be as many as there are rows, each once, in *ret_row: the row of each; UINT32_MAX: none.
 * The caller frees the array, also on failure. */
static bool read_tokens(const struct merging *merging, const struct json *tokens, uint64_t n_rows, uint64_t n_tokens,
                        uint32_t **ret_row, struct error *error)
{
    uint32_t row = 0;
    if (json_count(tokens) != n_rows || n_rows > MAX_ROWS || n_tokens >= UINT32_MAX)
        return error_set(error,
                         "adapter_config.json: trainable_token_indices has %zu tokens, but there are %" PRIu64 " rows",
                         (size_t)json_count(tokens), n_rows);
    *ret_row = memory_alloc(n_tokens * sizeof **ret_row);
    memset(*ret_row, 0xff, n_tokens * sizeof **ret_row);
    for (const struct json *item = json_first(tokens); item != NULL; item = json_next(item), row++) {
        uint64_t token;
        if (!json_u64(item, &token) || token >= n_tokens || (*ret_row)[token] != UINT32_MAX)
            return error_set(error,
                             "adapter_config.json: token %u of trainable_token_indices is no token of the base, or "
                             "appears twice",
                             row);
        (*ret_row)[token] = row;
    }
    return true;
}

/* Returns `whole` with the rows in place of those of their tokens. */
static const struct view *with_rows(struct arena *arena, const struct view *whole, const struct view *new_rows,
                                    const uint32_t *row)
{
    uint64_t n_tokens = whole->shape[0], done = 0;
    size_t n_parts = 0;
    const struct view **parts = arena_array(arena, 2 * new_rows->shape[0] + 1, sizeof *parts);
    for (uint64_t token = 0; token < n_tokens; token++) {
        if (row[token] == UINT32_MAX)
            continue;
        if (token > done)
            parts[n_parts++] = view_slice(arena, whole, 0, done, token - done, 1);
        parts[n_parts++] = view_slice(arena, new_rows, 0, row[token], 1, 1);
        done = token + 1;
    }
    if (done < n_tokens)
        parts[n_parts++] = view_slice(arena, whole, 0, done, n_tokens - done, 1);
    return view_concatenate(arena, parts, n_parts, 0);
}

/* Puts trained rows of tokens into an embedding. */
static bool replace_rows(const struct merging *merging, const struct tensor *whole, const char *name)
{
    struct arena *arena = merging->merged->arena;
    const char *end = strstr(name, rows);
    const char *module = arena_strndup(merging->adapter->arena, name, (size_t)(end - name)),
               *weight = arena_printf(merging->adapter->arena, "%s.weight", module);
    const struct tensor *tensor = merging_tensor(merging, weight);
    uint32_t *row = NULL;
    if (merging->gguf != NULL)
        return error_set(merging->error, "tensor '%.200s' has rows of tokens, which cannot be merged into a GGUF",
                         whole->name);
    if (tensor == NULL && merging_tied(merging, weight) != NULL)
        return true; /* the rows of the embedding */
    if (!merging_check(merging, tensor, weight) || !check_values(merging, whole))
        return false;
    if (whole->rank != 2 || tensor->rank != 2 || whole->shape[1] != tensor->shape[1])
        return misfit(merging, whole, tensor, weight);
    bool good = merging_change(merging, tensor, ROWS_REPLACED, weight) &&
                read_tokens(merging, tokens_of(merging->adapter->config, module), whole->shape[0], tensor->shape[0],
                            &row, merging->error);
    if (good) {
        const struct view **view = merging_view(merging, tensor);
        *view = with_rows(arena, view_convert(arena, *view, &f32_dtype),
                          view_convert(arena, tensor_view(whole, arena), &f32_dtype), row);
    }
    free(row);
    return good;
}

bool merging_has_rows(const struct merging *merging)
{
    for (size_t i = 0; i < merging->adapter->n_others; i++)
        if (text_ends_with(merging->adapter->other_names[i], rows))
            return true;
    return false;
}

bool merge_whole(struct merging *merging, const struct tensor *whole, const char *name)
{
    if (strstr(name, rows) != NULL)
        return replace_rows(merging, whole, name);
    /* copies of the base's values, which peft keeps to switch adapters off */
    if (strstr(name, "original_module.") != NULL || strstr(name, "token_adapter.base_layer.") != NULL)
        return true;
    if (strstr(name, saved) == NULL && has_trained_copy(merging, whole))
        return true;
    name = replaced_name(merging, name);
    return merging_stays_tied(merging, name) || replace_tensor(merging, whole, name);
}
