/* SHA-256 digests of files, by which registries and Ollama's store name them.
 *
 * The digest of a computed file takes one pass over its bytes. It is computed when it is first asked for, once at a
 * time for a file, and kept by the file's identity: in memory, and if `are_kept` in the cache directory
 * (remote/store.h). All functions are safe from any thread. */
#pragma once

#include "base/encodings.h"
#include "fs/tree/vfile.h"

struct digests;

/* `count`, unless it is NULL, is called with the bytes of each step of a pass, on its thread. */
typedef void digests_count(void *context, uint64_t n_bytes);
struct digests *digests_new(bool are_kept, digests_count *count, void *context);

/* Makes passes fail at once, those under way and later ones: the server ends. */
void digests_end(struct digests *digests);
void digests_free(struct digests *digests);

/* Gets the digest of a file that is known; reads none of its bytes. */
bool digest_known(struct digests *digests, const char *identity, char hex[SHA256_HEX + 1]);

/* Gets the digest of a file, and computes it if necessary; waits for a pass of another thread over the same file, and
 * for remote sources. Reports progress of long passes under `name`. */
bool digest_get(struct digests *digests, const char *identity, const char *name, const struct vfile *file,
                char hex[SHA256_HEX + 1], struct error *error);
