#include "fs/tree/tensor_views.h"

#include "formats/layout.h"
#include "formats/numpy/write.h"
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

bool tensor_file_at(const struct tensor *tensor, const struct tree_options *options, unsigned slot, struct tensor_file *ret_file)
{
    struct tensor_file file = {.name = "raw", .encoding = encoding_of(tensor->dtype), .numpy = slot == SLOT_RAW_NPY};
    const char *reason;
    if (tensor->refusal != NULL)
        return false;
    if (slot >= SLOT_FIRST_DTYPE) {
        file.encoding.dtype = dtypes[(slot - SLOT_FIRST_DTYPE) / 2];
        file.numpy = (slot - SLOT_FIRST_DTYPE) % 2 == 1;
        file.name = file.encoding.dtype->view_name;
        if (file.encoding.dtype == &q4_0_dtype)
            file.encoding.rule = options->q4_0_rule;
        file.encoding.importance =
            imatrix_importance(imatrix_find(options->quantize.imatrix, &options->quantize.filter, tensor->name), tensor);
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

static void append_views(const struct tensor *tensor, const struct tree_options *options, const char *directory,
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
        buffer_printf(out, ",\"dtype\":\"%s\",\"size\":%" PRIu64 ",\"stored\":%s}", file.encoding.dtype->name, file.size,
                      file.stored ? "true" : "false");
        first = false;
    }
    buffer_append_text(out, "]");
}

void tensor_metadata(const struct tensor *tensor, const struct tree_options *options, struct buffer *out)
{
    char directory[NAME_MAX_BYTES + 1];
    uint64_t row_major[LAYOUT_MAX_RANK];
    struct view view = outline(tensor);
    name_escape(tensor->name, tensor->name_length, directory);
    layout_row_major_strides(tensor->shape, tensor->rank, row_major);
    buffer_append_text(out, "{\"name\":");
    buffer_append_json_string(out, tensor->name, tensor->name_length);
    append_text(out, "directory", directory, strlen(directory));
    buffer_printf(out, ",\"dtype\":\"%s\"", tensor->dtype->name);
    append_list(out, "shape", tensor->shape, tensor->rank);
    append_list(out, "strides", tensor->strides ? tensor->strides : row_major, tensor->rank);
    buffer_printf(out, ",\"elements\":%" PRIu64 ",\"bytes\":%" PRIu64, view.n_elements, view_bytes(&view));
    if (tensor->view == NULL && tensor->source != NULL) {
        const char *source = source_name(tensor->source);
        append_text(out, "source", source, strlen(source));
        buffer_printf(out, ",\"offset\":%" PRIu64 ",\"length\":%" PRIu64, tensor->offset, tensor->length);
    } else {
        buffer_append_text(out, ",\"source\":null,\"offset\":null,\"length\":null");
    }
    if (tensor->refusal != NULL)
        append_text(out, "refused", tensor->refusal, strlen(tensor->refusal));
    append_views(tensor, options, directory, out);
    buffer_append_text(out, "}");
}
