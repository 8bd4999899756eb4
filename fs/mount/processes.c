#include "fs/mount/processes.h"

#include "base/text.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Reads the line of /proc/PID/stat: "PID (NAME) STATE ...". A name may hold parentheses and blanks. */
static bool read_stat(pid_t pid, char line[1024])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    bool read = file != NULL && fgets(line, 1024, file) != NULL;
    if (file != NULL)
        fclose(file);
    return read && strchr(line, '(') != NULL && strrchr(line, ')') != NULL;
}

bool process_find(pid_t pid, struct process *ret_process)
{
    char line[1024];
    if (!read_stat(pid, line))
        return false;
    const char *name = strchr(line, '(') + 1, *end = strrchr(line, ')');
    char state = strlen(end) > 2 ? end[2] : '\0';
    ret_process->pid = pid;
    ret_process->stopped = state == 'T'; /* not 't': a tracer stops a process, too, but lets it go on */
    text_printable(name, (size_t)(end - name), ret_process->name, sizeof ret_process->name);
    return state != 'Z' && state != 'X';
}

/* Returns the start of a process, in ticks since the system started: field 22 of the line. */
static unsigned long long start_of(pid_t pid)
{
    char line[1024];
    const char *at = read_stat(pid, line) ? strrchr(line, ')') : "";
    for (int field = 2; field < 22 && at != NULL; field++)
        at = strchr(at + (*at == ' '), ' ');
    return at != NULL ? strtoull(at, NULL, 10) : 0;
}

/* Reads the target of a link below /proc/PID; returns false without permission. */
static bool read_link(pid_t pid, const char *name, char target[PATH_MAX])
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    ssize_t length = readlink(path, target, PATH_MAX - 1);
    if (length >= 0)
        target[length] = '\0';
    return length >= 0;
}

bool process_each_descriptor(pid_t pid, see_descriptor *see, void *context)
{
    char path[64], name[300], target[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *directory = opendir(path);
    const struct dirent *entry;
    bool more = true;
    while (more && directory != NULL && (entry = readdir(directory)) != NULL) {
        snprintf(name, sizeof name, "fd/%s", entry->d_name);
        more = !isdigit((unsigned char)*entry->d_name) || !read_link(pid, name, target) || see(context, target);
    }
    if (directory != NULL)
        closedir(directory);
    return more;
}

/* Calls see() for each process except this one. */
typedef void see_process(void *context, pid_t pid);
static void each_process(see_process *see, void *context)
{
    DIR *directory = opendir("/proc");
    const struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL)
        if (isdigit((unsigned char)*entry->d_name) && atoi(entry->d_name) != getpid())
            see(context, atoi(entry->d_name));
    if (directory != NULL)
        closedir(directory);
}

struct server_search {
    const char *mountpoint;
    struct process *process;
    unsigned long long start;
    bool has_device, has_directory, found;
};

static bool see_of_server(void *context, const char *target)
{
    struct server_search *search = context;
    search->has_device |= strcmp(target, "/dev/fuse") == 0;
    search->has_directory |= strcmp(target, search->mountpoint) == 0;
    return !search->has_device || !search->has_directory;
}

static void try_server(void *context, pid_t pid)
{
    struct server_search *search = context;
    search->has_device = search->has_directory = false;
    process_each_descriptor(pid, see_of_server, search);
    unsigned long long start = search->has_device && search->has_directory ? start_of(pid) : 0;
    if (start > search->start && process_find(pid, search->process)) {
        search->start = start;
        search->found = true;
    }
}

bool process_serving(const char *mountpoint, struct process *ret_process)
{
    struct server_search search = {.mountpoint = mountpoint, .process = ret_process};
    each_process(try_server, &search);
    return search.found;
}

struct user_search {
    const char *mountpoint;
    pid_t except;
    struct process *first;
    char *use; /* the use by the first process */
    size_t count;
    char found[PROCESS_USE]; /* the use by the current process; empty: none yet */
};

/* Returns the rest of a path after the mount point; NULL if the path is outside the mount. */
static const char *within(const char *mountpoint, const char *path)
{
    size_t length = strlen(mountpoint);
    if (strncmp(path, mountpoint, length) != 0 || (path[length] != '/' && path[length] != '\0'))
        return NULL;
    return path[length] == '/' ? path + length + 1 : path + length;
}

/* Notes a use, "maps model.gguf"; cuts long names. */
static void note_use(struct user_search *search, const char *before, const char *path, const char *after)
{
    char shown[PROCESS_USE - 32];
    text_printable(path, strlen(path), shown, sizeof shown);
    snprintf(search->found, sizeof search->found, "%s%s%s", before, *shown != '\0' ? shown : "the mount", after);
}

static bool see_file(void *context, const char *target)
{
    struct user_search *search = context;
    const char *path = within(search->mountpoint, target);
    if (path != NULL)
        note_use(search, "has ", path, " open");
    return path == NULL;
}

static void see_mappings(struct user_search *search, pid_t pid)
{
    char name[64], line[PATH_MAX + 128];
    snprintf(name, sizeof name, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(name, "re");
    while (maps != NULL && *search->found == '\0' && fgets(line, sizeof line, maps) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        const char *file = strchr(line, '/'), *path = file != NULL ? within(search->mountpoint, file) : NULL;
        if (path != NULL)
            note_use(search, "maps ", path, "");
    }
    if (maps != NULL)
        fclose(maps);
}

static void try_user(void *context, pid_t pid)
{
    struct user_search *search = context;
    struct process process;
    char directory[PATH_MAX];
    *search->found = '\0';
    if (pid == search->except)
        return;
    see_mappings(search, pid);
    if (*search->found == '\0')
        process_each_descriptor(pid, see_file, search);
    if (*search->found == '\0' && read_link(pid, "cwd", directory) && within(search->mountpoint, directory) != NULL)
        note_use(search, "works in ", within(search->mountpoint, directory), "");
    if (*search->found == '\0' || !process_find(pid, &process))
        return;
    if (search->count++ == 0) {
        *search->first = process;
        strcpy(search->use, search->found);
    }
}

size_t processes_using(const char *mountpoint, pid_t except, struct process *ret_first, char use[PROCESS_USE])
{
    struct user_search search = {.mountpoint = mountpoint, .except = except, .first = ret_first, .use = use};
    each_process(try_user, &search);
    return search.count;
}

static const char name_format[] = "wfs-confinement:%u:%u:%u", link_format[] = "/memfd:wfs-confinement:%u:%u:%u";

void confinement_show(const struct confinement *confinement)
{
    char name[64];
    snprintf(name, sizeof name, name_format, confinement->layers, confinement->network, confinement->opens_all);
    memfd_create(name, MFD_CLOEXEC);
}

static bool see(void *context, const char *target)
{
    struct confinement *confinement = context;
    unsigned layers, network, opens_all;
    if (sscanf(target, link_format, &layers, &network, &opens_all) != 3)
        return true;
    *confinement = (struct confinement){layers, network != 0, opens_all != 0};
    return false;
}

bool confinement_of(pid_t process, struct confinement *ret_confinement)
{
    return !process_each_descriptor(process, see, ret_confinement);
}
