/* The process that finds and opens files for the functions of opener.h. Only opener.c calls it. */
#pragma once

#include "base/opener.h"
#include "base/record_file.h"

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
