/* The bytes before the data of a planned GGUF. */
#pragma once

#include "formats/gguf/write.h"

#include "tests/unit/check.h"

static inline struct buffer laid_out(struct gguf_plan *plan, struct gguf_layout *ret_layout)
{
    struct arena *arena = arena_new();
    struct buffer header = {0};
    struct error error = {""};
    struct gguf_layout layout = {0};
    CHECK(gguf_lay_out(plan, arena, &layout, &error));
    CHECK_TEXT(error.message, "");
    for (size_t i = 0; i < layout.n_pieces; i++) {
        const struct gguf_piece *piece = &layout.pieces[i];
        size_t place = header.length;
        buffer_append_zeros(&header, piece->length);
        if (piece->bytes != NULL)
            memcpy(header.bytes + place, piece->bytes, piece->length);
        else
            CHECK(view_read(piece->view, 0, piece->length, header.bytes + place, &error));
    }
    CHECK(header.length == layout.data);
    *ret_layout = layout;
    ret_layout->pieces = NULL; /* they go with the arena */
    arena_free(arena);
    return header;
}
