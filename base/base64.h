/* Base64 (RFC 4648, section 4), as nettle reads and writes it: white space in the text is skipped. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena;

/* Decodes `text` into the arena. Returns NULL if there are no bytes, or the digits are not whole groups of four. */
void *base64_decode(struct arena *arena, const char *text, size_t length, size_t *ret_length);

/* Encodes `length` bytes on one line, padded to whole groups and NUL-terminated, in the arena. */
char *base64_encode(struct arena *arena, const void *bytes, size_t length);
