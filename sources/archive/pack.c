#include "sources/archive/pack.h"

#include "base/arena.h"
#include "base/attempt.h"
#include "base/checked.h"
#include "sources/archive/lines.h"
#include "sources/chunk_cache.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TENSORS = 16 << 20 };

struct pack {
    struct source *blob;
    pack_find *find;
    void *context;
    struct pack_tensor *tensors;
    size_t n_tensors;
    uint32_t *sizes;       /* bytes of each chunk */
    struct chunk **places; /* of each chunk, if it is in the cache (chunk_cache.h) */
    uint64_t n_chunks;
    uint64_t list_offset, list_length; /* of the list of tensors in the blob */
};

static uint64_t chunk_bytes(const struct pack_tensor *tensor)
{
    return coding_bytes(tensor->coding, tensor->chunk);
}

static uint64_t chunks_of(const struct pack_tensor *tensor)
{
    return rounded_up(tensor->length, chunk_bytes(tensor));
}

/* An index while it is read. */
struct reading {
    struct pack *pack;
    uint64_t n_chunks; /* of the tensors so far */
    uint64_t most;     /* tensors that may be kept */
};

/* Reads [rows, columns, run]. */
static bool take_swap(const struct json *value, struct pack_tensor *tensor, struct error *error)
{
    const struct json *numbers = json_get(value, "swap");
    struct pack_swap *swap = &tensor->swap;
    const uint64_t n = tensor->length / tensor->coding->unit_bytes * tensor->coding->unit_values;
    uint64_t part;
    if (numbers == NULL)
        return true;
    return (json_u64(json_at(numbers, 0), &swap->rows) && json_u64(json_at(numbers, 1), &swap->columns) &&
            json_u64(json_at(numbers, 2), &swap->run) && swap->run >= PACK_LEAST_RUN &&
            checked_multiply(swap->rows, swap->columns, &part) && checked_multiply(part, swap->run, &part) &&
            part > 0 && n % part == 0) ||
           error_set(error,
                     "its swap has no rows, columns and a run of at least %d that %" PRIu64 " values divide into",
                     PACK_LEAST_RUN, n);
}

/* Reads [pack, number], or [pack, number, dtype] of weights. */
static bool take_input(const struct json *value, struct pack_tensor *tensor, struct error *error)
{
    const struct json *input = json_get(value, "input");
    uint64_t number;
    if (tensor->coding->input == CODING_ALONE)
        return true;
    if (!digest_parse(json_string(json_at(input, 0), NULL), &tensor->input_pack) ||
        !json_u64(json_at(input, 1), &number) || number > UINT32_MAX)
        return error_set(error, "coding %s needs an input: [pack, number]", tensor->coding->name);
    tensor->input = (uint32_t)number;
    const char *dtype = json_string(json_at(input, 2), NULL);
    if (tensor->coding->input != CODING_VALUES)
        return true;
    tensor->input_dtype = dtype != NULL ? dtype_by_name(dtype) : NULL;
    if (tensor->input_dtype == NULL || tensor->input_dtype->kind != DTYPE_FLOAT ||
        tensor->input_dtype->block_elements != 1)
        return error_set(error, "coding %s needs the type of its input", tensor->coding->name);
    return take_swap(value, tensor, error);
}

/* Reads how many values a chunk has; tensors of wfs 0.1.0 do not say so. */
static bool take_chunk(const struct json *value, struct pack_tensor *tensor, struct error *error)
{
    const struct json *chunk = json_get(value, "chunk");
    uint64_t values = CODING_CHUNK;
    if (chunk != NULL && (!json_u64(chunk, &values) || values < CODING_LEAST_CHUNK || values > CODING_CHUNK ||
                          (values & (values - 1)) != 0))
        return error_set(error, "its chunk is no power of two from %d to %d", CODING_LEAST_CHUNK, CODING_CHUNK);
    tensor->chunk = (uint32_t)values;
    return true;
}

static bool take_coding(const struct json *value, struct pack_tensor *tensor, struct error *error)
{
    const char *name = json_string(json_get(value, "coding"), NULL);
    tensor->coding = name != NULL ? coding_by_name(name) : NULL;
    if (tensor->coding == NULL)
        return error_set(error, "coding '%s' is unknown to this wfs; a newer one may read it",
                         name != NULL ? name : "");
    return take_chunk(value, tensor, error) &&
           (tensor->length % tensor->coding->unit_bytes == 0 ||
            error_set(error, "a tensor of %" PRIu64 " bytes, and coding %s has units of %u", tensor->length, name,
                      tensor->coding->unit_bytes));
}

/* Takes what only later packing needs. */
static void take_description(const struct json *value, struct pack_tensor *tensor)
{
    size_t length = 0;
    const char *dtype = json_string(json_get(value, "dtype"), NULL),
               *name = json_string(json_get(value, "name"), &length);
    tensor->dtype = dtype != NULL ? dtype_by_name(dtype) : NULL;
    tensor->name = name != NULL ? pack_name_hash(name, length) : 0;
}

static bool take_tensor(void *context, const struct json *value, uint64_t line, struct error *error)
{
    struct reading *reading = context;
    struct pack *pack = reading->pack;
    struct pack_tensor tensor = {.first_chunk = reading->n_chunks};
    if (line > reading->most)
        return error_set(error, "more tensors than a list of its size may have, %" PRIu64, reading->most);
    if (!json_u64(json_get(value, "length"), &tensor.length) || tensor.length == 0)
        return error_set(error, "no tensor: it has no positive length");
    if (!digest_parse(json_string(json_get(value, "sha256"), NULL), &tensor.digest))
        return error_set(error, "no SHA-256 of 64 digits");
    take_description(value, &tensor);
    if (!take_coding(value, &tensor, error) || !take_input(value, &tensor, error))
        return false;
    if (!checked_add(reading->n_chunks, chunks_of(&tensor), &reading->n_chunks) || reading->n_chunks > pack->n_chunks)
        return error_set(error, "the tensors have more chunks than the index, %" PRIu64, pack->n_chunks);
    pack->tensors = memory_grow(pack->tensors, pack->n_tensors, sizeof *pack->tensors);
    pack->tensors[pack->n_tensors++] = tensor;
    return true;
}

static bool check_chunks(const struct pack *pack, uint64_t n_chunks, struct error *error)
{
    return n_chunks == pack->n_chunks || error_set(error, "%s: %" PRIu64 " chunks belong to no tensor",
                                                   source_name(pack->blob), pack->n_chunks - n_chunks);
}

/* Finds the offset of each tensor. Fails if the chunks do not fill the pack up to its index. */
static bool place_chunks(struct pack *pack, uint64_t end, struct error *error)
{
    uint64_t at = 0, chunk = 0;
    for (size_t i = 0; i < pack->n_tensors; i++) {
        pack->tensors[i].offset = at;
        for (uint64_t last = chunk + chunks_of(&pack->tensors[i]); chunk < last; chunk++)
            at += pack->sizes[chunk]; /* 2^29 chunks of less than 2^32 bytes */
    }
    return at == end || error_set(error, "%s: its chunks have %" PRIu64 " bytes, and its index begins at %" PRIu64,
                                  source_name(pack->blob), at, end);
}

static bool read_sizes(struct pack *pack, uint64_t offset, struct error *error)
{
    size_t n_bytes = (size_t)pack->n_chunks * sizeof *pack->sizes;
    pack->sizes = memory_alloc(n_bytes + 1);
    if (!source_read(pack->blob, offset, n_bytes, pack->sizes, error))
        return false;
    for (uint64_t i = 0; i < pack->n_chunks; i++)
        pack->sizes[i] = (uint32_t)read_le(&pack->sizes[i], 4);
    pack->places = calloc((size_t)pack->n_chunks + 1, sizeof *pack->places);
    if (pack->places == NULL)
        memory_exhausted((size_t)pack->n_chunks * sizeof *pack->places);
    return true;
}

/* Reads the index, whose skippable frame ends the blob. */
static bool read_index(struct pack *pack, struct error *error)
{
    unsigned char footer[PACK_FOOTER], header[PACK_FRAME_HEADER];
    uint64_t size = source_size(pack->blob), list, table, content;
    const char *name = source_name(pack->blob);
    if (size < PACK_FOOTER + PACK_FRAME_HEADER)
        return error_set(error, "%s: no pack: %" PRIu64 " bytes", name, size);
    if (!source_read(pack->blob, size - PACK_FOOTER, PACK_FOOTER, footer, error))
        return false;
    list = read_le(footer, 8);
    pack->n_chunks = read_le(footer + 8, 8);
    if (memcmp(footer + 16, PACK_MAGIC, 8) != 0)
        return error_set(error, "%s: no pack: it does not end with " PACK_MAGIC, name);
    if (!checked_multiply(pack->n_chunks, sizeof *pack->sizes, &table) || !checked_add(table, list, &content) ||
        !checked_add(content, PACK_FOOTER, &content) || content > size - PACK_FRAME_HEADER || content > UINT32_MAX)
        return error_set(error,
                         "%s: its index would have a list of %" PRIu64 " bytes and %" PRIu64
                         " chunks, and it has %" PRIu64 " bytes",
                         name, list, pack->n_chunks, size);
    uint64_t start = size - content - PACK_FRAME_HEADER;
    if (!source_read(pack->blob, start, PACK_FRAME_HEADER, header, error))
        return false;
    if (read_le(header, 4) != PACK_SKIPPABLE || read_le(header + 4, 4) != content)
        return error_set(error, "%s: its index is not a skippable frame of %" PRIu64 " bytes", name, content);
    pack->list_offset = start + PACK_FRAME_HEADER;
    pack->list_length = list;
    struct reading reading = {.pack = pack, .most = lines_budget(list) / sizeof *pack->tensors};
    return lines_read(pack->blob, pack->list_offset, list, NULL, take_tensor, &reading, error) &&
           check_chunks(pack, reading.n_chunks, error) && read_sizes(pack, size - PACK_FOOTER - table, error) &&
           place_chunks(pack, start, error);
}

struct pack *pack_open(struct source *blob, pack_find *find, void *context, struct error *error)
{
    struct pack *pack = memory_alloc(sizeof *pack);
    *pack = (struct pack){.blob = blob, .find = find, .context = context};
    if (read_index(pack, error))
        return pack;
    pack_close(pack);
    return NULL;
}

void pack_close(struct pack *pack)
{
    if (pack == NULL)
        return;
    if (pack->places != NULL)
        chunk_drop_all(pack->places, (size_t)pack->n_chunks);
    free(pack->places);
    free(pack->sizes);
    free(pack->tensors);
    source_close(pack->blob);
    free(pack);
}

size_t pack_count(const struct pack *pack)
{
    return pack->n_tensors;
}

const struct pack_tensor *pack_tensor(const struct pack *pack, size_t index)
{
    return &pack->tensors[index];
}

struct source *pack_blob(const struct pack *pack)
{
    return pack->blob;
}

void pack_list(const struct pack *pack, uint64_t *ret_offset, uint64_t *ret_length)
{
    *ret_offset = pack->list_offset;
    *ret_length = pack->list_length;
}

const uint32_t *pack_chunk_sizes(const struct pack *pack, size_t index, uint64_t *ret_count)
{
    *ret_count = chunks_of(&pack->tensors[index]);
    return pack->sizes + pack->tensors[index].first_chunk;
}

/* Returns the offset of a tensor's chunk in the blob. */
static uint64_t offset_of(const struct pack *pack, const struct pack_tensor *tensor, uint64_t chunk)
{
    uint64_t offset = tensor->offset;
    for (uint64_t i = 0; i < chunk; i++)
        offset += pack->sizes[tensor->first_chunk + i];
    return offset;
}

void pack_depends(const struct pack *pack, size_t index, uint64_t offset, uint64_t length, uint64_t *ret_offset,
                  uint64_t *ret_length)
{
    const struct pack_tensor *tensor = &pack->tensors[index];
    uint64_t bytes = chunk_bytes(tensor), first = offset / bytes;
    uint64_t end = length > 0 ? (offset + length - 1) / bytes + 1 : first;
    *ret_offset = offset_of(pack, tensor, first);
    *ret_length = offset_of(pack, tensor, end) - *ret_offset;
}

/* Coders that no thread uses now: each has large buffers. */

static struct {
    struct lock lock;
    struct coder *coders[16];
    size_t count;
} idle = {.lock = LOCK_INITIALIZER};

static struct coder *take_coder(void)
{
    lock_take(&idle.lock);
    struct coder *coder = idle.count > 0 ? idle.coders[--idle.count] : NULL;
    lock_drop(&idle.lock);
    return coder != NULL ? coder : coder_new();
}

static void give_coder(struct coder *coder)
{
    lock_take(&idle.lock);
    bool kept = idle.count < sizeof idle.coders / sizeof *idle.coders;
    if (kept)
        idle.coders[idle.count++] = coder;
    lock_drop(&idle.lock);
    if (!kept)
        coder_free(coder);
}

/* A chunk of a tensor: its `length` bytes begin at `at`, and its frames at `offset` of the blob. */
struct place {
    const struct pack_tensor *tensor;
    uint64_t at, offset, number;
    size_t length;
};

/* The values of a chunk of the tensor that another is coded against, as they are stored, read before the chunk is
 * decoded: reading takes room in the cache. */
struct input {
    unsigned char *bytes;
    const struct dtype *dtype; /* given as F32; NULL: given as they are stored */
    uint64_t first;
    size_t n_values, width;
};

static bool give_values(void *context, uint64_t first, size_t count, void *out, struct error *error)
{
    const struct input *input = context;
    if (first < input->first || first - input->first > input->n_values ||
        count > input->n_values - (first - input->first))
        return error_set(error, "values that its input lacks");
    const unsigned char *from = input->bytes + (first - input->first) * input->width;
    if (input->dtype != NULL)
        dtype_kernels(input->dtype).decode(from, out, count);
    else
        memcpy(out, from, count * input->width);
    return true;
}

static bool check_input(const struct pack *pack, const struct pack_tensor *tensor, const struct pack *other,
                        struct error *error)
{
    const struct coding *coding = tensor->coding;
    const struct pack_tensor *from = tensor->input < other->n_tensors ? &other->tensors[tensor->input] : NULL;
    uint64_t n = tensor->length / coding->unit_bytes * coding->unit_values;
    unsigned width = coding->input == CODING_BASE ? coding->unit_bytes : tensor->input_dtype->block_bytes;
    return (from != NULL && from->coding->input == CODING_ALONE && from->length == n * width) ||
           error_set(error, "%s: a tensor is coded against one of another size", source_name(pack->blob));
}

/* Widens a range of values to those of the input that it is computed from. */
static void widen(const struct pack_swap *swap, uint64_t *first, uint64_t *end)
{
    const uint64_t block = swap->run != 0 ? swap->rows * swap->columns * swap->run : 1;
    *first = *first / block * block;
    *end = rounded_up(*end, block) * block;
}

bool pack_ranges(struct pack *pack, size_t index, uint64_t offset, uint64_t length, pack_range *each, void *context,
                 struct error *error)
{
    const struct pack_tensor *tensor = &pack->tensors[index];
    const struct coding *coding = tensor->coding;
    const uint64_t chunk = chunk_bytes(tensor);
    struct pack *other;
    uint64_t from, n_bytes;
    pack_depends(pack, index, offset, length, &from, &n_bytes);
    if (!each(context, pack->blob, from, n_bytes, error))
        return false;
    if (coding->input == CODING_ALONE || length == 0)
        return true;
    if (!pack->find(pack->context, &tensor->input_pack, &other, error) || !check_input(pack, tensor, other, error))
        return false;
    const bool decodes = coding->input == CODING_VALUES;
    const uint64_t width = decodes ? tensor->input_dtype->block_bytes : coding->unit_bytes;
    uint64_t end = rounded_up(offset + length, chunk) * chunk;
    uint64_t first = offset / chunk * chunk / coding->unit_bytes * coding->unit_values;
    end = (end < tensor->length ? end : tensor->length) / coding->unit_bytes * coding->unit_values;
    widen(&tensor->swap, &first, &end);
    pack_depends(other, tensor->input, first * width, (end - first) * width, &from, &n_bytes);
    return each(context, other->blob, from, n_bytes, error);
}

/* Reads values of a tensor of an element type, as another one has them. */
static bool read_swapped(struct pack_input *input, uint64_t first, size_t count, unsigned char *out,
                         struct error *error)
{
    const struct pack_swap *swap = &input->swap;
    const size_t width = input->dtype->block_bytes;
    if (swap->run == 0)
        return pack_read(input->pack, input->number, first * width, count * width, out, error);
    for (size_t done = 0, n; done < count; done += n) {
        const uint64_t value = first + done, run = value / swap->run, within = value % swap->run,
                       row = run % swap->rows, column = run / swap->rows % swap->columns,
                       above = run / swap->rows / swap->columns,
                       from = (above * swap->rows + row) * swap->columns + column;
        n = swap->run - within < count - done ? (size_t)(swap->run - within) : count - done;
        if (!pack_read(input->pack, input->number, (from * swap->run + within) * width, n * width, out + done * width,
                       error))
            return false;
    }
    return true;
}

/* Reads the input of a chunk; the caller frees its bytes. */
static bool read_input(struct pack *pack, const struct place *place, struct input *input, struct error *error)
{
    const struct pack_tensor *tensor = place->tensor;
    const struct coding *coding = tensor->coding;
    struct pack *other;
    *input = (struct input){NULL};
    if (coding->input == CODING_ALONE)
        return true;
    if (!pack->find(pack->context, &tensor->input_pack, &other, error) || !check_input(pack, tensor, other, error))
        return false;
    bool decodes = coding->input == CODING_VALUES;
    size_t width = decodes ? tensor->input_dtype->block_bytes : coding->unit_bytes;
    *input = (struct input){.dtype = decodes ? tensor->input_dtype : NULL,
                            .first = place->at / coding->unit_bytes * coding->unit_values,
                            .n_values = place->length / coding->unit_bytes * coding->unit_values,
                            .width = width};
    input->bytes = memory_alloc(input->n_values * width);
    struct pack_input from = {
        .pack = other, .number = tensor->input, .dtype = tensor->input_dtype, .swap = tensor->swap};
    bool good =
        decodes ? read_swapped(&from, input->first, input->n_values, input->bytes, error)
                : pack_read(other, tensor->input, input->first * width, input->n_values * width, input->bytes, error);
    if (!good)
        free(input->bytes);
    return good;
}

static bool decode_from(struct pack *pack, const struct place *place, struct input *input, void *out,
                        struct error *error)
{
    const struct pack_tensor *tensor = place->tensor;
    const struct coding_input reader = {give_values, input};
    const struct coding_chunk chunk = {place->at / tensor->coding->unit_bytes * tensor->coding->unit_values,
                                       place->length, tensor->coding->input != CODING_ALONE ? &reader : NULL};
    uint32_t n_bytes = pack->sizes[place->number];
    if (n_bytes > coding_bound(tensor->coding, place->length))
        return error_set(error, "%s: a chunk of %zu bytes would take %" PRIu32, source_name(pack->blob), place->length,
                         n_bytes);
    unsigned char *frames = memory_alloc((size_t)n_bytes + 1);
    bool good = source_read(pack->blob, place->offset, n_bytes, frames, error);
    struct coder *coder = good ? take_coder() : NULL;
    if (good && !coding_decode(tensor->coding, coder, &chunk, frames, n_bytes, out, error)) {
        good = false;
        error_prefix(error, "%s: the chunk at %" PRIu64 " is damaged", source_name(pack->blob), place->offset);
    }
    if (coder != NULL)
        give_coder(coder);
    free(frames);
    return good;
}

static bool decode(struct pack *pack, const struct place *place, void *out, struct error *error)
{
    struct input input;
    if (!read_input(pack, place, &input, error))
        return false;
    bool good = decode_from(pack, place, &input, out, error);
    free(input.bytes);
    return good;
}

static bool fill_cache(struct pack *pack, const struct place *place, struct error *error)
{
    struct input input;
    if (!read_input(pack, place, &input, error))
        return false;
    struct chunk *made = chunk_reserve(place->length);
    bool good = decode_from(pack, place, &input, made->bytes, error);
    free(input.bytes);
    if (good)
        chunk_publish(made, &pack->places[place->number]);
    else
        chunk_give_up(made);
    return good;
}

/* Copies [from, from + length) of a chunk, which the cache keeps: the next read wants the rest. */
static bool copy_part(struct pack *pack, const struct place *place, size_t from, size_t length, void *out,
                      struct error *error)
{
    struct chunk *chunk;
    while ((chunk = chunk_pin(&pack->places[place->number])) == NULL)
        if (!fill_cache(pack, place, error))
            return false;
    memcpy(out, chunk->bytes + from, length);
    chunk_unpin(chunk);
    return true;
}

static bool read_as_stored(void *context, uint64_t first, size_t count, void *out, struct error *error)
{
    const struct pack_input *input = context;
    size_t width = input->dtype->block_bytes;
    return pack_read(input->pack, input->number, first * width, count * width, out, error);
}

static bool read_as_f32(void *context, uint64_t first, size_t count, void *out, struct error *error)
{
    struct pack_input *input = context;
    void *bytes = memory_alloc(count * input->dtype->block_bytes);
    bool good = read_swapped(input, first, count, bytes, error);
    if (good)
        dtype_kernels(input->dtype).decode(bytes, out, count);
    free(bytes);
    return good;
}

struct coding_input pack_input_bytes(struct pack_input *input)
{
    return (struct coding_input){read_as_stored, input};
}

struct coding_input pack_input_values(struct pack_input *input)
{
    return (struct coding_input){read_as_f32, input};
}

uint64_t pack_name_hash(const char *name, size_t length)
{
    return read_le(digest_of(name, length).bytes, 8) | 1;
}

bool pack_read(struct pack *pack, size_t index, uint64_t offset, size_t length, void *out, struct error *error)
{
    const struct pack_tensor *tensor = &pack->tensors[index];
    const uint64_t whole = chunk_bytes(tensor), chunk = offset / whole;
    unsigned char *to = out;
    struct place place = {tensor, chunk * whole, offset_of(pack, tensor, chunk), tensor->first_chunk + chunk, 0};
    for (size_t done = 0, n; done < length; done += n) {
        uint64_t left = tensor->length - place.at;
        size_t from = (size_t)(offset + done - place.at);
        place.length = (size_t)(left < whole ? left : whole);
        n = place.length - from < length - done ? place.length - from : length - done;
        if (!(n == place.length ? decode(pack, &place, to + done, error)
                                : copy_part(pack, &place, from, n, to + done, error)))
            return false;
        place.at += whole;
        place.offset += pack->sizes[place.number++];
    }
    return true;
}
