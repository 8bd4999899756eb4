/* Identities of virtual files: equal identities mean equal bytes, on every mount, as far as the identities of sources
 * do (sources/source.h). An identity is the SHA-256 of a format version, the version and build of wfs, the identities
 * of the declared inputs (formats/origin.h), the model's name, which files contain, the canonical request, and the
 * file's path in its tree. It is known before any input is read, and serves as a key for caches, as an ETag, and as the
 * subject of attestations. */
#pragma once

#include "base/sha256.h"
#include "formats/origin.h"

/* The build of wfs: 16 hex digits of a SHA-256 over the names and contents of the program's sources. It tells apart
 * builds of one version, whose files may differ, and is equal for equal sources, on every machine. build.c is written
 * by write_build.py, whenever a source has changed. */
extern const char wfs_build[];

/* Writes the identity as hex digits. `model` is the checkpoint's model_name, `path` the path in the file's own tree;
 * `request` may be NULL. */
void file_identity(const struct origin *origin, const char *model, const char *request, const char *path,
                   char identity[SHA256_HEX + 1]);
