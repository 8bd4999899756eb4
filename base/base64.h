/* Base64 (RFC 4648, section 4), as nettle reads and writes it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena;

/* The bytes that `text` stands for, in the arena. NULL where it is not whole groups of four digits, or none. */
void *base64_decode(struct arena *arena, const char *text, size_t length, size_t *ret_length);

/* The text of `length` bytes, padded to whole groups, on one line, in the arena. */
char *base64_encode(struct arena *arena, const void *bytes, size_t length);
