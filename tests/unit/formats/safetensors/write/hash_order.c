/* The walk through a table of std::unordered_map<std::string, ...>, as libstdc++ has it. */
#include "formats/safetensors/safetensors.h"

#include "tests/unit/check.h"

#include <string.h>

static void test_names_of_a_model(void)
{
    static const char *const of_layer[] = {
        "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",         "mlp.gate_proj",
        "mlp.down_proj",    "mlp.up_proj",      "input_layernorm",  "post_attention_layernorm",
    };
    static const uint32_t expected[] = {30, 29, 31, 11, 4,  7, 13, 5,  3,  23, 12, 8,  21, 9,  27, 2,
                                        1,  0,  15, 14, 22, 6, 16, 25, 28, 10, 17, 18, 19, 20, 24, 26};
    enum { N = sizeof expected / sizeof *expected, LAYERS = 3, OF_LAYER = sizeof of_layer / sizeof *of_layer };
    struct hash_name names[N];
    char texts[N][80];
    uint32_t order[N];
    size_t n = 0;
    strcpy(texts[n++], "model.embed_tokens.weight");
    for (int layer = 0; layer < LAYERS; layer++)
        for (size_t i = 0; i < OF_LAYER; i++)
            snprintf(texts[n++], sizeof *texts, "model.layers.%d.%s.weight", layer, of_layer[i]);
    strcpy(texts[n++], "model.norm.weight");
    strcpy(texts[n++], "a");
    strcpy(texts[n++], "");
    strcpy(texts[n++], "\xc3\xa9t\xc3\xa9");
    CHECK(n == N);
    for (size_t i = 0; i < n; i++)
        names[i] = (struct hash_name){texts[i], strlen(texts[i])};
    hash_order(names, n, order);
    CHECK(memcmp(order, expected, sizeof order) == 0);
}

/* The order of 6000 names, as a hash. */
static void test_many(void)
{
    enum { N = 6000, TEXT = 8 };
    static struct hash_name names[N];
    static char texts[N][TEXT];
    static uint32_t order[N];
    uint64_t hash = 14695981039346656037u;
    for (unsigned i = 0; i < N; i++) {
        snprintf(texts[i], TEXT, "t.%u", i);
        names[i] = (struct hash_name){texts[i], strlen(texts[i])};
    }
    hash_order(names, N, order);
    for (size_t i = 0; i < N; i++)
        hash = (hash ^ order[i]) * 1099511628211u;
    CHECK(order[0] == 5997);
    CHECK(hash == 17064387317251941679u);
}

int main(void)
{
    test_names_of_a_model();
    test_many();
    return check_done();
}
