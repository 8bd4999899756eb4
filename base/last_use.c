#include "base/last_use.h"

#include <stddef.h>

void last_uses_add(struct last_uses *list, struct last_use *use)
{
    use->newer = NULL;
    use->older = list->newest;
    *(list->newest != NULL ? &list->newest->newer : &list->oldest) = use;
    list->newest = use;
}

void last_uses_take_out(struct last_uses *list, struct last_use *use)
{
    *(use->newer != NULL ? &use->newer->older : &list->newest) = use->older;
    *(use->older != NULL ? &use->older->newer : &list->oldest) = use->newer;
}

void last_uses_renew(struct last_uses *list, struct last_use *use)
{
    last_uses_take_out(list, use);
    last_uses_add(list, use);
}

void *last_uses_idle(const struct last_uses *list)
{
    const struct last_use *use = list->oldest;
    while (use != NULL && use->n_users > 0)
        use = use->newer;
    return use != NULL ? use->thing : NULL;
}
