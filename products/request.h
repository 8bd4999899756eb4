/* What changes the bytes of files, or how they are made. An argument of whatever makes them, and never changed. */
#pragma once

#include "formats/gguf/write.h"
#include "models/layouts/layout_file.h"
#include "models/quantize/quantize.h"
#include "models/references/references.h"

/* A GGUF file whose header was kept (fs/lib/parts.h). No other GGUF file can be made then. */
struct kept_header {
    const char *path; /* in its tree */
    struct gguf_kept_header header;
};

/* What a user chose. Zeroed, all is as usual. A file's identity follows the text of the options (fs/tree/identity.h).
 */
struct request {
    struct references references;       /* the builds of other tools that files agree with */
    struct quantize_options quantize;   /* for gguf/model-MIX.gguf; its rule and matrix also for tensors/ */
    struct gguf_edits edits;            /* for all GGUF files; projectors take only keys of general.* and clip.* */
    struct split_rule split;            /* for gguf/split/ */
    const struct dtype *hf_type;        /* of floating-point weights in model.safetensors and hf/; NULL: the source's */
    uint64_t shard_size;                /* for hf/; 0: the default */
    struct layout_requests layouts;     /* for layouts/ */
    bool shares_blocks;                 /* GGUF files as formats/gguf/write.h lays them out, for wfs cp --reflink */
    bool fold_scale;                    /* scales an adapter's GGUF to the strength that peft gives it */
    const char *const *ignored_modules; /* for compressed-tensors/: patterns (engines/ct_ignored.h); NULL: the usual */
    const struct kept_header *kept_header; /* NULL: headers are made */
    const char *base; /* path of an adapter's or draft model's base model; NULL: the source names it */
};
