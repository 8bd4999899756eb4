#include "models/quantize/mix.h"
#include "models/quantize/mix_names.inc"
#include "models/quantize/mix_rules.h"

#include <string.h>

/* One rule a line. MIX_Q4_0 is the name, the file type and the alias of a mix. */
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
    {MIX_Q4_0, "Q4_0", RULES(
        {FFN_DOWN, FIRST_EIGHTH | WITH_IMATRIX, "Q4_1"}
    )},
    {MIX_Q4_1, "Q4_1", no_rules},
    {MIX_Q5_0, "Q5_0", RULES(
        {FFN_DOWN, FIRST_EIGHTH | WITH_IMATRIX, "Q5_1"}
    )},
    {MIX_Q5_1, "Q5_1", no_rules},
    {MIX_Q8_0, "Q8_0", RULES(
        {OUTPUT, 0, "Q8_0"}
    )},
    {MIX_Q2_K, "Q2_K", RULES(
        {ATTN_V, GROUPED, "Q4_K"},
        {ATTN_V, 0, "Q3_K"},
        {FFN_DOWN, 0, "Q3_K"},
        {ATTN_OUTPUT, NOT_FALCON | EIGHT_EXPERTS, "Q5_K"},
        {ATTN_OUTPUT, NOT_FALCON, "Q3_K"}
    )},
    {MIX_Q2_K_S, "Q2_K", RULES(
        {ATTN_V, GROUPED, "Q4_K"},
        {FFN_DOWN, FIRST_EIGHTH, "Q4_K"}
    )},
    {MIX_Q3_K_S, "Q3_K", RULES(
        {ATTN_OUTPUT, NOT_FALCON | EIGHT_EXPERTS, "Q5_K"}
    )},
    {MIX_Q3_K_M, "Q3_K", RULES(
        {ATTN_V, FIRST_TWO, "Q5_K"},
        {ATTN_V, 0, "Q4_K"},
        {FFN_DOWN, FIRST_SIXTEENTH, "Q5_K"},
        {FFN_DOWN, NOT_FALCON, "Q4_K"},
        {FFN_DOWN, MORE_BITS, "Q4_K"},
        {ATTN_OUTPUT, NOT_FALCON | EIGHT_EXPERTS, "Q5_K"},
        {ATTN_OUTPUT, NOT_FALCON, "Q4_K"}
    )},
    {MIX_Q3_K_L, "Q3_K", RULES(
        {ATTN_V, 0, "Q5_K"},
        {FFN_DOWN, FALCON, "Q4_K"},
        {FFN_DOWN, 0, "Q5_K"},
        {ATTN_OUTPUT, FALCON, "Q4_K"},
        {ATTN_OUTPUT, NOT_EIGHT_EXPERTS, "Q5_K"}
    )},
    {MIX_Q4_K_S, "Q4_K", RULES(
        {ATTN_V, FIRST_FOUR, "Q5_K"},
        {FFN_DOWN, NOT_FALCON | FIRST_EIGHTH, "Q5_K"},
        {ATTN_OUTPUT, NOT_FALCON | EIGHT_EXPERTS, "Q5_K"}
    )},
    {MIX_Q4_K_M, "Q4_K", RULES(
        {ATTN_V, MORE_BITS, "Q6_K"},
        {FFN_DOWN, FALCON | FIRST_SIXTEENTH, "Q6_K"},
        {FFN_DOWN, FALCON | MORE_BITS, "Q5_K"},
        {FFN_DOWN, NOT_FALCON | MORE_BITS, "Q6_K"},
        {ATTN_OUTPUT, NOT_FALCON | EIGHT_EXPERTS, "Q5_K"}
    )},
    {MIX_Q5_K_S, "Q5_K", no_rules},
    {MIX_Q5_K_M, "Q5_K", RULES(
        {ATTN_V | FFN_DOWN, MORE_BITS, "Q6_K"}
    )},
    {MIX_Q6_K, "Q6_K", no_rules},
    {MIX_IQ1_S, "IQ1_S", RULES(
        LOWEST_RULES("Q2_K"),
        {ATTN_OUTPUT, 0, "IQ2_XXS"}
    ), true},
    {MIX_IQ1_M, "IQ1_M", RULES(
        LOWEST_RULES("Q2_K"),
        {ATTN_OUTPUT, 0, "IQ2_XXS"}
    ), true},
    {MIX_IQ2_XXS, "IQ2_XXS", RULES(LOWEST_RULES("Q2_K")), true},
    {MIX_IQ2_XS, "IQ2_XS", RULES(LOWEST_RULES("Q2_K")), true},
    {MIX_IQ2_S, "IQ2_XS", RULES(
        LOWEST_RULES("IQ3_S"),
        {ATTN_OUTPUT, 0, "IQ3_S"}
    ), true},
    {MIX_IQ2_M, "IQ2_S", RULES(
        LOWEST_RULES("IQ3_S"),
        {ATTN_OUTPUT, 0, "IQ3_S"}
    ), true},
    {MIX_IQ3_XXS, "IQ3_XXS", RULES(
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
    {MIX_IQ3_XS, "IQ3_S", RULES(
        {ATTN_V, GROUPED, "Q4_K"},
        {ATTN_K | ATTN_Q, 0, "IQ3_XXS"},
        {ATTN_OUTPUT, NOT_FALCON | EIGHT_EXPERTS, "Q5_K"},
        {FFN_UP | FFN_GATE, MIDDLE, "IQ3_XXS"}
    )},
    {MIX_IQ3_S, "IQ3_S", RULES(
        {ATTN_V, GROUPED, "Q4_K"},
        {ATTN_OUTPUT, NOT_FALCON | EIGHT_EXPERTS, "Q5_K"}
    )},
    {MIX_IQ3_M, "IQ3_S", RULES(
        {ATTN_V, 0, "Q4_K"},
        {FFN_DOWN, FIRST_EIGHTH, "Q4_K"},
        {FFN_DOWN, EIGHT_EXPERTS | MORE_BITS, "Q4_K"},
        {ATTN_OUTPUT, NOT_FALCON | EIGHT_EXPERTS, "Q5_K"},
        {ATTN_OUTPUT, NOT_FALCON, "Q4_K"}
    )},
    {MIX_IQ4_NL, "IQ4_NL", RULES(
        {ATTN_V, GROUPED, "Q5_K"},
        {FFN_DOWN, FIRST_EIGHTH | WITHOUT_IMATRIX, "Q5_K"},
        {ATTN_OUTPUT, NOT_FALCON | EIGHT_EXPERTS, "Q5_K"}
    )},
    {MIX_IQ4_XS, "IQ4_XS", RULES(
        {ATTN_V, GROUPED, "Q5_K"},
        {FFN_DOWN, FIRST_EIGHTH | WITHOUT_IMATRIX, "Q5_K"},
        {ATTN_OUTPUT, NOT_FALCON | EIGHT_EXPERTS, "Q5_K"}
    )},
    {MIX_TQ1_0, "TQ1_0", RULES(
        {TOKEN_EMBD, 0, "Q4_K"}
    )},
    {MIX_TQ2_0, "TQ2_0", RULES(
        {TOKEN_EMBD, 0, "Q4_K"}
    )},
    {MIX_Q1_0, "Q1_0", no_rules},
    {MIX_Q2_0, "Q2_0", RULES(
        {TOKEN_EMBD, 0, "Q4_K"}
    )},
    {MIX_MXFP4_MOE, "MXFP4", RULES(
        {OUTPUT, 0, "Q8_0"},
        {ANY_ROLE, STACKED, "MXFP4"},
        {ANY_ROLE, 0, "Q8_0"}
    )},
    {NULL},
};

/* The tool's types without blocks, for models that are a GGUF already. */
static const struct mix float_mixes[] = {
    {MIX_F32, "F32", no_rules},
    {MIX_F16, "F16", no_rules},
    {MIX_BF16, "BF16", no_rules},
    {NULL},
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
