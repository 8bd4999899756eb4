/* Base64 (RFC 4648, section 4), as nettle reads and writes it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena;

/* Decodes `text` into the arena. Returns NULL if it is empty or not made of whole groups of four digits. */
void *base64_decode(struct arena *arena, const char *text, size_t length, size_t *ret_length);

/* Encodes `length` bytes on one line, padded to whole groups, in the arena. */
char *base64_encode(struct arena *arena, const void *bytes, size_t length);
