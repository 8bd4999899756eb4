#include "fs/mount/own_mount.h"

#include "base/arena.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
