/* The files of a copy that is made in parts (parts.h).
 *
 * DEST is the name of the copy, or a directory to put it in. The copy of a directory may have been named by another
 * worker in the meantime: a DEST that has a file of the copy, or a directory of parts beside it, is the copy itself. */
#pragma once

#include "fs/lib/parts.h"
#include "fs/lib/parts_header.h"
#include "fs/lib/paths.h"
#include "fs/options/options.h"

/* Finds the files of one file or directory, and what they are made from, and divides them into parts. The copy lives as
 * long as the arena. */
bool parts_contents_find(struct tree *tree, const struct found *found, const char *destination,
                         const struct options *options, size_t n_parts, struct arena *arena,
                         struct parts_copy *ret_copy, struct error *error);

/* Finds the header that another worker kept for the only file of a copy, before the model is opened, for the worker of
 * part `number`; NULL: none. The result lives as long as the arena. */
const struct kept_header *parts_contents_header(const char *path, const char *destination, size_t number,
                                                size_t n_parts, struct arena *arena);
