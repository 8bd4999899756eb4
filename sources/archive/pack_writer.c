#include "sources/archive/pack_writer.h"

#include "base/arena.h"
#include "base/pool.h"
#include "sources/archive/lines.h"
#include "text/json_write.h"

#include <stdlib.h>
#include <string.h>

enum { AT_ONCE = 16 /* chunks that are coded at once */ };

/* A chunk that is being coded. */
struct coded {
    struct coder *coder;
    const unsigned char *bytes;
    unsigned char *frames; /* of the size of the bound of a chunk of the tensor */
    unsigned char *decoded;
    float *values; /* of its input */
    size_t length; /* of the frames */
    bool failed;
    struct error error;
};

/* Chunks that are coded at once. Then they wait until the next ones are coded, and are put meanwhile. */
struct batch {
    struct coded coded[AT_ONCE];
    size_t n_waiting;
    bool failed; /* to be put */
    struct error error;
};

struct pack_writer {
    pack_put *put;
    void *context;
    void (*work)(void *context); /* beside coding */
    void *work_context;
    struct pack_writer_tensor tensor; /* the last */
    uint64_t taken;                   /* its bytes that are written */
    size_t whole;                     /* bytes of its chunks, but the last */
    unsigned char *chunk;             /* what has come of the next one */
    size_t in_chunk;
    struct batch batches[2], *coded, *waiting; /* the one or the other */
    struct buffer list, sizes;
    uint64_t n_bytes;
    uint32_t n_tensors;
};

struct pack_writer *pack_writer_new(pack_put *put, void *context)
{
    struct pack_writer *writer = memory_alloc(sizeof *writer);
    *writer = (struct pack_writer){.put = put, .context = context};
    writer->coded = &writer->batches[0];
    writer->waiting = &writer->batches[1];
    for (size_t i = 0; i < 2 * (size_t)AT_ONCE; i++)
        writer->batches[i / AT_ONCE].coded[i % AT_ONCE].coder = coder_new();
    return writer;
}

void pack_writer_free(struct pack_writer *writer)
{
    if (writer == NULL)
        return;
    for (size_t i = 0; i < 2 * (size_t)AT_ONCE; i++) {
        struct coded *coded = &writer->batches[i / AT_ONCE].coded[i % AT_ONCE];
        coder_free(coded->coder);
        free(coded->frames);
        free(coded->decoded);
        free(coded->values);
    }
    buffer_free(&writer->list);
    buffer_free(&writer->sizes);
    free(writer->chunk);
    free(writer);
}

void pack_writer_beside(struct pack_writer *writer, void (*work)(void *context), void *context)
{
    writer->work = work;
    writer->work_context = context;
}

static void put_input(struct json_writer *json, const struct pack_writer_tensor *tensor)
{
    char hex[SHA256_HEX + 1];
    digest_hex(&tensor->input.digest, hex);
    json_begin_array(json, "input");
    json_put_text(json, NULL, hex);
    json_put_number(json, NULL, tensor->input.number);
    if (tensor->coding->input == CODING_VALUES)
        json_put_text(json, NULL, tensor->input.dtype->name);
    json_end(json);
    if (tensor->input.swap.run == 0)
        return;
    json_begin_array(json, "swap");
    json_put_number(json, NULL, tensor->input.swap.rows);
    json_put_number(json, NULL, tensor->input.swap.columns);
    json_put_number(json, NULL, tensor->input.swap.run);
    json_end(json);
}

/* Adds the line of a tensor, whose chunks have so many values, to the list. */
static void put_line(struct pack_writer *writer, const struct pack_writer_tensor *tensor, uint32_t chunk)
{
    struct json_writer json = {.out = &writer->list, .letters = JSON_UTF8, .compact = true};
    char hex[SHA256_HEX + 1];
    digest_hex(&tensor->digest, hex);
    json_begin_object(&json, NULL);
    json_put_number(&json, "length", tensor->length);
    json_put_text(&json, "sha256", hex);
    json_put_text(&json, "coding", tensor->coding->name);
    if (chunk != CODING_CHUNK)
        json_put_number(&json, "chunk", chunk);
    if (tensor->dtype != NULL)
        json_put_text(&json, "dtype", tensor->dtype->name);
    if (tensor->name != NULL)
        json_put_text(&json, "name", tensor->name);
    if (tensor->coding->input != CODING_ALONE)
        put_input(&json, tensor);
    json_end(&json);
    buffer_append_text(&writer->list, "\n");
    writer->n_tensors++;
}

void pack_writer_begin(struct pack_writer *writer, const struct pack_writer_tensor *tensor)
{
    put_line(writer, tensor, coding_chunk(tensor->coding));
    writer->whole = coding_bytes(tensor->coding, coding_chunk(tensor->coding));
    writer->chunk = memory_resize(writer->chunk, writer->whole);
    writer->tensor = *tensor;
    writer->taken = 0;
}

/* Puts the chunks that wait. */
static void put_waiting(struct pack_writer *writer)
{
    struct batch *batch = writer->waiting;
    for (size_t i = 0; !batch->failed && i < batch->n_waiting; i++)
        batch->failed = !writer->put(writer->context, batch->coded[i].frames, batch->coded[i].length, &batch->error);
    batch->n_waiting = 0;
}

/* Puts them now, so that other bytes may follow. */
static bool flush(struct pack_writer *writer, struct error *error)
{
    put_waiting(writer);
    if (writer->waiting->failed)
        *error = writer->waiting->error;
    return !writer->waiting->failed;
}

bool pack_writer_copy(struct pack_writer *writer, const struct pack_writer_tensor *tensor, const struct pack *from,
                      size_t index, struct error *error)
{
    enum { PIECE = 1 << 20 /* bytes */ };
    uint64_t offset, length, n_chunks;
    const uint32_t *sizes = pack_chunk_sizes(from, index, &n_chunks);
    unsigned char *bytes = memory_alloc(PIECE);
    bool good = flush(writer, error);
    put_line(writer, tensor, pack_tensor(from, index)->chunk);
    for (uint64_t i = 0; i < n_chunks; i++)
        buffer_append_le(&writer->sizes, sizes[i], 4);
    pack_depends(from, index, 0, tensor->length, &offset, &length);
    for (uint64_t at = 0, n; good && at < length; at += n) {
        n = length - at < PIECE ? length - at : PIECE;
        good = source_read(pack_blob(from), offset + at, (size_t)n, bytes, error) &&
               writer->put(writer->context, bytes, (size_t)n, error);
    }
    writer->n_bytes += length;
    free(bytes);
    return good;
}

/* Returns how many bytes chunk number `i` of those that are coded now has. */
static size_t bytes_of(const struct pack_writer *writer, size_t i)
{
    const uint64_t left = writer->tensor.length - writer->taken - i * writer->whole;
    return left < writer->whole ? (size_t)left : writer->whole;
}

/* The input's values for a chunk, which are read once for coding and checking. */
struct input_values {
    const void *values;
    size_t n_bytes;
};

static bool give_values(void *context, uint64_t first, size_t count, void *out, struct error *error)
{
    const struct input_values *input = context;
    (void)first, (void)count, (void)error;
    memcpy(out, input->values, input->n_bytes);
    return true;
}

/* Reads them into the room of `coded`. */
static bool read_values(struct pack_writer *writer, struct coded *coded, const struct coding_chunk *chunk,
                        struct input_values *ret_input, struct error *error)
{
    const struct coding *coding = writer->tensor.coding;
    const bool decodes = coding->input == CODING_VALUES;
    const struct coding_input input =
        decodes ? pack_input_values(&writer->tensor.input) : pack_input_bytes(&writer->tensor.input);
    const size_t count = chunk->n_bytes / coding->unit_bytes * coding->unit_values;
    *ret_input = (struct input_values){coded->values, count * (decodes ? sizeof(float) : coding->unit_bytes)};
    return coding->input == CODING_ALONE || input.read(input.context, chunk->first, count, coded->values, error);
}

static void code_chunk(struct pack_writer *writer, size_t i)
{
    struct coded *coded = &writer->coded->coded[i];
    const struct coding *coding = writer->tensor.coding;
    const uint64_t at = writer->taken + i * writer->whole;
    struct input_values values;
    const struct coding_input input = {give_values, &values};
    const struct coding_chunk chunk = {at / coding->unit_bytes * coding->unit_values, bytes_of(writer, i),
                                       coding->input != CODING_ALONE ? &input : NULL};
    coded->failed =
        !read_values(writer, coded, &chunk, &values, &coded->error) ||
        !coding_encode(coding, coded->coder, &chunk, coded->bytes, coded->frames, &coded->length, &coded->error) ||
        !coding_check(coding, coded->coder, &chunk, coded->frames, coded->length, coded->bytes, coded->decoded,
                      &coded->error);
}

enum { PUT, WORK, CODE };

static void put_or_code(void *context, size_t i)
{
    struct pack_writer *writer = context;
    if (i == PUT)
        put_waiting(writer);
    else if (i >= CODE)
        code_chunk(writer, i - CODE);
    else if (writer->work != NULL)
        writer->work(writer->work_context);
}

/* Codes the next chunks, which lie one after the other, and puts those before. */
static bool write_chunks(struct pack_writer *writer, const unsigned char *bytes, size_t n, struct error *error)
{
    const struct coding *coding = writer->tensor.coding;
    const size_t whole = writer->whole;
    struct batch *batch = writer->coded;
    for (size_t i = 0; i < n; i++) {
        struct coded *coded = &batch->coded[i];
        coded->bytes = bytes + i * whole;
        coded->frames = memory_resize(coded->frames, coding_bound(coding, whole));
        coded->decoded = memory_resize(coded->decoded, whole);
        if (coding->input != CODING_ALONE)
            coded->values = memory_resize(coded->values, CODING_CHUNK * sizeof *coded->values);
    }
    pool_run(CODE + n, put_or_code, writer);
    for (size_t i = 0; i < n; i++) {
        const struct coded *coded = &batch->coded[i];
        if (coded->failed) {
            *error = coded->error;
            return false;
        }
        buffer_append_le(&writer->sizes, coded->length, 4);
        writer->n_bytes += coded->length;
        writer->taken += bytes_of(writer, 0);
    }
    if (!flush(writer, error))
        return false;
    writer->coded = writer->waiting;
    writer->waiting = batch;
    batch->n_waiting = n;
    return true;
}

/* Returns how many chunks the bytes begin with that can be coded now. */
static size_t count_whole(const struct pack_writer *writer, size_t length)
{
    size_t n = 0;
    for (size_t next; n < AT_ONCE && length > 0 && (next = bytes_of(writer, n)) <= length; n++)
        length -= next;
    return n;
}

bool pack_writer_add(struct pack_writer *writer, const void *bytes, size_t length, struct error *error)
{
    const unsigned char *from = bytes;
    const size_t whole = writer->whole;
    for (size_t n; length > 0; from += n, length -= n) {
        const size_t n_chunks = writer->in_chunk == 0 ? count_whole(writer, length) : 0;
        if (n_chunks > 0) {
            n = (n_chunks - 1) * whole + bytes_of(writer, n_chunks - 1);
            if (!write_chunks(writer, from, n_chunks, error))
                return false;
            continue;
        }
        const size_t room = bytes_of(writer, 0) - writer->in_chunk;
        n = length < room ? length : room;
        memcpy(writer->chunk + writer->in_chunk, from, n);
        writer->in_chunk += n;
        if (n == room) {
            writer->in_chunk = 0;
            if (!write_chunks(writer, writer->chunk, 1, error))
                return false;
        }
    }
    return true;
}

bool pack_writer_finish(struct pack_writer *writer, struct error *error)
{
    struct buffer frame = {0}, content = {0};
    lines_append_frame(&writer->list, &content);
    size_t list = content.length;
    buffer_append(&content, writer->sizes.bytes, writer->sizes.length);
    buffer_append_le(&content, list, 8);
    buffer_append_le(&content, writer->sizes.length / 4, 8);
    buffer_append(&content, PACK_MAGIC, 8);
    buffer_append_le(&frame, PACK_SKIPPABLE, 4);
    buffer_append_le(&frame, content.length, 4);
    bool good = content.length <= UINT32_MAX || error_set(error, "too many tensors for one pack; add fewer at once");
    good = good && flush(writer, error) && writer->put(writer->context, frame.bytes, frame.length, error) &&
           writer->put(writer->context, content.bytes, content.length, error);
    writer->n_bytes += frame.length + content.length;
    buffer_free(&frame);
    buffer_free(&content);
    return good;
}

uint32_t pack_writer_count(const struct pack_writer *writer)
{
    return writer->n_tensors;
}

uint64_t pack_writer_bytes(const struct pack_writer *writer)
{
    return writer->n_bytes;
}
