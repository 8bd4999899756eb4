#include "models/relation/dimensions.h"

#include <assert.h>
#include <string.h>

static struct axis_size *find(struct dimensions *dimensions, const char *name)
{
    size_t i = 0;
    while (i < dimensions->n_sizes && strcmp(dimensions->sizes[i].name, name) != 0)
        i++;
    return &dimensions->sizes[i];
}

void dimensions_set(struct dimensions *dimensions, const char *name, uint64_t size)
{
    struct axis_size *fact = find(dimensions, name);
    assert(fact < dimensions->sizes + DIMENSIONS_MAX);
    if (fact == dimensions->sizes + dimensions->n_sizes)
        dimensions->n_sizes++;
    *fact = (struct axis_size){.name = name, .size = size};
}

void dimensions_set_limit(struct dimensions *dimensions, const char *name, uint64_t size)
{
    dimensions_set(dimensions, name, size);
    find(dimensions, name)->is_limit = true;
}

void dimensions_set_index(struct dimensions *dimensions, const char *name, uint64_t size, uint64_t index)
{
    dimensions_set(dimensions, name, size);
    find(dimensions, name)->index = index;
}

void dimensions_forget(struct dimensions *dimensions, const char *name)
{
    struct axis_size *fact = find(dimensions, name);
    if (fact < dimensions->sizes + dimensions->n_sizes)
        *fact = dimensions->sizes[--dimensions->n_sizes];
}

uint64_t dimensions_get(const struct dimensions *dimensions, const char *name)
{
    return dimensions_get_n(dimensions, name, strlen(name));
}

uint64_t dimensions_get_n(const struct dimensions *dimensions, const char *name, size_t length)
{
    for (size_t i = 0; i < dimensions->n_sizes; i++)
        if (strncmp(dimensions->sizes[i].name, name, length) == 0 && dimensions->sizes[i].name[length] == '\0')
            return dimensions->sizes[i].size;
    return 0;
}

void dimensions_set_factor(struct dimensions *dimensions, const char *name, float value)
{
    assert(dimensions->n_factors < DIMENSIONS_MAX_FACTORS);
    dimensions->factors[dimensions->n_factors].name = name;
    dimensions->factors[dimensions->n_factors++].value = value;
}

float dimensions_factor(const struct dimensions *dimensions, const char *name)
{
    for (size_t i = 0; i < dimensions->n_factors; i++)
        if (strcmp(dimensions->factors[i].name, name) == 0)
            return dimensions->factors[i].value;
    return 1;
}

void dimensions_add(struct dimensions *dimensions, const struct dimension_row *rows, const struct hparams *hparams)
{
    enum { MAX_SIZE = 1 << 24 };
    for (const struct dimension_row *row = rows; row->name != NULL; row++) {
        const struct json *value = row->from != NULL ? hparams_find(hparams, row->from) : NULL;
        uint64_t size;
        if (json_is(value, JSON_TRUE) || json_is(value, JSON_FALSE))
            dimensions_set(dimensions, row->name, json_is(value, JSON_TRUE));
        else if (json_u64(value, &size) && size > 0 && size <= MAX_SIZE)
            dimensions_set(dimensions, row->name, size);
        else if (!row->kept)
            dimensions_set(dimensions, row->name, row->size);
    }
}

void dimensions_read(struct dimensions *dimensions, const struct hparams *hparams)
{
    static const struct dimension_row rows[] = {
        {"half", NULL, 2},
        {"part", NULL, 3},
        {"even", NULL, 1},
        {"odd", NULL, 1},
        {"layer", BLOCK_COUNT, .kept = true},
        {"hidden", "hidden_size|n_embd|n_embed|d_model|dim", .kept = true},
        {"head", HEAD_COUNT, .kept = true},
        {"expert", "num_local_experts|num_experts|n_routed_experts", .kept = true},
        {"kv_head", HEAD_COUNT, .kept = true},
        {"kv_head", KV_HEAD_COUNT, .kept = true},
        {"tie_word_embeddings", "tie_word_embeddings", .kept = true},
        {0},
    };
    *dimensions = (struct dimensions){0};
    dimensions_add(dimensions, rows, hparams);
    dimensions->n_layers = dimensions_get(dimensions, "layer");
}
