/* SHA-256 digests, which name the blobs and tensors of an archive. */
#pragma once

#include "base/encodings.h"

#include <stdbool.h>

struct digest {
    unsigned char bytes[SHA256_HEX / 2];
};

struct digest digest_of(const void *bytes, size_t length);

/* Reads 64 lower-case hexadecimal digits, which end the text. */
bool digest_parse(const char *hex, struct digest *ret_digest);

void digest_hex(const struct digest *digest, char hex[SHA256_HEX + 1]);

bool digest_same(const struct digest *a, const struct digest *b);
