/* A growing run of bytes, for text and file headers that are built piece by piece.
 * A zeroed buffer is empty; buffer_free() releases it. The bytes are not NUL-terminated. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct buffer {
    unsigned char *bytes;
    size_t length, capacity;
};

void buffer_free(struct buffer *buffer);

/* Makes room for `length` more bytes and no others, for callers that know how many they will append. */
void buffer_reserve(struct buffer *buffer, size_t length);

void buffer_append(struct buffer *buffer, const void *bytes, size_t length);
void buffer_append_text(struct buffer *buffer, const char *text);
void buffer_append_zeros(struct buffer *buffer, size_t length);
void buffer_printf(struct buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends a number in decimal digits. */
void buffer_append_decimal(struct buffer *buffer, uint64_t number);

/* Appends a little-endian integer of `size` bytes (1 to 8). */
void buffer_append_le(struct buffer *buffer, uint64_t value, size_t size);

/* Appends a JSON string with its quotes, byte for byte as Python's json.dumps writes it (JSON_ASCII), or as
 * json.dumps(ensure_ascii=False) and Rust's serde_json do (JSON_UTF8). Bytes that are not UTF-8 become U+FFFD. */
enum json_letters { JSON_ASCII, JSON_UTF8 };
void buffer_append_json_text(struct buffer *buffer, const char *text, size_t length, enum json_letters letters);
