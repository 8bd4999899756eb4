#include "models/huggingface/hf_of_gguf.h"

#include "models/families/shared.h"
#include "quant/views/convert.h"
#include "text/json_write.h"

#include <math.h>

enum { MAX_FACTORS = 65536, LONGEST_CONTEXT = 1 << 30 };

struct table {
    float *values;
    uint64_t count;
};

static bool read_table(const struct tensor_set *tensors, const char *name, struct arena *arena, struct table *ret_table)
{
    struct error error;
    const struct tensor *tensor = tensor_set_find_text(tensors, name);
    if (tensor == NULL || tensor->dtype != &f32_dtype || tensor->refusal != NULL || tensor->rank != 1 ||
        tensor->shape[0] == 0 || tensor->shape[0] > MAX_FACTORS)
        return false;
    ret_table->count = tensor->shape[0];
    ret_table->values = arena_array(arena, ret_table->count, sizeof *ret_table->values);
    return convert_values(tensor_view(tensor, arena), 0, ret_table->count, ret_table->values, &error);
}

/* Reports whether the scaling gives the table, except for the last bits: classes compute it in F32, or in doubles. */
static bool makes(const struct rope_freqs *scaling, const struct table *table)
{
    const float most = 1e-6F;
    for (uint64_t i = 0; i < table->count; i++) {
        float factor = rope_freq_factor(scaling, (float)(2 * i) / (float)(2 * table->count));
        if (!(fabsf(factor - table->values[i]) <= most * fabsf(factor)))
            return false;
    }
    return true;
}

static double wavelength_of(const struct rope_freqs *scaling, const struct table *table, uint64_t i)
{
    return 2 * M_PI * pow(scaling->theta, (double)i / (double)table->count);
}

/* Returns where factor `i` is between the slowed end (0) and the unchanged end (1). */
static double smooth_of(const struct rope_freqs *scaling, const struct table *table, uint64_t i)
{
    return (1 / (double)table->values[i] - 1 / scaling->factor) / (1 - 1 / scaling->factor);
}

/* Tries the whole numbers nearest to `low` times a high factor and a context for a low factor of 1. */
static bool try_whole(struct rope_freqs *scaling, const struct table *table, int low, double high, double context)
{
    scaling->low_factor = low;
    scaling->high_factor = nearbyint(high * low);
    scaling->old_context = nearbyint(context * low);
    return scaling->old_context <= LONGEST_CONTEXT && makes(scaling, table);
}

/* Finds scaling from two factors between the ends, where the smooth part is a straight line over the frequency.
 * Multiples of all three numbers give the same factors; the smallest whole ones are taken. */
static bool find_by_line(struct rope_freqs *scaling, const struct table *table, uint64_t first, uint64_t last)
{
    enum { LARGEST_LOW = 32 };
    double x = 1 / wavelength_of(scaling, table, first), y = 1 / wavelength_of(scaling, table, last);
    double slope = (smooth_of(scaling, table, first) - smooth_of(scaling, table, last)) / (x - y);
    double beyond = slope * y - smooth_of(scaling, table, last); /* low / (high - low) */
    bool found = false;
    for (int low = 1; beyond > 0 && !found && low <= LARGEST_LOW; low++)
        found = try_whole(scaling, table, low, 1 + 1 / beyond, slope / beyond);
    return found;
}

/* Finds scaling from the only factor between the ends, by trying published high factors. */
static bool find_by_point(struct rope_freqs *scaling, const struct table *table, uint64_t i)
{
    static const double high_factors[] = {4, 2, 3, 8, 16, 32};
    for (size_t j = 0; j < sizeof high_factors / sizeof *high_factors; j++) {
        double high = high_factors[j], range = 1 + smooth_of(scaling, table, i) * (high - 1);
        if (try_whole(scaling, table, 1, high, wavelength_of(scaling, table, i) * range))
            return true;
    }
    return false;
}

/* Finds scaling for a step, with no factor between the ends: the low and high factor may be close together. */
static bool find_by_step(struct rope_freqs *scaling, const struct table *table)
{
    static const double high_factors[] = {4, 1};
    for (size_t i = 0; i < sizeof high_factors / sizeof *high_factors; i++)
        for (uint64_t context = 1; context <= LONGEST_CONTEXT; context *= 2)
            if (try_whole(scaling, table, 1, high_factors[i], (double)context))
                return true;
    return false;
}

/* Finds scaling that gives the table. */
static bool find_llama3(const struct table *table, double theta, struct rope_freqs *ret_scaling)
{
    struct rope_freqs scaling = {.theta = theta, .low_factor = 1, .high_factor = 4, .old_context = 8192};
    uint64_t first = 0, last;
    for (uint64_t i = 0; i < table->count; i++)
        scaling.factor = fmax(scaling.factor, (double)table->values[i]);
    while (first < table->count && table->values[first] == 1)
        first++;
    for (last = first; last < table->count && (double)table->values[last] < scaling.factor;)
        last++;
    bool found = makes(&scaling, table);
    if (!found && last > first + 1)
        found = find_by_line(&scaling, table, first, last - 1);
    else if (!found && last > first)
        found = find_by_point(&scaling, table, first);
    else if (!found)
        found = find_by_step(&scaling, table);
    *ret_scaling = scaling;
    return found;
}

static void put_table(struct json_writer *writer, const char *key, const struct table *table)
{
    json_begin_array(writer, key);
    for (uint64_t i = 0; i < table->count; i++)
        json_put_f32(writer, NULL, table->values[i]);
    json_end(writer);
}

static void put_llama3(struct json_writer *writer, const struct rope_freqs *scaling)
{
    json_put_f32(writer, "factor", (float)scaling->factor);
    json_put_f32(writer, "high_freq_factor", (float)scaling->high_factor);
    json_put_f32(writer, "low_freq_factor", (float)scaling->low_factor);
    json_put_number(writer, "original_max_position_embeddings", (uint64_t)scaling->old_context);
    json_put_text(writer, "rope_type", "llama3");
}

static void put_any_table(struct json_writer *writer, const struct table *table)
{
    json_put_f32(writer, "attention_factor", 1);
    json_put_f32(writer, "factor", 1);
    put_table(writer, "long_factor", table);
    json_put_text(writer, "rope_type", "longrope");
    put_table(writer, "short_factor", table);
}

const char *rope_of_tensors(const struct tensor_set *tensors, double theta, struct arena *arena)
{
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .letters = JSON_ASCII, .indent = 1};
    struct rope_freqs llama3;
    struct table freqs, longer, shorter;
    bool has_freqs = read_table(tensors, "rope_freqs.weight", arena, &freqs);
    bool has_factors = read_table(tensors, "rope_factors_long.weight", arena, &longer) &&
                       read_table(tensors, "rope_factors_short.weight", arena, &shorter);
    if (!has_freqs && !has_factors)
        return NULL;
    json_begin_object(&writer, NULL);
    if (has_factors) { /* Phi 3 accepts only these three members */
        put_table(&writer, "long_factor", &longer);
        put_table(&writer, "short_factor", &shorter);
        json_put_text(&writer, "type", "longrope");
    } else if (find_llama3(&freqs, theta, &llama3)) {
        put_llama3(&writer, &llama3);
    } else {
        put_any_table(&writer, &freqs);
    }
    json_end(&writer);
    const char *copy = arena_strndup(arena, (const char *)text.bytes, text.length);
    buffer_free(&text);
    return copy;
}
