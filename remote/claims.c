#include "remote/claims.h"

#include "base/system.h"

#include <unistd.h>

void claims_init(struct claims *claims)
{
    *claims = (struct claims){.file = -1};
    lock_init(&claims->lock);
}

static void close_file(struct claims *claims)
{
    if (claims->file >= 0)
        close(claims->file);
    claims->file = -1;
}

void claims_destroy(struct claims *claims)
{
    close_file(claims);
    lock_destroy(&claims->lock);
}

bool claims_take(struct claims *claims, const struct store_object *object, uint64_t granule)
{
    lock_take(&claims->lock);
    if (claims->file < 0 && !claims->ignores_others)
        claims->file = store_open_claims(object);
    bool taken = claims->file < 0 || system_lock_bytes(claims->file, granule, 1) || claims->ignores_others;
    claims->n_held += taken;
    if (claims->n_held == 0)
        close_file(claims);
    lock_drop(&claims->lock);
    return taken;
}

void claims_drop(struct claims *claims, uint64_t first, uint64_t end)
{
    lock_take(&claims->lock);
    if (claims->file >= 0)
        system_unlock_bytes(claims->file, first, end - first);
    claims->n_held -= end - first;
    if (claims->n_held == 0)
        close_file(claims); /* servers may have thousands of objects open */
    lock_drop(&claims->lock);
}

void claims_ignore_others(struct claims *claims)
{
    lock_take(&claims->lock);
    claims->ignores_others = true;
    lock_drop(&claims->lock);
}
