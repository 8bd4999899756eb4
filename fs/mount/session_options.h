/* The options of a mount's session. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

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

/* The paths that a mount lists, for those who read whatever they find: backups, indexers, virus scanners. The names of
 * a model's files cost nothing, but reading all of them computes the model some forty times. Paths that are not listed
 * can still be opened by name. */

/* Patterns as `wfs ls` takes them: each part between slashes is a pattern of fnmatch() for one name. */
struct only {
    const char *const *patterns;
    size_t n_patterns; /* 0: everything is listed */
};

/* Reports whether a path of the mount is listed: a pattern matches it or a directory above it, or it is a directory
 * that leads to what one may match. */
bool only_lists(const struct only *only, const char *path, bool is_directory);
