#include "formats/tensorflow/table.h"

#include "base/arena.h"
#include "base/checked.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A copy of 64 bytes takes three. */
enum { MOST_RATIO = 22, LENGTH_BYTES = 5 };

enum { LITERAL = 0, COPY_1 = 1, COPY_2 = 2, COPY_4 = 3, LONG_LITERAL = 60 };

struct output {
    unsigned char *bytes;
    size_t length, capacity;
};

static bool read_length(const unsigned char **at, const unsigned char *end, size_t *ret_length)
{
    uint64_t length = 0;
    for (unsigned i = 0; i < LENGTH_BYTES && *at < end; i++) {
        unsigned char byte = *(*at)++;
        length |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *ret_length = (size_t)length;
            return length <= UINT32_MAX;
        }
    }
    return false;
}

/* Appends bytes of the output that were written before; the two may overlap. */
static bool copy(struct output *output, size_t distance, size_t length)
{
    if (distance == 0 || distance > output->length || length > output->capacity - output->length)
        return false;
    for (; length > 0; length--, output->length++)
        output->bytes[output->length] = output->bytes[output->length - distance];
    return true;
}

static bool literal(struct output *output, const unsigned char **at, const unsigned char *end, unsigned tag)
{
    unsigned width = tag >= LONG_LITERAL ? tag - LONG_LITERAL + 1 : 0;
    if (width > (size_t)(end - *at))
        return false;
    uint64_t length = (width > 0 ? read_le(*at, width) : tag) + 1;
    *at += width;
    if (length > (size_t)(end - *at) || length > output->capacity - output->length)
        return false;
    memcpy(output->bytes + output->length, *at, (size_t)length);
    output->length += (size_t)length;
    *at += length;
    return true;
}

static bool element(struct output *output, const unsigned char **at, const unsigned char *end)
{
    static const unsigned char widths[] = {[COPY_1] = 1, [COPY_2] = 2, [COPY_4] = 4};
    unsigned first = *(*at)++, kind = first & 3, width = widths[kind];
    if (kind == LITERAL)
        return literal(output, at, end, first >> 2);
    if (width > (size_t)(end - *at))
        return false;
    size_t distance = (size_t)read_le(*at, width), length = (first >> 2) + 1;
    *at += width;
    if (kind == COPY_1) {
        distance |= (size_t)(first >> 5) << 8;
        length = (first >> 2 & 7) + 4;
    }
    return copy(output, distance, length);
}

unsigned char *snappy_decompress(const unsigned char *input, size_t length, size_t most, size_t *ret_length)
{
    const unsigned char *at = input, *end = input + length;
    struct output output = {0};
    if (!read_length(&at, end, &output.capacity) || output.capacity > most || output.capacity / MOST_RATIO > length)
        return NULL;
    output.bytes = memory_alloc(output.capacity + 1);
    bool good = true;
    while (good && at < end)
        good = element(&output, &at, end);
    if (!good || output.length != output.capacity) {
        free(output.bytes);
        return NULL;
    }
    output.bytes[output.length] = '\0';
    *ret_length = output.length;
    return output.bytes;
}
