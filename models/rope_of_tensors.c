#include "models/rope_of_tensors.h"

#include "formats/json_write.h"
#include "models/families/rope_freqs.h"
#include "quant/convert.h"

#include <math.h>
#include <string.h>

enum { MAX_FACTORS = 65536 };

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
    return view_read(tensor_view(tensor, arena), 0, ret_table->count, ret_table->values, &error);
}

static bool makes(const struct rope_freqs *scaling, const struct table *table)
{
    for (uint64_t i = 0; i < table->count; i++)
        if (rope_freq_factor(scaling, (float)(2 * i) / (float)(2 * table->count)) != table->values[i])
            return false;
    return true;
}

/* The length of context by which factor number `i`, between those of both ends, would have come of the scaling. */
static double context_of(const struct rope_freqs *scaling, const struct table *table, uint64_t i)
{
    double wavelength = 2 * M_PI * pow(scaling->theta, (double)i / (double)table->count);
    double smooth = (1 / (double)table->values[i] - 1 / scaling->factor) / (1 - 1 / scaling->factor);
    return nearbyint(wavelength * (scaling->low_factor + smooth * (scaling->high_factor - scaling->low_factor)));
}

/* Scaling that gives the table, if there is one that anybody would write. Low and high factor and the context may have
 * a multiple in common, which makes no difference: so the low one is 1, as in all that is published. */
static bool find_llama3(const struct table *table, double theta, struct rope_freqs *ret_scaling)
{
    static const double high_factors[] = {4, 2, 3, 8, 16, 32};
    enum { SHORTEST_CONTEXT = 1 << 4, LONGEST_CONTEXT = 1 << 20 };
    struct rope_freqs scaling = {.theta = theta, .low_factor = 1, .high_factor = 4, .old_context = 8192};
    uint64_t middle = 0;
    for (uint64_t i = 0; i < table->count; i++)
        scaling.factor = table->values[i] > scaling.factor ? table->values[i] : scaling.factor;
    while (middle < table->count && (table->values[middle] == 1 || (double)table->values[middle] == scaling.factor))
        middle++;
    bool found = makes(&scaling, table);
    for (size_t i = 0; !found && middle < table->count && i < sizeof high_factors / sizeof *high_factors; i++) {
        scaling.high_factor = high_factors[i];
        scaling.old_context = context_of(&scaling, table, middle);
        found = makes(&scaling, table);
    }
    for (uint64_t context = SHORTEST_CONTEXT; !found && middle == table->count && context <= LONGEST_CONTEXT;) {
        scaling.old_context = (double)context;
        context *= 2;
        found = makes(&scaling, table);
    }
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
    if (has_factors) { /* of Phi 3, which takes just these three */
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
