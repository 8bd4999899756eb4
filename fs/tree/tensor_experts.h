/* tensors/NAME/experts/N/: one expert of a tensor that holds all experts of a layer, stacked along its first axis.
 *
 * Some checkpoints and all GGUF files store a layer's experts so; programs that load experts on demand want them one by
 * one. An expert has the files of any other tensor, of the same types. Their bytes are those of its part of the stacked
 * tensor's files, and reading them reads nothing of other experts.
 *
 * A tensor holds stacked experts if its values can be shown, a section of its name says so ("experts", "switch_mlp",
 * "ffn_up_exps", "input_linear" ...) and no number follows the section, and if it has three dimensions or more, or two
 * and a name that ends in "bias". So the flattened matrices of DBRX are not divided. */
#pragma once

#include "models/quantize/imatrix.h"
#include "models/shown_tensors.h"

enum { EXPERTS_MAX = 8192 /* in a tensor; no model that is known has more than 512 */ };

/* Returns the number of experts stacked in the shown tensor number `index`; 0 if it holds no stacked experts. */
uint64_t tensor_experts(const struct shown_tensors *shown, size_t index);

/* The stacked tensors of a tree, in their order. Items of tensors/ beyond the tensors are the directory experts/ of
 * each stacked tensor, followed by its experts. */
struct expert_stack {
    size_t tensor;
    uint64_t first; /* the item of experts/ */
    uint64_t n_experts;
};
struct expert_stacks {
    uint64_t first, n_items; /* the number of tensors; of all items */
    const struct expert_stack *stacks;
    size_t n_stacks;
};

/* Finds them, in the arena. Returns false if that were more items than a tree can number: then those that exceed the
 * limit are left out. */
bool expert_stacks_find(const struct shown_tensors *shown, struct arena *arena, struct expert_stacks *ret_stacks);

/* Return the stack of a tensor, and of an item beyond the tensors; NULL: none. */
const struct expert_stack *expert_stack_of_tensor(const struct expert_stacks *stacks, size_t tensor);
const struct expert_stack *expert_stack_of_item(const struct expert_stacks *stacks, uint64_t item);

/* One expert as the only shown tensor, number 0. Must not move. */
struct shown_expert {
    struct shown_tensors shown;
    struct tensor_set set;
    struct tensor tensor;
    struct view unread; /* its type and shape, for an expert without views */
    struct unpacked unpacked;
    const struct unpacked *unpacked_of[1];
    struct importance importance;
};

/* Fills in an expert of the shown tensor number `index`, which has more experts than that. It borrows from `shown`.
 * Views are made in `arena`; if that is NULL, the expert tells types, shapes and places, and cannot be read. */
void shown_expert_init(struct shown_expert *expert, const struct shown_tensors *shown, size_t index, uint64_t number,
                       struct arena *arena);
