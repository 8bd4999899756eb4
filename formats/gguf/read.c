/* GGUF files: a single file, or the splits of a model, named by the first split or their directory.
 *
 * As strict as gguf_init_from_file() of llama.cpp, except for the cases in docs/exceptions.md. As there, a tensor's
 * name ends at its first NUL byte, bytes after the last tensor are ignored, and a file without tensors needs no data
 * section.
 *
 * Blocks of the other byte order are shown unchanged: the bytes to swap in them differ from type to type. */
#include "base/checked.h"
#include "base/text.h"
#include "formats/bits.h"
#include "formats/checkpoint_builder.h"
#include "formats/format.h"
#include "formats/gguf/kv.h"
#include "formats/shard_name.h"

#include <inttypes.h>
#include <string.h>

enum {
    MAGIC_BYTES = 4,
    LAST_VERSION = 3,
    /* more than ggml's own 4 and 64: files of ComfyUI-GGUF have both */
    MAX_DIMENSIONS = 5,
    MAX_NAME = 128, /* with the NUL that ends it in the reference's memory */
    USUAL_ALIGNMENT = 32,
    MAX_SHARDS = 4096,
    MAX_TYPES = 64, /* more than GGUF has */
};

static const char magic[] = "GGUF";

struct reader {
    struct checkpoint *checkpoint;
    struct source *file;
    struct tensor_set *set;
    struct gguf_cursor cursor;
    struct gguf_kvs *kvs;
    uint64_t n_tensors, n_kvs, alignment;
    uint64_t data_length; /* of the tensors so far, each with its padding */
    uint64_t data_end;    /* the same without the last padding */
    size_t first_tensor;
    struct dtype *opaque[MAX_TYPES]; /* by type number */
};

/* Reads the first bytes. The byte order is the one in which the version is a small number. */
static bool read_preamble(struct reader *reader, struct error *error)
{
    struct gguf_cursor *cursor = &reader->cursor;
    char head[MAGIC_BYTES];
    unsigned char bytes[4];
    if (!gguf_take_all(cursor, MAGIC_BYTES, head, error))
        return false;
    if (memcmp(head, magic, MAGIC_BYTES) != 0)
        return error_set(
            error,
            "not a GGUF file: it does not start with %s; download it again, or rename it if it has another format",
            magic);
    if (!gguf_take_all(cursor, sizeof bytes, bytes, error))
        return false;
    uint64_t version = read_le(bytes, sizeof bytes);
    if (version != 0 && (version & 0xffff) == 0) {
        cursor->order = GGUF_BIG_ENDIAN;
        version = read_be(bytes, sizeof bytes);
    }
    if (version < 1 || version > LAST_VERSION)
        return error_set(error,
                         "unsupported version %" PRIu64
                         ": known versions are 1 to %d; download the file again, or update wfs",
                         version, LAST_VERSION);
    cursor->version = (unsigned)version;
    return gguf_take_count(cursor, &reader->n_tensors, error) && gguf_take_count(cursor, &reader->n_kvs, error);
}

/* Checks that the file can hold so many tensors and keys, before reading any. */
static bool check_counts(const struct reader *reader, struct error *error)
{
    bool old = reader->cursor.version == 1;
    uint64_t remaining = gguf_remaining(&reader->cursor), most = TENSOR_SET_MAX - reader->set->n_tensors;
    uint64_t least_kv = old ? 4 + 1 + 4 + 1 : 8 + 1 + 4 + 1, least_tensor = old ? 4 + 4 + 4 + 8 : 8 + 4 + 4 + 8;
    if (reader->n_kvs > remaining / least_kv)
        return error_set(error,
                         "truncated: %" PRIu64 " keys, and only %" PRIu64 " bytes follow; an interrupted download?",
                         reader->n_kvs, remaining);
    if (reader->n_tensors > remaining / least_tensor)
        return error_set(error,
                         "truncated: %" PRIu64 " tensors, and only %" PRIu64 " bytes follow; an interrupted download?",
                         reader->n_tensors, remaining);
    if (reader->n_tensors > most)
        return error_set(error, "too many tensors: with %" PRIu64 " in this file the total is above %d",
                         reader->n_tensors, TENSOR_SET_MAX);
    return true;
}

static bool read_keys(struct reader *reader, struct error *error)
{
    uint64_t alignment = USUAL_ALIGNMENT;
    for (uint64_t i = 0; i < reader->n_kvs; i++)
        if (!gguf_kvs_read(reader->kvs, &reader->cursor, error))
            return error_prefix(error, "key %" PRIu64 " of %" PRIu64, i + 1, reader->n_kvs);
    const struct gguf_kv *kv = gguf_kvs_find(reader->kvs, "general.alignment");
    if (kv != NULL && kv->type != GGUF_U32)
        return error_set(error, "general.alignment is %s, not u32; download the file again, or ask its maker",
                         gguf_type_name(kv->type));
    gguf_get_u64(reader->kvs, "general.alignment", &alignment);
    if (alignment == 0 || (alignment & (alignment - 1)) != 0)
        return error_set(
            error, "general.alignment is %" PRIu64 ", not a power of two; download the file again, or ask its maker",
            alignment);
    reader->alignment = alignment;
    return true;
}

static bool read_name(struct reader *reader, struct tensor *tensor, struct error *error)
{
    uint64_t length;
    char name[MAX_NAME];
    if (!gguf_take_count(&reader->cursor, &length, error))
        return false;
    if (length >= MAX_NAME)
        return error_set(error, "name too long: %" PRIu64 " bytes, the limit is %d", length, MAX_NAME - 1);
    if (!gguf_take_all(&reader->cursor, (size_t)length, name, error))
        return false;
    tensor->name_length = (uint32_t)strnlen(name, (size_t)length);
    tensor->name = arena_strndup(reader->checkpoint->arena, name, tensor->name_length);
    return true;
}

/* Reads the shape: the file has the fastest-varying dimension first, a tensor here has it last. */
static bool read_shape(struct reader *reader, struct tensor *tensor, struct error *error)
{
    uint64_t rank, reversed[MAX_DIMENSIONS];
    if (!gguf_take_number(&reader->cursor, 4, &rank, error))
        return false;
    if (rank > MAX_DIMENSIONS)
        return error_set(error, "too many dimensions: %" PRIu64 ", the limit is %d", rank, MAX_DIMENSIONS);
    for (uint64_t i = 0; i < rank; i++) {
        if (!gguf_take_count(&reader->cursor, &reversed[i], error))
            return false;
        if (reversed[i] > INT64_MAX)
            return error_set(error, "dimension %" PRIu64 " is %" PRId64, i, (int64_t)reversed[i]);
    }
    uint64_t *shape = arena_array(reader->checkpoint->arena, rank, sizeof *shape);
    for (uint64_t i = 0; i < rank; i++)
        shape[i] = reversed[rank - 1 - i];
    tensor->rank = (uint8_t)rank;
    tensor->shape = shape;
    return true;
}

/* Returns the block type without kernels: its values cannot be shown. All tensors of the file share it. */
static const struct dtype *opaque(struct reader *reader, const struct dtype *dtype)
{
    struct dtype **copy = &reader->opaque[dtype->ggml_type];
    if (*copy == NULL) {
        *copy = arena_copy(reader->checkpoint->arena, dtype, sizeof *dtype);
        memset((*copy)->kernels, 0, sizeof(*copy)->kernels);
    }
    return *copy;
}

/* Counts from the innermost dimension, as the reference does: the order decides which shapes with a 0 overflow. */
static bool count_elements(const struct tensor *tensor, uint64_t *ret_elements)
{
    uint64_t n_elements = 1;
    for (unsigned i = tensor->rank; i-- > 0;)
        if (!checked_multiply(n_elements, tensor->shape[i], &n_elements) || n_elements >= INT64_MAX)
            return false;
    *ret_elements = n_elements;
    return true;
}

/* Reads the type, and checks the shape against it. */
static bool read_type(struct reader *reader, struct tensor *tensor, struct error *error)
{
    uint64_t number, n_elements;
    char shape[128];
    if (!gguf_take_number(&reader->cursor, 4, &number, error))
        return false;
    const struct dtype *dtype = dtype_by_ggml_type((uint32_t)number);
    if (dtype == NULL)
        return error_set(error, "unknown tensor type %" PRIu64 "; download the file again, or update wfs", number);
    if (dtype->kind == DTYPE_BLOCK && reader->cursor.order == GGUF_BIG_ENDIAN)
        dtype = opaque(reader, dtype);
    uint64_t row = tensor->rank > 0 ? tensor->shape[tensor->rank - 1] : 1;
    if (row % dtype->block_elements != 0)
        return error_set(error,
                         "a row of %" PRIu64
                         " elements is not a multiple of %u, as %s needs it; download the file again, or ask its maker",
                         row, dtype->block_elements, dtype->name);
    if (!count_elements(tensor, &n_elements) ||
        !checked_multiply(n_elements / dtype->block_elements, dtype->block_bytes, &tensor->length))
        return error_set(error, "%s %s has a size of more than 64 bits", dtype->name,
                         shape_text(tensor->shape, tensor->rank, shape, sizeof shape));
    tensor->dtype = dtype;
    return true;
}

/* Reads the offset: tensors lie in the order of their records, each padded. */
static bool read_offset(struct reader *reader, struct tensor *tensor, struct error *error)
{
    uint64_t offset;
    if (!gguf_take_number(&reader->cursor, 8, &offset, error))
        return false;
    if (offset != reader->data_length)
        return error_set(error,
                         "its offset is %" PRIu64 ", but the previous tensor ends at %" PRIu64
                         "; download the file again, or ask its maker",
                         offset, reader->data_length);
    tensor->offset = offset;
    if (!checked_add(offset, tensor->length, &reader->data_end) ||
        !checked_align(reader->data_end, reader->alignment, &reader->data_length))
        return error_set(error, "the data has a size of more than 64 bits");
    return true;
}

static bool read_tensors(struct reader *reader, struct error *error)
{
    for (uint64_t i = 0; i < reader->n_tensors; i++) {
        struct tensor tensor = {.source = reader->file};
        if (!read_name(reader, &tensor, error))
            return error_prefix(error, "tensor %" PRIu64 " of %" PRIu64, i + 1, reader->n_tensors);
        if (!read_shape(reader, &tensor, error) || !read_type(reader, &tensor, error) ||
            !read_offset(reader, &tensor, error))
            return error_prefix(error, "tensor '%s'", tensor.name);
        tensor_set_add(reader->set, &tensor);
    }
    return true;
}

/* Checks that the data is complete, and makes offsets count from the start of the file. */
static bool place_data(struct reader *reader, struct error *error)
{
    uint64_t size = source_size(reader->file), data;
    if (reader->n_tensors == 0)
        return true;
    if (!checked_align(reader->cursor.offset, reader->alignment, &data) || data > size)
        return error_set(error,
                         "truncated: its data begins at a multiple of %" PRIu64 " after offset %" PRIu64 " of %" PRIu64
                         "; an interrupted download?",
                         reader->alignment, reader->cursor.offset, size);
    if (reader->data_end > size - data)
        return error_set(error,
                         "truncated: %" PRIu64 " of %" PRIu64 " tensor bytes are missing; an interrupted download?",
                         reader->data_end - (size - data), reader->data_end);
    if (reader->data_length < size - data)
        checkpoint_note(reader->checkpoint, SUBJECT_SOURCE, "%s: ignored %" PRIu64 " bytes after the last tensor",
                        source_name(reader->file), size - data - reader->data_length);
    for (size_t i = reader->first_tensor; i < reader->set->n_tensors; i++)
        tensor_set_edit(reader->set)[i].offset += data;
    return true;
}

static void swap_bytes(const struct reader *reader)
{
    struct arena *arena = reader->checkpoint->arena;
    for (size_t i = reader->first_tensor; i < reader->set->n_tensors; i++) {
        struct tensor *tensor = &tensor_set_edit(reader->set)[i];
        if (tensor->dtype->kind != DTYPE_BLOCK && tensor->dtype->block_bytes > 1)
            tensor->view =
                view_bits(arena, tensor_view(tensor, arena),
                          (struct bits){.component_bytes = (uint8_t)tensor->dtype->block_bytes, .swap = true});
    }
}

/* Adds the tensors of a file that the checkpoint owns, and its keys to `kvs`. */
static bool read_file(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                      struct gguf_kvs *kvs, struct error *error)
{
    if (!source_check_fetched(file, error))
        return false;
    struct reader reader = {
        .checkpoint = checkpoint,
        .file = file,
        .set = tensors,
        .cursor = gguf_cursor_at(file, 0, LAST_VERSION, GGUF_LITTLE_ENDIAN),
        .kvs = kvs,
        .first_tensor = tensors->n_tensors,
    };
    bool good = read_preamble(&reader, error) && check_counts(&reader, error) && read_keys(&reader, error) &&
                read_tensors(&reader, error) && place_data(&reader, error);
    if (good && reader.cursor.order == GGUF_BIG_ENDIAN)
        swap_bytes(&reader);
    gguf_cursor_free(&reader.cursor);
    return good || error_prefix(error, "%s", source_name(file));
}

static bool gguf_read_file(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                           const struct open_options *options, struct error *error)
{
    return read_file(checkpoint, file, tensors, &checkpoint->metadata, error);
}

/* Splits. */

static const char suffix[] = ".gguf";
static const struct extension extensions[] = {{suffix}, {0}};

static bool is_shard(const char *name, struct shard_name *ret_shard)
{
    return shard_name_parse(name, ret_shard) && strcmp(ret_shard->suffix, suffix) == 0;
}

/* The split keys of one file. */
struct split {
    uint64_t number, count, n_tensors; /* numbers start at 0; count 0: not split */
};

static struct split split_of(const struct gguf_kvs *kvs)
{
    struct split split = {0};
    gguf_get_u64(kvs, "split.no", &split.number);
    gguf_get_u64(kvs, "split.count", &split.count);
    gguf_get_u64(kvs, "split.tensors.count", &split.n_tensors);
    return split;
}

/* Reads split `number`, counted from 0, of the set whose first split is `first`. */
static bool read_shard(struct checkpoint *checkpoint, const struct input *input, const char *name, uint64_t number,
                       const struct split *first, struct error *error)
{
    struct gguf_kvs kvs = {0};
    if (!input_has(input, name))
        return error_set(error, "%s is missing: split %" PRIu64 " of %" PRIu64, name, number + 1, first->count);
    struct source *file = location_source(input->location, name, error);
    if (file == NULL)
        return false;
    checkpoint_add_source(checkpoint, file);
    bool good = read_file(checkpoint, file, checkpoint->unsealed, &kvs, error);
    struct split split = split_of(&kvs);
    gguf_kvs_free(&kvs);
    if (!good)
        return false;
    if (split.number != number || split.count == 0)
        return error_set(error, "%s: its header says split %" PRIu64 " of %" PRIu64 ", its place is split %" PRIu64,
                         name, split.number + 1, split.count, number + 1);
    if (split.count != first->count || split.n_tensors != first->n_tensors)
        return error_set(error,
                         "%s: belongs to another model: it has %" PRIu64 " splits and %" PRIu64
                         " tensors, the first split says %" PRIu64 " and %" PRIu64,
                         name, split.count, split.n_tensors, first->count, first->n_tensors);
    return true;
}

static bool read_shards(struct checkpoint *checkpoint, const struct input *input, const char *file_name,
                        const struct split *first, struct error *error)
{
    struct shard_name shard;
    bool is_named = is_shard(file_name, &shard) && shard.count == first->count && shard.number == first->number + 1;
    if (!is_named)
        return error_set(error, "%s: its header says split %" PRIu64 " of %" PRIu64 ", its file name says otherwise",
                         file_name, first->number + 1, first->count);
    if (first->number != 0)
        return error_set(error, "%s: split %u of %u; name the first split or the directory", file_name, shard.number,
                         shard.count);
    for (uint64_t number = 1; number < first->count; number++) {
        const char *name = arena_printf(checkpoint->arena, "%.*s-%05" PRIu64 "-of-%05" PRIu64 ".gguf",
                                        (int)shard.stem_length, file_name, number + 1, first->count);
        if (!read_shard(checkpoint, input, name, number, first, error))
            return false;
    }
    if (checkpoint->tensors->n_tensors != first->n_tensors)
        return error_set(error, "%s: its %" PRIu64 " splits have %zu tensors, but split.tensors.count is %" PRIu64,
                         file_name, first->count, checkpoint->tensors->n_tensors, first->n_tensors);
    return true;
}

enum { LISTED_MODELS = 8 };

/* Returns how many models a directory has, and the names of the first LISTED_MODELS. A set of splits has the name of
 * its first split, even if that is missing. */
static size_t find_some(struct arena *arena, const struct input *input, bool companions,
                        const char *ret_names[LISTED_MODELS])
{
    struct shard_name shard;
    size_t n_models = 0;
    const char *last = "";
    for (size_t i = 0; i < input->list.count; i++) {
        const char *name = input->list.entries[i].name;
        if (*name == '.' || !text_ends_with(name, suffix) || format_is_companion(name) != companions)
            continue;
        if (is_shard(name, &shard))
            name = arena_printf(arena, "%.*s-%05u-of-%05u.gguf", (int)shard.stem_length, name, 1, shard.count);
        if (strcmp(name, last) != 0 && n_models++ < LISTED_MODELS)
            ret_names[n_models - 1] = name;
        last = name;
    }
    return n_models;
}

/* Like find_some(): models, or their companions if those are alone. */
static size_t find_models(struct arena *arena, const struct input *input, const char *ret_names[LISTED_MODELS])
{
    size_t n_models = find_some(arena, input, false, ret_names);
    return n_models != 0 ? n_models : find_some(arena, input, true, ret_names);
}

static enum probe gguf_probe(const struct input *input)
{
    if (input->file != NULL) {
        if (input->head_length >= MAGIC_BYTES && memcmp(input->head, magic, MAGIC_BYTES) == 0)
            return PROBE_SURE;
        return format_extension(&gguf_format, input->file_name) ? PROBE_MAYBE : PROBE_NO;
    }
    struct arena *arena = arena_new();
    const char *names[LISTED_MODELS];
    size_t n_models = find_models(arena, input, names);
    arena_free(arena);
    return n_models > 0 ? PROBE_MAYBE : PROBE_NO;
}

/* Sets an error that lists several models and asks for one. */
static void ask_for_one(const struct input *input, const char *const names[LISTED_MODELS], size_t n_models,
                        struct error *error)
{
    struct buffer list = {0};
    for (size_t i = 0; i < n_models && i < LISTED_MODELS; i++)
        buffer_printf(&list, "%s%s", i ? ", " : "", names[i]);
    if (n_models > LISTED_MODELS)
        buffer_printf(&list, " and %zu more", n_models - LISTED_MODELS);
    error_set(error, "%s: this directory contains %zu GGUF models; name one: %.*s", input->path, n_models,
              (int)list.length, (const char *)list.bytes);
    buffer_free(&list);
}

/* Opens the only model of a directory. */
static struct source *open_model(struct checkpoint *checkpoint, const struct input *input, const char **ret_name,
                                 struct error *error)
{
    const char *names[LISTED_MODELS] = {NULL};
    size_t n_models = find_models(checkpoint->arena, input, names);
    if (n_models > 1)
        ask_for_one(input, names, n_models, error);
    else if (!input_has(input, names[0]))
        error_set(error, "%s: the first split %s is missing", input->path, names[0]);
    else
        return location_source(input->location, *ret_name = names[0], error);
    return NULL;
}

static bool gguf_open(struct checkpoint *checkpoint, const struct input *input, const struct open_options *options,
                      struct error *error)
{
    const char *name = input->file_name;
    struct source *file = input->file != NULL ? location_source(input->location, name, error)
                                              : open_model(checkpoint, input, &name, error);
    if (file == NULL)
        return false;
    checkpoint_add_source(checkpoint, file);
    if (!read_file(checkpoint, file, checkpoint->unsealed, &checkpoint->metadata, error))
        return false;
    struct split split = split_of(&checkpoint->metadata);
    if (split.count > MAX_SHARDS)
        return error_set(error, "%s: too many splits: %" PRIu64 ", the limit is %d", name, split.count, MAX_SHARDS);
    if (split.count > 1 && !read_shards(checkpoint, input, name, &split, error))
        return false;
    format_add_side_files(checkpoint, input);
    return true;
}

const struct format gguf_format = {
    .name = "gguf",
    .kind = CHECKPOINT_GGUF,
    .extensions = extensions,
    .summary = "a .gguf file, the first split of a sharded one, or its directory",
    .probe = gguf_probe,
    .open = gguf_open,
    .read_file = gguf_read_file,
};
