/* What a mount is asked to be like. */
#pragma once

#include <stdbool.h>

struct session_options {
    const char *source; /* what `df` and mountinfo call it */
    bool allow_other, no_readahead, noexec;
    bool auto_unmount; /* by fusermount3, where we are killed */
};
