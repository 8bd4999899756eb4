#include "sources/source_range.h"

#include "base/arena.h"

#include <stdlib.h>

struct range {
    struct source *base;
    uint64_t offset;
};

static bool range_read(void *context, uint64_t offset, size_t length, void *out, struct error *error)
{
    const struct range *range = context;
    return source_read(range->base, range->offset + offset, length, out, error);
}

static void range_want(void *context, uint64_t offset, uint64_t length, bool urgent)
{
    const struct range *range = context;
    source_want(range->base, range->offset + offset, length, urgent);
}

static bool range_wait(void *context, uint64_t offset, uint64_t length, struct error *error)
{
    const struct range *range = context;
    return source_wait(range->base, range->offset + offset, length, error);
}

static const void *range_map(void *context, uint64_t offset, uint64_t length)
{
    const struct range *range = context;
    return source_mapping(range->base, range->offset + offset, length);
}

static const struct source_ops range_ops = {.read = range_read, .release = free, .map = range_map, .want = range_want};
static const struct source_ops remote_range_ops = {
    .read = range_read, .release = free, .map = range_map, .want = range_want, .wait = range_wait};

struct source *source_range_new(struct source *base, const char *name, uint64_t offset, uint64_t size)
{
    struct range *range = memory_alloc(sizeof *range);
    *range = (struct range){base, offset};
    return source_new(base, name, size, source_is_remote(base) ? &remote_range_ops : &range_ops, range);
}
