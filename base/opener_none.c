/* A system without the sandbox of Linux, which needs no opener. */
#include "base/opener_process.h"

#include <errno.h>

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
