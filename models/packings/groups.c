#include "models/packings/packed.h"

struct grouped {
    struct view view;
    const struct view *values;
    const struct code_groups *groups;
};

static bool grouped_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    return view_read(((const struct grouped *)view)->values, first, count, out, error);
}

static void grouped_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    view_depends(((const struct grouped *)view)->values, first, count, to);
}

static const struct view_op grouped_op = {.name = "groups", .read = grouped_read, .depends = grouped_depends};

const struct view *view_of_groups(struct arena *arena, const struct view *values, const struct code_groups *groups)
{
    struct grouped *grouped = arena_alloc(arena, sizeof *grouped);
    view_init_shared(&grouped->view, &grouped_op, values->dtype, values->rank, values->shape);
    grouped->view.scattered = values->scattered;
    grouped->values = values;
    grouped->groups = groups;
    return &grouped->view;
}

const struct code_groups *groups_of(const struct view *view)
{
    return view->op == &grouped_op ? ((const struct grouped *)view)->groups : NULL;
}
