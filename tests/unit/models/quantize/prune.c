/* Layers that are left out. What the tool makes of names was seen by running it: see the cases. */
#include "models/quantize/prune.h"

#include "tests/unit/check.h"
#include "tests/unit/numbers.h"

static const struct {
    const char *text;
    size_t n_layers; /* 0: refused */
    uint32_t layers[3];
} lists[] = {
    {"2", 1, {2}},  {"10,3,3,0", 3, {0, 3, 10}}, {"", 0, {0}},    {"1,", 0, {0}},  {",1", 0, {0}},
    {"-1", 0, {0}}, {"1234567890", 0, {0}},      {"1 2", 0, {0}}, {"two", 0, {0}},
};

static void spelling(void)
{
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        struct arena *arena = arena_new();
        struct layer_list list = {0};
        struct error error;
        CHECK_NAMED(layer_list_parse(lists[i].text, arena, &list, &error) == (lists[i].n_layers > 0), lists[i].text);
        CHECK(list.n_layers == lists[i].n_layers &&
              (list.n_layers == 0 || memcmp(list.layers, lists[i].layers, list.n_layers * sizeof *list.layers) == 0));
        arena_free(arena);
    }
}

/* A layer of each number up to 11, of one matrix; the value of each is its layer. Two layers have a tensor more. */
enum { N_LAYERS = 12, MOST_TENSORS = N_LAYERS + 3 };

static const struct tensor_set *make_set(struct arena *arena)
{
    struct tensor_set *set = tensor_set_new(arena);
    struct error error;
    static float values[MOST_TENSORS];
    tensor_set_add_view(set, "output.weight", view_numbers(arena, 1, (const uint64_t[]){1}, values));
    for (unsigned i = 0; i < N_LAYERS; i++) {
        values[i] = (float)i;
        tensor_set_add_view(set, arena_printf(arena, "blk.%u.attn_v.weight", i),
                            view_numbers(arena, 1, (const uint64_t[]){1}, &values[i]));
        if (i == 6 || i == 7)
            tensor_set_add_view(set, arena_printf(arena, "blk.%u.odd", i),
                                view_numbers(arena, 1, (const uint64_t[]){i == 6 ? 1 : 2}, &values[i]));
    }
    CHECK(tensor_set_seal(set, &error));
    return set;
}

static bool prune(const char *text, const struct tensor_set *set, struct arena *arena, struct kept_tensor *tensors,
                  size_t *n_tensors, uint64_t *n_layers, struct error *error)
{
    struct layer_list list;
    *n_tensors = set->n_tensors;
    for (size_t i = 0; i < set->n_tensors; i++)
        tensors[i] = (struct kept_tensor){&set->tensors[i], &set->tensors[i]};
    return layer_list_parse(text, arena, &list, error) &&
           prune_layers(&list, set, arena, tensors, n_tensors, n_layers, error);
}

static float value_of(const struct tensor *tensor)
{
    float value = -1;
    struct error error;
    return read_numbers(tensor->view, 0, 1, &value, &error) ? value : -1;
}

/* Without layers 8 and 10, 9 becomes 8 and 11 becomes 9, each with the values of the layer that had that number. */
static void renumbered(void)
{
    struct arena *arena = arena_new();
    const struct tensor_set *set = make_set(arena);
    struct kept_tensor tensors[MOST_TENSORS];
    size_t n_tensors;
    uint64_t n_layers;
    struct error error;
    if (CHECK(prune("10,8", set, arena, tensors, &n_tensors, &n_layers, &error))) {
        CHECK(n_layers == 10 && n_tensors == MOST_TENSORS - 2);
        CHECK_TEXT(tensors[0].tensor->name, "output.weight");
        CHECK_TEXT(tensors[11].tensor->name, "blk.8.attn_v.weight");
        CHECK_TEXT(tensors[11].original->name, "blk.9.attn_v.weight");
        CHECK(value_of(tensors[11].tensor) == 8);
        CHECK_TEXT(tensors[12].tensor->name, "blk.9.attn_v.weight");
        CHECK_TEXT(tensors[12].original->name, "blk.11.attn_v.weight");
        CHECK(value_of(tensors[12].tensor) == 9);
    }
    CHECK_NAMED(prune("99", set, arena, tensors, &n_tensors, &n_layers, &error) && n_layers == N_LAYERS &&
                    n_tensors == MOST_TENSORS,
                "a layer that is not there");
    arena_free(arena);
}

static void refusals(void)
{
    struct arena *arena = arena_new();
    const struct tensor_set *set = make_set(arena);
    struct kept_tensor tensors[MOST_TENSORS];
    size_t n_tensors;
    uint64_t n_layers;
    struct error error;
    CHECK(!prune("0", set, arena, tensors, &n_tensors, &n_layers, &error));
    CHECK_TEXT(
        error.message,
        "prune-layers: llama-quantize takes the values of 'blk.5.odd' for 'blk.6.odd', but that tensor is missing");
    CHECK(!prune("6", set, arena, tensors, &n_tensors, &n_layers, &error));
    CHECK_TEXT(error.message, "prune-layers: llama-quantize takes the values of 'blk.6.odd' for 'blk.7.odd', which has "
                              "another shape or type: 1 elements of F32, and 2 of F32");
    arena_free(arena);
}

int main(void)
{
    spelling();
    renumbered();
    refusals();
    return check_done();
}
