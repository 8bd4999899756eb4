#include "quant/blocks/codes.h"

#include "quant/blocks/f16.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = sizeof((struct dtype *)NULL)->scale_parts / sizeof(struct block_part) };

codes_function *codes_at(const struct dtype *dtype, enum cpu_level level)
{
    codes_function *best = NULL;
    for (int i = CPU_PORTABLE; i <= (int)level; i++)
        if (dtype->codes[i] != NULL)
            best = dtype->codes[i];
    return best;
}

codes_function *codes_of(const struct dtype *dtype)
{
    return codes_at(dtype, cpu_level());
}

size_t codes_scale_bytes(const struct dtype *dtype)
{
    size_t n_bytes = 0;
    for (size_t i = 0; i < PARTS; i++)
        n_bytes += dtype->scale_parts[i].length;
    return n_bytes;
}

void codes_split(const struct dtype *dtype, const void *blocks, size_t n_blocks, void *scales)
{
    const uint8_t *block = blocks;
    uint8_t *out = scales;
    for (size_t i = 0; i < n_blocks; i++, block += dtype->block_bytes)
        for (size_t j = 0; j < PARTS; j++) {
            memcpy(out, block + dtype->scale_parts[j].offset, dtype->scale_parts[j].length);
            out += dtype->scale_parts[j].length;
        }
}

void codes_join(const struct dtype *dtype, const void *scales, size_t n_blocks, void *blocks)
{
    const uint8_t *from = scales;
    uint8_t *block = blocks;
    memset(blocks, 0, n_blocks * dtype->block_bytes);
    for (size_t i = 0; i < n_blocks; i++, block += dtype->block_bytes)
        for (size_t j = 0; j < PARTS; j++) {
            memcpy(block + dtype->scale_parts[j].offset, from, dtype->scale_parts[j].length);
            from += dtype->scale_parts[j].length;
        }
}

enum { BATCH_BYTES = 8192, MOST_ELEMENTS = 256 };

/* An allowance for scales that are hardly more than 0 in F16. */
static const double smallest_scale = 0x1p-17;

struct code_counts code_counts_none(void)
{
    return (struct code_counts){.first_other = UINT64_MAX, .first_outside = UINT64_MAX, .least = INFINITY, .most = 0};
}

void code_counts_add(struct code_counts *sum, const struct code_counts *counts)
{
    sum->n_codes += counts->n_codes;
    sum->n_other += counts->n_other;
    sum->n_loose += counts->n_loose;
    sum->n_scales += counts->n_scales;
    sum->n_outside += counts->n_outside;
    sum->first_other = counts->first_other < sum->first_other ? counts->first_other : sum->first_other;
    sum->first_outside = counts->first_outside < sum->first_outside ? counts->first_outside : sum->first_outside;
    sum->least = counts->least < sum->least ? counts->least : sum->least;
    sum->most = counts->most > sum->most ? counts->most : sum->most;
}

bool codes_are_nearest(const struct code_counts *counts)
{
    bool many_outside = counts->n_outside > counts->n_scales / OUTSIDE_SHARE;
    return counts->n_other == 0 && counts->n_loose <= counts->n_codes / LOOSE_SHARE &&
           (counts->n_outside == 0 || (many_outside && counts->n_scales >= OUTSIDE_SHARE));
}

/* Returns the steps by which a code of a block may lie beyond the middle between two levels. */
static double rounding_of(const struct scale_form *form, const uint8_t *block)
{
    static const double half_a_bit = 0x1p-11, least_half = 0x1p-25; /* of an F16 */
    float unused[SCALE_FORM_MOST];
    double unit = fabs((double)form->load(block, unused));
    return form->rounding + form->reach * (unit * half_a_bit > least_half ? half_a_bit : least_half / unit);
}

/* Counts the codes of a block that are not those which follow from its scales. */
static void check_block(const struct dtype *dtype, const float *values, const uint8_t *found, const uint8_t *nearest,
                        uint64_t block, struct code_counts *counts)
{
    const struct scale_form *form = dtype->scale_form;
    const double rounding = rounding_of(form, found);
    float numbers[2][MOST_ELEMENTS];
    decode_function *decode = dtype_kernels(dtype).decode;
    decode(found, numbers[0], 1);
    decode(nearest, numbers[1], 1);
    for (int i = 0; i < dtype->block_elements; i++) {
        double x = (double)values[i], other = (double)numbers[0][i], near = (double)numbers[1][i];
        if (other == near)
            continue;
        /* twice the distance of the weight from the middle between the two, in steps */
        double beyond = (fabs(x - other) - fabs(x - near)) / fabs(other - near);
        if (beyond <= 2 * rounding)
            continue;
        bool loose = beyond <= 2 * form->loose;
        counts->n_loose += loose;
        counts->n_other += !loose;
        if (!loose && block < counts->first_other)
            counts->first_other = block;
    }
}

/* Turns the bits of an F32 into an integer that is ordered like it, and back: unlike those of F32, the least and the
 * greatest of integers are found by vectors. */
static inline int32_t ordered(int32_t bits)
{
    return bits ^ (bits >> 31 & INT32_MAX);
}

static inline float number_of(int32_t order)
{
    int32_t bits = ordered(order);
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* The least and the greatest value of each sub-block, ordered(). */
struct ranges {
    int32_t least[SCALE_FORM_MOST], greatest[SCALE_FORM_MOST];
};

static inline void range_of(const float *restrict values, int n, int32_t *ret_least, int32_t *ret_greatest)
{
    int32_t least = INT32_MAX, greatest = INT32_MIN;
    for (int i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        int32_t order = ordered(bits);
        least = order < least ? order : least;
        greatest = order > greatest ? order : greatest;
    }
    *ret_least = least;
    *ret_greatest = greatest;
}

/* Sub-blocks have 16 or 32 values: the compiler turns both loops into vectors. */
static inline void ranges_of(const float *values, int n_sub_blocks, int n, struct ranges *ret_ranges)
{
    for (int j = 0; j < n_sub_blocks; j++)
        if (n == 16)
            range_of(values + j * 16, 16, &ret_ranges->least[j], &ret_ranges->greatest[j]);
        else
            range_of(values + j * 32, 32, &ret_ranges->least[j], &ret_ranges->greatest[j]);
}

typedef void ranges_function(const float *values, int n_sub_blocks, int n, struct ranges *ret_ranges);

#define DEFINE_RANGES_AT(name, level, ...)                                                                             \
    __VA_ARGS__ static void name##_##level(const float *values, int n_sub_blocks, int n, struct ranges *ret_ranges)    \
    {                                                                                                                  \
        name(values, n_sub_blocks, n, ret_ranges);                                                                     \
    }
DEFINE_RANGES_AT(ranges_of, portable)
#if defined(__x86_64__)
DEFINE_RANGES_AT(ranges_of, avx2, FOR_AVX2)
#endif

static ranges_function *best_ranges(void)
{
#if defined(__x86_64__)
    if (cpu_runs(CPU_AVX2))
        return ranges_of_avx2;
#endif
    return ranges_of_portable;
}

/* Returns what the levels of a sub-block have to span. */
static double span_of(const struct scale_form *form, float least, float greatest)
{
    double low = (double)least, high = (double)greatest;
    if (form->span == SPAN_MAGNITUDE)
        return -low > high ? -low : high;
    return high - (form->span == SPAN_WITH_ZERO && low > 0 ? 0 : low);
}

static void check_scales(const struct dtype *dtype, ranges_function *find_ranges, const float *values,
                         const uint8_t *block, uint64_t number, struct code_counts *counts)
{
    const struct scale_form *form = dtype->scale_form;
    float scales[SCALE_FORM_MOST];
    struct ranges ranges;
    double unit = fabs((double)form->load(block, scales));
    double allowed = (form->has_integers ? unit / 2 : 0) + smallest_scale;
    find_ranges(values, form->n_sub_blocks, dtype->block_elements / form->n_sub_blocks, &ranges);
    for (int j = 0; j < form->n_sub_blocks; j++) {
        double fitting = span_of(form, number_of(ranges.least[j]), number_of(ranges.greatest[j])) / form->n_steps;
        double scale = fabs((double)scales[j]);
        bool fits = scale - allowed <= form->most * fitting && scale + allowed >= form->least * fitting;
        counts->n_scales++;
        counts->n_outside += !fits;
        if (!fits && number < counts->first_outside)
            counts->first_outside = number;
        if (fitting > 16 * allowed) { /* others tell of the integers rather than of the search */
            double ratio = scale / fitting;
            counts->least = ratio < counts->least ? ratio : counts->least;
            counts->most = ratio > counts->most ? ratio : counts->most;
        }
    }
}

void codes_check(const struct dtype *dtype, const float *values, const void *blocks, uint64_t first, size_t n_blocks,
                 struct code_counts *counts)
{
    uint8_t nearest[BATCH_BYTES];
    codes_function *codes = codes_of(dtype);
    ranges_function *find_ranges = best_ranges();
    const size_t bytes = dtype->block_bytes, most = sizeof nearest / bytes;
    const uint8_t *found = blocks;
    for (size_t done = 0, n; done < n_blocks; done += n, found += n * bytes, values += n * dtype->block_elements) {
        n = n_blocks - done < most ? n_blocks - done : most;
        memcpy(nearest, found, n * bytes);
        codes(values, nearest, n);
        for (size_t i = 0; i < n; i++) {
            const float *of_block = values + i * dtype->block_elements;
            if (memcmp(nearest + i * bytes, found + i * bytes, bytes) != 0)
                check_block(dtype, of_block, found + i * bytes, nearest + i * bytes, first + done + i, counts);
            check_scales(dtype, find_ranges, of_block, found + i * bytes, first + done + i, counts);
        }
    }
    counts->n_codes += n_blocks * dtype->block_elements;
}
