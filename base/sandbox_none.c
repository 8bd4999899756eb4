/* A system without the layers of Linux. */
#include "base/sandbox.h"

const uint64_t sandbox_reading = 0, sandbox_copying = 0;

int sandbox_open_paths(const struct sandbox_paths *paths)
{
    return 0;
}

bool sandbox_restrict_paths(int paths)
{
    return false;
}

bool sandbox_keep_capabilities(uint64_t kept)
{
    return false;
}

unsigned sandbox_enter(const struct sandbox *sandbox)
{
    return 0;
}
