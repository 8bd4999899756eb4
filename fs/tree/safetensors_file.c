#include "fs/tree/safetensors_file.h"

bool safetensors_file_plan(struct safetensors_place *places, size_t n_places,
                           const struct safetensors_metadata *metadata, struct origin origin, struct arena *arena,
                           struct vfile *ret_file, struct error *error)
{
    struct buffer header;
    uint64_t data_size;
    if (!safetensors_lay_out(places, n_places, metadata, &header, &data_size, error))
        return false;
    struct vfile_builder builder = {.arena = arena, .capacity = n_places + 1, .origin = origin};
    builder.spans = arena_array(arena, builder.capacity, sizeof *builder.spans);
    vfile_add_literal(&builder, arena_copy(arena, header.bytes, header.length), header.length);
    for (size_t i = 0; i < n_places; i++)
        vfile_add_view(&builder, tensor_view(places[i].tensor, arena), encoding_of(places[i].type));
    *ret_file = vfile_finish(&builder);
    buffer_free(&header);
    return true;
}
