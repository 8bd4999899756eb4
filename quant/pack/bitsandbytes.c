#include "quant/pack/bitsandbytes.h"

#include "quant/views/convert.h"
#include "quant/views/dependencies.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    BNB_PIECE = 16384, /* values at a time: whole blocks */
    PER_BYTE = 2,
    BOUNDARIES = BNB_LEVELS - 1,
};

const float bnb_nf4_levels[BNB_LEVELS] = {
    -1.0f,
    -0.6961928009986877f,
    -0.5250730514526367f,
    -0.39491748809814453f,
    -0.28444138169288635f,
    -0.18477343022823334f,
    -0.09105003625154495f,
    0.0f,
    0.07958029955625534f,
    0.16093020141124725f,
    0.24611230194568634f,
    0.33791524171829224f,
    0.44070982933044434f,
    0.5626170039176941f,
    0.7229568362236023f,
    1.0f,
};

/* Numerators over 12, by sign; code 8 is 0. */
const float bnb_fp4_levels[BNB_LEVELS] = {
    0.0f, 0.0625f / 12,  8.0f / 12,  12.0f / 12,  4.0f / 12,  6.0f / 12,  2.0f / 12,  3.0f / 12,
    0.0f, -0.0625f / 12, -8.0f / 12, -12.0f / 12, -4.0f / 12, -6.0f / 12, -2.0f / 12, -3.0f / 12,
};

struct quantized {
    struct view view;
    const struct view *inner;
    float boundaries[BOUNDARIES]; /* midway between neighbouring levels */
    uint8_t codes[BNB_LEVELS];    /* in the order of their levels */
    bool in_order;                /* as those of NF4 are: a code is its rank */
};

/* Kernels. */

/* Returns the largest magnitude; NaN counts as the largest, which it is as an integer, too. */
static inline float largest_of(const float *values, size_t n)
{
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        bits &= 0x7fffffff;
        most = bits > most ? bits : most;
    }
    float largest;
    memcpy(&largest, &most, sizeof largest);
    return largest;
}

/* Scales values to [-1, 1] and replaces each by the number of boundaries below it. NaN is above all of them. */
static inline void rank_values(const float *values, size_t n, float factor, float divisor, const float *boundaries,
                               uint8_t *ranks)
{
    for (size_t i = 0; i < n; i++) {
        float value = values[i] * factor / divisor;
        uint32_t rank = 0;
        value = value < -1 ? -1 : value > 1 ? 1 : value;
        for (unsigned k = 0; k < BOUNDARIES; k++)
            rank += boundaries[k] >= value ? 0 : 1;
        ranks[i] = (uint8_t)rank;
    }
}

/* Rounds half to even. */
static inline void round_values(const float *values, size_t n, float factor, int8_t *codes)
{
    static const float rounder = 12582912; /* its last place is 1 */
    for (size_t i = 0; i < n; i++) {
        float value = values[i] * factor;
        codes[i] = (int8_t)(value == value ? (int32_t)(value + rounder - rounder) : 0);
    }
}

struct kernels_of_level {
    float (*largest)(const float *values, size_t n);
    void (*rank)(const float *values, size_t n, float factor, float divisor, const float *boundaries, uint8_t *ranks);
    void (*round)(const float *values, size_t n, float factor, int8_t *codes);
};

#define DEFINE_AT(level, ...)                                                                                          \
    __VA_ARGS__ static float largest_##level(const float *values, size_t n)                                            \
    {                                                                                                                  \
        return largest_of(values, n);                                                                                  \
    }                                                                                                                  \
    __VA_ARGS__ static void rank_##level(const float *values, size_t n, float factor, float divisor,                   \
                                         const float *boundaries, uint8_t *ranks)                                      \
    {                                                                                                                  \
        rank_values(values, n, factor, divisor, boundaries, ranks);                                                    \
    }                                                                                                                  \
    __VA_ARGS__ static void round_##level(const float *values, size_t n, float factor, int8_t *codes)                  \
    {                                                                                                                  \
        round_values(values, n, factor, codes);                                                                        \
    }                                                                                                                  \
    static const struct kernels_of_level kernels_##level = {largest_##level, rank_##level, round_##level};

DEFINE_AT(portable)
#if defined(__x86_64__)
DEFINE_AT(avx2, FOR_AVX2)
DEFINE_AT(avx512, FOR_AVX512)
#endif

static const struct kernels_of_level *kernels(void)
{
#if defined(__x86_64__)
    static const struct kernels_of_level *const levels[] = {[CPU_PORTABLE] = &kernels_portable,
                                                            [CPU_NEON] = &kernels_portable,
                                                            [CPU_AVX2] = &kernels_avx2,
                                                            [CPU_AVX512] = &kernels_avx512};
    return levels[cpu_level()];
#else
    return &kernels_portable;
#endif
}

static bool read_values(const struct view *view, uint64_t first, uint64_t n, float *values, struct error *error)
{
    return convert_values(view, first, n, values, error);
}

/* 4 bits. */

static float least_divisor(float largest)
{
    static const float least = 1e-38f;
    return largest < least ? least : largest;
}

/* Reads the pieces that have the blocks [first, end), and calls `take` for each block. */
struct walk {
    const struct quantized *of;
    uint64_t first, end; /* blocks */
    void (*take)(struct walk *walk, uint64_t block, const float *values, size_t n);
    void *out;
    uint64_t out_first, out_end; /* bytes, for codes */
};

static bool walk_blocks(struct walk *walk, struct error *error)
{
    float values[BNB_PIECE];
    const struct view *inner = walk->of->inner;
    for (uint64_t block = walk->first; block < walk->end;) {
        uint64_t at = block * BNB_BLOCK, rest = inner->n_elements - at, most = (walk->end - block) * BNB_BLOCK;
        uint64_t n = most < BNB_PIECE ? most : BNB_PIECE;
        n = n < rest ? n : rest;
        if (!read_values(inner, at, n, values, error))
            return false;
        for (uint64_t i = 0; i < n; i += BNB_BLOCK)
            walk->take(walk, block++, values + i, n - i < BNB_BLOCK ? (size_t)(n - i) : BNB_BLOCK);
    }
    return true;
}

/* The last block, if it is short, is divided by its largest magnitude; full blocks are multiplied by its inverse. */
static void take_codes(struct walk *walk, uint64_t block, const float *values, size_t n)
{
    const struct quantized *of = walk->of;
    uint8_t ranks[BNB_BLOCK + 1], bytes[BNB_BLOCK / PER_BYTE];
    float divisor = least_divisor(kernels()->largest(values, n));
    bool is_full = n == BNB_BLOCK;
    kernels()->rank(values, n, is_full ? 1 / divisor : 1, is_full ? 1 : divisor, of->boundaries, ranks);
    if (n % PER_BYTE != 0) { /* it is filled up with a value of 0 */
        static const float zero = 0;
        kernels()->rank(&zero, 1, 1, 1, of->boundaries, &ranks[n]);
    }
    size_t n_bytes = (n + 1) / PER_BYTE;
    for (size_t i = 0; !of->in_order && i < PER_BYTE * n_bytes; i++)
        ranks[i] = of->codes[ranks[i]];
    for (size_t i = 0; i < n_bytes; i++)
        bytes[i] = (uint8_t)(ranks[PER_BYTE * i] << 4 | ranks[PER_BYTE * i + 1]);
    uint64_t begin = block * sizeof bytes, end = begin + n_bytes;
    uint64_t from = begin > walk->out_first ? begin : walk->out_first, to = end < walk->out_end ? end : walk->out_end;
    memcpy((uint8_t *)walk->out + (from - walk->out_first), bytes + (from - begin), (size_t)(to - from));
}

static bool bnb_read_codes(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    enum { BYTES = BNB_BLOCK / PER_BYTE };
    struct walk walk = {(const struct quantized *)view,
                        first / BYTES,
                        (first + count + BYTES - 1) / BYTES,
                        take_codes,
                        out,
                        first,
                        first + count};
    return count == 0 || walk_blocks(&walk, error);
}

static void blocks_depend(const struct view *view, uint64_t first, uint64_t end, struct dependencies *to)
{
    const struct view *inner = ((const struct quantized *)view)->inner;
    uint64_t from = first * BNB_BLOCK, rest = inner->n_elements - from, n = (end - first) * BNB_BLOCK;
    convert_depends(inner, encoding_of(&f32_dtype), from, n < rest ? n : rest, to);
}

static void codes_depend(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    enum { BYTES = BNB_BLOCK / PER_BYTE };
    blocks_depend(view, first / BYTES, (first + count + BYTES - 1) / BYTES, to);
}

static void take_largest(struct walk *walk, uint64_t block, const float *values, size_t n)
{
    float largest = kernels()->largest(values, n);
    float kept = n == BNB_BLOCK ? largest : least_divisor(largest);
    f32_dtype.kernels[CPU_PORTABLE].encode(&kept, (uint8_t *)walk->out + (block - walk->first) * sizeof kept, 1);
}

static bool bnb_read_maxima(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    struct walk walk = {.of = (const struct quantized *)view, first, first + count, take_largest, out};
    return walk_blocks(&walk, error);
}

static void maxima_depend(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    blocks_depend(view, first, first + count, to);
}

/* 8 bits. */

/* Reads the largest magnitude of a row; `values` has its last piece then, which is the whole row if it fits. */
static bool read_row(const struct view *inner, uint64_t row, float values[BNB_PIECE], float *ret_largest,
                     struct error *error)
{
    uint64_t columns = inner->shape[1];
    *ret_largest = 0;
    for (uint64_t done = 0, n; done < columns; done += n) {
        n = columns - done < BNB_PIECE ? columns - done : BNB_PIECE;
        if (!read_values(inner, row * columns + done, n, values, error))
            return false;
        const float both[] = {*ret_largest, kernels()->largest(values, (size_t)n)};
        *ret_largest = kernels()->largest(both, 2);
    }
    return true;
}

static bool read_rows(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct view *inner = ((const struct quantized *)view)->inner;
    uint64_t columns = inner->shape[1], end = first + count;
    float values[BNB_PIECE], largest = 0;
    int8_t *codes = out;
    for (uint64_t row = UINT64_MAX, n; first < end; first += n, codes += n) {
        uint64_t left = columns - first % columns;
        n = left < end - first ? left : end - first;
        n = n < BNB_PIECE ? n : BNB_PIECE;
        if (row != first / columns && !read_row(inner, row = first / columns, values, &largest, error))
            return false;
        bool is_here = columns <= BNB_PIECE;
        if (!is_here && !read_values(inner, first, n, values, error))
            return false;
        kernels()->round(is_here ? values + first % columns : values, (size_t)n, 1 / largest * 127, codes);
    }
    return true;
}

static bool read_row_maxima(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    float values[BNB_PIECE], largest;
    for (uint64_t i = 0; i < count; i++) {
        if (!read_row(((const struct quantized *)view)->inner, first + i, values, &largest, error))
            return false;
        f32_dtype.kernels[CPU_PORTABLE].encode(&largest, (uint8_t *)out + i * sizeof largest, 1);
    }
    return true;
}

static void row_maxima_depend(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct view *inner = ((const struct quantized *)view)->inner;
    convert_depends(inner, encoding_of(&f32_dtype), first * inner->shape[1], count * inner->shape[1], to);
}

static void rows_depend(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    uint64_t columns = view->shape[1], row = first / columns;
    row_maxima_depend(view, row, (first + count - 1) / columns - row + 1, to);
}

/* Making the views. */

static struct quantized *bnb_make(struct arena *arena, const struct view_op *op, const struct view *inner,
                                  const struct dtype *dtype, unsigned rank, const uint64_t *shape)
{
    struct quantized *made = arena_alloc(arena, sizeof *made);
    *made = (struct quantized){.inner = inner};
    view_init(&made->view, arena, op, dtype, rank, shape);
    made->view.scattered = inner->scattered;
    return made;
}

/* Sorts the codes by their levels, of equal levels the lower code first. */
static void sort_codes(const float levels[BNB_LEVELS], uint8_t codes[BNB_LEVELS])
{
    for (unsigned code = 0; code < BNB_LEVELS; code++) {
        unsigned at = code;
        for (; at > 0 && levels[codes[at - 1]] > levels[code]; at--)
            codes[at] = codes[at - 1];
        codes[at] = (uint8_t)code;
    }
}

static void set_levels(struct quantized *quantized, const float levels[BNB_LEVELS])
{
    sort_codes(levels, quantized->codes);
    quantized->in_order = true;
    for (unsigned i = 0; i < BNB_LEVELS; i++)
        quantized->in_order &= quantized->codes[i] == i;
    for (unsigned i = 0; i < BOUNDARIES; i++)
        quantized->boundaries[i] = (levels[quantized->codes[i]] + levels[quantized->codes[i + 1]]) / 2;
}

const struct view *view_bnb_codes(struct arena *arena, const struct view *weight, const float levels[BNB_LEVELS])
{
    static const struct view_op op = {
        .name = "codes of 4 bits", .cost = 1500, .read = bnb_read_codes, .depends = codes_depend};
    const uint64_t shape[] = {(weight->n_elements + 1) / PER_BYTE, 1};
    struct quantized *made = bnb_make(arena, &op, weight, &u8_dtype, 2, shape);
    set_levels(made, levels);
    return &made->view;
}

const struct view *view_bnb_maxima(struct arena *arena, const struct view *weight)
{
    static const struct view_op op = {
        .name = "largest of blocks", .cost = 10000, .read = bnb_read_maxima, .depends = maxima_depend};
    const uint64_t shape[] = {(weight->n_elements + BNB_BLOCK - 1) / BNB_BLOCK};
    return &bnb_make(arena, &op, weight, &f32_dtype, 1, shape)->view;
}

const struct view *view_bnb_rows(struct arena *arena, const struct view *matrix)
{
    static const struct view_op op = {.name = "codes of rows", .cost = 500, .read = read_rows, .depends = rows_depend};
    return &bnb_make(arena, &op, view_convert(arena, matrix, &f16_dtype), dtype_by_name("I8"), 2, matrix->shape)->view;
}

const struct view *view_bnb_row_maxima(struct arena *arena, const struct view *matrix)
{
    static const struct view_op op = {
        .name = "largest of rows", .cost = 10000, .read = read_row_maxima, .depends = row_maxima_depend};
    return &bnb_make(arena, &op, view_convert(arena, matrix, &f16_dtype), &f32_dtype, 1, matrix->shape)->view;
}

void bnb_block_codes(const float levels[BNB_LEVELS], const float *values, size_t n, uint8_t *out)
{
    struct quantized quantized = {.in_order = false};
    set_levels(&quantized, levels);
    struct walk walk = {.of = &quantized, .out = out, .out_end = n * BNB_BLOCK / PER_BYTE};
    for (size_t i = 0; i < n; i++)
        take_codes(&walk, i, values + i * BNB_BLOCK, BNB_BLOCK);
}

void bnb_block_maxima(const float *values, size_t n, uint8_t *out)
{
    struct walk walk = {.out = out};
    for (size_t i = 0; i < n; i++)
        take_largest(&walk, i, values + i * BNB_BLOCK, BNB_BLOCK);
}

/* Double quantization. */

enum { NESTED_PIECE = 4096, LONGEST_NUMBER = 24 };

struct bnb_nested {
    const struct view *maxima;
    const float *levels;
    _Atomic uint64_t found; /* the bits of the mean below bit 32, which says that they are there */
};

struct nested_view {
    struct view view;
    struct bnb_nested *nested;
    const char *before; /* for the text */
    bnb_spell *spell;
};

static void add_levels(float levels[BNB_NESTED_LEVELS], unsigned exponent)
{
    enum { MIDDLE = 127 }; /* the code of 0 */
    static const float first = 0.1f, last = 1;
    unsigned count = 1u << exponent;
    float step = (last - first) / (float)count, power = (float)pow(10, (int)exponent - 6), before = first;
    for (unsigned i = 1; i <= count; i++) {
        /* torch.linspace() counts the second half from the end, each with one rounding */
        float edge = i < (count + 1) / 2 ? (float)((double)step * i + (double)first)
                                         : (float)((double)last - (double)step * (count - i));
        float level = power * ((before + edge) / 2);
        levels[MIDDLE + count - 1 + i] = level;
        levels[MIDDLE - (count - 1) - i] = -level;
        before = edge;
    }
}

void bnb_nested_levels(float ret_levels[BNB_NESTED_LEVELS])
{
    enum { EXPONENTS = 7, ZERO = 127 };
    ret_levels[ZERO] = 0;
    ret_levels[BNB_NESTED_LEVELS - 1] = 1;
    for (unsigned exponent = 0; exponent < EXPONENTS; exponent++)
        add_levels(ret_levels, exponent);
}

struct bnb_nested *bnb_nested_new(struct arena *arena, const struct view *maxima, const float *levels)
{
    struct bnb_nested *nested = arena_alloc(arena, sizeof *nested);
    nested->maxima = maxima;
    nested->levels = levels;
    return nested;
}

/* Several threads may find the same mean at the same time. */
static bool read_mean(struct bnb_nested *nested, float *ret_mean, struct error *error)
{
    static const uint64_t is_found = (uint64_t)1 << 32;
    uint64_t found = atomic_load_explicit(&nested->found, memory_order_relaxed);
    uint32_t bits = (uint32_t)found;
    if (found == 0) {
        float values[NESTED_PIECE];
        double sum = 0;
        uint64_t n_blocks = nested->maxima->n_elements;
        for (uint64_t at = 0, n; at < n_blocks; at += n) {
            n = n_blocks - at < NESTED_PIECE ? n_blocks - at : NESTED_PIECE;
            if (!convert_values(nested->maxima, at, n, values, error))
                return false;
            for (uint64_t i = 0; i < n; i++)
                sum += (double)values[i];
        }
        float mean = (float)(sum / (double)n_blocks);
        memcpy(&bits, &mean, sizeof bits);
        atomic_store_explicit(&nested->found, is_found | bits, memory_order_relaxed);
    }
    memcpy(ret_mean, &bits, sizeof bits);
    return true;
}

/* Reads the distances from the mean in one of the larger blocks; returns their number, 0 on failure. */
static size_t read_block(struct bnb_nested *nested, uint64_t block, float distances[BNB_NESTED_BLOCK],
                         float *ret_largest, struct error *error)
{
    uint64_t first = block * BNB_NESTED_BLOCK, rest = nested->maxima->n_elements - first;
    size_t n = rest < BNB_NESTED_BLOCK ? (size_t)rest : BNB_NESTED_BLOCK;
    float mean;
    if (!read_mean(nested, &mean, error) || !convert_values(nested->maxima, first, n, distances, error))
        return 0;
    *ret_largest = 0;
    for (size_t i = 0; i < n; i++) {
        distances[i] -= mean;
        *ret_largest = fabsf(distances[i]) > *ret_largest ? fabsf(distances[i]) : *ret_largest;
    }
    return n;
}

/* NaN, what 0 becomes in a block of zeros, has the lowest place. */
static uint8_t encode(const float *levels, float value)
{
    static const float half_places = 32767.5f;
    float place = floorf((value + 1) * half_places + 0.5f);
    place = !(place >= 0) ? 0 : place > 2 * half_places ? 2 * half_places : place;
    double rounded = (double)place / (double)half_places - 1;
    unsigned low = 0, high = BNB_NESTED_LEVELS - 1;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (((double)levels[middle] + (double)levels[middle + 1]) / 2 < rounded)
            low = middle + 1;
        else
            high = middle;
    }
    return (uint8_t)low;
}

static bool nested_read_codes(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    struct bnb_nested *nested = ((const struct nested_view *)view)->nested;
    float distances[BNB_NESTED_BLOCK], largest;
    uint8_t *codes = out;
    for (uint64_t end = first + count; first < end;) {
        size_t n = read_block(nested, first / BNB_NESTED_BLOCK, distances, &largest, error);
        float inverse = 1 / largest;
        if (n == 0)
            return false;
        for (size_t i = first % BNB_NESTED_BLOCK; i < n && first < end; i++, first++)
            *codes++ = encode(nested->levels, distances[i] * inverse);
    }
    return true;
}

static bool nested_read_maxima(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    struct bnb_nested *nested = ((const struct nested_view *)view)->nested;
    float distances[BNB_NESTED_BLOCK], largest;
    for (uint64_t i = 0; i < count; i++) {
        if (read_block(nested, first + i, distances, &largest, error) == 0)
            return false;
        f32_dtype.kernels[CPU_PORTABLE].encode(&largest, (uint8_t *)out + i * sizeof largest, 1);
    }
    return true;
}

static bool read_text(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct nested_view *text = (const struct nested_view *)view;
    size_t before = strlen(text->before);
    char number[BNB_SPELLED], end[LONGEST_NUMBER + 2];
    float mean;
    if (!read_mean(text->nested, &mean, error))
        return false;
    const char *spelled = isfinite(mean) ? text->spell((double)mean, number) : mean > 0 ? "Infinity" : "NaN";
    snprintf(end, sizeof end, "%.*s}", LONGEST_NUMBER, spelled);
    for (uint64_t i = 0; i < count; i++) {
        size_t at = (size_t)(first + i);
        ((char *)out)[i] = at < before ? text->before[at] : at - before < strlen(end) ? end[at - before] : ' ';
    }
    return true;
}

/* Every byte depends on the mean, and so on the whole weight. */
static void depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct view *maxima = ((const struct nested_view *)view)->nested->maxima;
    convert_depends(maxima, encoding_of(&f32_dtype), 0, maxima->n_elements, to);
}

static struct nested_view *nested_make(struct arena *arena, const struct view_op *op, struct bnb_nested *nested,
                                       const struct dtype *dtype, uint64_t n_elements)
{
    struct nested_view *made = arena_alloc(arena, sizeof *made);
    *made = (struct nested_view){.nested = nested};
    view_init(&made->view, arena, op, dtype, 1, &n_elements);
    made->view.scattered = nested->maxima->scattered;
    return made;
}

const struct view *view_bnb_nested_codes(struct arena *arena, struct bnb_nested *nested)
{
    static const struct view_op op = {
        .name = "nested codes", .cost = 10000, .read = nested_read_codes, .depends = depends};
    return &nested_make(arena, &op, nested, &u8_dtype, nested->maxima->n_elements)->view;
}

const struct view *view_bnb_nested_maxima(struct arena *arena, struct bnb_nested *nested)
{
    static const struct view_op op = {
        .name = "nested maxima", .cost = 10000, .read = nested_read_maxima, .depends = depends};
    uint64_t n_blocks = (nested->maxima->n_elements + BNB_NESTED_BLOCK - 1) / BNB_NESTED_BLOCK;
    return &nested_make(arena, &op, nested, &f32_dtype, n_blocks)->view;
}

const struct view *view_bnb_nested_text(struct arena *arena, struct bnb_nested *nested, const char *before,
                                        bnb_spell *spell)
{
    static const struct view_op op = {.name = "nested text", .cost = 10000, .read = read_text, .depends = depends};
    struct nested_view *made =
        nested_make(arena, &op, nested, &u8_dtype, strlen(before) + LONGEST_NUMBER + strlen("}"));
    made->before = before;
    made->spell = spell;
    return &made->view;
}
