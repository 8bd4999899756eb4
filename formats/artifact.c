#include "formats/artifact.h"

#include <stdlib.h>

void artifact_reserve(struct artifact *artifact, size_t n)
{
    artifact->tensors = memory_alloc((n + 1) * sizeof *artifact->tensors);
    artifact->n_tensors = n;
}

uint64_t artifact_tensor_bytes(const struct artifact_tensor *written)
{
    return dtype_bytes(written->encoding.dtype, tensor_elements(written->tensor));
}

static bool lay_out_raw(const struct artifact *artifact, struct span_list *spans, struct error *error)
{
    spans_add_tensor(spans, artifact->tensors[0].tensor, artifact->tensors[0].encoding);
    return true;
}

const struct container raw_container = {.name = "raw", .lay_out = lay_out_raw};

void artifact_free(struct artifact *artifact)
{
    gguf_kvs_free(&artifact->metadata);
    free(artifact->tensors);
    arena_free(artifact->arena);
    *artifact = (struct artifact){0};
}
