#include "models/from_gguf.h"

#include <stdlib.h>
#include <string.h>

bool gguf_is_source(const struct checkpoint *checkpoint)
{
    return strcmp(checkpoint->format, "gguf") == 0;
}

bool gguf_model_take(struct gguf_model *model, struct error *error)
{
    const struct tensor_set *stored = model->checkpoint->tensors;
    model->kvs = gguf_kvs_copy(&model->checkpoint->metadata);
    model->forced = memory_alloc(stored->n_tensors * sizeof *model->forced);
    for (size_t i = 0; i < stored->n_tensors; i++) {
        const struct tensor *tensor = &stored->tensors[i];
        if (dtype_by_ggml_type((uint32_t)tensor->dtype->ggml_type) != tensor->dtype)
            return error_set(error, "tensor '%s': %s blocks of the other byte order cannot be written", tensor->name,
                             tensor->dtype->name);
        struct tensor taken = *tensor;
        taken.name_length = (uint32_t)strlen(tensor->name);
        taken.view = tensor_view(tensor, model->arena);
        tensor_set_add(model->tensors, &taken);
        model->forced[i] = tensor->dtype;
    }
    return tensor_set_seal(model->tensors, error);
}

/* The number of the source that a tensor is in, where that is not before that of the one before it. */
static size_t part_of(const struct checkpoint *checkpoint, const struct tensor *tensor, size_t before)
{
    for (size_t part = before; part < checkpoint->n_sources; part++)
        if (checkpoint->sources[part] == tensor->source)
            return part;
    return before;
}

size_t *gguf_source_ends(const struct checkpoint *checkpoint, const struct gguf_plan *plan, size_t *ret_n_parts)
{
    size_t n_parts = 0, *ends = memory_alloc((checkpoint->n_sources + 1) * sizeof *ends);
    for (size_t i = 0; i < plan->n_tensors; i++)
        for (size_t part = part_of(checkpoint, plan->places[i].tensor, n_parts); n_parts < part; n_parts++)
            ends[n_parts] = i;
    ends[n_parts++] = plan->n_tensors;
    *ret_n_parts = n_parts;
    return ends;
}

void gguf_plan_whole(const struct gguf_model *model, struct gguf_plan *ret_plan)
{
    size_t n_tensors = model->tensors->n_tensors;
    bool is_split = model->checkpoint->n_sources > 1;
    struct gguf_plan plan = {
        .kvs = gguf_kvs_copy(&model->kvs),
        .places = memory_alloc(n_tensors * sizeof *plan.places),
        .n_tensors = n_tensors,
        .trim_ones = is_split,
    };
    for (size_t i = 0; i < n_tensors; i++)
        plan.places[i] = (struct gguf_place){&model->tensors->tensors[i], encoding_of(model->forced[i]), 0};
    if (is_split) {
        gguf_kvs_remove(&plan.kvs, "split.count");
        gguf_set_u16(&plan.kvs, "split.count", 0);
    }
    gguf_edit(&plan.kvs, model->edits, 0);
    *ret_plan = plan;
}
