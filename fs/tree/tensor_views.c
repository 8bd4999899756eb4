#include "fs/tree/tensor_views.h"

#include "formats/layout.h"
#include "formats/numpy/write.h"
#include "fs/tree/content_options.h"
#include "fs/tree/name.h"
#include "quant/convert.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

unsigned tensor_slots(void)
{
    unsigned n_dtypes = 0;
    while (dtypes[n_dtypes] != NULL)
        n_dtypes++;
    return SLOT_FIRST_DTYPE + 2 * n_dtypes;
}

/* The tensor as far as convert.h needs it to tell what is possible: nothing can be read from it. */
static struct view outline(const struct tensor *tensor)
{
    uint64_t n_elements = tensor_elements(tensor);
    return (struct view){
        .dtype = tensor->dtype,
        .rank = tensor->rank,
        .shape = tensor->shape,
        .n_elements = n_elements,
        .n_units = n_elements / tensor->dtype->block_elements,
    };
}

bool tensor_file_at(const struct tensor *tensor, const struct content_options *options, unsigned slot,
                    struct tensor_file *ret_file)
{
    const char *reason;
    if (slot < SLOT_FIRST_DTYPE && tensor->part != NULL)
        tensor = tensor->part;
    else if (tensor->refusal != NULL || (slot < SLOT_FIRST_DTYPE && tensor->is_unpacked))
        return false;
    struct tensor_file file = {tensor, "raw", encoding_of(tensor->dtype), .numpy = slot == SLOT_RAW_NPY};
    if (slot >= SLOT_FIRST_DTYPE) {
        file.encoding.dtype = dtypes[(slot - SLOT_FIRST_DTYPE) / 2];
        file.numpy = (slot - SLOT_FIRST_DTYPE) % 2 == 1;
        file.name = file.encoding.dtype->view_name;
        if (file.encoding.dtype == &q4_0_dtype)
            file.encoding.rule = options->q4_0_rule;
        file.encoding.importance = imatrix_importance(
            imatrix_find(options->quantize.imatrix, &options->quantize.filter, tensor->name), tensor);
    }
    struct view view = outline(tensor);
    if (file.name == NULL || (file.numpy && file.encoding.dtype->numpy == NULL) ||
        !convert_possible(&view, file.encoding, &reason))
        return false;
    char header[NUMPY_HEADER_MAX];
    file.stored = file.encoding.dtype == tensor->dtype && tensor_is_stored(tensor);
    file.size = convert_bytes(&view, file.encoding.dtype);
    if (file.numpy)
        file.size += numpy_header(file.encoding.dtype, tensor->shape, tensor->rank, header);
    *ret_file = file;
    return true;
}

static void append_list(struct buffer *out, const char *key, const uint64_t *values, unsigned n_values)
{
    buffer_printf(out, ",\"%s\":[", key);
    for (unsigned i = 0; i < n_values; i++)
        buffer_printf(out, "%s%" PRIu64, i ? "," : "", values[i]);
    buffer_append_text(out, "]");
}

static void append_text(struct buffer *out, const char *key, const char *text, size_t length)
{
    buffer_printf(out, ",\"%s\":", key);
    buffer_append_json_string(out, text, length);
}

static void append_views(const struct tensor *tensor, const struct content_options *options, const char *directory,
                         struct buffer *out)
{
    bool first = true;
    buffer_append_text(out, ",\"views\":[");
    for (unsigned slot = SLOT_RAW, n_slots = tensor_slots(); slot < n_slots; slot++) {
        struct tensor_file file;
        char path[TREE_MAX_NAME + 32];
        if (!tensor_file_at(tensor, options, slot, &file))
            continue;
        int length = snprintf(path, sizeof path, "tensors/%s/%s%s", directory, file.name, file.numpy ? ".npy" : "");
        buffer_append_text(out, first ? "{\"path\":" : ",{\"path\":");
        buffer_append_json_string(out, path, (size_t)length);
        buffer_printf(out, ",\"dtype\":\"%s\",\"size\":%" PRIu64 ",\"stored\":%s}", file.encoding.dtype->name,
                      file.size, file.stored ? "true" : "false");
        first = false;
    }
    buffer_append_text(out, "]");
}

/* What a weight is put together of, and what that gives. */
static void append_packing(const struct tensor *tensor, const struct unpacked *unpacked, struct buffer *out)
{
    buffer_printf(out, ",\"packing\":{\"name\":\"%s\"", unpacked->packing->name);
    if (tensor->refusal == NULL) {
        buffer_printf(out, ",\"bits\":%u,\"dtype\":\"%s\"", unpacked->bits, tensor->dtype->name);
        append_list(out, "shape", tensor->shape, tensor->rank);
    }
    buffer_append_text(out, ",\"parts\":[");
    for (unsigned i = 0; i < unpacked->n_parts; i++) {
        buffer_append_text(out, i ? "," : "");
        buffer_append_json_string(out, unpacked->parts[i]->name, unpacked->parts[i]->name_length);
    }
    buffer_append_text(out, "]}");
}

/* What is stored under the name counts, where something is: the packing says what is made of it. */
static void append_place(const struct tensor *stored, struct buffer *out)
{
    uint64_t row_major[LAYOUT_MAX_RANK];
    struct view view = outline(stored);
    layout_row_major_strides(stored->shape, stored->rank, row_major);
    buffer_printf(out, ",\"dtype\":\"%s\"", stored->dtype->name);
    append_list(out, "shape", stored->shape, stored->rank);
    append_list(out, "strides", stored->strides ? stored->strides : row_major, stored->rank);
    buffer_printf(out, ",\"elements\":%" PRIu64 ",\"bytes\":%" PRIu64, view.n_elements, view_bytes(&view));
    if (stored->view == NULL && stored->source != NULL) {
        const char *source = source_name(stored->source);
        append_text(out, "source", source, strlen(source));
        buffer_printf(out, ",\"offset\":%" PRIu64 ",\"length\":%" PRIu64, stored->offset, stored->length);
    } else {
        buffer_append_text(out, ",\"source\":null,\"offset\":null,\"length\":null");
    }
}

void tensor_metadata(const struct shown *shown, size_t index, const struct content_options *options, struct buffer *out)
{
    const struct tensor *tensor = &shown->set->tensors[index];
    char directory[NAME_MAX_BYTES + 1];
    name_escape(tensor->name, tensor->name_length, directory);
    buffer_append_text(out, "{\"name\":");
    buffer_append_json_string(out, tensor->name, tensor->name_length);
    append_text(out, "directory", directory, strlen(directory));
    append_place(tensor->part != NULL ? tensor->part : tensor, out);
    if (shown->unpacked != NULL && shown->unpacked[index] != NULL)
        append_packing(tensor, shown->unpacked[index], out);
    if (tensor->refusal != NULL)
        append_text(out, "refused", tensor->refusal, strlen(tensor->refusal));
    append_views(tensor, options, directory, out);
    buffer_append_text(out, "}");
}
