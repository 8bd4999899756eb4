/* What a merge consists of, for people: which models and parameters make each tensor, and what its first read costs. */
#pragma once

#include "formats/checkpoint.h"
#include "models/recipes/recipe.h"

/* A tensor of the merge. */
struct recipe_step {
    const char *name;
    const struct recipe_slice *slice;
    const struct tensor *const *inputs; /* by source of the slice */
    double at;                          /* the layer's place in the slice */
};

struct recipe_plan {
    const struct recipe *recipe;
    const struct recipe_merge *merge; /* recipe_merging.h */
    const char *donor;                /* the model that config.json is taken from */
};

/* The tensors of a merge, in the order of mergekit's execution. */
struct recipe_steps {
    struct recipe_step *items;
    size_t count;
};

/* Returns the plan of a merge, which lives as long as the checkpoint; NULL: no recipe made the checkpoint. */
const struct recipe_plan *recipe_plan_of(const struct checkpoint *checkpoint);

/* Finds the steps, in the arena: a plan does not keep them. They live no longer than the checkpoint. */
struct recipe_steps recipe_plan_steps(const struct recipe_plan *plan, struct arena *arena);

/* Appends the parameters of a tensor: "t 0.25; Mistral-base, Mistral-half", "Llama-chat weight 0.5 density 0.6". */
void recipe_plan_describe(const struct recipe_plan *plan, const struct recipe_step *step, struct buffer *out);

/* Returns one line about the bytes that a read needs. */
const char *recipe_plan_cost(const struct recipe_plan *plan);

/* Returns the bytes of the inputs of all tensors. */
uint64_t recipe_steps_bytes(const struct recipe_steps *steps);
