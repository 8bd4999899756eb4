/* The options of a tree's contents: the request for products, and what concerns the tree alone. The tree itself reads
 * only `file_request` and `keep`; components get a copy without layouts. Zeroed, all options have their defaults. */
#pragma once

#include "fs/kept/kept.h"
#include "fs/tree/identity.h"
#include "models/shown_tensors.h"
#include "products/request.h"

struct content_options {
    struct file_request file_request; /* for the times and identities of files: all that was asked */
    struct request request;           /* for products */
    enum keep keep;                   /* the computed bytes that are read from the store */
    enum shown_names names;           /* for tensors/ */
    const char *const *shown;         /* patterns of the types that gguf/ lists; NULL: see library_files.c */
    const char *name_in_library;      /* NAME, for a model of a library (library.h); NULL: the tree stands alone */
    bool cache_tag;                   /* shows CACHEDIR.TAG; a library always does */
    bool true_digests;                /* the blobs in ollama/ have the names of their SHA-256 (fs/library/ollama.c) */
};
