#include "models/families/nextn.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_PREDICTED = 1 << 10 };

const struct relation_row nextn_tensors[] = {
    {"model.layers.{}.eh_proj", "blk.{}.nextn.eh_proj"},
    {"model.layers.{}.embed_tokens", "blk.{}.nextn.embed_tokens", .parallel = "row"},
    {"model.layers.{}.enorm", "blk.{}.nextn.enorm"},
    {"model.layers.{}.hnorm", "blk.{}.nextn.hnorm"},
    {"model.layers.{}.shared_head.head", "blk.{}.nextn.shared_head_head", .parallel = "row"},
    {"model.layers.{}.shared_head.norm", "blk.{}.nextn.shared_head_norm"},
    {0},
};

void nextn_set(struct facts *facts, uint64_t n)
{
    facts->n_layers += n - facts_get(facts, "nextn");
    facts_set(facts, "nextn", n);
}

void nextn_add_facts(struct facts *facts, const struct hparams *hparams)
{
    struct error error;
    uint64_t n;
    if (hparams_count(hparams, "num_nextn_predict_layers", 0, MAX_PREDICTED, &n, &error))
        nextn_set(facts, n);
}

bool nextn_count_blocks(struct draft *draft, struct error *error)
{
    if (facts_get(&draft->facts, "nextn") == 0)
        return true;
    return hparams_override(draft->model->hparams, "n_layers", draft->facts.n_layers, error);
}

bool nextn_emit(struct draft *draft, struct error *error)
{
    uint64_t n = facts_get(&draft->facts, "nextn");
    (void)error;
    if (n != 0)
        gguf_set_u32(&draft->model->kvs, draft_key(draft, "nextn_predict_layers"), (uint32_t)n);
    return true;
}

/* What all of the layers below "mtp." share, and what it is of the first of them. */
static const struct {
    const char *mtp, *of_layer;
} shared[] = {
    {"fc", "eh_proj"},
    {"pre_fc_norm_embedding", "enorm"},
    {"pre_fc_norm_hidden", "hnorm"},
    {"norm", "shared_head.norm"},
};

enum { N_SHARED = sizeof shared / sizeof *shared };

/* What is after `prefix` and a '.' in a name; NULL where it does not begin so. */
static const char *after(const char *name, const char *prefix)
{
    size_t length = strlen(prefix);
    return strncmp(name, prefix, length) == 0 && name[length] == '.' ? name + length + 1 : NULL;
}

static const char *to_layers(struct arena *arena, uint64_t first, const char *name)
{
    uint64_t numbers[PATTERN_NUMBERS];
    const char *whole = after(name, "model") != NULL ? after(name, "model") : name, *rest = after(whole, "mtp");
    if (rest == NULL)
        return name;
    const char *layer = after(rest, "layers");
    size_t digits = layer != NULL ? strspn(layer, "0123456789") : 0;
    if (layer != NULL && layer[digits] == '.' && pattern_match("{}", layer, digits, numbers))
        return arena_printf(arena, "model.layers.%" PRIu64 "%s", first + numbers[0], layer + digits);
    for (size_t i = 0; i < N_SHARED; i++)
        if (after(rest, shared[i].mtp) != NULL)
            return arena_printf(arena, "model.layers.%" PRIu64 ".%s.%s", first, shared[i].of_layer,
                                after(rest, shared[i].mtp));
    return name;
}

static const char *from_layers(struct arena *arena, uint64_t first, const char *name)
{
    uint64_t numbers[PATTERN_NUMBERS];
    const char *layer = after(name, "model.layers");
    size_t digits = layer != NULL ? strspn(layer, "0123456789") : 0;
    if (layer == NULL || layer[digits] != '.' || !pattern_match("{}", layer, digits, numbers) || numbers[0] < first)
        return name;
    const char *rest = layer + digits + 1;
    for (size_t i = 0; i < N_SHARED; i++)
        if (after(rest, shared[i].of_layer) != NULL)
            return arena_printf(arena, "mtp.%s.%s", shared[i].mtp, after(rest, shared[i].of_layer));
    return arena_printf(arena, "mtp.layers.%" PRIu64 ".%s", numbers[0] - first, rest);
}

const char *nextn_rename(struct arena *arena, const struct facts *facts, enum direction direction, const char *name)
{
    uint64_t first = facts->n_layers - facts_get(facts, "nextn");
    return direction == FORWARD ? to_layers(arena, first, name) : from_layers(arena, first, name);
}
