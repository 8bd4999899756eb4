/* A source that cannot be reached for a while, as on a server. */
#pragma once

#include "sources/source.h"

#include <string.h>

static bool unreached_now;

static inline bool unreached_read(void *context, uint64_t offset, size_t length, void *out, struct error *error)
{
    memcpy(out, (const char *)context + offset, length);
    if (unreached_now)
        source_count_unreached();
    return !unreached_now || error_set(error, "no server");
}

static inline void unreached_release(void *context)
{
    (void)context;
}

/* Returns a source of that text, which must outlive it. */
static inline struct source *unreached_source(const char *name, const char *text)
{
    static const struct source_ops ops = {.read = unreached_read, .release = unreached_release};
    const struct source_identity identity = {.size = strlen(text)};
    return source_new_file(&identity, name, &ops, (char *)(uintptr_t)text);
}
