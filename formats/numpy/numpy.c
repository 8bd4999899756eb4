/* numpy arrays: a .npy file is one tensor, a .npz file (a zip archive of them) several. MLX and JAX write such weights.
 *
 * A header is a Python dictionary in a fixed form: 'descr', 'fortran_order' and 'shape', each once. Elements are read
 * in place, swapped if big-endian, strided if in Fortran order. An array of objects is a pickle, of which the tensors
 * are shown (formats/torch): those of {"w": ...} as w from a .npy file, as NAME.w from the member NAME.npy of an
 * archive. Two bytes without a type (V2) are bfloat16, for which numpy has no name: MLX and ml_dtypes write this.
 * Source: numpy/lib/format.py. */
#include "formats/numpy/numpy.h"

#include "base/checked.h"
#include "base/text.h"
#include "formats/bits.h"
#include "formats/checkpoint_builder.h"
#include "formats/format.h"
#include "formats/shape.h"
#include "formats/torch/legacy.h"
#include "formats/zip/deflate_index.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* A header of simple elements has less than 200 bytes; a structured one may be long. */
enum { PREFIX_V1 = 10, PREFIX_V2 = 12, MAX_HEADER = 1 << 20, MAX_DESCR = 31 };

static const char magic[] = "\x93NUMPY", suffix[] = ".npy";
enum { MAGIC_BYTES = sizeof magic - 1, SUFFIX_BYTES = sizeof suffix - 1 };

/* The fields of a header. */
struct header {
    char descr[MAX_DESCR + 1]; /* empty: structured elements */
    bool column_major;
    unsigned rank;
    uint64_t shape[SHAPE_MAX_RANK];
};

/* A text that is being parsed. */
struct cursor {
    const char *at, *end;
};

static void skip_spaces(struct cursor *cursor)
{
    while (cursor->at < cursor->end && strchr(" \t\r\n", *cursor->at) != NULL && *cursor->at != '\0')
        cursor->at++;
}

static bool take(struct cursor *cursor, const char *word)
{
    size_t length = strlen(word);
    skip_spaces(cursor);
    if ((size_t)(cursor->end - cursor->at) < length || memcmp(cursor->at, word, length) != 0)
        return false;
    cursor->at += length;
    return true;
}

/* Takes a text in quotes of either kind, without escapes. */
static bool take_text(struct cursor *cursor, char out[MAX_DESCR + 1])
{
    skip_spaces(cursor);
    if (cursor->at == cursor->end || (*cursor->at != '\'' && *cursor->at != '"'))
        return false;
    const char *start = cursor->at + 1, *close = memchr(start, *cursor->at, (size_t)(cursor->end - start));
    if (close == NULL || close - start > MAX_DESCR || memchr(start, '\\', (size_t)(close - start)) != NULL)
        return false;
    memcpy(out, start, (size_t)(close - start));
    out[close - start] = '\0';
    cursor->at = close + 1;
    return true;
}

/* Skips a list to its closing bracket. */
static bool skip_list(struct cursor *cursor)
{
    size_t depth = 0;
    do {
        char c = cursor->at < cursor->end ? *cursor->at : '\0';
        if (c == '\0')
            return false;
        if (c == '\'' || c == '"') {
            const char *close = memchr(cursor->at + 1, c, (size_t)(cursor->end - cursor->at - 1));
            if (close == NULL)
                return false;
            cursor->at = close;
        }
        depth += c == '[' || c == '(';
        depth -= c == ']' || c == ')';
        cursor->at++;
    } while (depth > 0);
    return true;
}

static bool take_descr(struct cursor *cursor, struct header *header)
{
    skip_spaces(cursor);
    header->descr[0] = '\0';
    return cursor->at < cursor->end && *cursor->at == '[' ? skip_list(cursor) : take_text(cursor, header->descr);
}

static bool take_size(struct cursor *cursor, uint64_t *ret_size)
{
    uint64_t size = 0;
    skip_spaces(cursor);
    const char *start = cursor->at;
    for (; cursor->at < cursor->end && isdigit((unsigned char)*cursor->at); cursor->at++)
        if (!checked_multiply(size, 10, &size) || !checked_add(size, (uint64_t)(*cursor->at - '0'), &size))
            return false;
    bool is_number = cursor->at > start;
    take(cursor, "L"); /* Python 2 */
    *ret_size = size;
    return is_number;
}

static bool take_shape(struct cursor *cursor, struct header *header)
{
    if (!take(cursor, "("))
        return false;
    for (header->rank = 0; !take(cursor, ")"); header->rank++) {
        if (header->rank == SHAPE_MAX_RANK || !take_size(cursor, &header->shape[header->rank]))
            return false;
        if (!take(cursor, ",")) {
            header->rank++;
            return header->rank > 1 && take(cursor, ")");
        }
    }
    return true;
}

static bool take_order(struct cursor *cursor, struct header *header)
{
    header->column_major = take(cursor, "True");
    return header->column_major || take(cursor, "False");
}

static bool parse_header(const char *text, size_t length, struct header *header)
{
    static const struct {
        const char *name;
        bool (*take)(struct cursor *cursor, struct header *header);
    } keys[] = {{"descr", take_descr}, {"fortran_order", take_order}, {"shape", take_shape}};
    enum { N_KEYS = sizeof keys / sizeof *keys };
    struct cursor cursor = {text, text + length};
    bool seen[N_KEYS] = {false};
    size_t n_seen = 0;
    if (!take(&cursor, "{"))
        return false;
    while (!take(&cursor, "}")) {
        char name[MAX_DESCR + 1];
        size_t key = 0;
        if (!take_text(&cursor, name) || !take(&cursor, ":"))
            return false;
        while (key < N_KEYS && strcmp(keys[key].name, name) != 0)
            key++;
        if (key == N_KEYS || seen[key] || !keys[key].take(&cursor, header))
            return false;
        seen[key] = true;
        n_seen++;
        if (!take(&cursor, ",")) {
            if (!take(&cursor, "}"))
                return false;
            break;
        }
    }
    skip_spaces(&cursor);
    return n_seen == N_KEYS && cursor.at == cursor.end;
}

/* Returns the dtype of a descr such as "<f4", or NULL, with the tensor's refusal. */
static const struct dtype *dtype_of(const char *descr, bool *ret_swapped, struct tensor *tensor)
{
    char native[MAX_DESCR + 2];
    const char *kind = descr + (*descr != '\0' && strchr("<>|=", *descr) != NULL);
    *ret_swapped = *descr == '>';
    if (strcmp(kind, "V2") == 0)
        return &bf16_dtype;
    for (const char *order = "<|"; *order != '\0'; order++) {
        snprintf(native, sizeof native, "%c%s", *order, kind);
        for (const struct dtype *const *dtype = dtypes; *dtype != NULL; dtype++)
            if ((*dtype)->numpy != NULL && strcmp((*dtype)->numpy, native) == 0)
                return *dtype;
    }
    tensor->refusal = "elements of an unsupported type";
    tensor->is_no_number = *kind != '\0' && strchr("OUSMm", *kind) != NULL;
    if (*kind == '\0')
        tensor->refusal = "structured elements";
    else if (*kind == 'O')
        tensor->refusal = "pickled objects";
    else if (*kind == 'U' || *kind == 'S')
        tensor->refusal = "texts";
    else if (*kind == 'V')
        tensor->refusal = "elements without a type";
    return NULL;
}

static bool is_objects(const char *descr)
{
    return strcmp(descr, "|O") == 0 || strcmp(descr, "O") == 0;
}

/* The place of an array: a file, or a member of an archive. */
struct place {
    const char *name;                  /* for messages: "x.npz: w.npy" */
    struct source *source;             /* of the elements */
    uint64_t offset, size;             /* of the whole .npy */
    const struct zip_member *deflated; /* of the archive, or NULL */
    const struct source *archive;
};

struct reader {
    struct checkpoint *checkpoint;
    struct tensor_set *tensors;
    const struct open_options *options;
};

/* Inflates the beginning of a deflated member alone. */
static bool inflate_head(const struct place *place, size_t length, unsigned char *out, struct error *error)
{
    enum { PIECE = 4096 };
    unsigned char piece[PIECE];
    z_stream stream = {.next_out = out, .avail_out = (uInt)length};
    uint64_t at = place->deflated->offset, left = place->deflated->compressed_size;
    int result = inflateInit2(&stream, -MAX_WBITS);
    while (result == Z_OK && stream.avail_out > 0 && left > 0) {
        size_t n = left < PIECE ? (size_t)left : PIECE;
        if (!source_read(place->archive, at, n, piece, error)) {
            inflateEnd(&stream);
            return false;
        }
        stream.next_in = piece;
        stream.avail_in = (uInt)n;
        at += n;
        left -= n;
        result = inflate(&stream, Z_NO_FLUSH);
    }
    inflateEnd(&stream);
    return stream.avail_out == 0 || error_set(error, "%s: the deflated data are damaged", place->name);
}

static bool read_head(const struct place *place, size_t length, unsigned char *out, struct error *error)
{
    if (place->size < length)
        return error_set(error, "%s: truncated: the array header is missing", place->name);
    if (place->deflated != NULL)
        return inflate_head(place, length, out, error);
    return source_read(place->source, place->offset, length, out, error);
}

/* Reads the header; *ret_length includes the prefix. */
static bool read_header(const struct place *place, struct header *header, uint64_t *ret_length, struct error *error)
{
    unsigned char prefix[PREFIX_V2];
    if (!read_head(place, sizeof prefix, prefix, error))
        return false;
    if (memcmp(prefix, magic, MAGIC_BYTES) != 0)
        return error_set(error, "%s: not a numpy array: it does not start with \\x93NUMPY", place->name);
    bool first = prefix[MAGIC_BYTES] == 1;
    if (prefix[MAGIC_BYTES] < 1 || prefix[MAGIC_BYTES] > 3)
        return error_set(error, "%s: unknown format version %u", place->name, prefix[MAGIC_BYTES]);
    if (prefix[MAGIC_BYTES + 1] != 0)
        return error_set(error, "%s: unknown format version %u.%u", place->name, prefix[MAGIC_BYTES],
                         prefix[MAGIC_BYTES + 1]);
    uint64_t before = first ? PREFIX_V1 : PREFIX_V2, length = prefix[8] | (uint64_t)prefix[9] << 8;
    if (!first)
        length |= (uint64_t)prefix[10] << 16 | (uint64_t)prefix[11] << 24;
    if (length > MAX_HEADER)
        return error_set(error, "%s: the header is longer than a megabyte", place->name);
    unsigned char *text = memory_alloc(before + length);
    bool read = read_head(place, (size_t)(before + length), text, error);
    bool good = read && parse_header((const char *)text + before, (size_t)length, header);
    free(text);
    *ret_length = before + length;
    return good || (read && error_set(error, "%s: the header is not a dictionary as numpy writes it", place->name));
}

static void set_column_major(struct tensor *tensor, struct arena *arena)
{
    uint64_t *strides = arena_array(arena, tensor->rank, sizeof *strides), stride = 1;
    for (unsigned i = 0; i < tensor->rank; i++) {
        strides[i] = stride;
        stride *= tensor->shape[i];
    }
    tensor->strides = strides;
}

static bool is_array(const unsigned char *head, size_t length)
{
    return length >= MAGIC_BYTES && memcmp(head, magic, MAGIC_BYTES) == 0;
}

/* Reports whether another array begins `after` bytes past the start of this one. */
static bool is_followed(const struct place *place, uint64_t after)
{
    struct error unused;
    unsigned char next[MAGIC_BYTES];
    return place->archive == NULL && place->size - after >= sizeof next &&
           source_read(place->source, place->offset + after, sizeof next, next, &unused) && is_array(next, sizeof next);
}

/* Checks for missing elements, and for bytes after the last one. */
static bool check_length(const struct reader *reader, const struct place *place, uint64_t before, uint64_t n_bytes,
                         struct error *error)
{
    uint64_t available = place->size - before;
    if (available > n_bytes && is_followed(place, before + n_bytes)) {
        checkpoint_lacks(reader->checkpoint, reader->options, "%s: only the first of several arrays", place->name);
        return reader->options->partial ||
               error_set(error,
                         "%s: several arrays without names, as Equinox (.eqx) writes them, which wfs does not read; "
                         "save them with numpy.savez(), or see the first with -o partial",
                         place->name);
    }
    if (available < n_bytes)
        return error_set(error, "%s: truncated: %" PRIu64 " bytes of elements, expected %" PRIu64, place->name,
                         available, n_bytes);
    if (available > n_bytes && !reader->options->allow_trailing)
        return error_set(error, "%s: %" PRIu64 " extra bytes after the last element; -o allow_trailing ignores them",
                         place->name, available - n_bytes);
    return true;
}

/* Adds the tensors among the objects of an array, which numpy pickles after the header. Sets the tensor's refusal if
 * there are none, or if the pickle cannot be read. */
static void add_objects(const struct reader *reader, const struct place *place, uint64_t before, struct tensor *tensor)
{
    struct error reason = {""};
    size_t n_before = reader->tensors->n_tensors;
    const struct plain_pickle pickle = {
        .source = place->source,
        .offset = place->offset + before,
        .length = place->size - before,
        .place = place->name,
        .prefix = place->archive != NULL ? tensor->name : NULL,
    };
    if (plain_pickle_add(reader->checkpoint, &pickle, reader->tensors, reader->options, &reason)) {
        tensor->refusal = reader->tensors->n_tensors == n_before ? "pickled objects" : NULL;
        return;
    }
    reader->tensors->n_tensors = n_before;
    tensor->refusal = arena_printf(reader->checkpoint->arena, "pickled objects: %s", reason.message);
    tensor->is_no_number = false;
}

/* Reports whether numpy can have the array: without the dimensions of 0, its bytes are fewer than 2^63. */
static bool fits_numpy(const struct tensor *tensor)
{
    uint64_t n_bytes = tensor->dtype->block_bytes;
    for (unsigned i = 0; i < tensor->rank; i++)
        if (tensor->shape[i] != 0 && !checked_multiply(n_bytes, tensor->shape[i], &n_bytes))
            return false;
    return n_bytes <= INT64_MAX;
}

static bool add_array(const struct reader *reader, const char *name, const struct place *place, struct error *error)
{
    struct arena *arena = reader->checkpoint->arena;
    struct header header;
    uint64_t before = 0, n_elements, n_bytes;
    bool swapped;
    if (!read_header(place, &header, &before, error))
        return false;
    struct tensor tensor = {.name = name, .name_length = (uint32_t)strlen(name), .rank = (uint8_t)header.rank};
    tensor.source = place->source;
    tensor.dtype = dtype_of(header.descr, &swapped, &tensor);
    if (tensor.dtype == NULL)
        tensor.dtype = &u8_dtype;
    tensor.shape = arena_copy(arena, header.shape, header.rank * sizeof *header.shape);
    if (!shape_size(tensor.dtype, tensor.shape, header.rank, &n_elements, &n_bytes, NULL) || !fits_numpy(&tensor))
        return error_set(error, "%s: the size of its shape overflows", place->name);
    if (tensor.refusal == NULL) {
        if (!check_length(reader, place, before, n_bytes, error))
            return false;
        tensor.offset = place->offset + before;
        tensor.length = n_bytes;
        if (header.column_major && header.rank > 1)
            set_column_major(&tensor, arena);
        if (strchr(header.descr, 'V') != NULL)
            checkpoint_note(reader->checkpoint, SUBJECT_SOURCE,
                            "%s: untyped two-byte elements (V2) are read as bfloat16, as MLX and JAX write it",
                            source_name(place->archive != NULL ? place->archive : place->source));
        bool complex = tensor.dtype->kind == DTYPE_COMPLEX;
        struct bits bits = {.component_bytes = (uint8_t)(tensor.dtype->block_bytes / (complex ? 2 : 1)),
                            .swap = swapped && tensor.dtype->block_bytes > 1};
        if (bits.swap)
            tensor.view = view_bits(arena, tensor_view(&tensor, arena), bits);
    }
    if (is_objects(header.descr))
        add_objects(reader, place, before, &tensor);
    if (!is_objects(header.descr) || tensor.refusal != NULL)
        tensor_set_add(reader->tensors, &tensor);
    return true;
}

/* Returns a name without ".npy", in the arena. */
static const char *array_name(struct arena *arena, const char *file_name)
{
    size_t length = strlen(file_name);
    return arena_strndup(arena, file_name, length - (text_ends_with(file_name, suffix) ? SUFFIX_BYTES : 0));
}

static bool add_members(const struct reader *reader, struct source *file, const struct zip_directory *zip,
                        struct arena *scratch, struct error *error)
{
    struct source *inflated = NULL;
    for (size_t i = 0; i < zip->n_members; i++) {
        const struct zip_member *member = &zip->members[i];
        struct place place = {.source = file, .offset = member->offset, .size = member->size, .archive = file};
        place.name = arena_printf(scratch, "%s: %s", source_name(file), member->name);
        if (!text_ends_with(member->name, suffix) || member->name_length == SUFFIX_BYTES) {
            checkpoint_note(reader->checkpoint, SUBJECT_SOURCE, "%s is not an array and is not shown", place.name);
            continue;
        }
        if (member->method == ZIP_DEFLATED) {
            if (inflated == NULL) {
                inflated = inflated_source_new(zip);
                checkpoint_add_source(reader->checkpoint, inflated);
            }
            place.source = inflated;
            place.offset = member->inflated;
            place.deflated = member;
        }
        if (!add_array(reader, array_name(reader->checkpoint->arena, member->name), &place, error))
            return false;
    }
    return true;
}

/* Reports whether the first member of a zip archive is an array. */
static bool is_archive(const struct source *file, const unsigned char *head, size_t length)
{
    enum { NAME_LENGTH = 26, NAME = 30, MOST = 1024 };
    char name[MOST + 1];
    struct error unused;
    if (length < NAME || memcmp(head, "PK\3\4", 4) != 0)
        return false;
    size_t name_length = head[NAME_LENGTH] | (size_t)head[NAME_LENGTH + 1] << 8;
    if (name_length > MOST || source_size(file) < NAME + name_length ||
        !source_read(file, NAME, name_length, name, &unused))
        return false;
    name[name_length] = '\0';
    return text_ends_with(name, suffix);
}

static bool numpy_read_file(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                            const struct open_options *options, struct error *error)
{
    unsigned char head[sizeof((struct input *)0)->head];
    size_t length = source_size(file) < sizeof head ? (size_t)source_size(file) : sizeof head;
    struct reader reader = {checkpoint, tensors, options};
    if (!source_read(file, 0, length, head, error))
        return false;
    if (!is_archive(file, head, length)) {
        struct place place = {.name = source_name(file), .source = file, .size = source_size(file)};
        return add_array(&reader, array_name(checkpoint->arena, text_last_name(source_name(file))), &place, error);
    }
    struct arena *scratch = arena_new();
    struct zip_directory zip;
    bool good = zip_directory_read(&zip, file, scratch, error) && add_members(&reader, file, &zip, scratch, error);
    arena_free(scratch);
    return good;
}

static enum probe numpy_probe(const struct input *input)
{
    if (input->file == NULL)
        return PROBE_NO;
    if (is_array(input->head, input->head_length) || is_archive(input->file, input->head, input->head_length))
        return PROBE_SURE;
    return format_extension(&numpy_format, input->file_name) ? PROBE_MAYBE : PROBE_NO;
}

static const struct extension extensions[] = {{".npz"}, {suffix, .alone = true}, {0}};

const struct format numpy_format = {
    .name = "numpy",
    .extensions = extensions,
    .summary = "numpy.save() and savez(): .npy and .npz, including those of MLX and JAX",
    .probe = numpy_probe,
    .read_file = numpy_read_file,
};

/* Writing. */

enum { PREFIX_BYTES = 10, ALIGNMENT = 64, GROWTH_DIGITS = 21 };

size_t numpy_header(const struct dtype *dtype, const uint64_t *shape, unsigned rank, char out[NUMPY_HEADER_MAX])
{
    char *at = out + PREFIX_BYTES;
    at += sprintf(at, "{'descr': '%s', 'fortran_order': False, 'shape': (", dtype->numpy);
    size_t first_digits = 0;
    for (unsigned i = 0; i < rank; i++) {
        int n = sprintf(at, "%s%" PRIu64, i ? ", " : "", shape[i]);
        first_digits = i ? first_digits : (size_t)n;
        at += n;
    }
    at += sprintf(at, "%s), }", rank == 1 ? "," : "");
    if (rank > 0) { /* numpy leaves room for the first dimension to grow */
        memset(at, ' ', GROWTH_DIGITS - first_digits);
        at += GROWTH_DIGITS - first_digits;
    }
    size_t length = (size_t)(at - out) + 1, padding = ALIGNMENT - length % ALIGNMENT; /* numpy never pads by 0 */
    memset(at, ' ', padding);
    at[padding] = '\n';
    length += padding;
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (char)((length - PREFIX_BYTES) & 0xff);
    out[9] = (char)((length - PREFIX_BYTES) >> 8);
    return length;
}
