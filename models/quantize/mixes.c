#include "models/quantize/mix.h"
#include "models/quantize/mix_rules.h"

#include <string.h>

/* One rule a line. */
/* clang-format off */
#define RULES(...) (const struct mix_rule[]){__VA_ARGS__, {0, 0, NULL}}
static const struct mix_rule no_rules[] = {{0, 0, NULL}};

/* The rules of the mixes with the fewest bits; `raised` is the type of the more important tensors. */
#define LOWEST_RULES(raised) \
        {OUTPUT, 0, "Q5_K"}, \
        {TOKEN_EMBD, 0, raised}, \
        {ATTN_V, GROUPED, "Q4_K"}, \
        {ATTN_V, FOUR_EXPERTS, "Q4_K"}, \
        {ATTN_V, 0, raised}, \
        {ATTN_K, EIGHT_EXPERTS, "Q4_K"}, \
        {FFN_DOWN, SEEN_FIRST_EIGHTH, raised}, \
        {ATTN_OUTPUT, EIGHT_EXPERTS, "Q5_K"}

const struct mix mixes[] = {
    {"Q4_0", 2, "Q4_0", RULES(
        {FFN_DOWN, FIRST_EIGHTH | WITH_IMATRIX, "Q4_1"}
    )},
    {"Q4_1", 3, "Q4_1", no_rules},
    {"Q5_0", 8, "Q5_0", RULES(
        {FFN_DOWN, FIRST_EIGHTH | WITH_IMATRIX, "Q5_1"}
    )},
    {"Q5_1", 9, "Q5_1", no_rules},
    {"Q8_0", 7, "Q8_0", RULES(
        {OUTPUT, 0, "Q8_0"}
    )},
    {"Q2_K", 10, "Q2_K", RULES(
        {ATTN_V, GROUPED, "Q4_K"},
        {ATTN_V, 0, "Q3_K"},
        {FFN_DOWN, 0, "Q3_K"},
        {ATTN_OUTPUT, NOT_FALCON | EIGHT_EXPERTS, "Q5_K"},
        {ATTN_OUTPUT, NOT_FALCON, "Q3_K"}
    )},
    {"Q2_K_S", 21, "Q2_K", RULES(
        {ATTN_V, GROUPED, "Q4_K"},
        {FFN_DOWN, FIRST_EIGHTH, "Q4_K"}
    )},
    {"Q3_K_S", 11, "Q3_K", RULES(
        {ATTN_OUTPUT, NOT_FALCON | EIGHT_EXPERTS, "Q5_K"}
    )},
    {"Q3_K_M", 12, "Q3_K", RULES(
        {ATTN_V, FIRST_TWO, "Q5_K"},
        {ATTN_V, 0, "Q4_K"},
        {FFN_DOWN, FIRST_SIXTEENTH, "Q5_K"},
        {FFN_DOWN, NOT_FALCON, "Q4_K"},
        {FFN_DOWN, MORE_BITS, "Q4_K"},
        {ATTN_OUTPUT, NOT_FALCON | EIGHT_EXPERTS, "Q5_K"},
        {ATTN_OUTPUT, NOT_FALCON, "Q4_K"}
    ), .alias = "Q3_K"},
    {"Q3_K_L", 13, "Q3_K", RULES(
        {ATTN_V, 0, "Q5_K"},
        {FFN_DOWN, FALCON, "Q4_K"},
        {FFN_DOWN, 0, "Q5_K"},
        {ATTN_OUTPUT, FALCON, "Q4_K"},
        {ATTN_OUTPUT, NOT_EIGHT_EXPERTS, "Q5_K"}
    )},
    {"Q4_K_S", 14, "Q4_K", RULES(
        {ATTN_V, FIRST_FOUR, "Q5_K"},
        {FFN_DOWN, NOT_FALCON | FIRST_EIGHTH, "Q5_K"},
        {ATTN_OUTPUT, NOT_FALCON | EIGHT_EXPERTS, "Q5_K"}
    )},
    {"Q4_K_M", 15, "Q4_K", RULES(
        {ATTN_V, MORE_BITS, "Q6_K"},
        {FFN_DOWN, FALCON | FIRST_SIXTEENTH, "Q6_K"},
        {FFN_DOWN, FALCON | MORE_BITS, "Q5_K"},
        {FFN_DOWN, NOT_FALCON | MORE_BITS, "Q6_K"},
        {ATTN_OUTPUT, NOT_FALCON | EIGHT_EXPERTS, "Q5_K"}
    ), .alias = "Q4_K"},
    {"Q5_K_S", 16, "Q5_K", no_rules},
    {"Q5_K_M", 17, "Q5_K", RULES(
        {ATTN_V | FFN_DOWN, MORE_BITS, "Q6_K"}
    ), .alias = "Q5_K"},
    {"Q6_K", 18, "Q6_K", no_rules},
    {"IQ1_S", 24, "IQ1_S", RULES(
        LOWEST_RULES("Q2_K"),
        {ATTN_OUTPUT, 0, "IQ2_XXS"}
    ), true},
    {"IQ1_M", 31, "IQ1_M", RULES(
        LOWEST_RULES("Q2_K"),
        {ATTN_OUTPUT, 0, "IQ2_XXS"}
    ), true},
    {"IQ2_XXS", 19, "IQ2_XXS", RULES(LOWEST_RULES("Q2_K")), true},
    {"IQ2_XS", 20, "IQ2_XS", RULES(LOWEST_RULES("Q2_K")), true},
    {"IQ2_S", 28, "IQ2_XS", RULES(
        LOWEST_RULES("IQ3_S"),
        {ATTN_OUTPUT, 0, "IQ3_S"}
    ), true},
    {"IQ2_M", 29, "IQ2_S", RULES(
        LOWEST_RULES("IQ3_S"),
        {ATTN_OUTPUT, 0, "IQ3_S"}
    ), true},
    {"IQ3_XXS", 23, "IQ3_XXS", RULES(
        {OUTPUT, 0, "Q5_K"},
        {TOKEN_EMBD, 0, "IQ3_S"},
        {ATTN_V, GROUPED, "Q4_K"},
        {ATTN_V, WITHOUT_IMATRIX, "IQ3_S"},
        {ATTN_K | ATTN_Q, 0, "IQ2_S"},
        {FFN_DOWN, FIRST_EIGHTH | WITHOUT_IMATRIX, "Q4_K"},
        {FFN_DOWN, WITHOUT_IMATRIX, "Q3_K"},
        {ATTN_OUTPUT, NOT_FALCON | EIGHT_EXPERTS, "Q5_K"},
        {ATTN_OUTPUT, NOT_FALCON, "IQ3_S"}
    )},
    {"IQ3_XS", 22, "IQ3_S", RULES(
        {ATTN_V, GROUPED, "Q4_K"},
        {ATTN_K | ATTN_Q, 0, "IQ3_XXS"},
        {ATTN_OUTPUT, NOT_FALCON | EIGHT_EXPERTS, "Q5_K"},
        {FFN_UP | FFN_GATE, MIDDLE, "IQ3_XXS"}
    )},
    {"IQ3_S", 26, "IQ3_S", RULES(
        {ATTN_V, GROUPED, "Q4_K"},
        {ATTN_OUTPUT, NOT_FALCON | EIGHT_EXPERTS, "Q5_K"}
    )},
    {"IQ3_M", 27, "IQ3_S", RULES(
        {ATTN_V, 0, "Q4_K"},
        {FFN_DOWN, FIRST_EIGHTH, "Q4_K"},
        {FFN_DOWN, EIGHT_EXPERTS | MORE_BITS, "Q4_K"},
        {ATTN_OUTPUT, NOT_FALCON | EIGHT_EXPERTS, "Q5_K"},
        {ATTN_OUTPUT, NOT_FALCON, "Q4_K"}
    )},
    {"IQ4_NL", 25, "IQ4_NL", RULES(
        {ATTN_V, GROUPED, "Q5_K"},
        {FFN_DOWN, FIRST_EIGHTH | WITHOUT_IMATRIX, "Q5_K"},
        {ATTN_OUTPUT, NOT_FALCON | EIGHT_EXPERTS, "Q5_K"}
    )},
    {"IQ4_XS", 30, "IQ4_XS", RULES(
        {ATTN_V, GROUPED, "Q5_K"},
        {FFN_DOWN, FIRST_EIGHTH | WITHOUT_IMATRIX, "Q5_K"},
        {ATTN_OUTPUT, NOT_FALCON | EIGHT_EXPERTS, "Q5_K"}
    )},
    {"TQ1_0", 36, "TQ1_0", RULES(
        {TOKEN_EMBD, 0, "Q4_K"}
    )},
    {"TQ2_0", 37, "TQ2_0", RULES(
        {TOKEN_EMBD, 0, "Q4_K"}
    )},
    {"Q1_0", 40, "Q1_0", no_rules},
    {"Q2_0", 41, "Q2_0", RULES(
        {TOKEN_EMBD, 0, "Q4_K"}
    )},
    {"MXFP4_MOE", 38, "MXFP4", RULES(
        {OUTPUT, 0, "Q8_0"},
        {ANY_ROLE, STACKED, "MXFP4"},
        {ANY_ROLE, 0, "Q8_0"}
    )},
    {NULL, 0, NULL, NULL},
};

/* The tool's types without blocks, for models that are a GGUF already. */
static const struct mix float_mixes[] = {
    {"F32", 0, "F32", no_rules},
    {"F16", 1, "F16", no_rules},
    {"BF16", 32, "BF16", no_rules},
    {NULL, 0, NULL, NULL},
};
/* clang-format on */

static const struct mix *find_name(const struct mix *mix, const char *name)
{
    while (mix->name != NULL && strcmp(mix->name, name) != 0)
        mix++;
    return mix->name != NULL ? mix : NULL;
}

const struct mix *mix_find(const char *name)
{
    const struct mix *mix = find_name(mixes, name);
    return mix != NULL ? mix : find_name(float_mixes, name);
}

static const struct mix *find_file_type(const struct mix *mix, uint64_t file_type)
{
    while (mix->name != NULL && mix->file_type != file_type)
        mix++;
    return mix->name != NULL ? mix : NULL;
}

const struct mix *mix_of_file_type(uint64_t file_type)
{
    const struct mix *mix = find_file_type(mixes, file_type);
    return mix != NULL ? mix : find_file_type(float_mixes, file_type);
}
