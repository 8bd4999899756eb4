#include "quant/merge/cut.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOW_BITS = 13, /* of a key: all keys of a 16-bit type have the same */
    N_LOW = 1 << LOW_BITS,
    N_HIGH = 1 << (32 - LOW_BITS),
};

/* What a walk over the keys does. */
struct key_walk {
    const struct cut_source *source;
    void (*take)(struct key_walk *walk, const uint32_t *keys, uint64_t first, size_t n);
    uint64_t *counts;
    uint32_t high, low;
    struct sort_item *items;
};

static void count_high(struct key_walk *walk, const uint32_t *keys, uint64_t first, size_t n)
{
    for (size_t i = 0; i < n; i++)
        walk->counts[keys[i] >> LOW_BITS]++;
    walk->low = keys[0] & (N_LOW - 1);
}

static void count_low(struct key_walk *walk, const uint32_t *keys, uint64_t first, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (keys[i] >> LOW_BITS == walk->high)
            walk->counts[keys[i] & (N_LOW - 1)]++;
}

static void store_items(struct key_walk *walk, const uint32_t *keys, uint64_t first, size_t n)
{
    for (size_t i = 0; i < n; i++)
        walk->items[first + i] = (struct sort_item){keys[i], (uint32_t)(first + i)};
}

static bool walk_tile(void *context, struct merge_tile *tile, struct error *error)
{
    struct key_walk *walk = context;
    uint32_t *keys = (uint32_t *)(void *)tile->spare[0];
    walk->source->keys(walk->source->context, tile, keys);
    walk->take(walk, keys, tile->first, tile->n);
    return true;
}

static bool walk_keys(struct key_walk *walk, struct error *error)
{
    const struct merged *merged = walk->source->merged;
    return merge_walk(merged, 0, merged->view.n_elements, walk_tile, walk, error);
}

/* Returns the bucket that the position is in, and makes it a position in that bucket. */
static uint32_t find_bucket(const uint64_t *counts, uint64_t *position)
{
    uint32_t bucket = 0;
    for (; *position > counts[bucket]; bucket++)
        *position -= counts[bucket];
    return bucket;
}

/* Finds the key of the last element before *position, which is not 0, and makes that a count of equal elements; returns
 * in *ret_n how many there are. */
static bool find_key(struct key_walk *walk, uint64_t *position, uint32_t *ret_key, uint64_t *ret_n, struct error *error)
{
    walk->take = count_high;
    if (!walk_keys(walk, error))
        return false;
    walk->high = find_bucket(walk->counts, position);
    *ret_n = walk->counts[walk->high];
    if (walk->source->merged->view.dtype->block_bytes > 2) {
        memset(walk->counts, 0, N_LOW * sizeof *walk->counts);
        walk->take = count_low;
        if (!walk_keys(walk, error))
            return false;
        walk->low = find_bucket(walk->counts, position);
        *ret_n = walk->counts[walk->low];
    }
    *ret_key = walk->high << LOW_BITS | walk->low;
    return true;
}

static bool get_bit(const uint64_t *bits, uint64_t at)
{
    return (bits[at / 64] >> at % 64 & 1) != 0;
}

static void set_bit(uint64_t *bits, uint64_t at)
{
    bits[at / 64] |= UINT64_C(1) << at % 64;
}

static uint64_t *new_numbers(uint64_t n)
{
    uint64_t *numbers = memory_alloc(n * sizeof *numbers);
    memset(numbers, 0, n * sizeof *numbers);
    return numbers;
}

/* Appends zeros. Returns the place of the first. */
static uint64_t append_words(struct buffer *words, uint64_t n)
{
    uint64_t first = words->length / sizeof(uint64_t);
    buffer_append_zeros(words, n * sizeof(uint64_t));
    return first;
}

/* Keeps a bit for each element of the cut's key, in the order of the tensor, from items that are divided. */
static void keep_bits(struct cut *cut, struct buffer *words, const struct sort_item *items, uint64_t n,
                      uint64_t position)
{
    uint64_t *equal = new_numbers(n / 64 + 1), *before = new_numbers(n / 64 + 1), n_equal = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (items[i].key != cut->key)
            continue;
        set_bit(equal, items[i].index);
        if (i < position)
            set_bit(before, items[i].index);
        n_equal++;
    }
    cut->how = DIVIDED;
    cut->bits = append_words(words, n_equal / 64 + 1);
    cut->n_before = append_words(words, n / MERGE_TILE + 1);
    uint64_t *bits = (uint64_t *)(void *)words->bytes + cut->bits;
    uint64_t *n_before = (uint64_t *)(void *)words->bytes + cut->n_before;
    n_equal = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (i % MERGE_TILE == 0)
            n_before[i / MERGE_TILE] = n_equal;
        if (!get_bit(equal, i))
            continue;
        if (get_bit(before, i))
            set_bit(bits, n_equal);
        n_equal++;
    }
    free(equal);
    free(before);
}

/* Sorts the elements, because those of the key at the position are on both sides of it. */
static bool divide_equals(struct key_walk *walk, uint64_t position, cut_function *split, struct buffer *words,
                          struct cut *cut, struct error *error)
{
    uint64_t n = walk->source->merged->view.n_elements;
    if (n > UINT32_MAX)
        return error_set(error, "the tensor has %llu elements, but this method sorts at most %llu",
                         (unsigned long long)n, (unsigned long long)UINT32_MAX);
    walk->items = memory_alloc(n * sizeof *walk->items);
    walk->take = store_items;
    bool good = walk_keys(walk, error);
    if (good) {
        split(walk->items, n, position);
        keep_bits(cut, words, walk->items, n, position);
    }
    free(walk->items);
    return good;
}

bool cut_find(const struct cut_source *source, uint64_t position, cut_function *split, struct buffer *words,
              struct cut *ret_cut, struct error *error)
{
    struct key_walk walk = {.source = source};
    struct cut cut = {.how = EQUALS_BEFORE};
    uint64_t n_equal_before = position, n_equal;
    assert(position <= source->merged->view.n_elements && source->merged->step == MERGE_TILE);
    if (position == 0) {
        *ret_cut = (struct cut){0};
        return true;
    }
    walk.counts = new_numbers(N_HIGH);
    bool good = find_key(&walk, &n_equal_before, &cut.key, &n_equal, error);
    if (good && n_equal_before < n_equal)
        good = divide_equals(&walk, position, split, words, &cut, error);
    free(walk.counts);
    if (good)
        *ret_cut = cut;
    return good;
}

void cut_look_up(const struct cut *cut, const uint64_t *words, const struct merge_tile *tile, const uint32_t *keys,
                 bool *before)
{
    bool divided = cut->how == DIVIDED, equals_before = cut->how == EQUALS_BEFORE;
    uint64_t at = divided ? words[cut->n_before + tile->first / MERGE_TILE] : 0;
    for (size_t i = 0; i < tile->n; i++)
        before[i] =
            keys[i] < cut->key || (keys[i] == cut->key && (divided ? get_bit(words + cut->bits, at++) : equals_before));
}
