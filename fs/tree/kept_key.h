/* The keys of kept bytes (kept.h). */
#pragma once

#include "base/sha256.h"
#include "fs/tree/vfile.h"

#include <nettle/sha2.h>

/* Writes the key of a file with that identity (identity.h) as hex digits. Reads no weight. */
void kept_key(const struct vfile *file, const char *identity, char key[SHA256_HEX + 1]);

/* Begins a key with what all keys begin with, for kept bytes with that identity and those inputs, and ends it. */
void kept_key_begin(struct sha256_ctx *hash, const struct origin *origin, const char *identity);
void kept_key_end(struct sha256_ctx *hash, char key[SHA256_HEX + 1]);
