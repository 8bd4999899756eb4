#include "quant/merge/cut.h"

#include "quant/arithmetic/torch_sum.h"

#include <assert.h>
#include <math.h>
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

/* Thinning out. */

uint64_t thin_step(enum merge_sparsifier sparsifier, const struct view *view)
{
    return sparsifier == MERGE_DELLA                                                 ? merge_step_of_rows(view)
           : sparsifier == MERGE_MAGNITUDE || sparsifier == MERGE_MAGNITUDE_OUTLIERS ? MERGE_TILE
                                                                                     : 0;
}

bool thin_draws(enum merge_sparsifier sparsifier, double density)
{
    return density < 1 && (sparsifier == MERGE_RANDOM || (sparsifier == MERGE_DELLA && density > 0));
}

bool thin_needs_facts(const struct thinning *thinning)
{
    return thinning->rescale || thinning->sparsifier == MERGE_MAGNITUDE ||
           thinning->sparsifier == MERGE_MAGNITUDE_OUTLIERS;
}

/* Returns the arithmetic of the sparsifier: random ones have none in F16. */
static struct rounded arithmetic_of(const struct thinning *thinning, const struct dtype *dtype)
{
    bool random = thinning->sparsifier == MERGE_RANDOM || thinning->sparsifier == MERGE_DELLA;
    return rounded_in(random && dtype == &f16_dtype ? &f32_dtype : dtype);
}

static void keys_ascending(const float *deltas, size_t n, uint32_t *keys)
{
    for (size_t i = 0; i < n; i++)
        keys[i] = key_of(deltas[i]);
}

static void keys_descending(const float *deltas, size_t n, uint32_t *keys)
{
    for (size_t i = 0; i < n; i++)
        keys[i] = ~key_of(deltas[i]);
}

static void choose_by_cut(const struct thinning *thinning, const struct thinning_known *known,
                          const struct merge_tile *tile, const float *deltas, bool *kept)
{
    uint32_t *keys = (uint32_t *)(void *)tile->spare[1];
    if (thinning->sparsifier == MERGE_MAGNITUDE) {
        keys_descending(deltas, tile->n, keys);
        cut_look_up(&known->facts->high, known->words, tile, keys, kept);
        return;
    }
    bool *below = (bool *)kept + tile->n;
    keys_ascending(deltas, tile->n, keys);
    cut_look_up(&known->facts->high, known->words, tile, keys, kept);
    cut_look_up(&known->facts->low, known->words, tile, keys, below);
    for (size_t i = 0; i < tile->n; i++)
        kept[i] &= !below[i];
}

/* Sets the probabilities of a row's elements by the ranks of their magnitudes. */
static void rank_row(const struct thinning *thinning, const struct rounded *in, const float *deltas, size_t n,
                     struct sort_item *items, float *chances)
{
    const float one = 1;
    for (size_t i = 0; i < n; i++)
        items[i] = (struct sort_item){key_of(deltas[i]), (uint32_t)i};
    std_sort(items, n);
    for (size_t i = 0; i < n; i++)
        chances[items[i].index] = (float)i;
    rounded_values(in, chances, n);
    rounded_one(in, ADD, chances, n, one);
    float least = chances[items[0].index], span = chances[items[n - 1].index] - least;
    rounded_values(in, &span, 1);
    rounded_one(in, SUBTRACT, chances, n, least);
    rounded_one(in, DIVIDE, chances, n, span);
    rounded_one(in, MULTIPLY, chances, n, 2);
    rounded_one(in, MULTIPLY, chances, n, (float)thinning->extra);
    rounded_one(in, ADD, chances, n, rounded_number(in->dtype, thinning->density - thinning->extra));
}

static void find_chances(const struct thinning *thinning, const struct rounded *in, const struct view *view,
                         const struct merge_tile *tile, const float *deltas, float *chances)
{
    size_t row = (size_t)view_row_elements(view);
    if (thinning->sparsifier == MERGE_RANDOM) {
        float density = rounded_number(in->dtype, thinning->density);
        for (size_t i = 0; i < tile->n; i++)
            chances[i] = density;
        return;
    }
    struct sort_item *items = memory_alloc(row * sizeof *items);
    for (size_t i = 0; i < tile->n; i += row)
        rank_row(thinning, in, deltas + i, row, items, chances + i);
    free(items);
}

/* An element is kept if its random number from 0 to 1, of 24 bits, is less than its probability. */
static void choose_by_chance(const struct thinning *thinning, const struct rounded *in, const struct view *view,
                             const struct merge_tile *tile, const float *deltas, bool *kept)
{
    float *chances = tile->spare[1];
    uint32_t *words = memory_alloc(tile->n * sizeof *words);
    find_chances(thinning, in, view, tile, deltas, chances);
    mersenne_read(thinning->random, thinning->first_word + tile->first, tile->n, words);
    for (size_t i = 0; i < tile->n; i++)
        kept[i] = (float)(words[i] & 0xffffff) * 0x1p-24f < chances[i];
    free(words);
}

/* Elements that are not kept become 0 as in a product: -0 if they are negative. */
static void drop_others(const struct thinning *thinning, const struct rounded *in, const struct thinning_known *known,
                        const struct view *view, const struct merge_tile *tile, float *deltas)
{
    bool *kept = (bool *)(void *)tile->spare[0];
    if (thinning->density <= 0 && (thinning->sparsifier == MERGE_MAGNITUDE || thinning->sparsifier == MERGE_DELLA)) {
        memset(deltas, 0, tile->n * sizeof *deltas);
        return;
    }
    if (thinning->sparsifier == MERGE_RANDOM || thinning->sparsifier == MERGE_DELLA)
        choose_by_chance(thinning, in, view, tile, deltas, kept);
    else
        choose_by_cut(thinning, known, tile, deltas, kept);
    for (size_t i = 0; i < tile->n; i++)
        deltas[i] *= (float)kept[i];
}

void thin_tile(const struct thinning *thinning, const struct thinning_known *known, const struct view *view,
               struct merge_tile *tile, float *deltas)
{
    struct rounded in = arithmetic_of(thinning, view->dtype);
    drop_others(thinning, &in, known, view, tile, deltas);
    if (thinning->rescale && known->facts->factor != 1) {
        rounded_one(&in, MULTIPLY, deltas, tile->n, known->facts->factor);
        rounded_values(&tile->in, deltas, tile->n);
    }
}

/* The differences of the only model. */
struct deltas {
    const struct thinning *thinning;
    const struct merged *merged;
    struct thinning_known known; /* for the factor */
    struct rounded in;
    struct torch_total before, after;
};

static void find_keys(const void *context, struct merge_tile *tile, uint32_t *keys)
{
    const struct deltas *deltas = context;
    merge_subtract_base(deltas->merged, tile);
    (deltas->thinning->sparsifier == MERGE_MAGNITUDE ? keys_descending : keys_ascending)(tile->models[0], tile->n,
                                                                                         keys);
}

/* Returns how many of n elements a share of them is. */
static uint64_t part_of(double share, uint64_t n)
{
    double part = share * (double)n;
    return part >= (double)n ? n : part > 0 ? (uint64_t)part : 0;
}

static bool find_cuts(const struct deltas *deltas, struct buffer *words, struct thinning_facts *facts,
                      struct error *error)
{
    const struct thinning *thinning = deltas->thinning;
    const struct cut_source source = {deltas->merged, find_keys, deltas};
    uint64_t n = deltas->merged->view.n_elements, n_kept = part_of(thinning->density, n);
    if (thinning->sparsifier == MERGE_MAGNITUDE)
        return thinning->density <= 0 ||
               cut_find(&source, n_kept > 1 ? n_kept : 1, std_sort_split, words, &facts->high, error);
    uint64_t n_top = part_of(thinning->extra, n), n_low = n_kept + n_top < n ? n - n_kept - n_top : 0;
    return cut_find(&source, n_low, std_sort_split, words, &facts->low, error) &&
           cut_find(&source, n_low + n_kept, std_sort_split, words, &facts->high, error);
}

static void add_magnitudes(struct torch_total *total, struct merge_tile *tile, const float *values)
{
    float *magnitudes = tile->spare[0];
    for (size_t i = 0; i < tile->n; i++)
        magnitudes[i] = fabsf(values[i]);
    torch_total_add(total, magnitudes, tile->n);
}

static bool add_tile(void *context, struct merge_tile *tile, struct error *error)
{
    struct deltas *deltas = context;
    merge_subtract_base(deltas->merged, tile);
    add_magnitudes(&deltas->before, tile, tile->models[0]);
    drop_others(deltas->thinning, &deltas->in, &deltas->known, &deltas->merged->view, tile, tile->models[0]);
    add_magnitudes(&deltas->after, tile, tile->models[0]);
    return true;
}

/* Finds what makes the sum of magnitudes the same as before; sums that are nearly 0 stay. */
static bool find_factor(struct deltas *deltas, struct thinning_facts *facts, struct error *error)
{
    const struct view *view = &deltas->merged->view;
    const struct dtype *dtype = deltas->in.dtype;
    torch_total_begin(&deltas->before, dtype, view->n_elements);
    torch_total_begin(&deltas->after, dtype, view->n_elements);
    if (!merge_walk(deltas->merged, 0, view->n_elements, add_tile, deltas, error))
        return false;
    float before = rounded_number(dtype, torch_total_end(&deltas->before));
    float after = rounded_number(dtype, torch_total_end(&deltas->after)), least = rounded_number(dtype, 1e-7);
    facts->factor = before < least || after < least ? 1 : rounded_number(dtype, before / after);
    return true;
}

bool thin_find_facts(const struct thinning *thinning, const struct merged *merged, struct buffer *words,
                     struct thinning_facts *ret_facts, struct error *error)
{
    *ret_facts = (struct thinning_facts){.factor = 1};
    struct deltas deltas = {thinning, merged, .in = arithmetic_of(thinning, merged->view.dtype)};
    bool cuts = thinning->sparsifier == MERGE_MAGNITUDE || thinning->sparsifier == MERGE_MAGNITUDE_OUTLIERS;
    if (cuts && !find_cuts(&deltas, words, ret_facts, error))
        return false;
    deltas.known = (struct thinning_known){ret_facts, (const uint64_t *)(const void *)words->bytes};
    return !thinning->rescale || find_factor(&deltas, ret_facts, error);
}
