/* The options of a tree's contents. The tree itself reads only `request`; kinds of content share the other fields, and
 * components get a copy without layouts. Zeroed, all options have their defaults. */
#pragma once

#include "fs/tree/file_time.h"
#include "models/layouts/find.h"
#include "models/quantize/quantize.h"
#include "models/quantize/split.h"
#include "models/shown_tensors.h"

struct content_options {
    struct file_request request;      /* for the times of files: the whole request */
    enum shown_names names;           /* of tensors in tensors/ */
    struct quantize_options quantize; /* for gguf/model-Q*.gguf; its rule and matrix also for tensors/ */
    struct gguf_edits edits;          /* for all GGUF files */
    struct split_rule split;          /* for gguf/split/ */
    /* of floating-point tensors in model.safetensors and hf/; NULL: as the source has them */
    const struct dtype *hf_type;
    uint64_t shard_size;            /* for hf/; 0: the default */
    struct layout_requests layouts; /* for layouts/ */
    bool fold_scale;                /* in an adapter's GGUF: to get peft's strength */
    const char *base;               /* the base model of an adapter or a draft model; NULL: named by the source */
};
