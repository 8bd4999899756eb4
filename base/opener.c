#include "base/opener.h"

#include "base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Fills in a request about a name. Returns false with errno if the name is too long. */
static bool name_request(struct opener_request *request, enum opener_task task, const char *path, int flags)
{
    size_t length = strlen(path);
    request->task = task;
    request->flags = flags;
    if (length >= sizeof request->path) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(request->path, path, length + 1);
    return true;
}

static int asked(const struct opener_request *request, int first, int second, struct opener_answer *answer)
{
    int fd = opener_ask(request, (const int[]){first, second}, answer);
    errno = answer->reason;
    return fd;
}

void opener_leave_directory(void)
{
    struct opener_answer answer;
    if (opener_is_running())
        asked(&(struct opener_request){.task = OPENER_LEAVE}, -1, -1, &answer);
}

int opener_open_at(int directory, const char *path, int flags)
{
    struct opener_request request;
    struct opener_answer answer;
    if (!opener_is_running())
        return openat(directory, path, flags | O_CLOEXEC);
    if (!name_request(&request, OPENER_FIND, path, flags & (O_NOFOLLOW | O_DIRECTORY)))
        return -1;
    int found = asked(&request, directory >= 0 ? directory : -1, -1, &answer);
    if (found < 0 || (flags & system_find_flags) == system_find_flags)
        return found;
    int fd = opener_reopen(found), reason = errno;
    close(found);
    errno = reason;
    return fd;
}

int opener_reopen(int found)
{
    struct opener_answer answer;
    if (!opener_is_running())
        return system_reopen(found);
    return asked(&(struct opener_request){.task = OPENER_REOPEN}, found, -1, &answer);
}

static bool ask_status(int directory, const char *path, int flags, struct opener_answer *answer)
{
    struct opener_request request;
    if (!name_request(&request, OPENER_STAT, path, (flags & AT_SYMLINK_NOFOLLOW) != 0 ? O_NOFOLLOW : 0))
        return false;
    asked(&request, directory >= 0 ? directory : -1, -1, answer);
    return answer->reason == 0;
}

bool opener_stat_at(int directory, const char *path, struct stat *ret_status, int flags)
{
    struct opener_answer answer;
    if (!opener_is_running())
        return fstatat(directory, path, ret_status, flags) == 0;
    bool known = ask_status(directory, path, flags, &answer);
    if (known)
        *ret_status = answer.status;
    return known;
}

/* The path of what is found, where the kernel can name it; else as realpath() does for names from here. */
static bool find_path(int directory, const char *path, char real[PATH_MAX])
{
    if (directory == AT_FDCWD)
        return realpath(path, real) != NULL;
    int found = openat(directory, path, system_find_flags | O_CLOEXEC);
    bool known = found >= 0 && system_path_of(found, real);
    if (found >= 0)
        close(found);
    return known;
}

bool opener_real_path(int directory, const char *path, char real[PATH_MAX])
{
    struct opener_answer answer;
    if (!opener_is_running())
        return find_path(directory, path, real);
    bool known = ask_status(directory, path, 0, &answer);
    if (known)
        memcpy(real, answer.path, PATH_MAX);
    return known;
}

void opener_keep(const struct record *record, unsigned way)
{
    struct opener_answer answer;
    if (opener_is_running())
        asked(&(struct opener_request){.task = OPENER_KEEP, .record = *record, .way = way}, -1, -1, &answer);
}

int opener_watch(int fd, int inotify)
{
    struct opener_answer answer;
    int number = system_watch(fd, inotify);
    if (number >= 0 || errno != EACCES || !opener_is_running())
        return number;
    asked(&(struct opener_request){.task = OPENER_WATCH}, fd, inotify, &answer);
    return answer.reason == 0 ? answer.number : -1;
}
