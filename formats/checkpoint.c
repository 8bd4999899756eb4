#include "formats/checkpoint.h"

#include "base/text.h"
#include "formats/layout.h"
#include "formats/open.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No more than that are kept: a note is for a person to read, and a file may have any number of oddities. */
enum { MAX_NOTES = 256 };

/* Notes come late and from any thread. */
struct notes {
    pthread_mutex_t lock;
    char **texts;
    size_t n_texts;
};

/* Room for one more element behind `count` of them, in a heap array that doubles. */
static void *grow(void *array, size_t count, size_t element_bytes)
{
    bool full = (count & (count - 1)) == 0;
    return full ? memory_resize(array, (count ? count * 2 : 1) * element_bytes) : array;
}

struct checkpoint *checkpoint_new(const char *path)
{
    struct arena *arena = arena_new();
    struct checkpoint *checkpoint = arena_alloc(arena, sizeof *checkpoint);
    checkpoint->arena = arena;
    checkpoint->path = arena_strdup(arena, path);
    checkpoint->notes = arena_alloc(arena, sizeof *checkpoint->notes);
    pthread_mutex_init(&checkpoint->notes->lock, NULL);
    return checkpoint;
}

void checkpoint_close(struct checkpoint *checkpoint)
{
    if (checkpoint == NULL)
        return;
    for (size_t i = 0; i < checkpoint->n_side_files; i++)
        source_close(checkpoint->side_files[i].source);
    for (size_t i = checkpoint->n_sources; i-- > 0;) /* a computed source comes after the file it reads */
        source_close(checkpoint->sources[i]);
    for (size_t i = 0; i < checkpoint->notes->n_texts; i++)
        free(checkpoint->notes->texts[i]);
    free(checkpoint->notes->texts);
    pthread_mutex_destroy(&checkpoint->notes->lock);
    free(checkpoint->sources);
    free(checkpoint->tensors);
    free(checkpoint->by_name);
    free(checkpoint->metadata);
    free(checkpoint->side_files);
    free(checkpoint->hidden);
    arena_free(checkpoint->arena);
}

uint16_t checkpoint_add_source(struct checkpoint *checkpoint, struct source *source)
{
    checkpoint->sources = grow(checkpoint->sources, checkpoint->n_sources, sizeof *checkpoint->sources);
    checkpoint->sources[checkpoint->n_sources] = source;
    return (uint16_t)checkpoint->n_sources++;
}

void checkpoint_add_tensor(struct checkpoint *checkpoint, const struct tensor *tensor)
{
    checkpoint->tensors = grow(checkpoint->tensors, checkpoint->n_tensors, sizeof *checkpoint->tensors);
    checkpoint->tensors[checkpoint->n_tensors++] = *tensor;
}

void checkpoint_add_metadata(struct checkpoint *checkpoint, const char *key, const char *value)
{
    checkpoint->metadata = grow(checkpoint->metadata, checkpoint->n_metadata, sizeof *checkpoint->metadata);
    checkpoint->metadata[checkpoint->n_metadata++] = (struct metadata_entry){key, value};
}

void checkpoint_add_side_file(struct checkpoint *checkpoint, const char *name, struct source *source)
{
    checkpoint->side_files = grow(checkpoint->side_files, checkpoint->n_side_files, sizeof *checkpoint->side_files);
    checkpoint->side_files[checkpoint->n_side_files++] = (struct side_file){arena_strdup(checkpoint->arena, name), source};
}

void checkpoint_hide_file(struct checkpoint *checkpoint, const char *name, const char *reason)
{
    checkpoint->hidden = grow(checkpoint->hidden, checkpoint->n_hidden, sizeof *checkpoint->hidden);
    checkpoint->hidden[checkpoint->n_hidden++] = (struct hidden_file){arena_strdup(checkpoint->arena, name), reason};
}

static int compare_tensors(const void *a, const void *b, void *context)
{
    const struct tensor *tensors = context, *x = &tensors[*(const uint32_t *)a], *y = &tensors[*(const uint32_t *)b];
    return text_compare(x->name, x->name_length, y->name, y->name_length);
}

bool checkpoint_index_tensors(struct checkpoint *checkpoint, struct error *error)
{
    size_t n = checkpoint->n_tensors;
    if (checkpoint->by_name != NULL)
        return true;
    checkpoint->by_name = memory_alloc(n * sizeof *checkpoint->by_name);
    for (size_t i = 0; i < n; i++)
        checkpoint->by_name[i] = (uint32_t)i;
    qsort_r(checkpoint->by_name, n, sizeof *checkpoint->by_name, compare_tensors, checkpoint->tensors);
    for (size_t i = 1; i < n; i++) {
        const uint32_t *pair = &checkpoint->by_name[i - 1];
        if (compare_tensors(&pair[0], &pair[1], checkpoint->tensors) != 0)
            continue;
        const struct tensor *a = &checkpoint->tensors[pair[0]], *b = &checkpoint->tensors[pair[1]];
        return error_set(error, "%s: tensor '%s' is also in %s", source_name(checkpoint->sources[b->source]), b->name,
                         source_name(checkpoint->sources[a->source]));
    }
    return true;
}

const struct tensor *checkpoint_find(const struct checkpoint *checkpoint, const char *name, size_t name_length)
{
    size_t low = 0, high = checkpoint->n_tensors;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct tensor *tensor = &checkpoint->tensors[checkpoint->by_name[middle]];
        int order = text_compare(name, name_length, tensor->name, tensor->name_length);
        if (order == 0)
            return tensor;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const struct side_file *checkpoint_side_file(const struct checkpoint *checkpoint, const char *name)
{
    for (size_t i = 0; i < checkpoint->n_side_files; i++)
        if (strcmp(checkpoint->side_files[i].name, name) == 0)
            return &checkpoint->side_files[i];
    return NULL;
}

/* A stored tensor: the leaf that views are built on. */

struct stored {
    struct view view;
    struct source *source;
    uint64_t offset;
};

static bool stored_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct stored *stored = (const struct stored *)view;
    size_t unit = view->dtype->block_bytes;
    return source_read(stored->source, stored->offset + first * unit, count * unit, out, error);
}

static uint64_t stored_extent(const struct view *view, uint64_t first, struct extent *ret_extent)
{
    const struct stored *stored = (const struct stored *)view;
    *ret_extent = (struct extent){stored->source, stored->offset + first * view->dtype->block_bytes};
    return view->n_units - first;
}

static bool stored_read_runs(const struct view *view, const struct runs *runs, void *out, struct error *error)
{
    const struct stored *stored = (const struct stored *)view;
    size_t unit = view->dtype->block_bytes;
    return source_read_runs(stored->source, stored->offset + runs->first * unit, runs->count, runs->length * unit,
                            runs->stride * unit, out, error);
}

static const struct view_op stored_op = {"tensor", stored_read, stored_extent, stored_read_runs};

const struct view *view_of_source(struct arena *arena, struct source *source, uint64_t offset, const struct dtype *dtype,
                                  unsigned rank, const uint64_t *shape)
{
    struct stored *stored = arena_alloc(arena, sizeof *stored);
    view_init(&stored->view, arena, &stored_op, dtype, rank, shape);
    stored->source = source;
    stored->offset = offset;
    return &stored->view;
}

const struct view *tensor_view(const struct checkpoint *checkpoint, const struct tensor *tensor, struct arena *arena)
{
    if (tensor->view != NULL)
        return tensor->view;
    struct source *source = checkpoint->sources[tensor->source];
    if (tensor->strides == NULL || tensor_elements(tensor) == 0)
        return view_of_source(arena, source, tensor->offset, tensor->dtype, tensor->rank, tensor->shape);
    uint64_t n_elements = tensor->length / tensor->dtype->block_bytes * tensor->dtype->block_elements;
    const struct view *flat = view_of_source(arena, source, tensor->offset, tensor->dtype, 1, &n_elements);
    return view_strided(arena, flat, tensor->rank, tensor->shape, 0, tensor->strides);
}

bool tensor_is_stored(const struct tensor *tensor)
{
    return tensor->view == NULL && tensor->strides == NULL && tensor->refusal == NULL;
}

uint64_t tensor_elements(const struct tensor *tensor)
{
    uint64_t n_elements = 1;
    for (unsigned i = 0; i < tensor->rank; i++)
        n_elements *= tensor->shape[i];
    return n_elements;
}

void checkpoint_note(const struct checkpoint *checkpoint, const char *format, ...)
{
    struct notes *notes = checkpoint->notes;
    char *text;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    pthread_mutex_lock(&notes->lock);
    bool known = notes->n_texts == MAX_NOTES;
    for (size_t i = 0; i < notes->n_texts && !known; i++)
        known = strcmp(notes->texts[i], text) == 0;
    if (known) {
        free(text);
    } else {
        notes->texts = grow(notes->texts, notes->n_texts, sizeof *notes->texts);
        notes->texts[notes->n_texts++] = text;
    }
    pthread_mutex_unlock(&notes->lock);
}

size_t checkpoint_notes(const struct checkpoint *checkpoint)
{
    pthread_mutex_lock(&checkpoint->notes->lock);
    size_t n_texts = checkpoint->notes->n_texts;
    pthread_mutex_unlock(&checkpoint->notes->lock);
    return n_texts;
}

const char *checkpoint_note_text(const struct checkpoint *checkpoint, size_t index)
{
    pthread_mutex_lock(&checkpoint->notes->lock);
    const char *text = checkpoint->notes->texts[index];
    pthread_mutex_unlock(&checkpoint->notes->lock);
    return text;
}
