/* What the kinds of content are told by whoever makes a tree: each field is read by the kind that it is for, and by
 * nobody else. The tree hands it on without looking into it. Zeroed, all is the usual. */
#pragma once

#include "models/layouts/find.h"
#include "models/quantize.h"
#include "models/shown.h"
#include "models/split.h"

struct content_options {
    enum shown_names names;           /* of the tensors below tensors/ */
    struct quantize_options quantize; /* for gguf/model-Q*.gguf; its rule and its matrix also for tensors/ */
    struct gguf_edits edits;          /* for all GGUF files */
    struct split_rule split;          /* for gguf/split/ */
    /* of floating-point tensors in model.safetensors and hf/; NULL: as the source has them */
    const struct dtype *hf_type;
    uint64_t shard_size;            /* for hf/; 0: the usual one */
    struct layout_requests layouts; /* for layouts/ */
    const char *base;               /* the model that an adapter or a draft model is of; NULL: as the adapter says */
};
