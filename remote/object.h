/* A file on a server: its bytes come by ranges, once, and are kept in the store.
 *
 * Bytes are fetched in granules of the store, in requests of up to OBJECT_REQUEST bytes. All readers of a
 * granule share one request, and each reader is woken as soon as its own granule has come. If the request fails, all
 * waiters and every reader within OBJECT_PAUSE get the error; the next reader tries again. What another process is
 * fetching (claims.h) is looked for in the store, and fetched here, too, once nothing has come from there for
 * OBJECT_ELSEWHERE. An object that has changed on the server fails for good, with the code ESTALE: it has another size,
 * or another ETag than before. The place that a redirect led to is remembered; if it answers 403 (a signature that has
 * expired) or with other bytes than were asked for, the object's own URL is asked again, up to OBJECT_PLACES times.
 *
 * Safe from any thread. Errors are the reason alone. */
#pragma once

#include "remote/http.h"
#include "remote/store.h"

enum {
    OBJECT_REQUEST = 4 << 20 /* bytes */,
    OBJECT_PAUSE = 2000,
    OBJECT_ELSEWHERE = 10000 /* milliseconds */,
    OBJECT_PLACES = 3
};

struct object;

struct object_origin {
    struct uri uri;
    const struct http_credential *credential; /* NULL: none */
    const char *key, *name;                   /* in the store, and in lists of it */
    const char *sha256;                       /* of the bytes, as the server states it; NULL: it does not */
    uint64_t size;
    const char *etag; /* that each answer must have; NULL: not compared */
    /* Replaces the error of a server that has refused to answer, where its headers say why; NULL: nothing is replaced.
     * `who` is what the message calls the place that the file is at. */
    void (*explain)(const char *who, const struct answer *answer, struct error *error);
    const char *who;
};

/* Makes an object from a copy of its origin. Nothing is fetched. */
struct object *object_new(const struct object_origin *origin);
struct object *object_share(struct object *object); /* one more user, who frees it, too */
void object_free(struct object *object);            /* requests under way go on */

/* Returns how many bytes are in the store. */
uint64_t object_cached(struct object *object);

/* Fetches what is missing, hashes all bytes while it copies them, and has the store keep them for all servers that
 * state their SHA-256 (store_seal()). Does nothing if the server states none, the hash is another or the copy does not
 * fit. */
void object_seal(struct object *object);

/* Removes all bytes from the store: they are not those that the server states. The object fails for good, with the
 * reason; another process fetches the bytes again. */
void object_discard(struct object *object, const struct error *reason);

/* Has [offset, offset + length), inside the object, fetched, as far as it is not here. Never waits. */
void object_want(struct object *object, uint64_t offset, uint64_t length, bool is_urgent);

/* Waits until the bytes are here. */
bool object_wait(struct object *object, uint64_t offset, uint64_t length, struct error *error);

/* Reads the bytes, and waits for them where they are not here. */
bool object_read(struct object *object, uint64_t offset, size_t length, void *out, struct error *error);
