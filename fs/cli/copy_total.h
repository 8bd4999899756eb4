/* What a copy of several files takes, found before the first is written. */
#pragma once

#include "fs/lib/paths.h"

struct copy_total {
    size_t n_files;
    uint64_t n_bytes;  /* of all files */
    uint64_t replaced; /* bytes of files at their places, each of which goes when its successor is complete */
    uint64_t largest_replaced;
};

/* Adds a file or directory of the tree that is to be copied to `destination`. Plans its files. */
void copy_total_add(struct copy_total *total, struct tree *tree, const struct node_attributes *attributes,
                    const char *destination);

/* Fails if the file system of `directory`, or of what is there of it, says that it has less room. */
bool copy_total_fits(const struct copy_total *total, const char *directory, struct error *error);
