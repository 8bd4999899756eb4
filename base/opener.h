/* Finding and opening the files of this machine, for code that reads them.
 *
 * A confined process may open nothing itself (sandbox.h). Before it enters the sandbox it starts an opener: a helper
 * that finds names for it, tells what is there, and passes on descriptors of what lies below the opener's roots. The
 * opener itself reads no file, writes none but that of its records, and is confined to its roots, too. Where no opener
 * was started, as in libwfs and in commands, these functions are the system calls. All are safe from any number of
 * threads.
 *
 * A name is found first, with a descriptor that reads nothing (O_PATH), and the kernel is asked where that is: a link
 * may lead from one place below the roots to another, as those of a hub cache do from a snapshot to its blobs, which
 * openat2() with RESOLVE_BENEATH would refuse. What lies elsewhere is not passed on, but its kind, size and path are
 * told, as stat() and readlink() tell them in the sandbox, too. */
#pragma once

#include "base/record_file.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

struct record;
struct record_file;

struct opener_roots {
    const char *const *paths;          /* without links, up to a NULL */
    bool lists_top;                    /* lists the root directory, where a file is one of the paths */
    bool anywhere;                     /* opens what any link or name leads to */
    const int *descriptors;            /* to keep: names may be /dev/fd/N; up to a -1, or NULL */
    const struct record_file *records; /* to write to; NULL: none */
};

/* Starts the opener, in a process that has one thread yet. Returns false with errno. */
bool opener_start(const struct opener_roots *roots);

/* Ends the opener, if there is one, and waits for it: nothing can be opened any more. No other thread may ask. Without
 * it the opener ends after the process, and is left to a parent that may not wait for it. */
void opener_end(void);

/* Makes the opener leave its working directory: relative names end. */
void opener_leave_directory(void);

/* Like openat(), with O_CLOEXEC, for a file that is found (system_find_flags) or a directory that is read. Fails with
 * EXDEV if the opener has it not below its roots. */
int opener_open_at(int directory, const char *path, int flags);

/* Opens a file for reading that opener_open_at() has found, which the caller still closes. */
int opener_reopen(int found);

/* Like fstatat(), and realpath() of a path from a directory. */
bool opener_stat_at(int directory, const char *path, struct stat *ret_status, int flags);
bool opener_real_path(int directory, const char *path, char real[PATH_MAX]);

/* Makes the opener write a record (record_file.h); without an opener nothing is kept. */
void opener_keep(const struct record *record, unsigned way);

/* Makes the inotify instance report writes to the file of a descriptor (system_watch()). */
int opener_watch(int fd, int inotify);

/* The process that finds and opens files for the functions of opener.h. Only opener.c calls it. */

/* What to do. */
enum opener_task {
    OPENER_FIND,   /* descriptor, with O_PATH */
    OPENER_STAT,   /* status and path alone */
    OPENER_REOPEN, /* the descriptor that was sent, for reading */
    OPENER_WATCH,  /* the first descriptor that was sent, by the second, an inotify instance */
    OPENER_LEAVE,  /* the working directory */
    OPENER_KEEP,   /* the record, at the place `way` */
};

struct opener_request {
    enum opener_task task;
    int flags; /* O_NOFOLLOW, O_DIRECTORY */
    char path[PATH_MAX];
    struct record record;
    unsigned way;
};

struct opener_answer {
    int reason; /* an errno; 0: done */
    int number; /* of a watch */
    struct stat status;
    char path[PATH_MAX];
};

/* Reports whether there is a process to ask. */
bool opener_is_running(void);

/* Asks the process. `descriptors` are sent, -1: none. Returns the descriptor that came back, or -1; answer->reason
 * tells whether it has failed. */
int opener_ask(const struct opener_request *request, const int descriptors[2], struct opener_answer *answer);
