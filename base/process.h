/* Changes to the whole process, which a program makes to its own process and a library must not make to another's.
 *
 * A program allows them in main(), before the first thread that depends on them. Code that would make such a change
 * asks process_allows(), and works without the change if it is not allowed, perhaps more slowly. */
#pragma once

#include <stdbool.h>

/* The first three have the numbers of wfs.h. */
enum process_change {
    PROCESS_SIGBUS = 1,      /* a handler for SIGBUS (guarded.h) */
    PROCESS_DESCRIPTORS = 2, /* a higher soft limit of open files */
    PROCESS_ALLOCATOR = 4,   /* settings of malloc() (memory_trim()) */
    PROCESS_STDERR = 8,      /* messages on stderr or in syslog from threads without a sink (report.h) */
    PROCESS_EXIT = 16,       /* _exit(1) if memory runs out outside every attempt, or under a lock; else abort() */
    PROCESS_ALL = 31,
};

/* Allows changes, a sum of enum process_change, in addition to those allowed before. */
void process_allow(unsigned changes);

bool process_allows(enum process_change change);
