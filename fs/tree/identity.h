/* Identities of virtual files: equal identities mean equal bytes, on every mount, as far as the identities of sources
 * do (sources/source.h). An identity is the SHA-256 of a format version, the version and build of wfs, the identities
 * of the declared inputs (formats/origin.h), the model's name, which files contain, the canonical request, and the
 * file's path in its tree. It is known before any input is read, and serves as a key for caches, as an ETag, and as the
 * subject of attestations. */
#pragma once

#include "base/encodings.h"
#include "formats/origin.h"
#include "sources/source.h"

#include <time.h>

/* The build of wfs: 16 hex digits of a SHA-256 over the names and contents of the program's sources. It tells apart
 * builds of one version, whose files may differ, and is equal for equal sources, on every machine. build.c is written
 * by write_build.py, whenever a source has changed. */
extern const char wfs_build[];

/* Writes the identity as hex digits. `model` is the checkpoint's model_name, `path` the path in the file's own tree;
 * `request` may be NULL. */
void file_identity(const struct origin *origin, const char *model, const char *request, const char *path,
                   char identity[SHA256_HEX + 1]);

/* The modification times of virtual files.
 *
 * Tools compare size and time to find out whether they have a file already; rsync, and nginx in its ETag, compare whole
 * seconds. Files of two requests often have the same size, so their times must differ in seconds. A file's time
 * therefore depends on its inputs and the request:
 *
 * - without any options, it is the time of the newest input;
 * - otherwise it is that time less 1 to FILE_TIME_RANGE - 1 seconds, with other nanoseconds. Both come from a SHA-256
 * over the name, size and time of each input, the request's text and the version and build of wfs. The time is in the
 * future only if an input's is. Inputs dated close to 1970, as by reproducible builds, have the seconds added instead.
 *
 * A time before 1970 counts as 1970.
 *
 * Equal requests with equal inputs have equal times, wherever and whenever they are mounted. */

enum { FILE_TIME_RANGE = 1 << 20 /* 12 days */ };

/* The part of a request that is no declared input. */
struct file_request {
    const char *text;       /* options and the files they name, equal for equal requests; NULL: no options */
    struct timespec newest; /* the time of the newest file that the options name; zero: none */
};

/* Returns the time of a file with these inputs. */
struct timespec file_time(struct source *const *inputs, size_t n_inputs, const struct file_request *request);

/* Returns the later time. */
struct timespec file_time_later(struct timespec a, struct timespec b);
