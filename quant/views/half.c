#include "quant/views/convert.h"

#include "base/little_endian.h"

#include <math.h>
#include <string.h>

/* F64 as F32 that another rounding to fewer bits makes exact: toward zero, with the last bit set if anything is lost.
 */
struct rounded_to_odd {
    struct view view;
    const struct view *inner;
};

static float round_to_odd(double value)
{
    float nearest = (float)value;
    uint32_t bits;
    if (isnan(value) || (double)nearest == value)
        return nearest;
    memcpy(&bits, &nearest, sizeof bits);
    bits -= fabs((double)nearest) > fabs(value);
    bits |= 1;
    memcpy(&nearest, &bits, sizeof bits);
    return nearest;
}

static bool rounded_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    enum { PIECE = 1024 };
    double wide[PIECE];
    float narrow[PIECE];
    for (uint64_t done = 0; done < count;) {
        uint64_t n = count - done < PIECE ? count - done : PIECE;
        if (!view_read(((const struct rounded_to_odd *)view)->inner, first + done, n, wide, error))
            return false;
        little_endian(wide, n, sizeof *wide);
        for (uint64_t i = 0; i < n; i++)
            narrow[i] = round_to_odd(wide[i]);
        little_endian(narrow, n, sizeof *narrow);
        memcpy((unsigned char *)out + done * sizeof *narrow, narrow, n * sizeof *narrow);
        done += n;
    }
    return true;
}

static void rounded_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    view_depends(((const struct rounded_to_odd *)view)->inner, first, count, to);
}

static const struct view_op rounded_op = {.name = "round to odd", .read = rounded_read, .depends = rounded_depends};

const struct view *view_half(struct arena *arena, const struct view *view)
{
    if (view->dtype != &f64_dtype)
        return view_convert(arena, view, &f16_dtype);
    struct rounded_to_odd *rounded = arena_alloc(arena, sizeof *rounded);
    view_init_shared(&rounded->view, &rounded_op, &f32_dtype, view->rank, view->shape);
    rounded->inner = view;
    return view_convert(arena, &rounded->view, &f16_dtype);
}
