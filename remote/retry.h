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
