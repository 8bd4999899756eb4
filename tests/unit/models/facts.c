/* Facts: what is set, and what config.json says in the words of different families. */
#include "models/facts.h"

#include "tests/unit/check.h"

static void test_set(void)
{
    struct facts facts = {0};
    CHECK(facts_get(&facts, "head") == 0);
    facts_set_index(&facts, "head", 8, 3);
    facts_set_limit(&facts, "rest", 5);
    CHECK(facts.n_sizes == 2 && facts.sizes[0].index == 3 && facts.sizes[1].is_limit);
    facts_set(&facts, "head", 4); /* which is no part of several any more */
    CHECK(facts.n_sizes == 2 && facts_get(&facts, "head") == 4 && facts.sizes[0].index == 0);
    CHECK(facts_get_n(&facts, "heads", 4) == 4 && facts_get_n(&facts, "head", 3) == 0);
    CHECK(facts_get(&facts, "heads") == 0);
    facts_forget(&facts, "nothing");
    facts_forget(&facts, "head");
    CHECK(facts.n_sizes == 1 && facts_get(&facts, "head") == 0 && facts_get(&facts, "rest") == 5);
    facts_set_factor(&facts, "half", 0.5F);
    CHECK(facts_factor(&facts, "half") == 0.5F && facts_factor(&facts, "rest") == 1);
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
        {"{\"hidden_size\": 16777216, \"num_attention_heads\": -1, \"n_routed_experts\": 256}", 0, 1 << 24, 0, 0, 256},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error error;
        struct facts facts;
        struct hparams *hparams = hparams_parse(rows[i].config, strlen(rows[i].config), &error);
        if (!CHECK(hparams != NULL))
            continue;
        memset(&facts, 0xff, sizeof facts); /* it begins anew */
        facts_read(&facts, hparams);
        CHECK_NAMED(facts.n_layers == rows[i].layers && facts_get(&facts, "layer") == rows[i].layers, rows[i].config);
        CHECK_NAMED(facts_get(&facts, "hidden") == rows[i].hidden && facts_get(&facts, "head") == rows[i].head &&
                        facts_get(&facts, "kv_head") == rows[i].kv_head &&
                        facts_get(&facts, "expert") == rows[i].expert,
                    rows[i].config);
        CHECK(facts_get(&facts, "half") == 2 && facts_get(&facts, "part") == 3 && facts_get(&facts, "even") == 1 &&
              facts_get(&facts, "odd") == 1 && facts_factor(&facts, "any") == 1);
        hparams_free(hparams);
    }
}

int main(void)
{
    test_set();
    test_read();
    return check_done();
}
