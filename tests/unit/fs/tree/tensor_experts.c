/* Which tensors hold experts, and what one of them is. */
#include "fs/tree/tensor_experts.h"

#include "tests/unit/check.h"

#include <stdlib.h>

/* Which tensors hold experts, by name and shape. */
static void rules(void)
{
    static const struct {
        const char *name;
        uint64_t shape[4];
        uint8_t rank;
        uint64_t n_experts;
    } rows[] = {
        {"blk.0.ffn_gate_exps.weight", {8, 4, 32}, 3, 8},
        {"blk.0.ffn_gate_up_exps.weight", {8, 4, 32}, 3, 8},
        {"blk.0.ffn_up_chexps.weight", {8, 4, 32}, 3, 8},
        {"blk.0.ffn_gate_exps.bias", {8, 4}, 2, 8},
        {"blk.0.ffn_gate_shexp.weight", {8, 4, 32}, 3, 0},
        {"blk.0.exp_probs_b.bias", {8, 4}, 2, 0},
        {"model.layers.1.mlp.experts.down_proj", {8, 4, 32}, 3, 8},
        {"model.layers.1.mlp.experts.down_proj", {8, 4}, 2, 0},
        {"model.layers.1.mlp.experts.7.down_proj.weight", {8, 4, 32}, 3, 0},
        {"model.layers.1.mlp.shared_experts.down_proj.weight", {8, 4, 32}, 3, 0},
        {"model.layers.1.mlp.switch_mlp.gate_proj.weight", {8, 4, 32}, 3, 8},
        {"model.layers.1.block_sparse_moe.input_linear.weight", {8, 4, 32}, 3, 8},
        {"experts", {EXPERTS_MAX, 1, 1}, 3, EXPERTS_MAX},
        {"experts", {EXPERTS_MAX + 1, 1, 1}, 3, 0},
        {"experts", {8, 0, 1}, 3, 0},
        {"experts", {8}, 1, 0},
        {"experts", {1, 2, 2, 2}, 4, 1},
        {"..experts..", {8, 4, 32}, 3, 8},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tensor tensor = {
            .name = rows[i].name,
            .name_length = (uint32_t)strlen(rows[i].name),
            .dtype = &f32_dtype,
            .rank = rows[i].rank,
            .shape = rows[i].shape,
        };
        struct tensor_set set = {.tensors = &tensor, .n_tensors = 1};
        struct shown_tensors shown = {.set = &set};
        CHECK_NAMED(tensor_experts(&shown, 0) == rows[i].n_experts, rows[i].name);
        tensor.refusal = "it cannot be shown";
        CHECK(tensor_experts(&shown, 0) == 0);
    }
}

/* Forged shapes without bytes: not more items than a tree can number. */
static void limit(void)
{
    static const uint64_t shape[] = {EXPERTS_MAX, 1, 1};
    enum { N_TENSORS = 4096 };
    struct tensor *tensors = malloc(N_TENSORS * sizeof *tensors);
    struct arena *arena = arena_new();
    struct expert_stacks stacks;
    for (size_t i = 0; i < N_TENSORS; i++)
        tensors[i] =
            (struct tensor){.name = "experts", .name_length = 7, .dtype = &f32_dtype, .rank = 3, .shape = shape};
    struct tensor_set set = {.tensors = tensors, .n_tensors = N_TENSORS};
    struct shown_tensors shown = {.set = &set};
    CHECK(!expert_stacks_find(&shown, arena, &stacks) && stacks.n_stacks == 2047);
    CHECK(expert_stack_of_tensor(&stacks, 2046) != NULL && expert_stack_of_tensor(&stacks, 2047) == NULL);
    CHECK(expert_stack_of_item(&stacks, N_TENSORS - 1) == NULL &&
          expert_stack_of_item(&stacks, stacks.n_items) == NULL);
    CHECK(expert_stack_of_item(&stacks, stacks.n_items - 1)->tensor == 2046);
    arena_free(arena);
    free(tensors);
}

/* Each expert's columns have importances of their own. */
static void importances(void)
{
    static const uint64_t shape[] = {3, 2, 4};
    static const float columns[12];
    struct tensor tensor = {.name = "experts", .name_length = 7, .dtype = &f32_dtype, .rank = 3, .shape = shape};
    struct tensor_set set = {.tensors = &tensor, .n_tensors = 1};
    struct importance importance = {columns, 4, 3};
    struct shown_tensors shown = {.set = &set, .importances = &importance};
    struct shown_expert expert;
    shown_expert_init(&expert, &shown, 0, 2, NULL);
    CHECK(expert.shown.importances[0].columns == columns + 8 && expert.shown.importances[0].n_columns == 4);
}

int main(void)
{
    rules();
    limit();
    importances();
    return check_done();
}
