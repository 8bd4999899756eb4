#include "quant/pack/bitsandbytes_nested.h"

#include "quant/views/convert.h"
#include "quant/views/dependencies.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { PIECE = 4096, LONGEST_NUMBER = 24 };

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
        float values[PIECE];
        double sum = 0;
        uint64_t n_blocks = nested->maxima->n_elements;
        for (uint64_t at = 0, n; at < n_blocks; at += n) {
            n = n_blocks - at < PIECE ? n_blocks - at : PIECE;
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

static bool read_codes(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
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

static bool read_maxima(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
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

static struct nested_view *make(struct arena *arena, const struct view_op *op, struct bnb_nested *nested,
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
    static const struct view_op op = {.name = "nested codes", .cost = 10000, .read = read_codes, .depends = depends};
    return &make(arena, &op, nested, &u8_dtype, nested->maxima->n_elements)->view;
}

const struct view *view_bnb_nested_maxima(struct arena *arena, struct bnb_nested *nested)
{
    static const struct view_op op = {.name = "nested maxima", .cost = 10000, .read = read_maxima, .depends = depends};
    uint64_t n_blocks = (nested->maxima->n_elements + BNB_NESTED_BLOCK - 1) / BNB_NESTED_BLOCK;
    return &make(arena, &op, nested, &f32_dtype, n_blocks)->view;
}

const struct view *view_bnb_nested_text(struct arena *arena, struct bnb_nested *nested, const char *before,
                                        bnb_spell *spell)
{
    static const struct view_op op = {.name = "nested text", .cost = 10000, .read = read_text, .depends = depends};
    struct nested_view *made = make(arena, &op, nested, &u8_dtype, strlen(before) + LONGEST_NUMBER + strlen("}"));
    made->before = before;
    made->spell = spell;
    return &made->view;
}
