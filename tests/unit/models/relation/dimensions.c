/* Facts: what is set, and what config.json says in the words of different families. */
#include "models/relation/dimensions.h"

#include "tests/unit/check.h"

static void test_set(void)
{
    struct dimensions dimensions = {0};
    CHECK(dimensions_get(&dimensions, "head") == 0);
    dimensions_set_index(&dimensions, "head", 8, 3);
    dimensions_set_limit(&dimensions, "rest", 5);
    CHECK(dimensions.n_sizes == 2 && dimensions.sizes[0].index == 3 && dimensions.sizes[1].is_limit);
    dimensions_set(&dimensions, "head", 4); /* which is no part of several any more */
    CHECK(dimensions.n_sizes == 2 && dimensions_get(&dimensions, "head") == 4 && dimensions.sizes[0].index == 0);
    CHECK(dimensions_get_n(&dimensions, "heads", 4) == 4 && dimensions_get_n(&dimensions, "head", 3) == 0);
    CHECK(dimensions_get(&dimensions, "heads") == 0);
    dimensions_forget(&dimensions, "nothing");
    dimensions_forget(&dimensions, "head");
    CHECK(dimensions.n_sizes == 1 && dimensions_get(&dimensions, "head") == 0 &&
          dimensions_get(&dimensions, "rest") == 5);
    dimensions_set_factor(&dimensions, "half", 0.5F);
    CHECK(dimensions_factor(&dimensions, "half") == 0.5F && dimensions_factor(&dimensions, "rest") == 1);
}

/* Rows of each kind: a number, a truth value, a constant, and what config.json has no number for. */
static void test_add(void)
{
    static const char config[] = "{\"groups\": 3, \"b\": 5, \"gated\": true, \"tied\": false, \"zero\": 0,"
                                 " \"text\": \"4\", \"large\": 16777217, \"part\": {\"heads\": 2}}";
    static const struct dimension_row rows[] = {
        {"group", "a|groups|b"}, {"heads", "part.heads"},          {"gated", "gated"},    {"tied", "tied", 1},
        {"one", NULL, 1},        {"absent", "absent", 7},          {"zero", "zero", 8},   {"text", "text", 9},
        {"large", "large", 6},   {"kept", "absent", .kept = true}, {"unknown", "absent"}, {0},
    };
    static const struct axis_size expected[] = {{"group", 3}, {"heads", 2},  {"gated", 1},  {"tied", 0},
                                                {"one", 1},   {"absent", 7}, {"zero", 8},   {"text", 9},
                                                {"large", 6}, {"kept", 11},  {"unknown", 0}};
    struct error error;
    struct dimensions dimensions = {0};
    struct hparams *hparams = hparams_parse(config, strlen(config), &error);
    if (!CHECK(hparams != NULL))
        return;
    dimensions_set(&dimensions, "kept", 11);
    dimensions_add(&dimensions, rows, hparams);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        CHECK_NAMED(dimensions_get(&dimensions, expected[i].name) == expected[i].size, expected[i].name);
    CHECK(dimensions.n_sizes == sizeof expected / sizeof *expected); /* what is unknown is there, and 0 */
    hparams_free(hparams);
}

static void test_read(void)
{
    static const struct {
        const char *config;
        uint64_t layers, hidden, head, kv_head, expert;
    } rows[] = {
        {"{}", 0, 0, 0, 0, 0},
        {"{\"num_hidden_layers\": 2, \"hidden_size\": 64, \"num_attention_heads\": 8, \"num_key_value_heads\": 2}", 2,
         64, 8, 2, 0},
        {"{\"n_layer\": 3, \"n_embd\": 32, \"n_head\": 4}", 3, 32, 4, 4, 0}, /* as many key heads as heads */
        {"{\"n_layers\": 1, \"dim\": 16, \"n_heads\": 2, \"n_kv_heads\": 1, \"num_local_experts\": 8}", 1, 16, 2, 1, 8},
        {"{\"num_attention_heads\": 0, \"hidden_size\": 16777217, \"num_experts\": \"4\"}", 0, 0, 0, 0, 0},
        /* Of several names for one number the converter's first counts, as find_hparam() of base.py and phi.py lists
         * them, also where it is null. */
        {"{\"num_attention_heads\": 8, \"n_heads\": 4, \"num_key_value_heads\": 2, \"n_kv_heads\": 1}", 0, 0, 8, 2, 0},
        {"{\"n_head\": 4, \"num_attention_heads\": 8, \"n_head_kv\": 1, \"num_key_value_heads\": 2}", 0, 0, 8, 2, 0},
        {"{\"n_head\": 4, \"num_attention_heads\": 8, \"n_head_kv\": 1, \"num_kv_heads\": 2}", 0, 0, 8, 2, 0},
        {"{\"num_layers\": 1, \"n_layer\": 2, \"num_hidden_layers\": 3, \"n_layers\": 4}", 4, 0, 0, 0, 0},
        {"{\"num_layers\": 1, \"n_layer\": 2, \"num_hidden_layers\": 3}", 3, 0, 0, 0, 0},
        {"{\"dim\": 16, \"n_embd\": 32, \"hidden_size\": 64}", 0, 64, 0, 0, 0},
        {"{\"dim\": 16, \"n_embd\": 32}", 0, 32, 0, 0, 0},
        {"{\"n_routed_experts\": 2, \"num_experts\": 4, \"num_local_experts\": 8}", 0, 0, 0, 0, 8},
        {"{\"n_routed_experts\": 2, \"num_experts\": 4}", 0, 0, 0, 0, 4},
        {"{\"num_attention_heads\": null, \"n_heads\": 8, \"n_kv_heads\": 2}", 0, 0, 0, 2, 0},
        {"{\"hidden_size\": 16777216, \"num_attention_heads\": -1, \"n_routed_experts\": 256}", 0, 1 << 24, 0, 0, 256},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error error;
        struct dimensions dimensions;
        struct hparams *hparams = hparams_parse(rows[i].config, strlen(rows[i].config), &error);
        if (!CHECK(hparams != NULL))
            continue;
        memset(&dimensions, 0xff, sizeof dimensions); /* it begins anew */
        dimensions_read(&dimensions, hparams);
        CHECK_NAMED(dimensions.n_layers == rows[i].layers && dimensions_get(&dimensions, "layer") == rows[i].layers,
                    rows[i].config);
        CHECK_NAMED(dimensions_get(&dimensions, "hidden") == rows[i].hidden &&
                        dimensions_get(&dimensions, "head") == rows[i].head &&
                        dimensions_get(&dimensions, "kv_head") == rows[i].kv_head &&
                        dimensions_get(&dimensions, "expert") == rows[i].expert,
                    rows[i].config);
        CHECK(dimensions_get(&dimensions, "half") == 2 && dimensions_get(&dimensions, "part") == 3 &&
              dimensions_get(&dimensions, "even") == 1 && dimensions_get(&dimensions, "odd") == 1 &&
              dimensions_factor(&dimensions, "any") == 1);
        hparams_free(hparams);
    }
}

int main(void)
{
    test_set();
    test_add();
    test_read();
    return check_done();
}
