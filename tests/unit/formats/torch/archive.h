/* Checkpoints of torch for tests: pickles written in text opcodes, and what is read as a text. */
#pragma once

#include "base/buffer.h"
#include "base/text.h"
#include "formats/checkpoint.h"

#include "tests/unit/check.h"
#include "tests/unit/formats/readers_table.h"
#include "tests/unit/write_zip.h"

#include <inttypes.h>

/* Pieces of pickles. Integers are "I1\n", a tuple's items stand one after the other. */
#define PICKLE_STORAGE(class, key, n) "(Vstorage\nctorch\n" class "\nV" key "\nVcpu\nI" n "\ntQ"
#define PICKLE_TENSOR(storage, offset, size, stride)                                                                   \
    "ctorch._utils\n_rebuild_tensor_v2\n(" storage "I" offset "\n(" size "t(" stride "tI00\nNtR"

/* A value as text; complex ones and others without a number as hexadecimal bytes. */
static inline void archive_show_values(const struct view *view, struct buffer *out)
{
    struct error error;
    unsigned char units[4096];
    float values[1024];
    decode_function *decode = dtype_kernels(view->dtype).decode;
    if (view_bytes(view) > sizeof units || view->n_elements > 1024) {
        buffer_printf(out, " ...");
        return;
    }
    if (!view_read(view, 0, view_units(view), units, &error)) {
        buffer_printf(out, " error: %s", error.message);
        return;
    }
    if (decode != NULL)
        decode(units, values, view_units(view));
    for (uint64_t i = 0; i < (decode != NULL ? view->n_elements : view_bytes(view)); i++)
        if (decode != NULL)
            buffer_printf(out, " %g", (double)values[i]);
        else
            buffer_printf(out, " %02x", units[i]);
}

/* Opens a checkpoint and tells what is in it, "NAME DTYPE [SHAPE] VALUES" or "NAME DTYPE [SHAPE] (REFUSAL)" for each
 * tensor, and then its extras; or the error. To be freed. */
static inline char *archive_describe(const char *path, const struct open_options *options)
{
    struct buffer out = {0};
    struct error error;
    const struct checkpoint *checkpoint = checkpoint_open(path, readers, options, &error);
    if (checkpoint == NULL)
        buffer_append_text(&out, error.message);
    for (size_t i = 0; checkpoint != NULL && i < checkpoint->tensors->n_tensors; i++) {
        char shape[400];
        const struct tensor *tensor = &checkpoint->tensors->tensors[i];
        buffer_printf(&out, "%s%s %s %s", i > 0 ? "\n" : "", tensor->name, tensor->dtype->name,
                      shape_text(tensor->shape, tensor->rank, shape, sizeof shape));
        if (tensor->refusal != NULL)
            buffer_printf(&out, " (%s)", tensor->refusal);
        else
            archive_show_values(tensor_view(tensor, checkpoint->arena), &out);
    }
    if (checkpoint != NULL && checkpoint->extras != NULL)
        buffer_printf(&out, "%s%s", checkpoint->tensors->n_tensors > 0 ? "\n" : "", checkpoint->extras);
    checkpoint_close(checkpoint);
    buffer_append(&out, "", 1);
    return (char *)out.bytes;
}

/* A text of several lines as the name of a test, which is one line. */
static inline const char *archive_test_name(const char *text, char out[120])
{
    snprintf(out, 120, "%s", text);
    for (char *c = out; *c != '\0'; c++)
        if (*c == '\n')
            *c = ';';
    return out;
}
