#include "models/derive/recipe.h"

#include "models/derive/derive.h"
#include "models/derive/recipe_merging.h"
#include "models/derive/recipe_plan.h"

#include <stdlib.h>

/* Reads the recipe, into the merged checkpoint's arena. */
static bool read_recipe(struct recipe_merge *merge)
{
    size_t length;
    char *text = source_read_text(merge->from->sources[0], RECIPE_MAX_TEXT, &length, merge->error);
    merge->recipe = text != NULL ? recipe_read(merge->merged->arena, text, length, merge->error) : NULL;
    free(text);
    return merge->recipe != NULL;
}

static bool check_options(const struct recipe_merge *merge)
{
    const struct method *method = merge->recipe->method;
    return method->cost != COST_RANDOM || merge->options->recipe.has_seed ||
           error_set(merge->error, "%s drops weights at random; -o seed=N chooses which, as mergekit's --random-seed",
                     method->name);
}

/* Keeps what the merge consists of, for recipe_plan_of(). */
static void keep_plan(struct recipe_merge *merge)
{
    struct arena *arena = merge->merged->arena;
    struct recipe_plan *plan = arena_alloc(arena, sizeof *plan);
    struct recipe_merge *kept = arena_copy(arena, merge, sizeof *merge);
    kept->vocabulary = NULL;
    kept->error = NULL;
    *plan = (struct recipe_plan){merge->recipe, kept, merge->donor->named->text};
    merge->merged->plan = plan;
}

static void note_left_out(const struct recipe_merge *merge, const struct recipe_jobs *jobs)
{
    if (jobs->n_left_out > 0)
        checkpoint_note(merge->merged, SUBJECT_SOURCE,
                        "%zu tensors that not all models have are left out of the merge, first '%.200s'",
                        jobs->n_left_out, jobs->left_out);
}

static bool make(struct recipe_merge *merge)
{
    struct recipe_jobs jobs = {.arena = arena_new()};
    bool made = read_recipe(merge) && check_options(merge) && recipe_open_inputs(merge) &&
                recipe_find_vocabulary(merge, jobs.arena) && recipe_find_jobs(merge, &jobs) &&
                recipe_make_tensors(merge, &jobs) && recipe_make_config(merge) && recipe_make_files(merge);
    note_left_out(merge, &jobs);
    arena_free(jobs.arena);
    recipe_close_inputs(merge);
    if (made)
        keep_plan(merge);
    return made;
}

static bool apply(const struct checkpoint *from, const struct derive_options *options, struct checkpoint **ret_derived,
                  struct error *error)
{
    if (from->kind != CHECKPOINT_RECIPE)
        return true;
    struct checkpoint *merged = *ret_derived = checkpoint_derive(from);
    struct recipe_merge merge = {.from = from, .merged = merged, .options = options, .error = error};
    merged->kind = CHECKPOINT_WEIGHTS;
    return make(&merge) || error_prefix(error, "%s", from->path);
}

const struct derivation recipe_derivation = {.apply = apply};
