/* A build without merges: recipes are recognized, and refused. */
#include "models/derive/derive.h"
#include "models/derive/recipe_plan.h"

#include <string.h>

bool recipe_is_likely(const char *text, size_t length)
{
    static const char key[] = "merge_method:";
    return memmem(text, length, key, sizeof key - 1) != NULL;
}

static bool refuse(const struct checkpoint *from, const struct derive_options *options, struct checkpoint **ret_derived,
                   struct error *error)
{
    return from->kind != CHECKPOINT_RECIPE ||
           error_set(error, "%s: a recipe of a merge; this wfs was built without merges: build with -Dmerges=true",
                     from->path);
}

const struct derivation recipe_derivation = {.apply = refuse};

/* No checkpoint is a merge, so that nothing asks for the rest. */

const struct recipe_plan *recipe_plan_of(const struct checkpoint *checkpoint)
{
    return NULL;
}

struct recipe_steps recipe_plan_steps(const struct recipe_plan *plan, struct arena *arena)
{
    return (struct recipe_steps){0};
}

void recipe_plan_describe(const struct recipe_plan *plan, const struct recipe_step *step, struct buffer *out)
{
}

const char *recipe_plan_cost(const struct recipe_plan *plan)
{
    return "";
}

uint64_t recipe_steps_bytes(const struct recipe_steps *steps)
{
    return 0;
}
