#include "formats/archive/pack_writer.h"

#include "base/arena.h"
#include "formats/archive/lines.h"
#include "formats/json_write.h"

#include <stdlib.h>
#include <string.h>

struct pack_writer {
    pack_put *put;
    void *context;
    struct pack_writer_tensor tensor; /* the last */
    uint64_t taken;                   /* its bytes so far */
    struct coder *coder;
    unsigned char *chunk, *frames; /* of the size of a chunk of the tensor, and of its bound */
    size_t in_chunk;
    struct buffer list, sizes;
    uint64_t n_bytes;
    uint32_t n_tensors;
};

struct pack_writer *pack_writer_new(pack_put *put, void *context)
{
    struct pack_writer *writer = memory_alloc(sizeof *writer);
    *writer = (struct pack_writer){.put = put, .context = context, .coder = coder_new()};
    return writer;
}

void pack_writer_free(struct pack_writer *writer)
{
    if (writer == NULL)
        return;
    coder_free(writer->coder);
    buffer_free(&writer->list);
    buffer_free(&writer->sizes);
    free(writer->chunk);
    free(writer->frames);
    free(writer);
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

void pack_writer_begin(struct pack_writer *writer, const struct pack_writer_tensor *tensor)
{
    struct json_writer json = {.out = &writer->list, .letters = JSON_UTF8, .compact = true};
    char hex[SHA256_HEX + 1];
    digest_hex(&tensor->digest, hex);
    json_begin_object(&json, NULL);
    json_put_number(&json, "length", tensor->length);
    json_put_text(&json, "sha256", hex);
    json_put_text(&json, "coding", tensor->coding->name);
    if (tensor->dtype != NULL)
        json_put_text(&json, "dtype", tensor->dtype->name);
    if (tensor->name != NULL)
        json_put_text(&json, "name", tensor->name);
    if (tensor->coding->input != CODING_ALONE)
        put_input(&json, tensor);
    json_end(&json);
    buffer_append_text(&writer->list, "\n");
    size_t whole = coding_chunk_bytes(tensor->coding);
    writer->chunk = memory_resize(writer->chunk, whole);
    writer->frames = memory_resize(writer->frames, coding_bound(tensor->coding, whole));
    writer->tensor = *tensor;
    writer->taken = 0;
    writer->n_tensors++;
}

static bool write_chunk(struct pack_writer *writer, struct error *error)
{
    const struct coding *coding = writer->tensor.coding;
    const struct coding_input input = coding->input == CODING_VALUES ? pack_input_values(&writer->tensor.input)
                                                                     : pack_input_bytes(&writer->tensor.input);
    const struct coding_chunk chunk = {(writer->taken - writer->in_chunk) / coding->unit_bytes * coding->unit_values,
                                       writer->in_chunk, coding->input != CODING_ALONE ? &input : NULL};
    size_t length;
    if (!coding_encode(coding, writer->coder, &chunk, writer->chunk, writer->frames, &length, error))
        return false;
    buffer_append_le(&writer->sizes, length, 4);
    writer->n_bytes += length;
    writer->in_chunk = 0;
    return writer->put(writer->context, writer->frames, length, error);
}

bool pack_writer_add(struct pack_writer *writer, const void *bytes, size_t length, struct error *error)
{
    const unsigned char *from = bytes;
    size_t whole = coding_chunk_bytes(writer->tensor.coding);
    while (length > 0) {
        size_t room = whole - writer->in_chunk, n = length < room ? length : room;
        memcpy(writer->chunk + writer->in_chunk, from, n);
        writer->in_chunk += n;
        writer->taken += n;
        from += n;
        length -= n;
        if ((writer->in_chunk == whole || writer->taken == writer->tensor.length) && !write_chunk(writer, error))
            return false;
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
    good = good && writer->put(writer->context, frame.bytes, frame.length, error) &&
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
