#include "remote/retry.h"

#include <stdio.h>
#include <string.h>

enum { ORIGIN = 256, REASON = 256 };

/* Longer origins are not remembered. */
static struct server {
    char origin[ORIGIN]; /* "": the place is free */
    char reason[REASON];
    int64_t until;
    bool is_tried;
} servers[OUTAGE_SERVERS];
static size_t next_place;

static struct server *find(const char *origin)
{
    for (size_t i = 0; i < OUTAGE_SERVERS; i++)
        if (strcmp(servers[i].origin, origin) == 0)
            return &servers[i];
    return NULL;
}

bool outage_refuses(const char *origin, int64_t now, struct error *error)
{
    struct server *server = find(origin);
    if (server == NULL)
        return false;
    if (now < server->until || server->is_tried)
        return !error_set(error, "the server could not be reached just before: %s", server->reason);
    server->is_tried = true;
    return false;
}

void outage_begin(const char *origin, int64_t now, const struct error *reason)
{
    struct server *server = find(origin);
    if (server == NULL)
        server = &servers[next_place++ % OUTAGE_SERVERS];
    if (strlen(origin) >= sizeof server->origin)
        return;
    *server = (struct server){.until = now + OUTAGE_PAUSE};
    strcpy(server->origin, origin);
    snprintf(server->reason, sizeof server->reason, "%.*s", REASON - 1, reason->message);
}

void outage_end(const char *origin)
{
    struct server *server = find(origin);
    if (server != NULL)
        *server = (struct server){.until = 0};
}
