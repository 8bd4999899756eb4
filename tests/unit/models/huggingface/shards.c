#include "models/huggingface/shards.h"

#include "tests/unit/check.h"

#include <string.h>

/* As transformers' convert_file_size_to_int() takes them: 10^3 for KB, 2^10 for KiB, in any case. */
static void sizes(void)
{
    static const struct {
        const char *text;
        uint64_t size; /* 0: refused */
    } rows[] = {
        {"1", 1},
        {"5000000000", 5000000000},
        {"1KB", 1000},
        {"1KiB", 1024},
        {"300MB", 300000000},
        {"300MiB", 314572800},
        {"5GB", 5000000000},
        {"2GiB", 2147483648},
        {"2gib", 2147483648},
        {"1TB", 1000000000000},
        {"1TiB", 1099511627776},
        {"0", 0},
        {"", 0},
        {"GB", 0},
        {"-1GB", 0},
        {" 1GB", 0},
        {"1 GB", 0},
        {"1.5GB", 0},
        {"1XB", 0},
        {"18446744073709551615GB", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error error;
        uint64_t size = 0;
        bool good = shards_parse_size(rows[i].text, &size, &error);
        CHECK_NAMED(good == (rows[i].size != 0) && (!good || size == rows[i].size), rows[i].text);
    }
}

static void names(void)
{
    struct shards one = {.n_shards = 1}, many = {.n_shards = 7};
    char name[SHARDS_NAME];
    CHECK_TEXT(shards_name(&one, 0, name), "model.safetensors");
    CHECK_TEXT(shards_name(&many, 0, name), "model-00001-of-00007.safetensors");
    CHECK_TEXT(shards_name(&many, 6, name), "model-00007-of-00007.safetensors");
}

/* As split_torch_state_dict_into_shards() of huggingface_hub 0.36 spreads tensors of these sizes. */
static void spread(void)
{
    enum { MOST = 6 };
    static const struct {
        size_t n, n_shards;
        uint64_t sizes[MOST];
        uint32_t shards[MOST];
    } rows[] = {
        {6, 3, {6, 6, 2, 6, 2, 2}, {0, 1, 1, 2, 2, 2}},
        {5, 4, {6, 11, 4, 12, 1}, {2, 0, 2, 1, 3}},
        {2, 2, {11, 12}, {0, 1}},
        {5, 3, {10, 0, 10, 0, 1}, {0, 0, 1, 1, 2}},
        {3, 1, {3, 3, 3}, {0, 0, 0}},
        {4, 3, {4, 11, 4, 4}, {1, 0, 1, 2}},
        {0, 0, {0}, {0}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t found[MOST] = {0};
        CHECK(shards_spread(rows[i].sizes, rows[i].n, 10, found) == rows[i].n_shards);
        CHECK(memcmp(found, rows[i].shards, sizeof found) == 0);
    }
}

int main(void)
{
    sizes();
    names();
    spread();
    return check_done();
}
