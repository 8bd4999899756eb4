/* The key of a file's kept bytes (kept.h). */
#pragma once

#include "base/sha256.h"
#include "fs/tree/vfile.h"

/* Writes the key of a file with that identity (identity.h) as hex digits. Reads no weight. */
void kept_key(const struct vfile *file, const char *identity, char key[SHA256_HEX + 1]);
