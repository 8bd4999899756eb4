/* general.*: what a GGUF says about the model as a whole.
 *
 * From README.md's front matter, config.json's _name_or_path, the directory's name and generation_config.json, by the
 * heuristics of gguf-py metadata.py of llama.cpp 34af94cd9. */
#pragma once

#include "formats/checkpoint.h"
#include "formats/gguf/kv.h"

/* What the size label is computed from, counted over the tensors of the GGUF. */
struct parameter_count {
    uint64_t total;          /* elements of all tensors */
    uint64_t shared;         /* elements outside expert tensors */
    uint64_t expert;         /* elements of one expert, over all expert tensors */
    uint64_t expert_sum;     /* sum of the number of experts over expert tensors */
    uint64_t expert_tensors; /* number of expert tensors */
};

/* Sets general.sampling.* and general.name ... general.languages. `raw_config` is config.json or NULL. */
bool general_add(struct gguf_kvs *kvs, const struct checkpoint *checkpoint, const struct json *raw_config,
                 const struct parameter_count *count, struct error *error);
