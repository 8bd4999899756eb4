/* Any bytes as a file of a format, and the beginning and the end of each tensor that a checkpoint shows. */
#pragma once

#include "formats/shape.h"
#include "quant/views/dependencies.h"

#include "tests/fuzz/fuzz.h"

/* Stored bytes are inside their file, which is told that they are wanted. */
static inline void want_inside(void *context, const struct extent *from, uint64_t n_bytes)
{
    (void)context;
    source_want(from->source, from->offset, n_bytes, true);
    require(from->offset <= source_size(from->source) && n_bytes <= source_size(from->source) - from->offset);
}

static inline void read_ends(const struct view *view)
{
    enum { UNITS = 4096 }; /* bytes */
    static unsigned char units[UNITS];
    struct error error;
    uint64_t most = UNITS / view->dtype->block_bytes, n = view_units(view) < most ? view_units(view) : most;
    struct dependencies dependencies = {.take = want_inside};
    if (!view_read(view, 0, n, units, &error) || !view_read(view, view_units(view) - n, n, units, &error))
        require_one_line(&error);
    if (n == 0)
        return;
    view_depends(view, 0, n, &dependencies);
    view_depends(view, view_units(view) - n, n, &dependencies);
    dependencies_end(&dependencies);
}

static inline void read_tensors(const struct checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->tensors->n_tensors; i++) {
        const struct tensor *tensor = &checkpoint->tensors->tensors[i];
        uint64_t n_elements, n_bytes, file_size = tensor->source != NULL ? source_size(tensor->source) : 0;
        require(shape_size(tensor->dtype, tensor->shape, tensor->rank, &n_elements, &n_bytes, NULL));
        require(strlen(tensor->name) <= tensor->name_length && tensor->name_length <= TENSOR_MAX_NAME);
        require(tensor->offset <= file_size && tensor->length <= file_size - tensor->offset);
        if (tensor->refusal != NULL)
            continue;
        struct arena *arena = arena_new();
        const struct view *view = tensor_view(tensor, arena);
        require(view->n_elements == n_elements);
        read_ends(view);
        arena_free(arena);
    }
}

/* Opens what is at a path and reads all tensors; what is refused is refused with one line. */
static inline void read_path(const char *path, const struct format *const *readers, const struct open_options *options)
{
    struct error error = {""};
    const struct checkpoint *checkpoint = checkpoint_open(path, readers, options, &error);
    if (checkpoint != NULL)
        read_tensors(checkpoint);
    else
        require_one_line(&error);
    checkpoint_close(checkpoint);
}

/* Reads the bytes as a file of that name. Holds for what is accepted: the elements are inside the file, as many as
 * dtype and shape say, and can be read; and what is refused is refused with one line. */
static inline int fuzz_file(const struct format *format, const struct open_options *options, const char *name,
                            const uint8_t *data, size_t size)
{
    struct error error = {""};
    struct checkpoint *checkpoint = checkpoint_new(name);
    struct source *file = source_of_bytes(data, size, name);
    checkpoint_add_source(checkpoint, file);
    if (format->read_file(checkpoint, file, checkpoint->unsealed, options, &error) &&
        tensor_set_seal(checkpoint->unsealed, &error))
        read_tensors(checkpoint);
    else
        require_one_line(&error);
    checkpoint_close(checkpoint);
    return 0;
}
