/* Which granules of an object a process fetches, as other processes that share the store see it: so two that need the
 * same bytes at one moment request them once.
 *
 * A claim is a lock of an open file description on the byte with the granule's number of the object's file `name`
 * (store.h). When a process ends, even by SIGKILL, the kernel drops its claims. A claim saves requests and nothing
 * else: a process that holds one may never fetch the granule, and another process finds the bytes only in the store.
 * Without a directory to share, on a file system without such locks, or on macOS, every claim succeeds.
 *
 * Safe from any thread. Allocates nothing, and waits for nobody. */
#pragma once

#include "base/lock.h"
#include "remote/store.h"

struct claims {
    struct lock lock; /* of what follows */
    int file;         /* -1: none is open */
    uint64_t n_held;
    bool ignores_others;
};

void claims_init(struct claims *claims);
void claims_destroy(struct claims *claims); /* drops those that are held */

/* Claims a granule. Returns false if another process, or another object with the same key, has claimed it. */
bool claims_take(struct claims *claims, const struct store_object *object, uint64_t granule);

/* Drops the claims of granules [first, end), which were all taken. */
void claims_drop(struct claims *claims, uint64_t first, uint64_t end);

/* Makes all later claims succeed: others have shown for too long that they do not fetch what they have claimed. */
void claims_ignore_others(struct claims *claims);
