#include "models/convert/from_gguf.h"

#include <string.h>

bool gguf_model_take(struct gguf_model *model, struct error *error)
{
    const struct tensor_set *stored = model->checkpoint->tensors;
    model->kvs = gguf_kvs_copy(&model->checkpoint->metadata);
    for (size_t i = 0; i < stored->n_tensors; i++) {
        const struct tensor *tensor = &stored->tensors[i];
        if (dtype_by_ggml_type((uint32_t)tensor->dtype->ggml_type) != tensor->dtype)
            return error_set(error, "tensor '%s': byte-swapped %s blocks cannot be written", tensor->name,
                             tensor->dtype->name);
        struct tensor taken = *tensor;
        taken.name_length = (uint32_t)strlen(tensor->name);
        taken.view = tensor_view(tensor, model->arena);
        tensor_set_add(model->tensors, &taken);
    }
    return tensor_set_seal(model->tensors, error);
}

/* Returns the index of the tensor's source file, searched from `before` on; `before` if the search fails. */
static size_t shard_of(const struct checkpoint *checkpoint, const struct tensor *tensor, size_t before)
{
    for (size_t shard = before; shard < checkpoint->n_sources; shard++)
        if (checkpoint->sources[shard] == tensor->source)
            return shard;
    return before;
}

size_t *gguf_source_ends(const struct checkpoint *checkpoint, const struct artifact *whole, size_t *ret_n_shards)
{
    size_t n_shards = 0, *ends = memory_alloc((checkpoint->n_sources + 1) * sizeof *ends);
    for (size_t i = 0; i < whole->n_tensors; i++)
        for (size_t shard = shard_of(checkpoint, whole->tensors[i].tensor, n_shards); n_shards < shard; n_shards++)
            ends[n_shards] = i;
    ends[n_shards++] = whole->n_tensors;
    *ret_n_shards = n_shards;
    return ends;
}

void gguf_whole_artifact(const struct gguf_edition *edition, struct artifact *ret_artifact)
{
    const struct gguf_model *model = edition->model;
    size_t n_tensors = model->tensors->n_tensors;
    bool is_split = model->checkpoint->n_sources > 1;
    struct artifact artifact = {.container = is_split ? &ggml_container : &gguf_container,
                                .metadata = gguf_kvs_copy(&model->kvs)};
    artifact_reserve(&artifact, n_tensors);
    for (size_t i = 0; i < n_tensors; i++) {
        const struct tensor *tensor = &model->tensors->tensors[i];
        artifact.tensors[i] = (struct artifact_tensor){tensor, encoding_of(tensor->dtype)};
    }
    if (is_split) {
        gguf_kvs_remove(&artifact.metadata, "split.count");
        gguf_set_u16(&artifact.metadata, "split.count", 0);
    }
    gguf_edit(&artifact.metadata, edition->edits, 0);
    *ret_artifact = artifact;
}
