/* The architectures of models that wfs makes GGUF files of: what `wfs info --architectures` lists. */
#pragma once

#include "base/arena.h"
#include "text/json_write.h"

struct architecture {
    const char *gguf, *summary;
    const char *group;        /* one of `groups` for families; NULL for others */
    const char *const *names; /* Hugging Face's classes, NULL at the end */
    bool is_compared;         /* with the converter, byte for byte */
};

/* Each list is in the order of its table. */
struct architectures {
    const char *const *groups; /* NULL at the end */
    struct architecture *families, *projectors, *diffusion;
    size_t n_families, n_projectors, n_diffusion;
};

struct architectures architectures_list(struct arena *arena);

/* Writes the members of the object that `wfs info --architectures --json` prints: docs/metadata.md. */
void architectures_put(struct json_writer *writer);
