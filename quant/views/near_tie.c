#include "quant/views/near_tie.h"

#include "base/little_endian.h"
#include "quant/blocks/f16.h"
#include "quant/views/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    TRIES = 1024,
    WHOLE_TRIES = 512,  /* the first tries, which change all elements anew */
    AMOUNTS = 8,        /* the changes grow from 2^-24 to 2^-17 of a value, and start over */
    MOST_ELEMENTS = 256 /* of a block */
};

/* Values of a view with tiny changes: those of the elements [first, first + count), which hold the block's. */
struct changed {
    struct view view;
    const float *values;
    uint64_t first, count, first_of_block;
    unsigned n_of_block;
    float common, own[MOST_ELEMENTS]; /* the share of its value by which each element, and each of the block, grows */
};

/* Returns a number in [-1, 1) that looks random: the mixing function of SplitMix32. */
static float noise(uint32_t number)
{
    number = (number ^ number >> 16) * 0x21f0aaad;
    number = (number ^ number >> 15) * 0x735a2d97;
    number ^= number >> 15;
    return (float)(int32_t)number * 0x1p-31F;
}

static bool changed_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct changed *changed = (const struct changed *)view;
    float *values = out;
    memcpy(values, changed->values + (first - changed->first), count * sizeof *values);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = first + i - changed->first_of_block; /* wraps around for elements before the block */
        values[i] += values[i] * (changed->common + (at < changed->n_of_block ? changed->own[at] : 0));
    }
    little_endian(values, count, sizeof *values);
    return true;
}

static const struct view_op changed_op = {.name = "change slightly", .read = changed_read};

/* Changes the elements for one try: all by a common factor, as another scale would, or each by one of its own; after
 * that, those of a part of the block, whose ties are independent of the other parts'. */
static void change(struct changed *changed, uint32_t try)
{
    static const uint8_t lengths[] = {16, 32, 8, 16, 4, 64, 16, 2};
    float amount = (float)(1U << try / 2 % AMOUNTS) * 0x1p-24F;
    unsigned length = try < WHOLE_TRIES ? changed->n_of_block : lengths[try % sizeof lengths];
    unsigned first = try < WHOLE_TRIES ? 0 : (unsigned)((noise(~try) + 1) * 0.5F * (float)changed->n_of_block);
    first -= first % length;
    changed->common = try < WHOLE_TRIES ? noise(try) * amount : changed->common;
    for (unsigned i = first; i < first + length && i < changed->n_of_block; i++)
        changed->own[i] = try < WHOLE_TRIES && try % 2 == 0 ? 0 : noise(try * MOST_ELEMENTS + i) * amount;
}

/* Tries encodings of the block from changed values. A try becomes the start of the next ones if no earlier one has more
 * of the bytes found, since a block may have several ties. */
static bool try_all(struct changed *changed, struct encoding target, uint64_t block, const unsigned char *found,
                    bool *ret_near, struct error *error)
{
    unsigned char bytes[512];
    struct changed best = *changed;
    size_t most = 0, size = target.dtype->block_bytes;
    for (uint32_t try = 0; try < TRIES && most < size; try++) {
        size_t n_equal = 0;
        *changed = best;
        if (try > 0) /* the block without changes comes first: it has most of the bytes, unless its scale differs */
            change(changed, try);
        if (!convert_read(&changed->view, target, block, 1, bytes, error))
            return false;
        for (size_t i = 0; i < size; i++)
            n_equal += bytes[i] == found[i];
        if (n_equal >= most) {
            best = *changed;
            most = n_equal;
        }
    }
    *ret_near = most == size;
    return true;
}

static double number_of(const struct dtype *dtype, const void *bytes)
{
    float single;
    double number;
    if (dtype == &f32_dtype) {
        f32_dtype.kernels[CPU_PORTABLE].decode(bytes, &single, 1);
        return (double)single;
    }
    memcpy(&number, bytes, sizeof number);
    little_endian(&number, 1, sizeof number);
    return number;
}

/* Compares two computed elements as numbers: libraries agree in all but their last few bits. */
static bool nearly_equal(const struct view *view, uint64_t block, const void *found, bool *ret_near,
                         struct error *error)
{
    unsigned char bytes[sizeof(double)];
    if (!view_read(view, block, 1, bytes, error))
        return false;
    double expected = number_of(view->dtype, bytes), other = number_of(view->dtype, found);
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
    uint64_t first = block * target.dtype->block_elements;
    unsigned n = target.dtype->block_elements;
    struct changed changed = {.first = first, .count = n, .first_of_block = first, .n_of_block = n};
    if (target.importance != NULL && target.dtype->weighs_rows) {
        changed.count = view_row_elements(view);
        changed.first = changed.first / changed.count * changed.count;
    }
    float *values = memory_alloc(changed.count * sizeof *values);
    changed.values = values;
    view_init_shared(&changed.view, &changed_op, &f32_dtype, view->rank, view->shape);
    bool tried = convert_values(view, changed.first, changed.count, values, error) &&
                 try_all(&changed, target, block, found, ret_near, error);
    free(values);
    return tried;
}

bool block_errors(const struct view *view, const struct dtype *dtype, uint64_t block, const void *expected,
                  const void *found, double ret_errors[2], struct error *error)
{
    float values[MOST_ELEMENTS], decoded[MOST_ELEMENTS];
    const void *blocks[] = {expected, found};
    unsigned n = dtype->block_elements;
    if (!convert_values(view, block * n, n, values, error))
        return false;
    for (unsigned i = 0; i < 2; i++) {
        ret_errors[i] = 0;
        dtype_kernels(dtype).decode(blocks[i], decoded, 1);
        for (unsigned j = 0; j < n; j++)
            ret_errors[i] += ((double)decoded[j] - (double)values[j]) * ((double)decoded[j] - (double)values[j]);
    }
    return true;
}

/* Like fmax(), whose reduction gcc 12 for aarch64 cannot compile. */
static double larger(double a, double b)
{
    return b > a ? b : a;
}

/* Returns the unit of block_distance(). */
static double unit_of(const struct dtype *dtype, const void *block, const float *values)
{
    double largest = 0;
    if (dtype->n_scales > 0)
        return fabs((double)f16_load((const unsigned char *)block + dtype->scale_offset[0]));
    for (unsigned i = 0; i < dtype->block_elements; i++)
        largest = larger(largest, fabs((double)values[i]));
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
        largest = larger(largest, difference);
    }
    return largest == 0 ? 0 : largest / unit_of(dtype, expected, values);
}
