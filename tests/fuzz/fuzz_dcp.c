/* Any bytes as a distributed torch checkpoint: four bytes that give the length of .metadata, .metadata, and the bytes
 * of its one file of chunks, whatever .metadata calls it.
 *
 * Holds for what is accepted: chunks are inside their tensor, tiles have the shape of the tensor, and elements can be
 * read or refused with one line. */
#include "formats/checkpoint_builder.h"
#include "formats/dcp/dcp.h"
#include "formats/shape.h"

#include "tests/fuzz/read_tensors.h"

struct input_files {
    struct source *metadata, *chunks;
};

static void split(const uint8_t *data, size_t size, struct input_files *files)
{
    uint32_t length = 0;
    memcpy(&length, data, size < sizeof length ? size : sizeof length);
    size_t start = size < sizeof length ? size : sizeof length;
    length = length < size - start ? length : (uint32_t)(size - start);
    files->metadata = source_of_bytes(data + start, length, ".metadata");
    files->chunks = source_of_bytes(data + start + length, size - start - length, "__0_0.distcp");
}

static bool is_empty(const struct dcp_tensor *tensor, const uint64_t *sizes)
{
    for (unsigned i = 0; i < tensor->rank; i++)
        if (sizes[i] == 0)
            return true;
    return false;
}

struct reading {
    struct arena *arena;
    struct checkpoint *checkpoint; /* of the safetensors */
    const struct dcp_metadata *metadata;
    struct source *file;
    struct dcp_chunks *chunks;
    struct dcp_parts *parts;
    bool has_begun;
};

/* Returns the view of a chunk, or NULL. */
static const struct view *chunk_view(struct reading *reading, const struct dcp_tensor *tensor,
                                     const struct dcp_box *chunk, const struct dcp_place *place)
{
    static const struct open_options options;
    struct error error = {""};
    if (place == NULL || is_empty(tensor, chunk->sizes) || place->offset > source_size(reading->file) ||
        place->length > source_size(reading->file) - place->offset)
        return NULL;
    bool has_begun = reading->has_begun;
    reading->has_begun = true;
    if (!has_begun &&
        !dcp_parts_read(reading->checkpoint, reading->file, place->offset, &options, &reading->parts, &error))
        require_one_line(&error);
    if (reading->parts == NULL)
        return dcp_chunk_view(reading->chunks, reading->file, place->offset, place->length, tensor->dtype, tensor->rank,
                              chunk->sizes);
    const struct view *view = dcp_part_view(reading->parts, tensor, chunk, place->offset, &error);
    if (view == NULL)
        require_one_line(&error);
    return view;
}

static void read_tensor(struct reading *reading, const struct dcp_tensor *tensor)
{
    struct arena *arena = reading->arena;
    struct tile *tiles = arena_array(arena, tensor->n_chunks + 1, sizeof *tiles);
    size_t n_tiles = 0;
    for (size_t i = 0; i < tensor->n_chunks; i++) {
        const struct dcp_box *chunk = &tensor->chunks[i];
        const struct dcp_place *place = dcp_find_place(reading->metadata, tensor, chunk);
        for (unsigned axis = 0; axis < tensor->rank; axis++)
            require(chunk->first[axis] + chunk->sizes[axis] <= tensor->shape[axis]);
        tiles[n_tiles].first = chunk->first;
        tiles[n_tiles].view = chunk_view(reading, tensor, chunk, place);
        if (tiles[n_tiles++].view == NULL)
            return;
    }
    const char *reason;
    const struct view *view = tiles_join(arena, tiles, n_tiles, tensor->rank, tensor->shape, &reason);
    require(view != NULL || reason != NULL);
    if (view == NULL || is_empty(tensor, tensor->shape))
        return;
    require(view->rank == tensor->rank && memcmp(view->shape, tensor->shape, view->rank * sizeof *view->shape) == 0);
    read_ends(view);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error = {""};
    struct input_files files;
    struct dcp_metadata metadata = {0};
    struct arena *arena = arena_new();
    split(data, size, &files);
    if (dcp_metadata_read(&metadata, files.metadata, arena, &error)) {
        struct reading reading = {.arena = arena,
                                  .checkpoint = checkpoint_new("dcp"),
                                  .metadata = &metadata,
                                  .file = files.chunks,
                                  .chunks = dcp_chunks_new(arena)};
        for (size_t i = 0; i < metadata.n_tensors; i++)
            read_tensor(&reading, &metadata.tensors[i]);
        checkpoint_close(reading.checkpoint);
    } else {
        require_one_line(&error);
    }
    arena_free(arena);
    source_close(files.metadata);
    source_close(files.chunks);
    return 0;
}
