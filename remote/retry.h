/* When a request that failed for a passing reason is made again, and when no more: times for http.c.
 *
 * Pauses double from 0.25 s to 8 s, with jitter. A request is given up when nothing new has come for as long as its
 * time limit; one to a server that has not answered yet also after some failures to connect, since its name may just
 * be wrong. */
#pragma once

#include "base/error.h"
#include "remote/libcurl.h"

#include <stdint.h>

struct retry {
    int64_t progress;  /* when it last got on, in milliseconds of CLOCK_MONOTONIC */
    int64_t again;     /* when it is made again */
    unsigned limit;    /* seconds */
    unsigned failures; /* since it last got on */
    bool is_first;     /* contact with an object that may not be there */
};

/* Returns the time in milliseconds of CLOCK_MONOTONIC. */
int64_t retry_now(void);

void retry_begin(struct retry *retry, unsigned limit, bool is_first);
void retry_progress(struct retry *retry); /* a new byte has come */

/* Sets when to make the request again, `pause` seconds from now at the earliest. Returns false if it is given up: the
 * error, which holds the reason of the failure, then says so. */
bool retry_again(struct retry *retry, unsigned pause, struct error *error);

/* Returns the milliseconds until the request is made again; 0 or less: now. */
int64_t retry_left(const struct retry *retry);

/* Reports whether a failure of libcurl will be the same the next time; then sets the error. */
bool retry_is_hopeless(const struct retry *retry, CURLcode code, struct error *error);

/* Servers that cannot be reached: who asks them again soon gets the last failure at once, instead of waiting for the
 * time limit once more. For the thread of http.c alone.
 *
 * A server is down from a request that was given up without any answer. After OUTAGE_PAUSE, one request may try it
 * again, and others still fail at once until that request has ended. Any answer ends the outage. */

enum { OUTAGE_PAUSE = 2000 /* milliseconds */, OUTAGE_SERVERS = 64 /* that are remembered */ };

/* Reports whether a request to the server of that origin (uri.h) must fail now, with the error. `now` is in
 * milliseconds of CLOCK_MONOTONIC. False lets it be sent: outage_begin() or outage_end() must follow. */
bool outage_refuses(const char *origin, int64_t now, struct error *error);

/* Records that a server cannot be reached, and why. */
void outage_begin(const char *origin, int64_t now, const struct error *reason);

/* Records that a server has answered. */
void outage_end(const char *origin);
