#include "base/process.h"

#include <stdatomic.h>

static atomic_uint allowed;

void process_allow(unsigned changes)
{
    atomic_fetch_or(&allowed, changes);
}

bool process_allows(enum process_change change)
{
    return (atomic_load(&allowed) & change) != 0;
}
