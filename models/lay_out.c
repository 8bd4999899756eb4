/* The layout of a GGUF file, version 3, little-endian: header, keys, records of tensors, data, each aligned to 32. */
#include "models/model.h"

#include "base/checked.h"
#include "quant/convert.h"

#include <stdlib.h>
#include <string.h>

enum { GGUF_ALIGNMENT = 32, GGUF_VERSION = 3 };

void gguf_plan_free(struct gguf_plan *plan)
{
    free(plan->places);
    buffer_free(&plan->head);
    buffer_free(&plan->tail);
    *plan = (struct gguf_plan){0};
}

static bool write_kvs(struct buffer *out, const struct gguf_kvs *kvs, struct error *error)
{
    for (size_t i = 0; kvs != NULL && i < kvs->n_kvs; i++)
        if (!gguf_write_kv(out, &kvs->kvs[i], error))
            return false;
    return true;
}

static void write_tensor(struct buffer *out, const struct gguf_place *place, bool trim_ones)
{
    const struct view *view = place->tensor->view;
    unsigned first = 0;
    while (trim_ones && first + 1 < view->rank && view->shape[first] == 1)
        first++;
    gguf_append_string(out, place->tensor->name, strlen(place->tensor->name));
    buffer_append_le(out, view->rank - first, 4);
    for (unsigned i = view->rank; i-- > first;)
        buffer_append_le(out, view->shape[i], 8);
    buffer_append_le(out, (uint64_t)place->type->ggml_type, 4);
    buffer_append_le(out, place->offset, 8);
}

/* Sets every tensor's offset; *ret_length is that of the whole data section. */
static bool place_tensors(struct gguf_plan *plan, uint64_t *ret_length, struct error *error)
{
    uint64_t end = 0;
    for (size_t i = 0; i < plan->n_tensors; i++) {
        struct gguf_place *place = &plan->places[i];
        place->offset = end;
        if (!checked_add(end, convert_bytes(place->tensor->view, place->type), &end) || !checked_align(end, GGUF_ALIGNMENT, &end))
            return error_set(error, "model.gguf: tensor '%s' makes the file too large", place->tensor->name);
    }
    *ret_length = end;
    return true;
}

bool gguf_plan_lay_out(struct gguf_plan *plan, const struct gguf_model *model, const struct gguf_kvs *before,
                       const struct gguf_kvs *after, bool trim_ones, struct error *error)
{
    uint64_t data_length = 0, data_begin;
    if (!place_tensors(plan, &data_length, error))
        return false;
    buffer_append(&plan->head, "GGUF", 4);
    buffer_append_le(&plan->head, GGUF_VERSION, 4);
    buffer_append_le(&plan->head, plan->n_tensors, 8);
    buffer_append_le(&plan->head, before->n_kvs + model->n_tokenizer_kvs + (after ? after->n_kvs : 0), 8);
    if (!write_kvs(&plan->head, before, error) || !write_kvs(&plan->tail, after, error))
        return false;
    for (size_t i = 0; i < plan->n_tensors; i++)
        write_tensor(&plan->tail, &plan->places[i], trim_ones);

    uint64_t meta = plan->head.length + model->tokenizer.length + plan->tail.length;
    if (!checked_align(meta, GGUF_ALIGNMENT, &data_begin) || !checked_add(data_begin, data_length, &plan->size))
        return error_set(error, "model.gguf: the file would be too large");
    buffer_append_zeros(&plan->tail, data_begin - meta);
    return true;
}
