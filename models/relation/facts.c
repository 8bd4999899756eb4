#include "models/relation/facts.h"

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

static void read_size(struct dimensions *dimensions, const struct hparams *hparams, const char *name, const char *keys)
{
    enum { MAX_SIZE = 1 << 24 };
    struct error error;
    uint64_t size;
    if (hparams_count(hparams, keys, 1, MAX_SIZE, &size, &error))
        dimensions_set(dimensions, name, size);
}

void dimensions_read(struct dimensions *dimensions, const struct hparams *hparams)
{
    static const struct {
        const char *name;
        uint64_t size;
    } constants[] = {{"half", 2}, {"part", 3}, {"even", 1}, {"odd", 1}};
    *dimensions = (struct dimensions){0};
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        dimensions_set(dimensions, constants[i].name, constants[i].size);
    read_size(dimensions, hparams, "layer", BLOCK_COUNT);
    read_size(dimensions, hparams, "hidden", "hidden_size|n_embd|n_embed|d_model|dim");
    read_size(dimensions, hparams, "head", HEAD_COUNT);
    read_size(dimensions, hparams, "expert", "num_local_experts|num_experts|n_routed_experts");
    if (dimensions_get(dimensions, "head") != 0)
        dimensions_set(dimensions, "kv_head", dimensions_get(dimensions, "head"));
    read_size(dimensions, hparams, "kv_head", KV_HEAD_COUNT);
    dimensions->n_layers = dimensions_get(dimensions, "layer");
}
