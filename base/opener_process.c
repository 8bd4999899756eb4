#include "base/opener.h"

#include "base/arena.h"
#include "base/helper.h"
#include "base/sandbox.h"
#include "base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The opener's side. */

/* Reports whether a path is that of the opener's own descriptors, some of which a source may name. */
static bool is_descriptors(const char *path, const struct opener_roots *roots)
{
    char own[32];
    snprintf(own, sizeof own, "/proc/%d/fd", (int)getpid());
    return roots->descriptors != NULL && *roots->descriptors >= 0 && strcmp(path, own) == 0;
}

static bool is_below(const char *path, const struct opener_roots *roots)
{
    for (const char *const *root = roots->paths; *root != NULL; root++) {
        size_t length = strlen(*root);
        bool is_top = strcmp(*root, "/") == 0;
        if (is_top || (strncmp(path, *root, length) == 0 && (path[length] == '/' || path[length] == '\0')))
            return true;
    }
    return roots->anywhere || (roots->lists_top && strcmp(path, "/") == 0) || is_descriptors(path, roots);
}

/* Tells what a descriptor is of. Returns false with errno. */
static bool describe(int fd, struct opener_answer *answer)
{
    return fstat(fd, &answer->status) == 0 && system_path_of(fd, answer->path);
}

static int watch(int fd, int inotify)
{
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) ? system_watch(fd, inotify) : -1;
}

/* Reports whether a descriptor may be passed on, or opened for reading: it is below the roots, and starting to read it
 * waits for nothing and starts no device. */
static bool may_pass(int fd, bool reads, const struct opener_roots *roots, struct opener_answer *answer)
{
    if (!describe(fd, answer))
        return false;
    errno = EXDEV;
    return is_below(answer->path, roots) &&
           (!reads || S_ISREG(answer->status.st_mode) || S_ISDIR(answer->status.st_mode));
}

/* Returns the descriptor to pass on, or -1; *done: the task is done. `sent` are the descriptors of the request. */
static int carry_out(const struct opener_request *request, const int sent[2], const struct opener_roots *roots,
                     struct opener_answer *answer, bool *done)
{
    int fd = -1, from = sent[0] >= 0 ? sent[0] : AT_FDCWD;
    switch (request->task) {
    case OPENER_FIND:
        fd = openat(from, request->path, request->flags | O_PATH | O_CLOEXEC);
        *done = fd >= 0 && may_pass(fd, false, roots, answer);
        return fd;
    case OPENER_STAT:
        fd = openat(from, request->path, request->flags | O_PATH | O_CLOEXEC);
        *done = fd >= 0 && describe(fd, answer);
        return fd;
    case OPENER_REOPEN:
        fd = may_pass(sent[0], true, roots, answer) ? system_reopen(sent[0]) : -1;
        *done = fd >= 0;
        return fd;
    case OPENER_WATCH:
        answer->number = may_pass(sent[0], true, roots, answer) ? watch(sent[0], sent[1]) : -1;
        *done = answer->number >= 0;
        return -1;
    case OPENER_LEAVE:
        *done = chdir("/") == 0;
        return -1;
    case OPENER_KEEP:
        *done = roots->records != NULL && record_write(roots->records, &request->record, request->way);
        return -1;
    }
    errno = EINVAL;
    return -1;
}

/* Returns the rules of the opener's own sandbox; 0: none. Its descriptors may be listed if a source names one. */
static int open_roots(const struct opener_roots *roots)
{
    enum { MOST = 4096 };
    const char *paths[MOST + 2];
    size_t count = 0;
    while (count < MOST && roots->paths[count] != NULL) {
        paths[count] = roots->paths[count];
        count++;
    }
    if (roots->anywhere || roots->paths[count] != NULL)
        return 0;
    if (roots->descriptors != NULL && *roots->descriptors >= 0)
        paths[count++] = "/proc/self/fd";
    paths[count] = NULL;
    return sandbox_open_paths(&(struct sandbox_paths){
        .readable = paths,
        .listed = (const char *const[]){roots->lists_top ? "/" : NULL, NULL},
        .ports = (const uint16_t[]){0},
    });
}

static void attend(int socket, void *context)
{
    const struct opener_roots *roots = context;
    static struct opener_request request;
    struct helper_message message = {.bytes = &request, .length = sizeof request};
    sandbox_empty_environment(NULL);
    sandbox_enter(&(struct sandbox){
        .role = SANDBOX_OPENER,
        .capabilities = 1ULL << CAP_DAC_READ_SEARCH,
        .paths = open_roots(roots),
        .written = roots->records != NULL ? roots->records->descriptor : -1,
    });
    while (helper_receive(socket, &message)) {
        static struct opener_answer answer;
        bool done = false;
        memset(&answer, 0, sizeof answer);
        request.path[sizeof request.path - 1] = '\0';
        errno = 0;
        int fd = carry_out(&request, message.descriptors, roots, &answer, &done), reason = errno;
        answer.reason = done ? 0 : reason != 0 ? reason : EINVAL;
        bool passes = done && request.task != OPENER_STAT;
        const struct helper_message reply = {&answer, sizeof answer, {passes ? fd : -1, -1}};
        bool answered = helper_answer(socket, &reply);
        if (fd >= 0)
            close(fd);
        helper_close(&message);
        if (!answered)
            return;
    }
}

/* The side of the confined process. */

static struct helper opener;
static bool is_running;

/* Returns the descriptors that the opener keeps, for free(); -1 at the end. */
static int *descriptors_of(const struct opener_roots *roots)
{
    size_t count = 0;
    while (roots->descriptors != NULL && roots->descriptors[count] >= 0)
        count++;
    int *kept = memory_alloc((count + 2) * sizeof *kept);
    if (count > 0)
        memcpy(kept, roots->descriptors, count * sizeof *kept);
    kept[count] = roots->records != NULL ? roots->records->descriptor : -1;
    kept[count + 1] = -1;
    return kept;
}

bool opener_start(const struct opener_roots *roots)
{
    struct opener_roots own = *roots;
    int *kept = descriptors_of(roots);
    is_running = helper_start(&opener, attend, &own, kept);
    int reason = errno;
    free(kept);
    errno = reason;
    return is_running;
}

void opener_end(void)
{
    if (is_running)
        helper_end(&opener);
    is_running = false;
}

bool opener_is_running(void)
{
    return is_running;
}

int opener_ask(const struct opener_request *request, const int descriptors[2], struct opener_answer *answer)
{
    struct opener_request sent = *request;
    const struct helper_message message = {
        &sent, sizeof sent, {descriptors[0], descriptors[0] >= 0 ? descriptors[1] : -1}};
    struct helper_message reply = {.bytes = answer, .length = sizeof *answer, .descriptors = {-1, -1}};
    if (!helper_ask(&opener, &message, &reply)) {
        answer->reason = errno;
        return -1;
    }
    if (answer->reason == 0)
        return reply.descriptors[0];
    helper_close(&reply);
    return -1;
}
