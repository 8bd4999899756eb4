#include "remote/aws_sign.h"

#include "base/lock.h"
#include "base/report.h"
#include "remote/aws_settings.h"
#include "remote/sigv4.h"

#include <string.h>

enum { FRESH_SECONDS = 60 };

static struct lock lock = LOCK_INITIALIZER;
static struct arena *kept; /* holds the settings; NULL: they were not read yet */
static struct aws_settings settings;
static time_t read_at;

/* Reads the settings where that is due. Settings that cannot be read leave the old ones. Called with the lock held. */
static void refresh(time_t now)
{
    struct aws_settings found;
    struct error error;
    if (kept != NULL && (settings.token == NULL || now - read_at < FRESH_SECONDS))
        return;
    struct arena *arena = arena_new();
    if (!aws_settings_read(arena, &found, &error)) {
        report("%s", error.message);
        arena_free(arena);
        return;
    }
    arena_free(kept);
    kept = arena;
    settings = found;
    read_at = now;
}

/* The Host header: the origin without its scheme, and without the port that the scheme has anyway. */
static const char *host_of(const struct uri *uri, struct arena *arena)
{
    const char *host = strstr(uri->origin, "://") + strlen("://"), *port = strrchr(host, ':');
    bool is_usual = strcmp(port, strncmp(uri->origin, "https", 5) == 0 ? ":443" : ":80") == 0;
    return is_usual ? arena_strndup(arena, host, (size_t)(port - host)) : host;
}

void aws_sign(const char *region, const struct uri *uri, struct buffer *headers)
{
    struct arena *arena = arena_new();
    time_t now = time(NULL);
    const struct sigv4_request request = {"GET", host_of(uri, arena), uri->path, uri->query};
    lock_take(&lock);
    refresh(now);
    const struct sigv4_key key = {settings.key_id, settings.secret, settings.token, region};
    if (key.id != NULL)
        sigv4_append_headers(&request, &key, now, headers);
    lock_drop(&lock);
    arena_free(arena);
}
