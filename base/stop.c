#include "base/stop.h"

#include <errno.h>
#include <stddef.h>

static _Thread_local const volatile int *used;
static _Thread_local uint64_t n_due;

const volatile int *stop_use(const volatile int *flag)
{
    const volatile int *before = used;
    used = flag;
    return before;
}

const volatile int *stop_flag(void)
{
    return used;
}

bool stop_is_due(struct error *error)
{
    if (used == NULL || __atomic_load_n(used, __ATOMIC_RELAXED) == 0)
        return false;
    n_due++;
    error_set(error, "the call was stopped");
    error_set_code(error, ECANCELED);
    return true;
}

uint64_t stop_count(void)
{
    return n_due;
}
