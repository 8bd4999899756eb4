#include "remote/options.h"

#include "base/arena.h"
#include "base/attempt.h"
#include "base/lock.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Options that were added, with those before them, which somebody may still read. */
struct settled {
    struct remote_options options;
    const struct remote_options *before;
};

static const struct remote_options *_Atomic used;
static atomic_bool is_asked; /* somebody goes by the options already */

void remote_use(const struct remote_options *options)
{
    used = options;
}

const char *remote_variable(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : NULL;
}

static bool is_on(const char *variable)
{
    static const char *const words[] = {"1", "on", "yes", "true"};
    const char *value = remote_variable(variable);
    for (size_t i = 0; value != NULL && i < sizeof words / sizeof *words; i++)
        if (strcasecmp(value, words[i]) == 0)
            return true;
    return false;
}

static struct remote_options with_defaults(const struct remote_options *given)
{
    struct remote_options options = {0};
    if (given != NULL)
        options = *given;
    if (options.timeout == 0)
        options.timeout = REMOTE_TIMEOUT;
    if (options.cacert == NULL)
        options.cacert = remote_variable("SSL_CERT_FILE");
    options.offline |= is_on("HF_HUB_OFFLINE") || is_on("TRANSFORMERS_OFFLINE");
    return options;
}

struct remote_options remote_options(void)
{
    atomic_store(&is_asked, true);
    return with_defaults(used);
}

/* Returns the options with those that `given` sets in place of others. */
static struct remote_options overlay(struct remote_options options, const struct remote_options *given)
{
    if (given->cache != NULL)
        options.cache = given->cache;
    if (given->cacert != NULL)
        options.cacert = given->cacert;
    if (given->timeout != 0)
        options.timeout = given->timeout;
    if (given->cache_size.is_set)
        options.cache_size = given->cache_size;
    options.offline |= given->offline;
    return options;
}

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Returns the name of the first option that differs; NULL: none does. */
static const char *difference(const struct remote_options *a, const struct remote_options *b)
{
    if (!is_same_text(a->cache, b->cache))
        return "cache";
    if (!is_same_text(a->cacert, b->cacert))
        return "cacert";
    if (a->timeout != b->timeout)
        return "timeout";
    if (a->cache_size.is_set != b->cache_size.is_set || a->cache_size.bytes != b->cache_size.bytes)
        return "cache-size";
    return a->offline != b->offline ? "offline" : NULL;
}

/* Returns the name of an option that `given` sets and that cannot be added to those in use; NULL: there is none. */
static const char *find_clash(const struct remote_options *present, const struct remote_options *given)
{
    const struct remote_options joined = overlay(*present, given), kept = overlay(*given, present);
    const struct remote_options after = with_defaults(&joined), before = with_defaults(present);
    return atomic_load(&is_asked) ? difference(&after, &before) : difference(&joined, &kept);
}

/* Returns a copy with texts of its own, which lives as long as the process. */
static const struct remote_options *keep(const struct remote_options *options, const struct remote_options *before)
{
    struct settled *settled = memory_alloc(sizeof *settled);
    *settled = (struct settled){*options, before};
    settled->options.cache = options->cache != NULL ? memory_strdup(options->cache) : NULL;
    settled->options.cacert = options->cacert != NULL ? memory_strdup(options->cacert) : NULL;
    return &settled->options;
}

bool remote_settle(const struct remote_options *options, struct error *error)
{
    static struct lock lock = LOCK_INITIALIZER;
    static const struct remote_options none;
    attempt_lock(&lock);
    const struct remote_options *present = used != NULL ? used : &none;
    const struct remote_options joined = overlay(*present, options);
    const char *clash = find_clash(present, options);
    if (clash == NULL && difference(&joined, present) != NULL)
        used = keep(&joined, used);
    attempt_unlock(&lock);
    return clash == NULL || error_set(error,
                                      "option %s: this process has another value already, which holds for all "
                                      "its remote sources",
                                      clash);
}
