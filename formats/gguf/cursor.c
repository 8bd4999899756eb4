#include "formats/gguf/cursor.h"

#include "base/arena.h"
#include "base/checked.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW_BYTES = 256 * 1024 };

struct gguf_cursor gguf_cursor_at(struct source *source, uint64_t offset, unsigned version, enum gguf_byte_order order)
{
    return (struct gguf_cursor){
        .source = source, .offset = offset, .version = version, .order = order, .window = memory_alloc(WINDOW_BYTES)};
}

void gguf_cursor_free(struct gguf_cursor *cursor)
{
    free(cursor->window);
}

uint64_t gguf_remaining(const struct gguf_cursor *cursor)
{
    return source_size(cursor->source) - cursor->offset;
}

static bool cut_short(const struct gguf_cursor *cursor, uint64_t wanted, struct error *error)
{
    return error_set(error, "truncated: %" PRIu64 " bytes expected at offset %" PRIu64 " of %" PRIu64, wanted,
                     cursor->offset, source_size(cursor->source));
}

const unsigned char *gguf_take(struct gguf_cursor *cursor, uint64_t wanted, size_t *ret_length, struct error *error)
{
    uint64_t remaining = gguf_remaining(cursor);
    bool inside =
        cursor->offset >= cursor->window_offset && cursor->offset - cursor->window_offset < cursor->window_length;
    if (remaining == 0) {
        cut_short(cursor, wanted, error);
        return NULL;
    }
    if (!inside) {
        size_t length = remaining < WINDOW_BYTES ? (size_t)remaining : WINDOW_BYTES;
        cursor->window_length = 0;
        if (!source_read(cursor->source, cursor->offset, length, cursor->window, error))
            return NULL;
        cursor->window_offset = cursor->offset;
        cursor->window_length = length;
    }
    size_t at = (size_t)(cursor->offset - cursor->window_offset), held = cursor->window_length - at;
    *ret_length = wanted < held ? (size_t)wanted : held;
    cursor->offset += *ret_length;
    return cursor->window + at;
}

bool gguf_take_all(struct gguf_cursor *cursor, size_t length, void *out, struct error *error)
{
    if (length > gguf_remaining(cursor))
        return cut_short(cursor, length, error);
    for (unsigned char *to = out; length > 0;) {
        size_t n;
        const unsigned char *bytes = gguf_take(cursor, length, &n, error);
        if (bytes == NULL)
            return false;
        memcpy(to, bytes, n);
        to += n;
        length -= n;
    }
    return true;
}

bool gguf_skip(struct gguf_cursor *cursor, uint64_t length, struct error *error)
{
    if (length > gguf_remaining(cursor))
        return cut_short(cursor, length, error);
    cursor->offset += length;
    return true;
}

bool gguf_take_number(struct gguf_cursor *cursor, unsigned size, uint64_t *ret_number, struct error *error)
{
    unsigned char bytes[8];
    if (!gguf_take_all(cursor, size, bytes, error))
        return false;
    *ret_number = cursor->order == GGUF_BIG_ENDIAN ? read_be(bytes, size) : read_le(bytes, size);
    return true;
}

bool gguf_take_count(struct gguf_cursor *cursor, uint64_t *ret_count, struct error *error)
{
    return gguf_take_number(cursor, cursor->version == 1 ? 4 : 8, ret_count, error);
}
