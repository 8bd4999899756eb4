#include "fs/mount/own_mount.h"

#include "base/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

/* A line of the kernel's table of mounts. Source: proc_pid_mountinfo(5). */
struct entry {
    unsigned device_major, device_minor;
    int number, parent;
    char path[PATH_MAX];
    char type[64];
};

/* Replaces \NNN, the table's form of characters that would end a field. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0'; to++) {
        unsigned code;
        if (*from == '\\' && sscanf(from + 1, "%3o", &code) == 1) {
            *to = (char)code;
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

static bool parse(const char *line, struct entry *ret_entry)
{
    const char *rest = strstr(line, " - ");
    if (sscanf(line, "%d %d %u:%u %*s %4095s", &ret_entry->number, &ret_entry->parent, &ret_entry->device_major,
               &ret_entry->device_minor, ret_entry->path) != 5 ||
        rest == NULL || sscanf(rest, " - %63s", ret_entry->type) != 1)
        return false;
    unescape(ret_entry->path);
    return true;
}

/* Calls see() for each mount, in the order in which they were made. Returns false if the table cannot be read. */
static bool each_entry(void (*see)(void *context, const struct entry *entry), void *context)
{
    FILE *table = fopen("/proc/self/mountinfo", "re");
    char *line = NULL;
    size_t capacity = 0;
    struct entry entry;
    if (table == NULL)
        return false;
    while (getline(&line, &capacity, table) >= 0)
        if (parse(line, &entry))
            see(context, &entry);
    free(line);
    fclose(table);
    return true;
}

static void take_last(void *context, const struct entry *entry)
{
    struct own_mount *own = context;
    if (strcmp(entry->path, own->path) != 0 || strcmp(entry->type, "fuse.wfs") != 0)
        return;
    own->number = entry->number;
    own->device_major = entry->device_major;
    own->device_minor = entry->device_minor;
}

struct own_mount own_mount_at(const char *path)
{
    struct own_mount own = {0};
    snprintf(own.path, sizeof own.path, "%s", path);
    each_entry(take_last, &own);
    return own;
}

struct search {
    const struct own_mount *own;
    struct entry found, above; /* the mount, and one that is on it or in it; .number is 0 if there is none */
};

static void search_entry(void *context, const struct entry *entry)
{
    struct search *search = context;
    const struct own_mount *own = search->own;
    if (entry->number == own->number && entry->device_major == own->device_major &&
        entry->device_minor == own->device_minor)
        search->found = *entry;
    if (entry->parent == own->number)
        search->above = *entry;
}

/* Returns the number of the mount that a descriptor is in. */
static int mount_of(int fd)
{
    char path[64], *line = NULL;
    size_t capacity = 0;
    int number = 0;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    FILE *info = fopen(path, "re");
    while (info != NULL && number == 0 && getline(&line, &capacity, info) >= 0)
        sscanf(line, "mnt_id: %d", &number);
    free(line);
    if (info != NULL)
        fclose(info);
    return number;
}

/* Detaches the mount by a descriptor: a path may lead to another one by now. Sets errno. */
static bool detach_exactly(const struct own_mount *own, const char *path, enum detach how)
{
    char link[64];
    int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    errno = EAGAIN;
    bool detached =
        mount_of(fd) == own->number && umount2(link, MNT_DETACH | (how == DETACH_FORCE ? MNT_FORCE : 0)) == 0;
    int reason = errno;
    close(fd);
    errno = reason;
    return detached;
}

bool own_mount_detach(const struct own_mount *own, enum detach how, struct error *error)
{
    enum { TRIES = 3 };
    struct search search;
    for (int i = 0; i < TRIES; i++) {
        search = (struct search){.own = own};
        if (own->number == 0 || !each_entry(search_entry, &search))
            return mountpoint_detach(own->path, how, error);
        if (search.found.number == 0)
            return true;
        if (search.above.number != 0)
            return error_set(error, "%s: %s is mounted at %s; unmount that first", search.found.path, search.above.type,
                             search.above.path);
        if (detach_exactly(own, search.found.path, how))
            return true;
        if (errno == EPERM)
            return mountpoint_detach(search.found.path, how, error);
    }
    return error_set_errno(error, errno, "%s", search.found.path);
}

static const char table_path[] = "/proc/self/mountinfo";

struct detachment {
    pthread_t thread;
    unsigned device_major, device_minor;
    void (*detached)(void);
    int table; /* poll() tells that it has changed */
    int ending[2];
};

/* Reports whether the table has an entry with the device, or cannot be read. */
static bool is_attached(const struct detachment *detachment)
{
    FILE *table = fopen(table_path, "re");
    char *line = NULL;
    size_t capacity = 0;
    bool found = table == NULL;
    while (!found && getline(&line, &capacity, table) >= 0) {
        unsigned device_major, device_minor;
        found = sscanf(line, "%*d %*d %u:%u", &device_major, &device_minor) == 2 &&
                device_major == detachment->device_major && device_minor == detachment->device_minor;
    }
    free(line);
    if (table != NULL)
        fclose(table);
    return found;
}

static void *wait_for_end(void *context)
{
    const struct detachment *detachment = context;
    struct pollfd events[] = {{.fd = detachment->table, .events = POLLPRI},
                              {.fd = detachment->ending[0], .events = POLLIN}};
    while (is_attached(detachment))
        if (poll(events, 2, -1) > 0 && events[1].revents != 0)
            return NULL;
    detachment->detached();
    return NULL;
}

struct detachment *detachment_watch(unsigned device_major, unsigned device_minor, void (*detached)(void))
{
    struct detachment *detachment = memory_alloc(sizeof *detachment);
    *detachment = (struct detachment){.device_major = device_major, .device_minor = device_minor, .detached = detached};
    detachment->table = open(table_path, O_RDONLY | O_CLOEXEC);
    if (detachment->table >= 0 && pipe2(detachment->ending, O_CLOEXEC) == 0) {
        if (pthread_create(&detachment->thread, NULL, wait_for_end, detachment) == 0)
            return detachment;
        close(detachment->ending[0]);
        close(detachment->ending[1]);
    }
    if (detachment->table >= 0)
        close(detachment->table);
    free(detachment);
    return NULL;
}

void detachment_free(struct detachment *detachment)
{
    if (detachment == NULL)
        return;
    close(detachment->ending[1]); /* wakes the thread */
    pthread_join(detachment->thread, NULL);
    close(detachment->ending[0]);
    close(detachment->table);
    free(detachment);
}
