/* A walk through the bytes of a GGUF header, from the first to the last.
 *
 * Numbers have the byte order of the file, lengths the width of its version. Bytes are read once, through a window,
 * never from a mapping, so that a change of the file cannot contradict an earlier check. Errors name the missing bytes;
 * the caller puts the file's name before them. */
#pragma once

#include "sources/source.h"

enum gguf_byte_order { GGUF_LITTLE_ENDIAN, GGUF_BIG_ENDIAN };

struct gguf_cursor {
    struct source *source;
    uint64_t offset; /* of the next byte */
    unsigned version;
    enum gguf_byte_order order;
    unsigned char *window; /* the bytes from window_offset on */
    uint64_t window_offset;
    size_t window_length;
};

struct gguf_cursor gguf_cursor_at(struct source *source, uint64_t offset, unsigned version, enum gguf_byte_order order);
void gguf_cursor_free(struct gguf_cursor *cursor);

uint64_t gguf_remaining(const struct gguf_cursor *cursor);

/* Returns the next bytes: at least one, at most `wanted`, as many as the window holds; valid until the next call. NULL,
 * with an error, at the end of the file or if it cannot be read. */
const unsigned char *gguf_take(struct gguf_cursor *cursor, uint64_t wanted, size_t *ret_length, struct error *error);
bool gguf_take_all(struct gguf_cursor *cursor, size_t length, void *out, struct error *error);
bool gguf_skip(struct gguf_cursor *cursor, uint64_t length, struct error *error);

/* Take a number of `size` bytes, and a count or length: 4 bytes in version 1, 8 in later ones. */
bool gguf_take_number(struct gguf_cursor *cursor, unsigned size, uint64_t *ret_number, struct error *error);
bool gguf_take_count(struct gguf_cursor *cursor, uint64_t *ret_count, struct error *error);
