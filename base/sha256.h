/* SHA-256 of bytes in memory, as text. To hash a stream, use nettle's sha2.h. */
#pragma once

#include <stddef.h>

enum { SHA256_HEX = 64 };

/* Writes the hash of `length` bytes as 64 lower-case digits and a NUL. */
void sha256_hex(const void *bytes, size_t length, char hex[SHA256_HEX + 1]);
