#include "base/checked.h"
#include "formats/safetensors/safetensors.h"
#include "formats/shape.h"
#include "text/json_write.h"

#include <stdlib.h>

enum { LENGTH_BYTES = 8 };

/* By tensor of the artifact. */
struct layout {
    const struct artifact *artifact;
    uint32_t *order;             /* of the data */
    uint64_t *offsets, *n_bytes; /* of the data of each tensor */
};

static bool find_order(struct layout *layout, struct error *error)
{
    const struct artifact *artifact = layout->artifact;
    size_t n = artifact->n_tensors;
    struct hash_name *names = memory_alloc((n + 1) * sizeof *names);
    bool good = n <= HASH_ORDER_MAX || error_set(error, "%zu tensors are too many", n);
    for (size_t i = 0; i < n && good; i++) {
        const struct tensor *tensor = artifact->tensors[i].tensor;
        const char *refusal =
            safetensors_refusal(tensor->name, tensor->name_length, artifact->tensors[i].encoding.dtype);
        good = refusal == NULL || error_set(error, "'%.200s': %s", tensor->name, refusal);
        names[i] = (struct hash_name){tensor->name, tensor->name_length};
    }
    if (good)
        hash_order(names, n, layout->order);
    free(names);
    return good;
}

static bool place_tensors(struct layout *layout, struct error *error)
{
    uint64_t size = 0, n_elements;
    if (!find_order(layout, error))
        return false;
    for (size_t i = 0; i < layout->artifact->n_tensors; i++) {
        uint32_t at = layout->order[i];
        const struct artifact_tensor *written = &layout->artifact->tensors[at];
        layout->offsets[at] = size;
        if (!shape_size(written->encoding.dtype, written->tensor->shape, written->tensor->rank, &n_elements,
                        &layout->n_bytes[at], NULL) ||
            !checked_add(size, layout->n_bytes[at], &size))
            return error_set(error, "tensor '%.200s': its %s elements do not fit in a file", written->tensor->name,
                             written->encoding.dtype->name);
    }
    return true;
}

static void put_tensor(struct json_writer *writer, const struct layout *layout, uint32_t at)
{
    const struct artifact_tensor *written = &layout->artifact->tensors[at];
    const struct tensor *tensor = written->tensor;
    json_put_key(writer, tensor->name, tensor->name_length);
    json_put_template(writer, "{'data_offsets': [%u, %u], 'dtype': %s, 'shape': [", layout->offsets[at],
                      layout->offsets[at] + layout->n_bytes[at], written->encoding.dtype->name);
    for (unsigned i = 0; i < tensor->rank; i++)
        json_put_number(writer, NULL, tensor->shape[i]);
    json_end(writer);
    json_end(writer);
}

static void write_header(const struct layout *layout, struct buffer *header)
{
    struct json_writer writer = {.out = header, .letters = JSON_UTF8, .compact = true};
    size_t n = layout->artifact->n_tensors;
    struct tensor *tensors = memory_alloc((n + 1) * sizeof *tensors);
    for (size_t i = 0; i < n; i++)
        tensors[i] = *layout->artifact->tensors[i].tensor;
    uint32_t *by_name = tensors_by_name(tensors, n);
    buffer_append_zeros(header, LENGTH_BYTES);
    json_put_template(&writer, "{'__metadata__': {'format': 'mlx'}");
    for (size_t i = 0; i < n; i++)
        put_tensor(&writer, layout, by_name[i]);
    json_end(&writer);
    uint64_t length = header->length - LENGTH_BYTES;
    for (size_t i = 0; i < LENGTH_BYTES; i++)
        header->bytes[i] = (unsigned char)(length >> (8 * i));
    free(by_name);
    free(tensors);
}

static bool lay_out(const struct artifact *artifact, struct span_list *spans, struct error *error)
{
    size_t n = artifact->n_tensors;
    struct layout layout = {.artifact = artifact,
                            .order = memory_alloc((n + 1) * sizeof *layout.order),
                            .offsets = memory_alloc((n + 1) * sizeof *layout.offsets),
                            .n_bytes = memory_alloc((n + 1) * sizeof *layout.n_bytes)};
    struct buffer header = {0};
    bool good = place_tensors(&layout, error);
    if (good) {
        write_header(&layout, &header);
        spans_add_buffer(spans, &header);
        spans_reserve(spans, n);
        for (size_t i = 0; i < n; i++)
            spans_add_tensor(spans, artifact->tensors[layout.order[i]].tensor,
                             artifact->tensors[layout.order[i]].encoding);
    }
    buffer_free(&header);
    free(layout.order);
    free(layout.offsets);
    free(layout.n_bytes);
    return good;
}

const struct container mlx_container = {.name = "safetensors of mlx", .lay_out = lay_out};
