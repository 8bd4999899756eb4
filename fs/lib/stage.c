#include "fs/lib/stage.h"

#include <stddef.h>

static const struct stage_watcher *watching;

void stage_watch(const struct stage_watcher *watcher)
{
    watching = watcher;
}

void stage_begin(const char *name, uint64_t n_bytes)
{
    if (watching != NULL)
        watching->begin(name, n_bytes);
}

void stage_add(uint64_t n_bytes)
{
    if (watching != NULL)
        watching->add(n_bytes);
}

void stage_end(void)
{
    if (watching != NULL)
        watching->end();
}
