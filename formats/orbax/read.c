/* Orbax's checkpoints, as JAX programs (MaxText, Gemma, Keras 3) save them: a directory with _METADATA and arrays of
 * zarr 2 or 3, all in an OCDBT database or each in a folder.
 *
 * The name of a tensor is its keys joined by '.', as on disk. A step of a CheckpointManager has folders, its items,
 * that are such directories: all are shown, each with its name before those of its tensors unless it is the only one.
 * Every array that _METADATA lists must be there. Entries that are no arrays, and how arrays were sharded, are left
 * out. Source: the documentation of Orbax; what orbax-checkpoint 0.12.8 writes. */
#include "base/text.h"
#include "formats/documents.h"
#include "formats/format.h"
#include "formats/orbax/zarr.h"
#include "text/json.h"

#include <stdlib.h>
#include <string.h>

static const char metadata_name[] = "_METADATA", checkpoint_name[] = "_CHECKPOINT_METADATA";
static const char array_2[] = "/.zarray", array_3[] = "/zarr.json";

enum { MAX_METADATA = 64 * 1024, MAX_FILE_CHUNKS = 65536 };

struct reader {
    struct checkpoint *checkpoint;
    const struct location *location;
    const char *folder; /* of the item: "", or with a '/' at its end */
    const char *prefix; /* of names: "", or with a '.' at its end */
    struct value_store store;
    uint64_t file_chunks_left; /* chunks that may be files */
    struct error *error;
};

/* Arrays in folders. */

/* Opens a file as the value of its path in the item's folder; one that is missing is none. */
static bool add_file(struct reader *reader, const char *path)
{
    struct arena *arena = reader->checkpoint->arena;
    const char *whole = arena_printf(arena, "%s%s", reader->folder, path);
    if (location_kind(reader->location, whole) == LOCATION_NOTHING)
        return true;
    struct source *source =
        value_store_open(&reader->store, reader->checkpoint, reader->location, whole, reader->error);
    if (source == NULL)
        return false;
    const struct stored_value value = {source, 0, source_size(source)};
    value_store_add(&reader->store, reader->checkpoint, path, strlen(path), &value);
    return true;
}

/* Opens the files of an array's chunks. */
static bool add_chunk_files(struct reader *reader, const char *name, const struct zarr_array *array)
{
    char key[ZARR_KEY];
    if (array->n_chunks > reader->file_chunks_left)
        return error_set(reader->error, "%s%s: its arrays have more than %d chunks in files", reader->folder, name,
                         MAX_FILE_CHUNKS);
    reader->file_chunks_left -= array->n_chunks;
    for (uint64_t i = 0; i < array->n_chunks; i++) {
        zarr_key(array, i, key);
        if (!add_file(reader, arena_printf(reader->checkpoint->arena, "%s/%s", name, key)))
            return false;
    }
    return true;
}

/* Opens the metadata of the arrays in folders of the item. */
static bool add_folders(struct reader *reader)
{
    struct location_list list;
    struct arena *arena = arena_new();
    bool good = location_list(reader->location, reader->folder, arena, &list, reader->error);
    for (size_t i = 0; good && i < list.count; i++) {
        const char *name = list.entries[i].name;
        if (list.entries[i].kind != LOCATION_FOLDER)
            continue;
        good = add_file(reader, arena_printf(reader->checkpoint->arena, "%s%s", name, array_2)) &&
               add_file(reader, arena_printf(reader->checkpoint->arena, "%s%s", name, array_3));
    }
    arena_free(arena);
    return good;
}

/* Tensors. */

/* Returns the length of the array's name in the key of its metadata; 0: another key. */
static size_t name_length(const char *key)
{
    size_t length = strlen(key);
    if (text_ends_with(key, array_2))
        return length - strlen(array_2);
    return text_ends_with(key, array_3) ? length - strlen(array_3) : 0;
}

static bool read_array(struct reader *reader, const char *key, const struct stored_value *value,
                       struct zarr_array *array)
{
    if (value->length > MAX_METADATA)
        return error_set(reader->error, "%s: the metadata of an array are longer than 64 KiB", key);
    char *text = memory_alloc((size_t)value->length + 1);
    bool good = source_read(value->source, value->offset, (size_t)value->length, text, reader->error) &&
                zarr_read(text, (size_t)value->length, key, reader->checkpoint->arena, array, reader->error);
    free(text);
    return good;
}

/* Adds the tensor of an array, whose view is made when all arrays are known. */
static bool add_tensor(struct reader *reader, const char *name, const struct zarr_array *array, bool in_files)
{
    struct checkpoint *checkpoint = reader->checkpoint;
    struct arena *arena = checkpoint->arena;
    const char *whole = arena_printf(arena, "%s%s", reader->prefix, name);
    size_t length = strlen(whole);
    if (length > TENSOR_MAX_NAME || checkpoint->tensors->n_tensors == TENSOR_SET_MAX)
        return error_set(reader->error, "%s%s: too many arrays, or their names are too long", reader->folder,
                         ocdbt_manifest);
    struct tensor tensor = {
        .name = whole,
        .name_length = (uint32_t)length,
        .dtype = array->dtype,
        .rank = (uint8_t)array->rank,
        .shape = arena_copy(arena, array->shape, array->rank * sizeof *array->shape),
        .refusal = array->refusal,
    };
    if (array->n_elements == 0 && tensor.refusal == NULL)
        tensor.view = view_literal(arena, array->dtype, array->rank, array->shape, "");
    else if (tensor.refusal == NULL && in_files && !add_chunk_files(reader, name, array))
        return false;
    tensor_set_add(checkpoint->unsealed, &tensor);
    return true;
}

/* An array, by its name in the item. */
struct named {
    const char *name;
    struct zarr_array *array; /* on the heap */
    size_t tensor;
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

/* Collects the arrays that the store has, sorted by name; both they and the list are to be freed. */
static bool collect(struct reader *reader, struct named **ret_list, size_t *ret_count)
{
    struct named *list = NULL;
    size_t n = 0;
    bool good = true;
    for (size_t i = 0; i < reader->store.n_values && good; i++) {
        const char *key = reader->store.names[i];
        size_t length = name_length(key);
        if (length == 0)
            continue;
        list = memory_grow(list, n, sizeof *list);
        list[n].name = arena_strndup(reader->checkpoint->arena, key, length);
        list[n].array = memory_alloc(sizeof *list[n].array);
        good = read_array(reader, key, &reader->store.values[i], list[n++].array);
    }
    if (n > 0)
        qsort(list, n, sizeof *list, compare_names);
    *ret_list = list;
    *ret_count = n;
    return good;
}

/* Makes the source of all chunks, and the views of the arrays. */
static bool add_views(struct reader *reader, const struct named *list, size_t n, const struct source *base)
{
    struct checkpoint *checkpoint = reader->checkpoint;
    struct zarr_chunks *chunks = zarr_chunks_new(&reader->store);
    for (size_t i = 0; i < n; i++)
        if (list[i].array->refusal == NULL && list[i].array->n_elements > 0 &&
            !zarr_chunks_add(chunks, list[i].name, list[i].array)) {
            zarr_chunks_free(chunks);
            return error_set(reader->error, "%s: the sizes of its arrays overflow", source_name(base));
        }
    struct source *source = zarr_chunks_source(chunks, base);
    checkpoint_add_source(checkpoint, source);
    for (size_t i = 0, j = 0; i < n; i++)
        if (list[i].array->refusal == NULL && list[i].array->n_elements > 0)
            tensor_set_edit(checkpoint->unsealed)[list[i].tensor].view =
                zarr_view(checkpoint->arena, chunks, j++, source);
    return true;
}

/* Reports whether the entry of a tree is an array that must be there. */
static bool is_array(const struct json *entry)
{
    static const char *const types[] = {"jax.Array", "np.ndarray", "scalar"};
    const struct json *value = json_get(entry, "value_metadata"), *type = json_get(value, "value_type");
    bool found = false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        found |= json_string_is(type, types[i]);
    return found && !json_bool(json_get(value, "skip_deserialize"), false);
}

/* Joins the keys of an entry; false if they are not texts. */
static bool join_keys(const struct json *entry, struct buffer *out)
{
    for (const struct json *key = json_first(json_get(entry, "key_metadata")); key != NULL; key = json_next(key)) {
        size_t length;
        const char *text = json_string(json_get(key, "key"), &length), *number = json_number_text(json_get(key, "key"));
        if (text == NULL && number == NULL)
            return false;
        if (out->length > 0)
            buffer_append_text(out, ".");
        buffer_append(out, text != NULL ? text : number, text != NULL ? length : strlen(number));
    }
    return true;
}

/* Checks that the arrays of _METADATA are there. */
static bool check_tree(struct reader *reader, const struct json *tree, const struct named *list, size_t n)
{
    struct buffer name = {0};
    bool good = true;
    for (struct json_member member = {0}; good && json_next_member(tree, &member);) {
        name.length = 0;
        if (!is_array(member.value) || !join_keys(member.value, &name))
            continue;
        buffer_append(&name, "", 1);
        const struct named wanted = {.name = (const char *)name.bytes};
        if (n == 0 || bsearch(&wanted, list, n, sizeof *list, compare_names) == NULL)
            good = error_set(reader->error, "%s%s lists the array '%.200s', which is missing", reader->folder,
                             metadata_name, wanted.name);
    }
    buffer_free(&name);
    return good;
}

static bool check_metadata(struct reader *reader, const struct named *list, size_t n)
{
    const char *path = arena_printf(reader->checkpoint->arena, "%s%s", reader->folder, metadata_name);
    if (location_kind(reader->location, path) == LOCATION_NOTHING)
        return true;
    struct source *source = location_source(reader->location, path, reader->error);
    if (source == NULL)
        return false;
    checkpoint_add_guide(reader->checkpoint, source);
    struct json_document *document = document_parse(source, reader->error);
    bool good = document != NULL && check_tree(reader, json_get(json_root(document), "tree_metadata"), list, n);
    json_free(document);
    return good;
}

/* Adds the arrays of an item. */
static bool add_arrays(struct reader *reader, bool in_files)
{
    struct named *list = NULL;
    size_t n = 0;
    bool good = collect(reader, &list, &n) && check_metadata(reader, list, n);
    if (good && n == 0)
        good = error_set(reader->error, "%san Orbax checkpoint without arrays", reader->folder);
    for (size_t i = 0; i < n && good; i++) {
        list[i].tensor = reader->checkpoint->tensors->n_tensors;
        good = add_tensor(reader, list[i].name, list[i].array, in_files);
    }
    good = good && add_views(reader, list, n, reader->store.values[0].source);
    for (size_t i = 0; i < n; i++)
        free(list[i].array);
    free(list);
    return good;
}

static bool read_item(struct checkpoint *checkpoint, const struct location *location, const char *folder,
                      const char *prefix, struct error *error)
{
    struct reader reader = {
        .checkpoint = checkpoint,
        .location = location,
        .folder = folder,
        .prefix = prefix,
        .file_chunks_left = MAX_FILE_CHUNKS,
        .error = error,
    };
    const char *manifest = arena_printf(checkpoint->arena, "%s%s", folder, ocdbt_manifest);
    bool is_database = location_kind(location, manifest) != LOCATION_NOTHING;
    bool good = (is_database ? ocdbt_read(&reader.store, checkpoint, location, folder, error) : add_folders(&reader)) &&
                add_arrays(&reader, !is_database);
    value_store_free(&reader.store);
    return good;
}

/* Items. */

static bool is_item(const struct location *location, const char *folder, struct arena *arena)
{
    return location_kind(location, arena_printf(arena, "%s%s", folder, metadata_name)) != LOCATION_NOTHING ||
           location_kind(location, arena_printf(arena, "%s%s", folder, ocdbt_manifest)) != LOCATION_NOTHING;
}

static bool read_items(struct checkpoint *checkpoint, const struct input *input, struct error *error)
{
    struct arena *arena = checkpoint->arena;
    const char **items = arena_array(arena, input->list.count + 1, sizeof *items);
    size_t n = 0;
    for (size_t i = 0; i < input->list.count; i++) {
        const struct location_entry *entry = &input->list.entries[i];
        const char *folder = arena_printf(arena, "%s/", entry->name);
        if (entry->kind == LOCATION_FOLDER && is_item(input->location, folder, arena))
            items[n++] = entry->name;
    }
    for (size_t i = 0; i < n; i++)
        if (!read_item(checkpoint, input->location, arena_printf(arena, "%s/", items[i]),
                       n > 1 ? arena_printf(arena, "%s.", items[i]) : "", error))
            return false;
    return n > 0 || error_set(error, "%s: an Orbax checkpoint without arrays", input->path);
}

static bool orbax_open(struct checkpoint *checkpoint, const struct input *input, const struct open_options *options,
                       struct error *error)
{
    (void)options;
    if (is_item(input->location, "", checkpoint->arena))
        return read_item(checkpoint, input->location, "", "", error);
    return read_items(checkpoint, input, error);
}

static enum probe orbax_probe(const struct input *input)
{
    if (input->file != NULL || input->location == NULL)
        return PROBE_NO;
    bool is_orbax =
        input_has(input, checkpoint_name) || input_has(input, ocdbt_manifest) || input_has(input, metadata_name);
    return is_orbax ? PROBE_LIKELY : PROBE_NO;
}

const struct format orbax_format = {
    .name = "orbax",
    .summary = "Orbax (JAX) directories: OCDBT or zarr",
    .directory_name = "_CHECKPOINT_METADATA",
    .probe = orbax_probe,
    .open = orbax_open,
};
