#include "models/facts.h"

#include <assert.h>
#include <string.h>

static struct axis_size *find(struct facts *facts, const char *name)
{
    size_t i = 0;
    while (i < facts->n_sizes && strcmp(facts->sizes[i].name, name) != 0)
        i++;
    return &facts->sizes[i];
}

void facts_set(struct facts *facts, const char *name, uint64_t size)
{
    struct axis_size *fact = find(facts, name);
    assert(fact < facts->sizes + FACTS_MAX);
    if (fact == facts->sizes + facts->n_sizes)
        facts->n_sizes++;
    *fact = (struct axis_size){.name = name, .size = size};
}

void facts_set_limit(struct facts *facts, const char *name, uint64_t size)
{
    facts_set(facts, name, size);
    find(facts, name)->is_limit = true;
}

void facts_set_index(struct facts *facts, const char *name, uint64_t size, uint64_t index)
{
    facts_set(facts, name, size);
    find(facts, name)->index = index;
}

void facts_forget(struct facts *facts, const char *name)
{
    struct axis_size *fact = find(facts, name);
    if (fact < facts->sizes + facts->n_sizes)
        *fact = facts->sizes[--facts->n_sizes];
}

uint64_t facts_get(const struct facts *facts, const char *name)
{
    return facts_get_n(facts, name, strlen(name));
}

uint64_t facts_get_n(const struct facts *facts, const char *name, size_t length)
{
    for (size_t i = 0; i < facts->n_sizes; i++)
        if (strncmp(facts->sizes[i].name, name, length) == 0 && facts->sizes[i].name[length] == '\0')
            return facts->sizes[i].size;
    return 0;
}

void facts_set_factor(struct facts *facts, const char *name, float value)
{
    assert(facts->n_factors < FACTS_MAX_FACTORS);
    facts->factors[facts->n_factors].name = name;
    facts->factors[facts->n_factors++].value = value;
}

float facts_factor(const struct facts *facts, const char *name)
{
    for (size_t i = 0; i < facts->n_factors; i++)
        if (strcmp(facts->factors[i].name, name) == 0)
            return facts->factors[i].value;
    return 1;
}

static void read_size(struct facts *facts, const struct hparams *hparams, const char *name, const char *keys)
{
    enum { MAX_SIZE = 1 << 24 };
    struct error error;
    uint64_t size;
    if (hparams_count(hparams, keys, 1, MAX_SIZE, &size, &error))
        facts_set(facts, name, size);
}

void facts_read(struct facts *facts, const struct hparams *hparams)
{
    static const struct {
        const char *name;
        uint64_t size;
    } constants[] = {{"half", 2}, {"part", 3}, {"even", 1}, {"odd", 1}};
    *facts = (struct facts){0};
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        facts_set(facts, constants[i].name, constants[i].size);
    read_size(facts, hparams, "layer", "n_layers|num_hidden_layers|n_layer|num_layers");
    read_size(facts, hparams, "hidden", "hidden_size|n_embd|n_embed|d_model|dim");
    read_size(facts, hparams, "head", "n_head|n_heads|num_attention_heads|num_heads");
    read_size(facts, hparams, "expert", "num_local_experts|num_experts|n_routed_experts");
    if (facts_get(facts, "head") != 0)
        facts_set(facts, "kv_head", facts_get(facts, "head"));
    read_size(facts, hparams, "kv_head", KV_HEAD_COUNT);
    facts->n_layers = facts_get(facts, "layer");
}
