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
#pragma once

#include "sources/source.h"

#include <time.h>

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
