/* A system without the layers of Linux. */
#include "base/sandbox.h"

int sandbox_open_paths(const struct sandbox_paths *paths)
{
    return 0;
}

bool sandbox_restrict_paths(int paths)
{
    return false;
}

unsigned sandbox_enter(const struct sandbox *sandbox)
{
    return 0;
}
