#include "fs/lib/match.h"

#include "base/arena.h"
#include "base/lock.h"
#include "base/pool.h"
#include "fs/lib/stage.h"
#include "quant/views/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool same_shape(const struct tensor *a, const struct tensor *b)
{
    unsigned skip_a = 0, skip_b = 0;
    while (skip_a < a->rank && a->shape[skip_a] == 1)
        skip_a++;
    while (skip_b < b->rank && b->shape[skip_b] == 1)
        skip_b++;
    return a->rank - skip_a == b->rank - skip_b &&
           memcmp(a->shape + skip_a, b->shape + skip_b, (a->rank - skip_a) * sizeof *a->shape) == 0;
}

bool match_is_same(const struct match *match)
{
    return match->pair != NULL && match->pair->difference.same_bytes;
}

static void add_match(struct matches *matches, const struct tensor *a, const struct tensor *b, struct arena *arena)
{
    struct match *match = &matches->matches[matches->n_matches++];
    *match = (struct match){.a = a, .b = b, .same_shape = a != NULL && b != NULL && same_shape(a, b)};
    if (!match->same_shape || a->refusal != NULL || b->refusal != NULL)
        return;
    match->pair = &matches->pairs[matches->n_pairs++];
    match->pair->a = tensor_view(a, arena);
    match->pair->b = tensor_view(b, arena);
}

struct matches match_tensors(const struct tensor_set *a, const struct tensor_set *b, struct arena *arena)
{
    struct matches matches = {
        .matches = arena_array(arena, a->n_tensors + b->n_tensors + 1, sizeof *matches.matches),
        .pairs = arena_array(arena, a->n_tensors + 1, sizeof *matches.pairs),
    };
    for (size_t i = 0; i < a->n_tensors; i++) {
        const struct tensor *tensor = &a->tensors[i];
        add_match(&matches, tensor, tensor_set_find(b, tensor->name, tensor->name_length), arena);
    }
    for (size_t i = 0; i < b->n_tensors; i++) {
        const struct tensor *tensor = &b->tensors[i];
        if (tensor_set_find(a, tensor->name, tensor->name_length) == NULL)
            add_match(&matches, NULL, tensor, arena);
    }
    return matches;
}

static bool same_value(const struct gguf_kv *a, const struct gguf_kv *b)
{
    struct buffer value = {0}, other = {0};
    struct error unused;
    bool same = a->type == b->type && gguf_write_value(&value, a, &unused) && gguf_write_value(&other, b, &unused) &&
                value.length == other.length &&
                (value.length == 0 || memcmp(value.bytes, other.bytes, value.length) == 0);
    buffer_free(&value);
    buffer_free(&other);
    return same;
}

struct key_matches match_keys(const struct gguf_kvs *a, const struct gguf_kvs *b, struct arena *arena)
{
    struct key_matches matches = {.matches = arena_array(arena, a->n_kvs + b->n_kvs + 1, sizeof *matches.matches)};
    for (size_t i = 0; i < a->n_kvs; i++) {
        const struct gguf_kv *other = gguf_kvs_find(b, a->kvs[i].key);
        if (other == NULL || !same_value(&a->kvs[i], other))
            matches.matches[matches.n_matches++] = (struct key_match){&a->kvs[i], other};
    }
    for (size_t i = 0; i < b->n_kvs; i++)
        if (gguf_kvs_find(a, b->kvs[i].key) == NULL)
            matches.matches[matches.n_matches++] = (struct key_match){NULL, &b->kvs[i]};
    return matches;
}

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
