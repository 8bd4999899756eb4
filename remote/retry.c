#include "remote/retry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FIRST_PAUSE = 250, LONGEST_PAUSE = 8000 /* milliseconds */, FIRST_CONTACTS = 4 };

int64_t retry_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

void retry_begin(struct retry *retry, unsigned limit, bool is_first)
{
    *retry = (struct retry){.progress = retry_now(), .limit = limit, .is_first = is_first};
}

void retry_progress(struct retry *retry)
{
    retry->progress = retry_now();
    retry->failures = 0;
}

/* Returns between half of the pause and all of it. The nanoseconds of the clock spread clients enough. */
static unsigned pause_after(unsigned failures)
{
    unsigned pause = failures < 5 ? (unsigned)FIRST_PAUSE << failures : LONGEST_PAUSE;
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return pause / 2 + (unsigned)time.tv_nsec % (pause / 2 + 1);
}

bool retry_again(struct retry *retry, unsigned pause, struct error *error)
{
    int64_t at = retry_now(), wait = pause_after(retry->failures++);
    struct error reason = *error;
    if (pause * INT64_C(1000) > wait)
        wait = pause * INT64_C(1000);
    retry->again = at + wait;
    if (at + wait - retry->progress > retry->limit * INT64_C(1000))
        return error_set(error, "nothing came for %u s: %s", retry->limit, reason.message);
    return true;
}

int64_t retry_left(const struct retry *retry)
{
    return retry->again - retry_now();
}

static const char *reason_of(CURLcode code)
{
    if (code == CURLE_PEER_FAILED_VERIFICATION)
        return "the server's certificate is not trusted; -o cacert=FILE trusts those in a file";
    if (code == CURLE_SSL_CACERT_BADFILE)
        return "there are no certificates to check the server's against; install ca-certificates, or name a file with "
               "-o cacert=FILE";
    return libcurl.easy_strerror(code);
}

bool retry_is_hopeless(const struct retry *retry, CURLcode code, struct error *error)
{
    bool hopeless = false;
    switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
        hopeless = true;
        break;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
        hopeless = retry->is_first && retry->failures + 1 >= FIRST_CONTACTS;
        break;
    default:
        break;
    }
    if (hopeless)
        error_set(error, "%s", reason_of(code));
    return hopeless;
}

/* Outages. */

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
