#include "models/rope_of_tensors.h"

#include "formats/json_write.h"
#include "models/families/rope_freqs.h"
#include "quant/convert.h"

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

/* The scaling of a published model that gives the table. */
static bool find_llama3(const struct table *table, double theta, struct rope_freqs *ret_scaling)
{
    static const double contexts[] = {8192, 2048, 4096, 16384, 32768, 65536, 131072};
    struct rope_freqs scaling = {.theta = theta, .low_factor = 1, .high_factor = 4};
    for (uint64_t i = 0; i < table->count; i++)
        scaling.factor = table->values[i] > scaling.factor ? table->values[i] : scaling.factor;
    for (size_t i = 0; i < sizeof contexts / sizeof *contexts; i++) {
        scaling.old_context = contexts[i];
        if (makes(&scaling, table)) {
            *ret_scaling = scaling;
            return true;
        }
    }
    return false;
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
