#include "models/mxfp4_view.h"

#include "base/checked.h"

#include <string.h>

enum { BLOCK_ELEMENTS = 32, PACKED_BYTES = 16, BLOCK_BYTES = 1 + PACKED_BYTES };

struct mxfp4 {
    struct view view;
    const struct view *blocks, *scales;
};

/* From pairs of neighbours to pairs of an element of the first and one of the second half. */
static void repack(const unsigned char *packed, unsigned char scale, unsigned char *block)
{
    unsigned char codes[BLOCK_ELEMENTS];
    for (unsigned i = 0; i < PACKED_BYTES; i++) {
        codes[2 * i] = packed[i] & 15;
        codes[2 * i + 1] = packed[i] >> 4;
    }
    block[0] = scale;
    for (unsigned i = 0; i < PACKED_BYTES; i++)
        block[1 + i] = (unsigned char)(codes[i] | codes[i + PACKED_BYTES] << 4);
}

static bool mxfp4_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    enum { PIECE = 1024 };
    const struct mxfp4 *mxfp4 = (const struct mxfp4 *)view;
    unsigned char packed[PIECE * PACKED_BYTES], scales[PIECE], *block = out;
    for (uint64_t end = first + count; first < end;) {
        uint64_t n = end - first < PIECE ? end - first : PIECE;
        if (!view_read(mxfp4->blocks, first * PACKED_BYTES, n * PACKED_BYTES, packed, error) ||
            !view_read(mxfp4->scales, first, n, scales, error))
            return false;
        for (uint64_t i = 0; i < n; i++, block += BLOCK_BYTES)
            repack(packed + i * PACKED_BYTES, scales[i], block);
        first += n;
    }
    return true;
}

static const struct view_op mxfp4_op = {"mxfp4", mxfp4_read, NULL};

const struct view *mxfp4_view(struct arena *arena, const struct view *blocks, const struct view *scales, struct error *error)
{
    const struct dtype *dtype = dtype_by_name("MXFP4");
    uint64_t shape[VIEW_MAX_RANK], n_elements;
    unsigned rank = scales->rank;
    if (rank == 0 || blocks->rank != rank + 1 || blocks->shape[rank] != PACKED_BYTES || blocks->dtype->block_bytes != 1 ||
        scales->dtype->block_bytes != 1 || memcmp(blocks->shape, scales->shape, rank * sizeof *shape) != 0 ||
        !checked_multiply(scales->n_elements, BLOCK_ELEMENTS, &n_elements))
        return error_set(error, "blocks and scales are not those of one MXFP4 tensor"), NULL;
    memcpy(shape, scales->shape, rank * sizeof *shape);
    shape[rank - 1] *= BLOCK_ELEMENTS;
    struct mxfp4 *mxfp4 = arena_alloc(arena, sizeof *mxfp4);
    view_init(&mxfp4->view, arena, &mxfp4_op, dtype, rank, shape);
    mxfp4->blocks = blocks;
    mxfp4->scales = scales;
    return &mxfp4->view;
}
