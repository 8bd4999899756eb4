/* Levels of processors in tests: kernels that this one cannot run are skipped, and the test says which. */
#pragma once

#include "quant/blocks/dtype.h"

#include "tests/unit/check.h"

/* Reports whether this processor runs kernels of the level; else `what` is a test that is skipped. */
static inline bool level_runs(enum cpu_level level, const char *what)
{
    char name[96], reason[64];
    if (cpu_runs(level))
        return true;
    snprintf(name, sizeof name, "%s, %s", what, cpu_level_name(level));
    snprintf(reason, sizeof reason, "this processor has no %s, or WFS_CPU is lower", cpu_level_name(level));
    check_skip(name, reason);
    return false;
}
