/* What arrangements make of numbers counted up from 0. The rows were printed by tests/data/gguf/make_arranged.py (numpy). */
#include "models/arrange.h"
#include "tests/unit/check.h"

#include <math.h>

enum { MAX_ELEMENTS = 64 };

static const struct {
    enum arrangement arrangement;
    unsigned rank;
    uint64_t shape[4];
    unsigned expected_rank;
    uint64_t expected_shape[4];
    float expected[MAX_ELEMENTS];
    struct dimensions dimensions;
} rows[] = {
    {AS_IS, 2, {2, 3}, 2, {2, 3}, {0, 1, 2, 3, 4, 5}, {0}},
    {ROTARY_Q, 2, {8, 2}, 2, {8, 2}, {0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15}, {.n_heads = 2}},
    {ROTARY_Q, 1, {12}, 1, {12}, {0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11}, {.n_heads = 3}},
    {ROTARY_K, 2, {4, 1}, 2, {4, 1}, {0, 2, 1, 3}, {.n_heads = 4, .n_kv_heads = 1}},
    {PLUS_ONE, 1, {5}, 1, {5}, {1, 2, 3, 4, 5}, {0}},
    {TRANSPOSED, 2, {2, 3}, 2, {3, 2}, {0, 3, 1, 4, 2, 5}, {0}},
    {TRANSPOSED, 1, {3}, 1, {3}, {0, 1, 2}, {0}},
    {SQUEEZED, 3, {3, 1, 2}, 2, {3, 2}, {0, 1, 2, 3, 4, 5}, {0}},
    {QKV_OF_HEADS,
     2,
     {12, 2},
     2,
     {12, 2},
     {0, 1, 2, 3, 12, 13, 14, 15, 4, 5, 6, 7, 16, 17, 18, 19, 8, 9, 10, 11, 20, 21, 22, 23},
     {.n_heads = 2}},
    {QKV_OF_HEADS, 1, {6}, 1, {6}, {0, 3, 1, 4, 2, 5}, {.n_heads = 2}},
    {QKV_OF_GROUPS,
     2,
     {8, 2},
     2,
     {8, 2},
     {0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15},
     {.n_heads = 4, .n_kv_heads = 2}},
    {QKV_OF_GROUPS, 2, {6, 2}, 2, {6, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {.n_heads = 4, .shared_kv = true}},
    {FIRST_HALF, 3, {2, 4, 1}, 3, {2, 2, 1}, {0, 1, 4, 5}, {0}},
    {SECOND_HALF, 2, {4, 2}, 2, {2, 2}, {4, 5, 6, 7}, {0}},
    {EVEN_MEMBERS, 2, {2, 4}, 2, {2, 2}, {0, 2, 4, 6}, {0}},
    {ODD_MEMBERS, 2, {2, 4}, 2, {2, 2}, {1, 3, 5, 7}, {0}},
    {TRANSPOSED_EVEN, 3, {1, 2, 4}, 3, {1, 2, 2}, {0, 4, 2, 6}, {0}},
    {TRANSPOSED_ODD, 3, {1, 2, 4}, 3, {1, 2, 2}, {1, 5, 3, 7}, {0}},
    {MLA_KEYS, 2, {10, 2}, 3, {2, 2, 3}, {0, 2, 4, 1, 3, 5, 10, 12, 14, 11, 13, 15}, {.n_kv_heads = 2, .nope = 3, .v_head = 2}},
    {MLA_VALUES, 2, {10, 2}, 3, {2, 2, 2}, {6, 7, 8, 9, 16, 17, 18, 19}, {.n_kv_heads = 2, .nope = 3, .v_head = 2}},
    {WITHOUT_PADDING, 2, {4, 2}, 2, {2, 2}, {4, 5, 6, 7}, {.n_padding = 2}},
    {WITHIN_VOCABULARY, 2, {4, 2}, 2, {3, 2}, {0, 1, 2, 3, 4, 5}, {.n_tokens = 3}},
    {WITHIN_VOCABULARY, 2, {4, 2}, 2, {4, 2}, {0, 1, 2, 3, 4, 5, 6, 7}, {.n_tokens = 9}},
    {ROWS_OF_EXPERTS, 2, {4, 3}, 3, {2, 2, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {.n_experts = 2}},
    {COLUMNS_OF_EXPERTS, 2, {4, 3}, 3, {2, 3, 2}, {0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11}, {.n_experts = 2}},
};

/* Shapes and dimensions that do not go together. */
static const struct {
    enum arrangement arrangement;
    unsigned rank;
    uint64_t shape[4];
    struct dimensions dimensions;
} misfits[] = {
    {ROTARY_Q, 2, {6, 2}, {.n_heads = 2}},
    {ROTARY_Q, 2, {8, 2}, {.n_heads = 0}},
    {ROTARY_Q, 0, {0}, {.n_heads = 2}},
    {QKV_OF_HEADS, 2, {8, 2}, {.n_heads = 2}},
    {QKV_OF_GROUPS, 2, {8, 2}, {.n_heads = 4, .n_kv_heads = 3}},
    {QKV_OF_GROUPS, 2, {8, 0}, {.n_heads = 4, .n_kv_heads = 2}},
    {QKV_OF_GROUPS, 1, {8}, {.n_heads = 4, .n_kv_heads = 2}},
    {FIRST_HALF, 2, {3, 2}, {0}},
    {SECOND_HALF, 1, {4}, {0}},
    {EVEN_MEMBERS, 2, {2, 3}, {0}},
    {ODD_MEMBERS, 1, {4}, {0}},
    {MLA_KEYS, 2, {10, 2}, {.n_kv_heads = 2, .nope = 3, .v_head = 3}},
    {MLA_VALUES, 2, {10, 2}, {.n_kv_heads = 2}},
    {WITHOUT_PADDING, 2, {4, 2}, {.n_padding = 5}},
    {ROWS_OF_EXPERTS, 2, {4, 3}, {.n_experts = 3}},
    {ROWS_OF_EXPERTS, 2, {4, 3}, {0}},
};

static const struct view *counted(struct arena *arena, unsigned rank, const uint64_t *shape)
{
    float *values = arena_array(arena, MAX_ELEMENTS, sizeof *values);
    for (unsigned i = 0; i < MAX_ELEMENTS; i++)
        values[i] = (float)i;
    return view_literal(arena, &f32_dtype, rank, shape, values);
}

/* F16 stays F16 in arithmetic: 2048 + 1 is 2048 there. */
static void check_f16(struct arena *arena)
{
    static const uint16_t stored[] = {0x6800, 0x3c00, 0x0000};
    const struct dimensions none = {0};
    const uint64_t n = 3;
    uint16_t result[3];
    struct error error;
    const struct view *view = arrange(arena, view_literal(arena, &f16_dtype, 1, &n, stored), PLUS_ONE, &none, &error);
    CHECK(view->dtype == &f16_dtype && view_read(view, 0, 3, result, &error));
    CHECK(result[0] == 0x6800 && result[1] == 0x4000 && result[2] == 0x3c00);
}

/* Correctly rounded values. */
static void check_minus_exp(struct arena *arena)
{
    const struct dimensions none = {0};
    const uint64_t shape[] = {4};
    float result[4];
    struct error error;
    const struct view *view = arrange(arena, counted(arena, 1, shape), MINUS_EXP, &none, &error);
    CHECK(view_read(view, 0, 4, result, &error));
    CHECK(result[0] == -1.0f && result[1] == -2.71828174591064453125f && result[3] == -20.08553695678710937500f);
}

int main(void)
{
    struct arena *arena = arena_new();
    struct error error;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct view *view =
            arrange(arena, counted(arena, rows[i].rank, rows[i].shape), rows[i].arrangement, &rows[i].dimensions, &error);
        float values[MAX_ELEMENTS];
        bool same = view != NULL && view->rank == rows[i].expected_rank;
        for (unsigned j = 0; same && j < view->rank; j++)
            same = view->shape[j] == rows[i].expected_shape[j];
        same = same && view_read(view, 0, view->n_units, values, &error);
        CHECK_NAMED(same && memcmp(values, rows[i].expected, view->n_units * sizeof *values) == 0, "arrangement");
        for (uint64_t j = 0; same && j < view->n_units; j++) /* any element by itself */
            same = view_read(view, j, 1, values, &error) && values[0] == rows[i].expected[j];
        CHECK_NAMED(same, "element by element");
    }
    for (size_t i = 0; i < sizeof misfits / sizeof *misfits; i++) {
        const struct view *view = counted(arena, misfits[i].rank, misfits[i].shape);
        CHECK_NAMED(arrange(arena, view, misfits[i].arrangement, &misfits[i].dimensions, &error) == NULL, "misfit");
    }
    check_f16(arena);
    check_minus_exp(arena);
    arena_free(arena);
    return check_done();
}
