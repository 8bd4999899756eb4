/* How this process reaches remote sources: set once, before the first of them is opened. A process has one store and
 * one thread for its requests, so that all its sources share the options. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct remote_options {
    const char *cache;  /* the directory of fetched bytes; NULL: the default (store.h) */
    const char *cacert; /* a file of certificates; NULL: $SSL_CERT_FILE, or the system's */
    unsigned timeout;   /* seconds without a new byte after which a read fails; 0: REMOTE_TIMEOUT */
    struct {
        bool is_set; /* else store_directory.h's default */
        uint64_t bytes;
    } cache_size;
    bool offline; /* use what is in the cache, and no network */
};

enum { REMOTE_TIMEOUT = 60 };

/* Sets the options, which must live until others are set; NULL: the defaults. Not while sources are used. */
void remote_use(const struct remote_options *options);

/* Adds options for the rest of the process, in memory of their own: those that are set. Fails if another value was
 * added before, or if somebody went by the options already and they would change. For a library, whose callers do not
 * know of each other. Safe from any thread. */
bool remote_settle(const struct remote_options *options, struct error *error);

/* Returns the options with their defaults filled in; HF_HUB_OFFLINE and TRANSFORMERS_OFFLINE make them offline. */
struct remote_options remote_options(void);

/* Returns the value of an environment variable; NULL if it is unset or empty. */
const char *remote_variable(const char *name);
