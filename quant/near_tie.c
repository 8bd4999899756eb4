#include "quant/near_tie.h"

#include "quant/convert.h"
#include "quant/f16.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    TRIES = 256,
    AMOUNTS = 8,        /* the changes grow from 1 to 8 units of 2^-23, and start over */
    MOST_ELEMENTS = 256 /* of a block */
};

/* Values of a view with tiny changes: those of the elements [first, first + count). */
struct changed {
    struct view view;
    const float *values;
    uint64_t first, count;
    float amount;
    uint32_t seed;
};

/* Returns a number in [-1, 1) that looks random: the mixing function of SplitMix32. */
static float noise(uint32_t number)
{
    number = (number ^ number >> 16) * 0x21f0aaad;
    number = (number ^ number >> 15) * 0x735a2d97;
    number ^= number >> 15;
    return (float)(int32_t)number * 0x1p-31F;
}

/* Changes all elements by a factor in common, as another scale would, and in odd tries each by one of its own. */
static bool changed_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct changed *changed = (const struct changed *)view;
    float *values = out, common = noise(changed->seed);
    memcpy(values, changed->values + (first - changed->first), count * sizeof *values);
    for (uint64_t i = 0; i < count; i++) {
        float own = changed->seed % 2 == 1 ? noise(changed->seed * MOST_ELEMENTS + (uint32_t)(first + i)) : 0;
        values[i] += values[i] * changed->amount * (common + own);
    }
    return true;
}

static const struct view_op changed_op = {.name = "change slightly", .read = changed_read};

/* Tries encodings of the block from changed values; the values around the block, which weigh its row, are there. */
static bool try_all(struct changed *changed, struct encoding target, uint64_t block, const void *found, bool *ret_near,
                    struct error *error)
{
    unsigned char bytes[512];
    for (uint32_t try = 1; try <= TRIES && !*ret_near; try++) {
        changed->seed = try;
        changed->amount = (float)(1 + try / 2 % AMOUNTS) * 0x1p-24F;
        if (!convert_read(&changed->view, target, block, 1, bytes, error))
            return false;
        *ret_near = memcmp(bytes, found, target.dtype->block_bytes) == 0;
    }
    return true;
}

/* Compares two computed elements as numbers: libraries agree in all but their last few bits. */
static bool nearly_equal(const struct view *view, uint64_t block, const void *found, bool *ret_near,
                         struct error *error)
{
    double expected = 0, other = 0;
    float value;
    unsigned char bytes[sizeof(double)];
    if (!view_read(view, block, 1, bytes, error))
        return false;
    if (view->dtype == &f32_dtype) {
        memcpy(&value, bytes, sizeof value);
        expected = value;
        memcpy(&value, found, sizeof value);
        other = value;
    } else {
        memcpy(&expected, bytes, sizeof expected);
        memcpy(&other, found, sizeof other);
    }
    *ret_near = fabs(expected - other) <= fabs(expected) * 0x1p-21;
    return true;
}

bool near_tie(const struct view *view, struct encoding target, uint64_t block, const void *found, bool *ret_near,
              struct error *error)
{
    bool is_number = view->dtype->kind == DTYPE_FLOAT && view->dtype->block_elements == 1;
    *ret_near = false;
    if (view->dtype == target.dtype && (view->dtype == &f32_dtype || (is_number && view->dtype->block_bytes == 8)))
        return nearly_equal(view, block, found, ret_near, error);
    if (view->dtype == target.dtype)
        return true;
    struct changed changed = {.first = block * target.dtype->block_elements, .count = target.dtype->block_elements};
    if (target.importance.columns != NULL && target.dtype->weighs_rows) {
        changed.count = view_row_elements(view);
        changed.first = changed.first / changed.count * changed.count;
    }
    float *values = memory_alloc(changed.count * sizeof *values);
    changed.values = values;
    view_init_shared(&changed.view, &changed_op, &f32_dtype, view->rank, view->shape);
    bool tried = convert_read(view, encoding_of(&f32_dtype), changed.first, changed.count, values, error) &&
                 try_all(&changed, target, block, found, ret_near, error);
    free(values);
    return tried;
}

/* Returns the unit of block_distance(). */
static double unit_of(const struct dtype *dtype, const void *block, const float *values)
{
    double largest = 0;
    if (dtype->n_scales > 0)
        return fabs((double)f16_load((const unsigned char *)block + dtype->scale_offset[0]));
    for (unsigned i = 0; i < dtype->block_elements; i++)
        largest = fmax(largest, fabs((double)values[i]));
    return largest;
}

double block_distance(const struct dtype *dtype, const void *expected, const void *found)
{
    float values[MOST_ELEMENTS], others[MOST_ELEMENTS];
    double largest = 0;
    decode_function *decode = dtype_kernels(dtype).decode;
    if (decode == NULL)
        return INFINITY;
    decode(expected, values, 1);
    decode(found, others, 1);
    for (unsigned i = 0; i < dtype->block_elements; i++) {
        if (values[i] == others[i] || (isnan(values[i]) && isnan(others[i])))
            continue;
        double difference = fabs((double)values[i] - (double)others[i]);
        if (!isfinite(difference))
            return INFINITY;
        largest = fmax(largest, difference);
    }
    return largest == 0 ? 0 : largest / unit_of(dtype, expected, values);
}
