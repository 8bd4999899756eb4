/* Files of ggml before GGUF: those of whisper.cpp, which still writes them, and LLaMA's of 2023.
 *
 * The first four bytes tell the kind of file: "lmgg" (no version), "fmgg" and "tjgg" (u32 version). All numbers are
 * little-endian:
 *
 * - whisper.cpp ("lmgg"): 11 u32 hyperparameters; u32 n_mel, u32 n_fft, their product in F32, the mel filters; u32
 *   number of tokens, for each its u32 length and bytes;
 * - LLaMA: 7 u32 hyperparameters, the first being the number of tokens; for each token its u32 length and bytes, and an
 *   F32 score unless "lmgg";
 * - then, to the end of the file, tensors: u32 number of dimensions, u32 length of the name, u32 ggml type, the
 *   dimensions, the fastest first, the name, zeros up to a multiple of 32 in "tjgg", the elements.
 *
 * "lmgg" has no mark of its model: it is the one whose layout ends with the file. Other programs have files of their
 * own with these magics (formats/unread_kinds.c). Blocks of quantized types changed
 * twice: tensors of older ones are listed without values. Filters and tokens are not shown; whisper.h has them.
 * Source: whisper.cpp, whisper_model_load(); llama.cpp, convert_llama_ggml_to_gguf.py. */
#include "base/checked.h"
#include "formats/checkpoint_builder.h"
#include "formats/format.h"
#include "formats/ggml/whisper.h"
#include "formats/shape.h"
#include "formats/window.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    READ_MAX_DIMENSIONS = 4, /* ggml's */
    MAX_TENSOR_NAME = 1024,
    ALIGNMENT = 32,
    WHISPER_NUMBERS = 11,
    LLAMA_NUMBERS = 7,
    LLAMA_VOCABULARY = 0,  /* the number of tokens among the hyperparameters */
    FTYPE_VERSIONS = 1000, /* an ftype is the type, plus so many for each version of the blocks */
    BLOCKS_VERSION = 2,    /* of whisper.cpp, as in GGUF */
    JT_BLOCKS_VERSION = 3, /* of "tjgg", as in GGUF */
};

static const char *const whisper_names[WHISPER_NUMBERS] = {
    "n_vocab",      "n_audio_ctx", "n_audio_state", "n_audio_head", "n_audio_layer", "n_text_ctx",
    "n_text_state", "n_text_head", "n_text_layer",  "n_mels",       "ftype",
};
static const char *const llama_names[LLAMA_NUMBERS] = {"n_vocab", "n_embd", "n_mult", "n_head",
                                                       "n_layer", "n_rot",  "ftype"};

static const struct kind {
    const char *model, *label; /* in metadata and in errors */
    char magic[5];
    bool has_version, has_scores, is_aligned, has_filters;
    unsigned n_numbers;
    const char *const *names;
} kinds[] = {
    {"whisper", "ggml (whisper)", "lmgg", .has_filters = true, .n_numbers = WHISPER_NUMBERS, .names = whisper_names},
    {"llama", "ggml (llama)", "lmgg", .n_numbers = LLAMA_NUMBERS, .names = llama_names},
    {"llama", "ggml (llama)", "fmgg", .has_version = true, .has_scores = true, .n_numbers = LLAMA_NUMBERS,
     .names = llama_names},
    {"llama", "ggml (llama)", "tjgg", .has_version = true, .has_scores = true, .is_aligned = true,
     .n_numbers = LLAMA_NUMBERS, .names = llama_names},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds, MAGIC_BYTES = 4 };

struct reader {
    const struct kind *kind;
    struct file_cursor in;
    struct arena *arena;
    struct tensor_set *tensors;
    uint32_t version, numbers[WHISPER_NUMBERS];
};

static bool read_numbers(struct reader *reader, unsigned n, uint32_t *numbers)
{
    for (unsigned i = 0; i < n; i++) {
        uint64_t number;
        if (!file_cursor_number(&reader->in, 4, &number))
            return false;
        numbers[i] = (uint32_t)number;
    }
    return true;
}

static bool skip_filters(struct reader *reader)
{
    uint32_t sizes[2];
    return read_numbers(reader, 2, sizes) &&
           ((uint64_t)sizes[0] * sizes[1] <= UINT64_MAX / 4 || file_cursor_refuse(&reader->in, "truncated")) &&
           file_cursor_skip(&reader->in, (uint64_t)sizes[0] * sizes[1] * 4);
}

static bool skip_tokens(struct reader *reader, uint32_t n)
{
    for (uint32_t i = 0, length; i < n; i++)
        if (!read_numbers(reader, 1, &length) ||
            !file_cursor_skip(&reader->in, (uint64_t)length + (reader->kind->has_scores ? 4 : 0)))
            return false;
    return true;
}

static bool read_head(struct reader *reader)
{
    const struct kind *kind = reader->kind;
    uint32_t n_tokens;
    if ((kind->has_version && !read_numbers(reader, 1, &reader->version)) ||
        !read_numbers(reader, kind->n_numbers, reader->numbers))
        return false;
    if (!kind->has_filters)
        return skip_tokens(reader, reader->numbers[LLAMA_VOCABULARY]);
    return skip_filters(reader) && read_numbers(reader, 1, &n_tokens) && skip_tokens(reader, n_tokens);
}

/* Reports whether blocks of quantized types are those of GGUF. */
static bool has_known_blocks(const struct reader *reader)
{
    if (reader->kind->has_filters)
        return reader->numbers[WHISPER_NUMBERS - 1] / FTYPE_VERSIONS == BLOCKS_VERSION;
    return reader->kind->is_aligned && reader->version == JT_BLOCKS_VERSION;
}

static bool set_shape(struct reader *reader, struct tensor *tensor, const uint32_t *dimensions, unsigned rank)
{
    uint64_t shape[READ_MAX_DIMENSIONS], n_elements;
    for (unsigned i = 0; i < rank; i++)
        shape[i] = dimensions[rank - 1 - i];
    if (!shape_size(tensor->dtype, shape, rank, &n_elements, &tensor->length, NULL) || n_elements == 0)
        return file_cursor_refuse(&reader->in, "a tensor whose dimensions are zero or overflow");
    if (shape[rank - 1] % tensor->dtype->block_elements != 0)
        return file_cursor_refuse(&reader->in, "a tensor whose rows are not whole blocks of its type");
    tensor->rank = (uint8_t)rank;
    tensor->shape = arena_copy(reader->arena, shape, rank * sizeof *shape);
    return true;
}

/* Reads the name; no byte of it may be a control character, which tells names from other bytes. */
static bool read_name(struct reader *reader, struct tensor *tensor, uint32_t length)
{
    if (length == 0 || length > MAX_TENSOR_NAME)
        return file_cursor_refuse(&reader->in, "a tensor whose name is empty or too long");
    char *name = arena_alloc(reader->arena, (size_t)length + 1);
    if (!file_cursor_read(&reader->in, length, name))
        return false;
    for (uint32_t i = 0; i < length; i++)
        if ((unsigned char)name[i] < ' ')
            return file_cursor_refuse(&reader->in, "a tensor whose name has control characters");
    tensor->name = name;
    tensor->name_length = length;
    return true;
}

static bool read_tensor(struct reader *reader)
{
    uint32_t head[3], dimensions[READ_MAX_DIMENSIONS];
    struct tensor tensor = {.source = reader->in.file};
    if (!read_numbers(reader, 3, head))
        return false;
    if (head[0] == 0 || head[0] > READ_MAX_DIMENSIONS)
        return file_cursor_refuse(&reader->in, "a tensor that does not have 1 to 4 dimensions");
    tensor.dtype = dtype_by_ggml_type(head[2]);
    if (tensor.dtype == NULL)
        return file_cursor_refuse(&reader->in, "a tensor of an unknown type");
    if (!read_numbers(reader, head[0], dimensions) || !read_name(reader, &tensor, head[1]) ||
        !set_shape(reader, &tensor, dimensions, head[0]))
        return false;
    tensor.offset = reader->in.at;
    if (reader->kind->is_aligned && !checked_align(reader->in.at, ALIGNMENT, &tensor.offset))
        return file_cursor_refuse(&reader->in, "truncated");
    if (!file_cursor_skip(&reader->in, tensor.offset - reader->in.at) || !file_cursor_skip(&reader->in, tensor.length))
        return false;
    if (tensor.dtype->kind == DTYPE_BLOCK && !has_known_blocks(reader))
        tensor.refusal = "its blocks are of a version before GGUF";
    if (reader->tensors->n_tensors == TENSOR_SET_MAX)
        return file_cursor_refuse(&reader->in, "too many tensors");
    tensor_set_add(reader->tensors, &tensor);
    return true;
}

/* Reads the file as one of a kind; its tensors go to a set of the reader's own. */
static bool read_kind(struct reader *reader)
{
    reader->in.at = MAGIC_BYTES;
    if (!read_head(reader))
        return false;
    while (reader->in.at < reader->in.end)
        if (!read_tensor(reader))
            return false;
    return reader->tensors->n_tensors > 0 || file_cursor_refuse(&reader->in, "it holds no tensors");
}

static void take(const struct reader *reader, struct checkpoint *checkpoint, struct tensor_set *tensors)
{
    char number[16];
    checkpoint_add_metadata(checkpoint, "model", reader->kind->model);
    for (unsigned i = 0; i < reader->kind->n_numbers; i++) {
        snprintf(number, sizeof number, "%" PRIu32, reader->numbers[i]);
        checkpoint_add_metadata(checkpoint, reader->kind->names[i], number);
    }
    for (size_t i = 0; i < reader->tensors->n_tensors; i++)
        tensor_set_add(tensors, &reader->tensors->tensors[i]);
}

/* Tries the kinds of a magic. The error is that of the kind which fits more of the file: one tensor
 * at least, as other programs' hyperparameters look like these. */
static bool read_kinds(struct reader *reader, struct checkpoint *checkpoint, struct tensor_set *tensors,
                       const char *magic, struct error *error)
{
    uint64_t furthest = 0;
    for (const struct kind *kind = kinds; kind < kinds + N_KINDS; kind++) {
        if (memcmp(kind->magic, magic, MAGIC_BYTES) != 0)
            continue;
        reader->kind = kind;
        reader->in.format = kind->label;
        reader->tensors = tensor_set_new(checkpoint->arena);
        if (read_kind(reader)) {
            take(reader, checkpoint, tensors);
            return true;
        }
        if (reader->tensors->n_tensors > 0 && reader->in.at > furthest) {
            furthest = reader->in.at;
            *error = *reader->in.error;
        }
    }
    return false;
}

/* Takes the mel filters, and their sizes. */
static bool take_filters(struct reader *reader, struct gguf_kvs *metadata)
{
    uint32_t sizes[2];
    uint64_t n_bytes;
    if (!read_numbers(reader, 2, sizes))
        return false;
    gguf_set_u32(metadata, "filters.n_mels", sizes[0]);
    gguf_set_u32(metadata, "filters.n_fft", sizes[1]);
    if (!checked_multiply((uint64_t)sizes[0] * sizes[1], sizeof(float), &n_bytes) ||
        !file_cursor_has(&reader->in, n_bytes))
        return file_cursor_refuse(&reader->in, "truncated");
    struct buffer filters = {.bytes = memory_alloc(n_bytes + 1), .length = n_bytes, .capacity = n_bytes + 1};
    bool good = file_cursor_read(&reader->in, n_bytes, filters.bytes);
    gguf_set_array(metadata, "filters", GGUF_F32, n_bytes / sizeof(float), &filters);
    return good;
}

static bool take_tokens(struct reader *reader, struct gguf_kvs *metadata)
{
    uint32_t n_tokens = 0, length;
    struct buffer tokens = {0};
    bool good = read_numbers(reader, 1, &n_tokens);
    for (uint32_t i = 0; good && i < n_tokens; i++) {
        good = read_numbers(reader, 1, &length) && file_cursor_has(&reader->in, length);
        char *text = good ? memory_alloc((size_t)length + 1) : NULL;
        good = good && file_cursor_read(&reader->in, length, text);
        if (good)
            gguf_append_string(&tokens, text, length);
        free(text);
    }
    if (good && n_tokens == 0)
        good = file_cursor_refuse(&reader->in, "it has no tokens");
    gguf_set_array(metadata, "tokens", GGUF_STRING, n_tokens, &tokens);
    return good;
}

bool whisper_read_metadata(struct source *file, struct gguf_kvs *ret_metadata, struct error *error)
{
    struct reader reader = {.kind = &kinds[0], .in = file_cursor_begin(file, MAGIC_BYTES, kinds[0].label, error)};
    *ret_metadata = (struct gguf_kvs){0};
    bool good = read_numbers(&reader, WHISPER_NUMBERS, reader.numbers);
    for (unsigned i = 0; good && i < WHISPER_NUMBERS; i++)
        gguf_set_u32(ret_metadata, whisper_names[i], reader.numbers[i]);
    good = good && take_filters(&reader, ret_metadata) && take_tokens(&reader, ret_metadata);
    file_cursor_end(&reader.in);
    if (!good)
        gguf_kvs_free(ret_metadata);
    return good;
}

static bool read_file(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                      const struct open_options *options, struct error *error)
{
    char head[MAGIC_BYTES] = {0};
    size_t length = source_size(file) < sizeof head ? (size_t)source_size(file) : sizeof head;
    struct error reason = {""}, last;
    (void)options;
    if (!source_read(file, 0, length, head, error))
        return false;
    error_set(&last,
              "%s: a file of ggml that is laid out neither like whisper.cpp's models nor like LLaMA's of 2023; another "
              "model, or an interrupted download",
              source_name(file));
    struct reader reader = {
        .in = file_cursor_begin(file, MAGIC_BYTES, NULL, &reason),
        .arena = checkpoint->arena,
    };
    bool good = read_kinds(&reader, checkpoint, tensors, head, &last);
    file_cursor_end(&reader.in);
    if (!good)
        *error = last;
    return good;
}

static enum probe probe(const struct input *input)
{
    for (const struct kind *kind = kinds; kind < kinds + N_KINDS; kind++)
        if (input->head_length >= MAGIC_BYTES && memcmp(input->head, kind->magic, MAGIC_BYTES) == 0)
            return PROBE_SURE;
    return PROBE_NO;
}

static const struct extension extensions[] = {{".bin", .shared = true}, {0}};

const struct format ggml_format = {
    .name = "ggml",
    .extensions = extensions,
    .summary = "ggml before GGUF: whisper.cpp's ggml-*.bin, LLaMA's of 2023",
    .probe = probe,
    .read_file = read_file,
};

/* Writing. */

enum { WRITE_MAX_DIMENSIONS = 4 }; /* ggml's */

/* Appends a number that whisper.cpp reads as i32. */
static bool append_number(struct buffer *out, uint64_t number, const char *what, struct error *error)
{
    if (number > INT32_MAX)
        return error_set(error, "%s: %" PRIu64 " exceeds the 31 bits that whisper.cpp reads", what, number);
    buffer_append_le(out, number, 4);
    return true;
}

/* Appends the bytes of an array of F32, or the number of strings and each with its length. */
static bool append_array(struct buffer *out, const struct gguf_kvs *metadata, const char *key, struct error *error)
{
    struct arena *arena = arena_new();
    struct gguf_array array;
    bool good = gguf_get_array(metadata, key, arena, &array, error);
    if (good && array.type == GGUF_STRING)
        good = append_number(out, array.count, key, error);
    else if (good)
        buffer_append(out, array.elements, array.count * sizeof(float));
    for (uint64_t i = 0; good && array.type == GGUF_STRING && i < array.count; i++) {
        size_t length;
        const char *text = gguf_array_string(&array, i, &length);
        good = append_number(out, length, key, error);
        buffer_append(out, text, length);
    }
    arena_free(arena);
    return good;
}

static bool append_header(struct buffer *out, const struct gguf_kvs *metadata, struct error *error)
{
    buffer_append_text(out, "lmgg");
    for (size_t i = 0; i < metadata->n_kvs; i++) {
        const char *key = metadata->kvs[i].key;
        uint64_t number;
        bool is_number = gguf_get_u64(metadata, key, &number);
        if (is_number ? !append_number(out, number, key, error) : !append_array(out, metadata, key, error))
            return false;
    }
    return true;
}

static bool append_record(struct buffer *out, const struct artifact_tensor *written, struct error *error)
{
    const struct tensor *tensor = written->tensor;
    if (tensor->rank > WRITE_MAX_DIMENSIONS)
        return error_set(error, "tensor '%s' has %d dimensions; ggml has at most %d", tensor->name, tensor->rank,
                         WRITE_MAX_DIMENSIONS);
    buffer_append_le(out, tensor->rank, 4);
    buffer_append_le(out, tensor->name_length, 4);
    buffer_append_le(out, (uint64_t)written->encoding.dtype->ggml_type, 4);
    for (unsigned i = tensor->rank; i-- > 0;)
        if (!append_number(out, tensor->shape[i], tensor->name, error))
            return false;
    buffer_append(out, tensor->name, tensor->name_length);
    return true;
}

static bool lay_out(const struct artifact *artifact, struct span_list *spans, struct error *error)
{
    struct buffer literal = {0};
    bool good = append_header(&literal, &artifact->metadata, error);
    spans_reserve(spans, 2 * artifact->n_tensors);
    for (size_t i = 0; good && i < artifact->n_tensors; i++) {
        good = append_record(&literal, &artifact->tensors[i], error);
        spans_add_buffer(spans, &literal);
        spans_add_tensor(spans, artifact->tensors[i].tensor, artifact->tensors[i].encoding);
    }
    buffer_free(&literal);
    return good;
}

const struct container whisper_container = {.name = "ggml", .lay_out = lay_out};
