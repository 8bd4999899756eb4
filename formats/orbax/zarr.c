#include "formats/orbax/zarr.h"

#include "base/checked.h"
#include "formats/shape.h"
#include "formats/torch/tensors.h"
#include "text/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_SEPARATOR_2 = '.', DEFAULT_SEPARATOR_3 = '/' };

static const char damaged[] = "damaged metadata: ";

static void refuse(struct zarr_array *array, struct arena *arena, const char *what, const struct json *value)
{
    const char *text = json_string(value, NULL);
    if (array->refusal == NULL)
        array->refusal = arena_printf(arena, "%s '%.40s', which wfs does not read", what, text != NULL ? text : "?");
}

/* Reads a list of `rank` sizes, each at least `least`. */
static bool read_sizes(const struct json *list, unsigned rank, uint64_t least, uint64_t *sizes)
{
    unsigned i = 0;
    if (!json_is(list, JSON_ARRAY) || json_count(list) != rank)
        return false;
    for (const struct json *size = json_first(list); size != NULL; size = json_next(size), i++)
        if (!json_u64(size, &sizes[i]) || sizes[i] < least)
            return false;
    return true;
}

static bool read_shape(const struct json *root, struct zarr_array *array)
{
    const struct json *shape = json_get(root, "shape");
    size_t rank = json_count(shape);
    array->rank = (unsigned)rank;
    return rank <= ZARR_MAX_RANK && read_sizes(shape, array->rank, 0, array->shape);
}

/* Reports whether a fill value is all zeros; null, which leaves it open, counts as one. */
static bool is_zero(const struct json *value)
{
    double number;
    return value == NULL || json_is(value, JSON_NULL) || json_is(value, JSON_FALSE) ||
           (json_double(value, &number) && number == 0);
}

static const struct dtype *dtype_of_name(const char *name)
{
    const struct torch_dtype *found = torch_dtype_by_name(name);
    return found != NULL && !found->quantized ? dtype_by_name(found->dtype) : NULL;
}

/* Finds a dtype by numpy's description, whose first letter is the order of bytes. */
static const struct dtype *dtype_of_numpy(const char *name, bool *ret_swap)
{
    *ret_swap = *name == '>';
    for (const struct dtype *const *dtype = dtypes; *dtype != NULL; dtype++)
        if ((*dtype)->numpy != NULL && strchr("<>|", *name) != NULL && *name != '\0' &&
            strcmp((*dtype)->numpy + 1, name + 1) == 0)
            return *dtype;
    return NULL;
}

static void read_dtype(const struct json *value, struct arena *arena, struct zarr_array *array)
{
    const char *name = json_string(value, NULL);
    array->dtype = name != NULL && !array->version_3 ? dtype_of_numpy(name, &array->swap) : NULL;
    if (array->dtype == NULL && name != NULL)
        array->dtype = dtype_of_name(name);
    if (array->dtype != NULL && array->dtype->block_elements == 1)
        return;
    array->dtype = &u8_dtype;
    refuse(array, arena, "elements of the type", value);
}

/* Version 2. */

static bool read_version_2(const struct json *root, struct arena *arena, struct zarr_array *array)
{
    const struct json *compressor = json_get(root, "compressor"), *filters = json_get(root, "filters");
    const struct json *id = json_get(compressor, "id"), *separator = json_get(root, "dimension_separator");
    if (!read_shape(root, array) || !read_sizes(json_get(root, "chunks"), array->rank, 1, array->chunk))
        return false;
    read_dtype(json_get(root, "dtype"), arena, array);
    memcpy(array->inner, array->chunk, sizeof array->inner);
    bool is_column_major = json_string_is(json_get(root, "order"), "F");
    for (unsigned i = 0; i < array->rank; i++)
        array->order[i] = is_column_major ? array->rank - 1 - i : i;
    array->separator = json_string_is(separator, "/") ? '/' : DEFAULT_SEPARATOR_2;
    array->zero_fill = is_zero(json_get(root, "fill_value"));
    if (filters != NULL && json_count(filters) > 0)
        refuse(array, arena, "a filter", json_get(json_first(filters), "id"));
    if (json_string_is(id, "zstd"))
        array->codecs[array->n_codecs++] = CODEC_ZSTD;
    else if (json_string_is(id, "gzip") || json_string_is(id, "zlib"))
        array->codecs[array->n_codecs++] = CODEC_GZIP;
    else if (compressor != NULL && !json_is(compressor, JSON_NULL))
        refuse(array, arena, "compressed by", id);
    return true;
}

/* Version 3. */

static bool read_transpose(const struct json *order, struct zarr_array *array)
{
    uint64_t numbers[ZARR_MAX_RANK];
    uint32_t seen = 0;
    if (!read_sizes(order, array->rank, 0, numbers))
        return false;
    for (unsigned i = 0; i < array->rank; i++) {
        if (numbers[i] >= array->rank || (seen >> numbers[i] & 1) != 0)
            return false;
        seen |= 1u << numbers[i];
        array->order[i] = (unsigned)numbers[i];
    }
    return true;
}

/* Reads the codecs of a chunk, which are in the order of encoding: elements to bytes, then bytes to bytes. */
static bool read_codecs(const struct json *codecs, struct arena *arena, struct zarr_array *array)
{
    enum codec chain[ZARR_MAX_CODECS];
    unsigned n = 0;
    bool has_bytes = false;
    for (const struct json *codec = json_first(codecs); codec != NULL; codec = json_next(codec)) {
        const struct json *name = json_get(codec, "name"), *configuration = json_get(codec, "configuration");
        bool is_zstd = json_string_is(name, "zstd"), is_gzip = json_string_is(name, "gzip"),
             is_checksum = json_string_is(name, "crc32c");
        if (json_string_is(name, "transpose") && !has_bytes) {
            if (!read_transpose(json_get(configuration, "order"), array))
                return false;
        } else if (json_string_is(name, "bytes") && !has_bytes) {
            array->swap = json_string_is(json_get(configuration, "endian"), "big");
            has_bytes = true;
        } else if ((is_zstd || is_gzip || is_checksum) && has_bytes && n < ZARR_MAX_CODECS) {
            chain[n++] = is_zstd ? CODEC_ZSTD : is_gzip ? CODEC_GZIP : CODEC_CRC32C;
        } else {
            refuse(array, arena, "the codec", name);
        }
    }
    unsigned n_compressors = 0;
    for (unsigned i = 0; i < n; i++)
        n_compressors += chain[i] != CODEC_CRC32C;
    if (n_compressors > 1) /* the size between them is not known */
        refuse(array, arena, "several compressors", NULL);
    while (n > 0)
        array->codecs[array->n_codecs++] = chain[--n];
    return has_bytes || array->refusal != NULL;
}

/* Reads the codecs of a shard's index: bytes, little-endian, and a checksum or none. */
static void read_index_codecs(const struct json *codecs, struct arena *arena, struct zarr_array *array)
{
    for (const struct json *codec = json_first(codecs); codec != NULL; codec = json_next(codec)) {
        const struct json *name = json_get(codec, "name");
        bool is_big = json_string_is(json_get(json_get(codec, "configuration"), "endian"), "big");
        if (json_string_is(name, "crc32c"))
            array->index_has_checksum = true;
        else if (!json_string_is(name, "bytes") || is_big)
            refuse(array, arena, "a shard's index of the codec", name);
    }
}

static bool read_shard(const struct json *configuration, struct arena *arena, struct zarr_array *array)
{
    if (!read_sizes(json_get(configuration, "chunk_shape"), array->rank, 1, array->inner))
        return false;
    for (unsigned i = 0; i < array->rank; i++)
        if (array->chunk[i] % array->inner[i] != 0)
            return false;
    array->sharded = true;
    array->index_first = json_string_is(json_get(configuration, "index_location"), "start");
    read_index_codecs(json_get(configuration, "index_codecs"), arena, array);
    return read_codecs(json_get(configuration, "codecs"), arena, array);
}

static bool read_version_3(const struct json *root, struct arena *arena, struct zarr_array *array)
{
    const struct json *grid = json_get(root, "chunk_grid"), *keys = json_get(root, "chunk_key_encoding");
    const struct json *codecs = json_get(root, "codecs"),
                      *separator = json_get(json_get(keys, "configuration"), "separator");
    if (!json_string_is(json_get(root, "node_type"), "array") || !read_shape(root, array) ||
        !read_sizes(json_get(json_get(grid, "configuration"), "chunk_shape"), array->rank, 1, array->chunk))
        return false;
    array->version_3 = true;
    read_dtype(json_get(root, "data_type"), arena, array);
    memcpy(array->inner, array->chunk, sizeof array->inner);
    for (unsigned i = 0; i < array->rank; i++)
        array->order[i] = i;
    if (!json_string_is(json_get(grid, "name"), "regular"))
        refuse(array, arena, "a grid of chunks", json_get(grid, "name"));
    bool is_of_version_2 = json_string_is(json_get(keys, "name"), "v2");
    array->version_3 = !is_of_version_2;
    array->separator = json_string_is(separator, ".")   ? '.'
                       : json_string_is(separator, "/") ? '/'
                       : is_of_version_2                ? DEFAULT_SEPARATOR_2
                                                        : DEFAULT_SEPARATOR_3;
    array->zero_fill = is_zero(json_get(root, "fill_value"));
    const struct json *first = json_first(codecs);
    if (json_string_is(json_get(first, "name"), "sharding_indexed") && json_next(first) == NULL)
        return read_shard(json_get(first, "configuration"), arena, array);
    return read_codecs(codecs, arena, array);
}

/* Sizes. */

uint64_t zarr_grid(const struct zarr_array *array, unsigned dimension)
{
    return rounded_up(array->shape[dimension], array->chunk[dimension]);
}

/* Computes the sizes; false if one overflows. */
static bool measure(struct zarr_array *array, struct arena *arena)
{
    uint64_t n_bytes, n_inner, whole;
    array->n_inner = array->n_chunks = 1;
    if (!shape_size(array->dtype, array->shape, array->rank, &array->n_elements, &n_bytes, NULL) ||
        !shape_size(array->dtype, array->inner, array->rank, &n_inner, &array->inner_bytes, NULL))
        return false;
    for (unsigned i = 0; i < array->rank; i++)
        if (!checked_multiply(array->n_inner, array->chunk[i] / array->inner[i], &array->n_inner) ||
            !checked_multiply(array->n_chunks, zarr_grid(array, i), &array->n_chunks))
            return false;
    if (array->inner_bytes > zarr_max_chunk)
        refuse(array, arena, "chunks of more than 1 GiB", NULL);
    return checked_multiply(array->inner_bytes, array->n_inner, &whole) &&
           checked_multiply(whole, array->n_chunks, &whole) && whole <= INT64_MAX;
}

void zarr_key(const struct zarr_array *array, uint64_t number, char out[ZARR_KEY])
{
    uint64_t places[ZARR_MAX_RANK];
    for (unsigned i = array->rank; i-- > 0; number /= zarr_grid(array, i))
        places[i] = number % zarr_grid(array, i);
    int n = sprintf(out, "%s", array->version_3 ? "c" : array->rank == 0 ? "0" : "");
    for (unsigned i = 0; i < array->rank; i++) {
        if (i > 0 || array->version_3)
            out[n++] = array->separator;
        n += sprintf(out + n, "%" PRIu64, places[i]);
    }
}

bool zarr_read(const char *text, size_t length, const char *name, struct arena *arena, struct zarr_array *ret_array,
               struct error *error)
{
    *ret_array = (struct zarr_array){.rank = 0};
    struct json_document *document = json_parse_python(text, length, error);
    if (document == NULL)
        return error_prefix(error, "%s", name);
    const struct json *root = json_root(document);
    uint64_t version = 0;
    json_u64(json_get(root, "zarr_format"), &version);
    bool good = version == 2   ? read_version_2(root, arena, ret_array)
                : version == 3 ? read_version_3(root, arena, ret_array)
                               : false;
    json_free(document);
    if (!good)
        return error_set(error, "%s: %snot an array of zarr 2 or 3", name, damaged);
    return measure(ret_array, arena) || error_set(error, "%s: %sthe array's size overflows", name, damaged);
}

/* Values by their keys. */

bool value_store_add(struct value_store *store, struct checkpoint *checkpoint, const char *key, size_t length,
                     const struct stored_value *value)
{
    struct arena *arena = checkpoint->arena;
    if (!text_index_add(&store->keys, key, length, store->n_values))
        return false;
    store->names = arena_grow(arena, store->names, store->n_values, sizeof *store->names);
    store->values = arena_grow(arena, store->values, store->n_values, sizeof *store->values);
    store->names[store->n_values] = key;
    store->values[store->n_values++] = *value;
    return true;
}

const struct stored_value *value_store_find(const struct value_store *store, const char *key)
{
    size_t number;
    return text_index_find(&store->keys, key, strlen(key), &number) ? &store->values[number] : NULL;
}

struct source *value_store_open(struct value_store *store, struct checkpoint *checkpoint,
                                const struct location *location, const char *path, struct error *error)
{
    enum { MAX_FILES = 65536 };
    if (store->n_sources == MAX_FILES) {
        error_set(error, "%s: more than %d files", path, MAX_FILES);
        return NULL;
    }
    struct source *source = location_source(location, path, error);
    if (source == NULL)
        return NULL;
    checkpoint_add_source(checkpoint, source);
    store->n_sources++;
    return source;
}

void value_store_free(struct value_store *store)
{
    text_index_free(&store->keys);
}
