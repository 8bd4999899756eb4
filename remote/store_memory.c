#include "remote/store_memory.h"

#include "base/lock.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct slot {
    const struct store_object *object; /* NULL: the slot is free */
    uint64_t granule;
    unsigned char *bytes;
};

static struct lock lock = LOCK_INITIALIZER;
static struct slot slots[STORE_MEMORY]; /* guarded by the lock, as is `next` */
static size_t next;
static atomic_bool is_used; /* spares the lock where everything is on disk */

static struct slot *find(const struct store_object *object, uint64_t granule)
{
    for (size_t i = 0; i < STORE_MEMORY; i++)
        if (slots[i].object == object && slots[i].granule == granule)
            return &slots[i];
    return NULL;
}

void store_memory_write(const struct store_object *object, uint64_t granule, const void *bytes, size_t length)
{
    unsigned char *copy = memory_alloc(length);
    memcpy(copy, bytes, length);
    atomic_store(&is_used, true);
    lock_take(&lock);
    struct slot *slot = find(object, granule);
    if (slot == NULL)
        slot = &slots[next++ % STORE_MEMORY];
    unsigned char *before = slot->bytes;
    *slot = (struct slot){object, granule, copy};
    lock_drop(&lock);
    free(before);
}

bool store_memory_read(const struct store_object *object, uint64_t granule, size_t offset, size_t length, void *out)
{
    if (!atomic_load(&is_used))
        return false;
    lock_take(&lock);
    const struct slot *slot = find(object, granule);
    if (slot != NULL && length > 0)
        memcpy(out, slot->bytes + offset, length);
    lock_drop(&lock);
    return slot != NULL;
}

void store_memory_forget(const struct store_object *object)
{
    if (!atomic_load(&is_used))
        return;
    lock_take(&lock);
    for (size_t i = 0; i < STORE_MEMORY; i++)
        if (slots[i].object == object) {
            free(slots[i].bytes);
            slots[i] = (struct slot){0};
        }
    lock_drop(&lock);
}
