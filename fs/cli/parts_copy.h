/* `wfs cp --part` and `wfs cp --join`: finds the files of a copy, and has fs/lib/parts.h make a part or end it.
 *
 * DEST is the name of the copy, or a directory to put it in, as without --part. The copy of a directory may have been
 * named by another worker in the meantime: a DEST that has a file of the copy, or a directory of parts beside it, is
 * the copy itself. */
#pragma once

#include "fs/lib/parts_header.h"
#include "fs/lib/paths.h"
#include "fs/options/options.h"

struct parts_task {
    size_t number, count; /* the part to make; number 0: join `count` parts */
    bool verify;          /* the checksums of parts that are joined */
};

/* Finds the header that another worker kept for the only file of a copy, before the model is opened; NULL: none. The
 * result lives as long as the arena. */
const struct kept_header *parts_copy_header(const char *path, const char *destination, const struct parts_task *task,
                                            struct arena *arena);

/* Makes the part of one file or directory that was found, or joins its parts. Returns the exit status, and reports
 * failures. */
int parts_copy_run(struct tree *tree, const struct found *found, const char *destination, const struct options *options,
                   const struct parts_task *task);
