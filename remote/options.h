/* How this process reaches remote sources: set once, before the first of them is opened. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct remote_options {
    const char *cache;  /* the directory of fetched bytes; NULL: the default (store.h) */
    const char *cacert; /* a file of certificates; NULL: $SSL_CERT_FILE, or the system's */
    unsigned timeout;   /* seconds without a new byte after which a read fails; 0: REMOTE_TIMEOUT */
    struct {
        bool is_set; /* else evict.h's default */
        uint64_t bytes;
    } cache_size;
    bool offline; /* use what is in the cache, and no network */
};

enum { REMOTE_TIMEOUT = 60 };

/* Sets the options, which must live until others are set; NULL: the defaults. Not while sources are used. */
void remote_use(const struct remote_options *options);

/* Returns the options with their defaults filled in; HF_HUB_OFFLINE and TRANSFORMERS_OFFLINE make them offline. */
struct remote_options remote_options(void);

/* Returns the value of an environment variable; NULL if it is unset or empty. */
const char *remote_variable(const char *name);
