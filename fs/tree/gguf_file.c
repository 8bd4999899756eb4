#include "fs/tree/gguf_file.h"

static void add_spans(struct vfile_builder *builder, const struct gguf_plan *plan, const struct gguf_layout *layout)
{
    for (size_t i = 0; i < layout->n_pieces; i++) {
        const struct gguf_piece *piece = &layout->pieces[i];
        if (piece->bytes != NULL)
            vfile_add_literal(builder, piece->bytes, piece->length);
        else
            vfile_add_view(builder, piece->view, encoding_of(&u8_dtype));
    }
    for (size_t i = 0; i < plan->n_tensors; i++) {
        const struct gguf_place *place = &plan->places[i];
        vfile_add_zeros(builder, layout->data + place->offset - builder->size);
        vfile_add_view(builder, tensor_view(place->tensor, builder->arena), place->encoding);
    }
    vfile_add_zeros(builder, layout->size - builder->size);
}

bool gguf_file_plan(struct gguf_plan *plan, struct origin origin, struct arena *arena, struct vfile *ret_file,
                    struct error *error)
{
    struct gguf_layout layout;
    if (!gguf_lay_out(plan, arena, &layout, error))
        return false;
    struct vfile_builder builder = {.arena = arena, .capacity = layout.n_pieces + 2 * plan->n_tensors + 1};
    builder.origin = origin;
    builder.spans = arena_array(arena, builder.capacity, sizeof *builder.spans);
    add_spans(&builder, plan, &layout);
    *ret_file = vfile_finish(&builder);
    return true;
}
