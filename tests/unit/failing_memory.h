/* Allocations that fail, in tests that link failing_memory (meson.build). Those of libraries do not. */
#pragma once

#include <stdbool.h>

/* Lets `n` allocations of this thread succeed before all fail; -1: all succeed. */
void allow_allocations(long n);

/* Reports whether one has failed since then. */
bool has_failed_allocation(void);
