/* Digests that tell whether the sources on two machines are the same, without reading all of them.
 *
 * source_stamp() reads nothing: equal stamps mean equal bytes, on clients of one file system. Copies of a model have
 * other times, and so other stamps: source_digest() then compares what they hold. It reads small sources wholly, and of
 * larger ones samples, so it sees another model and another version, and in a source of more than DIGEST_WHOLE bytes
 * may miss a change of a few bytes.
 *
 * Neither depends on the order of the sources, each of which comes once, nor on the path of their folder. */
#pragma once

#include "base/encodings.h"
#include "sources/source.h"

enum {
    DIGEST_WHOLE = 64 << 20,   /* bytes of all sources that are read wholly */
    DIGEST_SAMPLED = 16 << 20, /* about as many bytes of larger ones are read */
    DIGEST_SAMPLE = 64 << 10,  /* bytes that follow one another; at least one sample of each source */
};

/* Hashes names, sizes, and when each source was last written to or replaced; of a remote source, its version on the
 * server. */
void source_stamp(struct source *const *sources, size_t n_sources, char hex[SHA256_HEX + 1]);

/* Hashes names, sizes and samples of the bytes; of a remote source, its version. A source that cannot be read counts as
 * empty: whether it is needed is for others to find out. */
void source_digest(struct source *const *sources, size_t n_sources, char hex[SHA256_HEX + 1]);
