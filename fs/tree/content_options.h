/* The options of a tree's contents. The tree itself reads only `request` and `keep`; kinds of content share the other
 * fields, and components get a copy without layouts. Zeroed, all options have their defaults. */
#pragma once

#include "fs/tree/file_time.h"
#include "fs/tree/kept.h"
#include "models/layouts/find.h"
#include "models/quantize/quantize.h"
#include "models/quantize/split.h"
#include "models/references/references.h"
#include "models/shown_tensors.h"

struct content_options {
    struct file_request request;      /* for the times and identities of files: the whole request */
    enum keep keep;                   /* the computed bytes that are read from the store */
    struct references references;     /* the builds of other tools that files agree with */
    enum shown_names names;           /* for tensors/ */
    struct quantize_options quantize; /* for gguf/model-MIX.gguf; its rule and matrix also for tensors/ */
    struct gguf_edits edits;          /* for all GGUF files; projectors take only keys of general.* and clip.* */
    struct split_rule split;          /* for gguf/split/ */
    /* the floating-point type in model.safetensors and hf/; NULL: the source's */
    const struct dtype *hf_type;
    uint64_t shard_size;                /* for hf/; 0: the default */
    struct layout_requests layouts;     /* for layouts/ */
    bool shares_blocks;                 /* GGUF files as formats/gguf/share.h lays them out, for wfs cp --reflink */
    bool fold_scale;                    /* scales an adapter's GGUF to the strength that peft gives it */
    const char *const *ignored_modules; /* for compressed-tensors/: patterns (engines/ct_ignored.h); NULL: the usual */
    const char *const *shown;           /* patterns of the types that gguf/ lists; NULL: see library_files.c */
    const char *name_in_library;        /* NAME, for a model of a library (library.h); NULL: the tree stands alone */
    bool cache_tag;                     /* shows CACHEDIR.TAG; a library always does */
    bool true_digests;                  /* the blobs in ollama/ have the names of their SHA-256 (ollama.c) */
    const char *base; /* path of an adapter's or draft model's base model; NULL: the source names it */
};
