/* The options of a mount's session. */
#pragma once

#include <stdbool.h>

struct session_options {
    const char *source; /* what `df` and mountinfo call it */
    bool allow_other, no_readahead, noexec;
    bool allow_rdwr;   /* files may be opened for writing, too; whatever would write fails with EROFS all the same */
    bool auto_unmount; /* by fusermount3, where we are killed */
};
