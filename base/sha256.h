/* SHA-256 of bytes at hand, as text. Whoever hashes what comes piece by piece uses nettle's sha2.h itself. */
#pragma once

#include <stddef.h>

enum { SHA256_HEX = 64 };

/* 64 digits and a NUL. */
void sha256_hex(const void *bytes, size_t length, char hex[SHA256_HEX + 1]);
