#include "fs/cli/info/info_pages.h"

#include "base/text.h"
#include "fs/cli/progress.h"
#include "models/derive/recipe_plan.h"

#include <stdio.h>

static void append_models(struct buffer *text, const struct recipe *recipe)
{
    for (size_t i = 0; i < recipe->n_models; i++)
        buffer_printf(text, "%s%s", i > 0 ? ", " : "", recipe->models[i].text);
}

bool append_merge(struct buffer *text, const struct checkpoint *checkpoint)
{
    const struct recipe_plan *plan = recipe_plan_of(checkpoint);
    char size[SIZE_TEXT];
    if (plan == NULL)
        return false;
    struct arena *arena = arena_new();
    const struct recipe_steps steps = recipe_plan_steps(plan, arena);
    const struct recipe *recipe = plan->recipe;
    buffer_printf(text, "%s of %zu model%s (", recipe->method->name, recipe->n_models,
                  recipe->n_models == 1 ? "" : "s");
    append_models(text, recipe);
    buffer_printf(text, "), config.json of %s; %s are read for all tensors; %s", plan->donor,
                  size_text(recipe_steps_bytes(&steps), size), recipe_plan_cost(plan));
    arena_free(arena);
    return true;
}

void print_merge(const struct checkpoint *checkpoint)
{
    const struct recipe_plan *plan = recipe_plan_of(checkpoint);
    if (plan == NULL)
        return;
    struct arena *arena = arena_new();
    const struct recipe_steps steps = recipe_plan_steps(plan, arena);
    for (size_t i = 0; i < steps.count; i++) {
        struct buffer line = {0};
        recipe_plan_describe(plan, &steps.items[i], &line);
        fputs(i > 0 ? "" : "\nMERGE\n", stdout);
        text_put(steps.items[i].name, stdout);
        fputs(" = ", stdout);
        text_put_n((const char *)line.bytes, line.length, stdout);
        putchar('\n');
        buffer_free(&line);
    }
    arena_free(arena);
}
