/* The time of modification of the files of a tree.
 *
 * Tools tell by size and time whether they have a file already: rsync, and nginx in its ETag, by whole seconds. Files
 * of two requests are often as long as each other, so their times have to differ in seconds, and the time is a function
 * of what the files are made from:
 *
 * - of a source without any options, the time of its newest file;
 * - of a request, that time less a number of seconds, below FILE_TIME_RANGE, and with nanoseconds, both from the
 * SHA-256 of the identity: the files of the source and of the request, by name, size and time, the options in one
 * order, and the version of wfs. It is never in the future, but where the inputs are; inputs that are as old as 1970,
 * as those of reproducible builds are, have the seconds added.
 *
 * Equal requests of equal inputs have equal times, wherever and whenever they are mounted. */
#pragma once

#include "formats/source.h"

#include <time.h>

enum { FILE_TIME_RANGE = 1 << 20 /* 12 days */ };

/* The part of a request that is not an input. */
struct file_request {
    const char *text;       /* options and what they name, equal for equal requests; NULL: none */
    struct timespec newest; /* of the files that the options name; zero: none */
};

struct timespec file_time(struct source *const *inputs, size_t n_inputs, const struct file_request *request);

/* The later one. */
struct timespec file_time_later(struct timespec a, struct timespec b);
