/* rope_scaling from tables of factors. The tables of Llama 3's kind are what the converter's formula gives in torch
 * 2.9.1, as bits; texts are as Python's json.dumps(indent=2) has them one level down. */
#include "models/huggingface/hf_of_gguf.h"

#include "quant/blocks/dtype.h"
#include "tests/unit/check.h"
#include "tests/unit/numbers.h"

enum { MOST = 16 };

static void add(struct tensor_set *set, struct arena *arena, const char *name, const uint32_t *bits, uint64_t n)
{
    tensor_set_add_view(set, name, view_of_numbers(arena, &f32_dtype, 1, &n, bits));
}

static const char *scaling_of(struct tensor_set *set, double theta, struct arena *arena)
{
    struct error error;
    tensor_set_seal(set, &error);
    return rope_of_tensors(set, theta, arena);
}

#define LLAMA3(factor, high, context) LLAMA3_FROM("1.0", factor, high, context)
#define LLAMA3_FROM(low, factor, high, context)                                                                        \
    "{\n    \"factor\": " factor ",\n    \"high_freq_factor\": " high ",\n    \"low_freq_factor\": " low ",\n"         \
    "    \"original_max_position_embeddings\": " context ",\n    \"rope_type\": \"llama3\"\n  }"

#define ONE 0x3f800000

static void llama3(struct arena *arena)
{
    static const struct {
        double theta;
        uint64_t n;
        uint32_t bits[MOST];
        const char *expected;
    } rows[] = {
        {500000, 8, {ONE, ONE, ONE, ONE, 0x402c732e, 0x41000000, 0x41000000, 0x41000000}, LLAMA3("8.0", "4.0", "8192")},
        {500000,
         16,
         {ONE, ONE, ONE, ONE, ONE, ONE, ONE, ONE, 0x4052b46f, 0x42000000, 0x42000000, 0x42000000, 0x42000000,
          0x42000000, 0x42000000, 0x42000000},
         LLAMA3("32.0", "4.0", "8192")},
        {1e6, 8, {ONE, ONE, ONE, ONE, 0x3fcc22b4, 0x41800000, 0x41800000, 0x41800000}, LLAMA3("16.0", "8.0", "32768")},
        {500000, 8, {ONE, ONE, ONE, ONE, 0x402c7afe, 0x41000000, 0x41000000, 0x41000000}, LLAMA3("8.0", "4.0", "8191")},
        /* Llama 4 Scout: a step, steeper than a high factor of 4 has it */
        {500000, 8, {ONE, ONE, ONE, ONE, ONE, 0x41800000, 0x41800000, 0x41800000}, LLAMA3("16.0", "1.0", "8192")},
        {10000,
         16,
         {ONE, ONE, ONE, ONE, ONE, ONE, ONE, 0x3ff3a466, 0x407b9226, 0x41000000, 0x41000000, 0x41000000, 0x41000000,
          0x41000000, 0x41000000, 0x41000000},
         LLAMA3("8.0", "5.0", "1000")},
        {1000,
         16,
         {ONE, ONE, ONE, ONE, ONE, ONE, ONE, 0x3f9bf805, 0x4022faff, 0x41000000, 0x41000000, 0x41000000, 0x41000000,
          0x41000000, 0x41000000, 0x41000000},
         LLAMA3_FROM("3.0", "8.0", "8.0", "900")},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tensor_set *set = tensor_set_new(arena);
        add(set, arena, "rope_freqs.weight", rows[i].bits, rows[i].n);
        CHECK_TEXT(scaling_of(set, rows[i].theta, arena), rows[i].expected);
    }
}

#define ONE_TWO_ONE "[\n      1.0,\n      2.0,\n      1.0\n    ]"
#define NONE        "[\n      NaN,\n      -Infinity\n    ]"
#define ANY(factors)                                                                                                   \
    "{\n    \"attention_factor\": 1.0,\n    \"factor\": 1.0,\n    \"long_factor\": " factors                           \
    ",\n    \"rope_type\": \"longrope\",\n    \"short_factor\": " factors "\n  }"
#define PHI3(longer, shorter)                                                                                          \
    "{\n    \"long_factor\": " longer ",\n    \"short_factor\": " shorter ",\n    \"type\": \"longrope\"\n  }"

static const uint32_t one_two_one[] = {ONE, 0x40000000, ONE}, none[] = {0x7fc00000, 0xff800000}, ones[] = {ONE, ONE};

static void other_tables(struct arena *arena)
{
    struct tensor_set *set = tensor_set_new(arena);
    add(set, arena, "rope_freqs.weight", one_two_one, 3);
    CHECK_TEXT(scaling_of(set, 10000, arena), ANY(ONE_TWO_ONE));
    set = tensor_set_new(arena);
    add(set, arena, "rope_freqs.weight", none, 2);
    CHECK_TEXT(scaling_of(set, 10000, arena), ANY(NONE));
    set = tensor_set_new(arena);
    add(set, arena, "rope_factors_long.weight", one_two_one, 3);
    add(set, arena, "rope_factors_short.weight", none, 2);
    CHECK_TEXT(scaling_of(set, 10000, arena), PHI3(ONE_TWO_ONE, NONE));
    set = tensor_set_new(arena);
    add(set, arena, "rope_freqs.weight", ones, 2);
    CHECK_TEXT(scaling_of(set, 10000, arena), LLAMA3("1.0", "4.0", "8192")); /* which does nothing */
}

/* Tensors that are of those names, and not such tables. */
static void nothing(struct arena *arena)
{
    static const uint64_t square[] = {1, 3}, zero = 0, three = 3, most = 65536, too_many = 65537;
    const uint32_t *zeros = arena_alloc(arena, (size_t)too_many * sizeof *zeros);
    const struct tensor rows[] = {
        {.view = view_of_numbers(arena, &f32_dtype, 2, square, one_two_one)},
        {.view = view_of_numbers(arena, &f32_dtype, 1, &zero, one_two_one)},
        {.view = view_of_numbers(arena, &f16_dtype, 1, &three, one_two_one)},
        {.view = view_of_numbers(arena, &f32_dtype, 1, &three, one_two_one), .refusal = "not to be read"},
        {.view = view_of_numbers(arena, &f32_dtype, 1, &too_many, zeros)},
    };
    struct tensor_set *set = tensor_set_new(arena);
    add(set, arena, "rope_factors_long.weight", one_two_one, 3);
    add(set, arena, "rope_freqs", one_two_one, 3);
    CHECK(scaling_of(set, 10000, arena) == NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        set = tensor_set_new(arena);
        tensor_set_add_view(set, "rope_freqs.weight", rows[i].view);
        tensor_set_edit(set)[0].refusal = rows[i].refusal;
        CHECK(scaling_of(set, 10000, arena) == NULL);
    }
    set = tensor_set_new(arena);
    add(set, arena, "rope_freqs.weight", zeros, most);
    CHECK(scaling_of(set, 10000, arena) != NULL);
}

int main(void)
{
    struct arena *arena = arena_new();
    llama3(arena);
    other_tables(arena);
    nothing(arena);
    arena_free(arena);
    return check_done();
}
