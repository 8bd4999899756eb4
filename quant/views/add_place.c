#include "quant/views/positions.h"

#include "base/little_endian.h"

#include <string.h>

struct placed {
    struct view view;
    const struct view *inner;
    int times;
};

static bool placed_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    enum { PIECE = 1024 };
    const struct placed *placed = (const struct placed *)view;
    uint64_t values[PIECE];
    for (uint64_t done = 0; done < count;) {
        uint64_t n = count - done < PIECE ? count - done : PIECE;
        if (!view_read(placed->inner, first + done, n, values, error))
            return false;
        little_endian(values, n, sizeof *values);
        for (uint64_t i = 0; i < n; i++)
            values[i] += (uint64_t)placed->times * (first + done + i);
        little_endian(values, n, sizeof *values);
        memcpy((unsigned char *)out + done * sizeof *values, values, n * sizeof *values);
        done += n;
    }
    return true;
}

static void placed_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    view_depends(((const struct placed *)view)->inner, first, count, to);
}

static const struct view_op placed_op = {.name = "add place", .read = placed_read, .depends = placed_depends};

const struct view *view_add_place(struct arena *arena, const struct view *view, int times)
{
    struct placed *placed = arena_alloc(arena, sizeof *placed);
    view_init_shared(&placed->view, &placed_op, view->dtype, view->rank, view->shape);
    placed->inner = view;
    placed->times = times;
    return &placed->view;
}
