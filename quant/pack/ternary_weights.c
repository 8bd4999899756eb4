#include "quant/pack/ternary_weights.h"

#include "base/little_endian.h"
#include "quant/arithmetic/torch_sum.h"
#include "quant/views/convert.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct ternary {
    struct view view;
    const struct view *inner;
    _Atomic uint64_t *inverse; /* of the mean: the bits of a float above KNOWN; 0: unknown */
};

#define KNOWN (UINT64_C(1) << 32)

static bool add_absolute(struct torch_sum *sum, const struct view *view, float *values, uint64_t first, size_t n,
                         struct error *error)
{
    if (!convert_values(view, first, n, values, error))
        return false;
    for (size_t i = 0; i < n; i++)
        values[i] = fabsf(values[i]);
    torch_sum_add(sum, values, n - n % TORCH_SUM_STEP);
    return true;
}

static bool compute_inverse(const struct view *view, float *ret_inverse, struct error *error)
{
    enum { AT_ONCE = 1 << 16 };
    static const float least = 1e-5f;
    uint64_t first = 0, n = view->n_elements;
    size_t count = 0;
    struct torch_sum sum;
    float *values = memory_alloc(AT_ONCE * sizeof *values);
    bool added = true;
    torch_sum_begin(&sum, (size_t)n);
    for (; added && first < n; first += count) {
        count = n - first < AT_ONCE ? (size_t)(n - first) : AT_ONCE;
        added = add_absolute(&sum, view, values, first, count, error);
    }
    size_t n_rest = (size_t)(n % TORCH_SUM_STEP);
    float mean = torch_sum_end(&sum, values + count - n_rest, n_rest) / (float)n;
    *ret_inverse = 1.0f / (mean < least ? least : mean);
    free(values);
    return added;
}

/* Returns the inverse, which the first reader computes; two at once do no harm. */
static bool inverse_of(const struct ternary *ternary, float *ret_inverse, struct error *error)
{
    uint64_t known = atomic_load_explicit(ternary->inverse, memory_order_relaxed);
    uint32_t bits = (uint32_t)known;
    if (known == 0) {
        if (!compute_inverse(ternary->inner, ret_inverse, error))
            return false;
        memcpy(&bits, ret_inverse, sizeof bits);
        atomic_store_explicit(ternary->inverse, KNOWN | bits, memory_order_relaxed);
    }
    memcpy(ret_inverse, &bits, sizeof bits);
    return true;
}

static bool ternary_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    enum { PIECE = 4096 };
    const struct ternary *ternary = (const struct ternary *)view;
    float values[PIECE], inverse;
    if (!inverse_of(ternary, &inverse, error))
        return false;
    for (uint64_t done = 0; done < count;) {
        uint64_t n = count - done < PIECE ? count - done : PIECE;
        if (!convert_values(ternary->inner, first + done, n, values, error))
            return false;
        for (uint64_t i = 0; i < n; i++) {
            float rounded = rintf(values[i] * inverse);
            if (rounded > 1 || rounded < -1)
                rounded = copysignf(1, rounded);
            values[i] = rounded / inverse;
        }
        little_endian(values, n, sizeof *values);
        memcpy((unsigned char *)out + done * sizeof *values, values, n * sizeof *values);
        done += n;
    }
    return true;
}

/* Names all elements, for the mean, until a read has computed it; then those of the range. */
static void ternary_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct ternary *ternary = (const struct ternary *)view;
    bool known = atomic_load_explicit(ternary->inverse, memory_order_relaxed) != 0;
    convert_depends(ternary->inner, encoding_of(&f32_dtype), known ? first : 0, known ? count : view->n_elements, to);
}

static const struct view_op ternary_op = {.name = "ternary", .read = ternary_read, .depends = ternary_depends};

const struct view *view_ternary(struct arena *arena, const struct view *view)
{
    struct ternary *ternary = arena_alloc(arena, sizeof *ternary);
    view_init_shared(&ternary->view, &ternary_op, &f32_dtype, view->rank, view->shape);
    ternary->inner = view;
    ternary->inverse = arena_alloc(arena, sizeof *ternary->inverse);
    atomic_init(ternary->inverse, 0);
    return view_convert(arena, &ternary->view, view->dtype == &f16_dtype ? &f16_dtype : &f32_dtype);
}
