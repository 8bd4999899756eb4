#include "fs/lib/match.h"

#include "base/arena.h"
#include "base/lock.h"
#include "base/pool.h"
#include "fs/lib/stage.h"
#include "quant/views/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RANGE_ELEMENTS = 1 << 17 /* a whole number of blocks of every dtype */ };

/* The elements of one pair that one task compares. */
struct range {
    struct pair *pair;
    uint64_t first, count; /* elements */
};

struct comparison {
    struct range *ranges;
    size_t n_ranges;
    struct lock lock; /* guards the following fields, the differences and the stage */
    bool failed;
    struct error *error;
};

double difference_rms(const struct difference *difference)
{
    return difference->n_different != 0 ? sqrt(difference->squares / (double)difference->n_elements) : 0;
}

double difference_relative(const struct difference *difference)
{
    return difference->n_different != 0 ? sqrt(difference->squares / difference->base_squares) : 0;
}

uint64_t compare_bytes(const struct pair *pairs, size_t n_pairs)
{
    uint64_t n_elements = 0;
    for (size_t i = 0; i < n_pairs; i++)
        n_elements += pairs[i].a->n_elements;
    return n_elements * sizeof(float);
}

static void fail(struct comparison *comparison, const struct error *error)
{
    lock_take(&comparison->lock);
    if (!comparison->failed)
        *comparison->error = *error;
    comparison->failed = true;
    lock_drop(&comparison->lock);
}

static bool is_over(struct comparison *comparison)
{
    lock_take(&comparison->lock);
    bool over = comparison->failed;
    lock_drop(&comparison->lock);
    return over;
}

/* Compares the stored bytes of a range. */
static bool same_bytes(const struct range *range, bool *ret_same, struct error *error)
{
    const struct view *a = range->pair->a, *b = range->pair->b;
    uint64_t first = range->first / a->dtype->block_elements, count = dtype_blocks(a->dtype, range->count);
    size_t n_bytes = (size_t)count * a->dtype->block_bytes;
    unsigned char *bytes = memory_alloc(2 * n_bytes + 1);
    bool done = view_read(a, first, count, bytes, error) && view_read(b, first, count, bytes + n_bytes, error);
    *ret_same = done && memcmp(bytes, bytes + n_bytes, n_bytes) == 0;
    free(bytes);
    return done;
}

static void compare_bytes_of(void *context, size_t index)
{
    struct comparison *comparison = context;
    const struct range *range = &comparison->ranges[index];
    struct error error;
    bool same;
    if (is_over(comparison))
        return;
    if (!same_bytes(range, &same, &error)) {
        fail(comparison, &error);
        return;
    }
    lock_take(&comparison->lock);
    range->pair->difference.same_bytes &= same;
    stage_add(range->count * sizeof(float) / 2);
    lock_drop(&comparison->lock);
}

static void add_value(struct difference *sum, float a, float b)
{
    sum->base_squares += (double)a * (double)a;
    if (a == b || (isnan(a) && isnan(b)))
        return;
    double difference = fabs((double)b - (double)a);
    if (isnan(difference))
        difference = INFINITY;
    sum->n_different++;
    sum->squares += difference * difference;
    sum->largest = difference > sum->largest ? difference : sum->largest;
}

static void compare_values_of(void *context, size_t index)
{
    struct comparison *comparison = context;
    const struct range *range = &comparison->ranges[index];
    struct difference sum = {0}, *total = &range->pair->difference;
    struct error error;
    if (is_over(comparison))
        return;
    float *values = memory_alloc(2 * (size_t)range->count * sizeof *values), *others = values + range->count;
    bool read = convert_values(range->pair->a, range->first, range->count, values, &error) &&
                convert_values(range->pair->b, range->first, range->count, others, &error);
    for (uint64_t i = 0; read && i < range->count; i++)
        add_value(&sum, values[i], others[i]);
    free(values);
    if (!read) {
        fail(comparison, &error);
        return;
    }
    lock_take(&comparison->lock);
    total->n_different += sum.n_different;
    total->largest = sum.largest > total->largest ? sum.largest : total->largest;
    total->squares += sum.squares;
    total->base_squares += sum.base_squares;
    stage_add(range->count * sizeof(float) / 2);
    lock_drop(&comparison->lock);
}

/* Finds the ranges of all pairs whose bytes, or whose values, must be compared. */
static void divide(struct comparison *comparison, struct pair *pairs, size_t n_pairs, bool values)
{
    comparison->n_ranges = 0;
    for (size_t i = 0; i < n_pairs; i++) {
        const struct difference *difference = &pairs[i].difference;
        if (values ? difference->same_bytes || !difference->has_values : !difference->same_bytes)
            continue;
        for (uint64_t first = 0, left; (left = pairs[i].a->n_elements - first) != 0; first += left) {
            left = left < RANGE_ELEMENTS ? left : RANGE_ELEMENTS;
            comparison->ranges = memory_grow(comparison->ranges, comparison->n_ranges, sizeof *comparison->ranges);
            comparison->ranges[comparison->n_ranges++] = (struct range){&pairs[i], first, left};
        }
    }
}

bool compare_pairs(struct pair *pairs, size_t n_pairs, struct error *error)
{
    struct comparison comparison = {.error = error};
    const char *unused;
    for (size_t i = 0; i < n_pairs; i++)
        pairs[i].difference = (struct difference){
            .same_bytes = pairs[i].a->dtype == pairs[i].b->dtype,
            .has_values = convert_possible(pairs[i].a, encoding_of(&f32_dtype), &unused) &&
                          convert_possible(pairs[i].b, encoding_of(&f32_dtype), &unused),
            .n_elements = pairs[i].a->n_elements,
        };
    lock_init(&comparison.lock);
    divide(&comparison, pairs, n_pairs, false);
    pool_run(comparison.n_ranges, compare_bytes_of, &comparison);
    divide(&comparison, pairs, n_pairs, true);
    if (!comparison.failed)
        pool_run(comparison.n_ranges, compare_values_of, &comparison);
    lock_destroy(&comparison.lock);
    free(comparison.ranges);
    return !comparison.failed;
}
