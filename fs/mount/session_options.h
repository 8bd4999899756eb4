/* The options of a mount's session. */
#pragma once

#include <stdbool.h>

/* SELinux's labels of a mount, as mount(8) takes them; NULL: none. The system has no SELinux: without effect. */
struct labels {
    const char *context, *fscontext, *defcontext, *rootcontext;
};

struct session_options {
    const char *source; /* the name of the source in `df` and mountinfo */
    struct labels labels;
    bool allow_other, no_readahead, noexec;
    bool no_passthrough; /* the kernel reads no file without the server (passthrough.h) */
    bool allow_rdwr;     /* files can be opened for writing; every write still fails with EROFS */
    bool auto_unmount;   /* fusermount3 unmounts if the server is killed */
};
