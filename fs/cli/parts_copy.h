/* `wfs cp --part` and `wfs cp --join`: has fs/lib/parts.h make a part of a copy or end it. */
#pragma once

#include "fs/lib/paths.h"
#include "fs/options/options.h"

struct parts_task {
    size_t number, count; /* the part to make; number 0: join `count` parts */
    bool verify;          /* the checksums of parts that are joined */
};

/* Makes the part of one file or directory that was found, or joins its parts. Returns the exit status, and reports
 * failures. */
int parts_copy_run(struct tree *tree, const struct found *found, const char *destination, const struct options *options,
                   const struct parts_task *task);
