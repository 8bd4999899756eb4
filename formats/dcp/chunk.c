#include "formats/dcp/dcp.h"

#include "base/attempt.h"
#include "base/lock.h"
#include "formats/checkpoint_builder.h"
#include "formats/format.h"
#include "formats/zip/zip.h"
#include "quant/views/dependencies.h"
#include "sources/source.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct dcp_chunks {
    struct arena *arena; /* of the views */
    struct lock lock;
    struct arena *elements; /* of the views of elements, made while the lock is held */
};

struct chunk {
    struct view view;
    struct dcp_chunks *chunks;
    struct source *file;
    uint64_t offset, length;
    _Atomic(const struct view *) *elements; /* NULL until the archive has been read */
};

static void release(void *context)
{
    struct dcp_chunks *chunks = context;
    arena_free(chunks->elements);
    lock_destroy(&chunks->lock);
}

struct dcp_chunks *dcp_chunks_new(struct arena *arena)
{
    struct dcp_chunks *chunks = arena_alloc(arena, sizeof *chunks);
    chunks->arena = arena;
    chunks->elements = arena_new_shared();
    lock_init(&chunks->lock);
    arena_on_free(arena, release, chunks);
    return chunks;
}

/* Reports whether the archive holds one tensor, which is the chunk, uncompressed. */
static bool is_chunk(const struct chunk *chunk, const struct tensor_set *set, const struct source *archive)
{
    const struct tensor *tensor = &set->tensors[0];
    const struct view *view = &chunk->view;
    bool is_like = set->n_tensors == 1 && tensor->dtype == view->dtype && tensor->rank == view->rank &&
                   memcmp(tensor->shape, view->shape, view->rank * sizeof *view->shape) == 0;
    return is_like && tensor->refusal == NULL && tensor->view == NULL &&
           (tensor->source == archive || view->n_elements == 0);
}

/* Reads the archive, which is closed after that: the elements are views of the file itself. */
static const struct view *read_archive(const struct chunk *chunk, struct error *error)
{
    static const struct open_options options;
    const struct view *elements = NULL;
    char name[256];
    snprintf(name, sizeof name, "%.200s, from byte %" PRIu64, source_name(chunk->file), chunk->offset);
    struct source *archive = source_range_new(chunk->file, name, chunk->offset, chunk->length);
    struct checkpoint *checkpoint = checkpoint_new(name);
    checkpoint_add_source(checkpoint, archive);
    if (torch_format.read_file(checkpoint, archive, checkpoint->unsealed, &options, error)) {
        if (is_chunk(chunk, checkpoint->unsealed, archive)) {
            struct tensor tensor = checkpoint->unsealed->tensors[0];
            tensor.source = chunk->file;
            tensor.offset += chunk->offset;
            tensor.shape = chunk->view.shape;
            elements = tensor_view(&tensor, chunk->chunks->elements);
        } else {
            error_set(error, "%s: not the chunk that .metadata describes: other tensors, dtypes or shapes", name);
        }
    }
    checkpoint_close(checkpoint);
    return elements;
}

/* Returns the view of the stored elements, or NULL. */
static const struct view *elements_of(const struct view *view, struct error *error)
{
    const struct chunk *chunk = (const struct chunk *)view;
    const struct view *elements = atomic_load(chunk->elements);
    if (elements != NULL)
        return elements;
    attempt_lock(&chunk->chunks->lock);
    elements = atomic_load(chunk->elements);
    if (elements == NULL)
        elements = read_archive(chunk, error);
    atomic_store(chunk->elements, elements);
    attempt_unlock(&chunk->chunks->lock);
    return elements;
}

static bool chunk_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct view *elements = elements_of(view, error);
    return elements != NULL && view_read(elements, first, count, out, error);
}

static bool chunk_read_runs(const struct view *view, const struct runs *runs, void *out, struct error *error)
{
    const struct view *elements = elements_of(view, error);
    return elements != NULL && view_read_runs(elements, runs, out, error);
}

/* A damaged archive has no stored elements: reading it then gives the reason. */
static uint64_t chunk_stored(const struct view *view, uint64_t first, struct extent *ret_extent)
{
    struct error unused;
    const struct view *elements = elements_of(view, &unused);
    return elements != NULL ? view_stored(elements, first, ret_extent) : 0;
}

/* The archive has as many bytes more than the elements as its headers before and after them take. So the headers, and
 * row-major elements, are within that many bytes of the archive's ends and of where they would be without headers. */
static void chunk_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct chunk *chunk = (const struct chunk *)view;
    const struct view *elements = atomic_load(chunk->elements);
    if (elements != NULL) {
        view_depends(elements, first, count, to);
        return;
    }
    uint64_t unit = view->dtype->block_bytes, n_bytes = view_bytes(view),
             headers = chunk->length > n_bytes ? chunk->length - n_bytes : 0;
    struct extent start = {chunk->file, chunk->offset}, run = {chunk->file, chunk->offset + first * unit},
                  end = {chunk->file, chunk->offset + n_bytes};
    dependencies_add(to, &start, headers);
    dependencies_add(to, &run, count * unit + headers);
    dependencies_add(to, &end, headers);
}

static const struct view_op chunk_op = {.name = "chunk",
                                        .read = chunk_read,
                                        .depends = chunk_depends,
                                        .stored = chunk_stored,
                                        .read_runs = chunk_read_runs};

const struct view *dcp_chunk_view(struct dcp_chunks *chunks, struct source *file, uint64_t offset, uint64_t length,
                                  const struct dtype *dtype, unsigned rank, const uint64_t *shape)
{
    struct chunk *chunk = arena_alloc(chunks->arena, sizeof *chunk);
    view_init_shared(&chunk->view, &chunk_op, dtype, rank, shape);
    chunk->chunks = chunks;
    chunk->file = file;
    chunk->offset = offset;
    chunk->length = length;
    chunk->elements = arena_alloc(chunks->arena, sizeof *chunk->elements);
    return &chunk->view;
}

bool dcp_chunk_check(const struct view *view, struct error *error)
{
    return elements_of(view, error) != NULL;
}

/* An archive that cannot be read as one is an object, too: of a torch that stores objects in another way. */
static bool has_storages(const struct source *archive)
{
    struct arena *scratch = arena_new();
    struct zip_directory zip;
    struct error unused;
    bool found = false;
    if (zip_directory_read(&zip, archive, scratch, &unused))
        for (size_t i = 0; i < zip.n_members && !found; i++)
            found = strstr(zip.members[i].name, "/data/") != NULL;
    arena_free(scratch);
    return found;
}

static void add_under(struct checkpoint *checkpoint, const struct tensor_set *set, const char *name)
{
    for (size_t i = 0; i < set->n_tensors; i++) {
        struct tensor tensor = set->tensors[i];
        tensor.name = arena_printf(checkpoint->arena, "%s.%s", name, tensor.name);
        tensor.name_length = (uint32_t)strlen(tensor.name);
        tensor_set_add(checkpoint->unsealed, &tensor);
    }
}

bool dcp_object_read(struct checkpoint *checkpoint, struct source *file, uint64_t offset, uint64_t length,
                     const char *name, bool *ret_found, struct error *error)
{
    static const struct open_options options;
    char place[256];
    snprintf(place, sizeof place, "%.200s, from byte %" PRIu64, source_name(file), offset);
    struct source *archive = source_range_new(file, place, offset, length);
    *ret_found = has_storages(archive);
    if (!*ret_found) {
        source_close(archive);
        return true;
    }
    checkpoint_add_source(checkpoint, archive);
    struct tensor_set *set = tensor_set_new(checkpoint->arena);
    const char *extras = checkpoint->extras;
    if (!torch_format.read_file(checkpoint, archive, set, &options, error))
        return false;
    checkpoint->extras = extras; /* what else is in one of many objects does not describe the checkpoint */
    add_under(checkpoint, set, name);
    return true;
}
