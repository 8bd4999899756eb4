/* A system without the layers of Linux, which needs no opener. */
#include "base/opener.h"
#include "base/sandbox.h"

#include <errno.h>

/* A system without the layers of Linux. */

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

/* A system without the sandbox of Linux, which needs no opener. */

bool opener_start(const struct opener_roots *roots)
{
    errno = ENOSYS;
    return false;
}

void opener_end(void)
{
}

bool opener_is_running(void)
{
    return false;
}

int opener_ask(const struct opener_request *request, const int descriptors[2], struct opener_answer *answer)
{
    answer->reason = ENOSYS;
    return -1;
}
