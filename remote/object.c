#include "remote/object.h"

#include "base/arrival.h"
#include "base/attempt.h"
#include "base/encodings.h"
#include "base/lock.h"
#include "remote/claims.h"
#include "remote/options.h"
#include "remote/sparse.h"

#include <errno.h>
#include <nettle/base16.h>
#include <nettle/sha2.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What is known of a granule. UNKNOWN: the store may have it. HERE: it has, and its bytes are right. ELSEWHERE: another
 * process fetches it. */
enum state { UNKNOWN, ABSENT, UNDER_WAY, HERE, BROKEN, ELSEWHERE };

struct object {
    atomic_uint n_users; /* its owner, and the requests under way */
    struct arena *arena;
    struct object_origin origin;
    struct store_object *stored;
    struct sparse states; /* atomic bytes */
    atomic_bool has_changed;
    struct claims claims;              /* on the granules UNDER_WAY */
    _Atomic int64_t came_elsewhere_at; /* when another process last fetched what is waited for here */

    struct lock lock; /* of what follows; never held while anything is waited for */
    struct arena *target_arena;
    struct uri target;     /* where redirects led, if there is a target_arena */
    char etag[ANSWER_TAG]; /* that the object had there, or at its own URL, if it was not known before; "": none yet */
    struct error failure;
    int64_t failed_at;
    struct fetch *fetches; /* under way */
};

/* A request for the granules from `next` to `end`, in its own arena. */
struct fetch {
    struct fetch *older;
    struct object *object;
    struct arena *arena;
    uint64_t next, end;
    bool is_urgent;
    unsigned n_again;     /* how often the place that a redirect led to was no good */
    unsigned char *bytes; /* of the granule that is coming; NULL: none has come */
};

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static uint64_t n_granules(uint64_t size)
{
    return size / STORE_GRANULE + (size % STORE_GRANULE != 0);
}

struct object *object_new(const struct object_origin *origin)
{
    struct object *object = memory_alloc(sizeof *object);
    *object = (struct object){.n_users = 1, .arena = arena_new_shared(), .origin = *origin};
    lock_init(&object->lock);
    claims_init(&object->claims);
    object->origin.uri = uri_copy(&origin->uri, object->arena);
    object->origin.credential = http_credential_copy(origin->credential, object->arena);
    object->origin.key = arena_strdup(object->arena, origin->key);
    if (origin->etag != NULL)
        object->origin.etag = arena_strdup(object->arena, origin->etag);
    if (origin->who != NULL)
        object->origin.who = arena_strdup(object->arena, origin->who);
    object->stored = store_open(origin->key, origin->sha256, origin->size, origin->name);
    object->origin.sha256 = origin->sha256 != NULL ? arena_strdup(object->arena, origin->sha256) : NULL;
    object->states = sparse_new(n_granules(origin->size), 1);
    return object;
}

struct object *object_share(struct object *object)
{
    atomic_fetch_add(&object->n_users, 1);
    return object;
}

void object_free(struct object *object)
{
    if (atomic_fetch_sub(&object->n_users, 1) > 1)
        return;
    store_close(object->stored);
    claims_destroy(&object->claims);
    lock_destroy(&object->lock);
    arena_free(object->target_arena);
    arena_free(object->arena);
    sparse_free(&object->states);
    free(object);
}

static enum state state_of(struct object *object, uint64_t granule)
{
    const _Atomic unsigned char *state = sparse_find(&object->states, granule);
    return state != NULL ? (enum state)atomic_load(state) : UNKNOWN;
}

struct counting {
    struct object *object;
    uint64_t n_bytes;
};

static void count_stored(void *context, uint64_t granule)
{
    struct counting *counting = context;
    if (state_of(counting->object, granule) != HERE)
        counting->n_bytes += store_granule_length(counting->object->stored, granule);
}

uint64_t object_cached(struct object *object)
{
    struct counting counting = {.object = object};
    uint64_t end = n_granules(object->origin.size);
    for (uint64_t granule = 0; (granule = sparse_next(&object->states, granule)) < end; granule++)
        if (state_of(object, granule) == HERE)
            counting.n_bytes += store_granule_length(object->stored, granule);
    store_list(object->stored, count_stored, &counting);
    return counting.n_bytes;
}

static bool replace_state(struct object *object, uint64_t granule, enum state before, enum state after)
{
    unsigned char expected = (unsigned char)before;
    _Atomic unsigned char *state = sparse_at(&object->states, granule);
    return atomic_compare_exchange_strong(state, &expected, (unsigned char)after);
}

/* Keeps the granule that has come. */
static void publish(struct fetch *fetch, uint64_t granule)
{
    if (!atomic_load(&fetch->object->has_changed))
        store_write(fetch->object->stored, granule, fetch->bytes);
    /* An answer may have more than was asked for, and the same again. */
    if (atomic_exchange((_Atomic unsigned char *)sparse_at(&fetch->object->states, granule), HERE) == UNDER_WAY)
        claims_drop(&fetch->object->claims, granule, granule + 1);
    arrival_announce();
}

static bool take(void *context, uint64_t offset, const void *bytes, size_t length)
{
    struct fetch *fetch = context;
    const unsigned char *from = bytes;
    uint64_t size = fetch->object->origin.size;
    if (offset > size || length > size - offset)
        return false;
    if (fetch->bytes == NULL)
        fetch->bytes = memory_alloc(STORE_GRANULE);
    while (length > 0) {
        uint64_t granule = offset / STORE_GRANULE;
        size_t at = (size_t)(offset % STORE_GRANULE), whole = store_granule_length(fetch->object->stored, granule);
        size_t n = length < whole - at ? length : whole - at;
        memcpy(fetch->bytes + at, from, n);
        if (at + n == whole)
            publish(fetch, granule);
        offset += n;
        from += n;
        length -= n;
    }
    return true;
}

/* A place that a redirect led to, and where it is copied to. */
struct place_copy {
    const struct uri *uri;
    struct arena *arena;
    struct uri copy;
};

static void copy_place(void *context)
{
    struct place_copy *place = context;
    place->arena = arena_new_shared();
    place->copy = uri_copy(place->uri, place->arena);
}

/* Remembers where redirects led, which only saves them: so it is forgotten where memory does not suffice. */
static void remember_target(struct object *object, const struct uri *uri)
{
    struct place_copy place = {.uri = uri};
    if (strcmp(uri->text, object->origin.uri.text) == 0)
        return;
    bool is_copied = attempt_lacking(copy_place, &place) == 0;
    lock_take(&object->lock);
    if (is_copied && object->target_arena == NULL) {
        object->target_arena = place.arena;
        object->target = place.copy;
        place.arena = NULL;
    }
    lock_drop(&object->lock);
    arena_free(place.arena);
}

/* Remembers where bytes come from, and the tag that they have there: other bytes of the same size have another. */
static bool begin(void *context, const struct uri *uri, const struct answer *answer)
{
    struct object *object = ((struct fetch *)context)->object;
    lock_take(&object->lock);
    if (object->origin.etag == NULL && object->etag[0] == '\0' && answer_tag_is_strong(answer->etag))
        strcpy(object->etag, answer->etag);
    bool is_same = object->etag[0] == '\0' || strcmp(object->etag, answer->etag) == 0;
    lock_drop(&object->lock);
    remember_target(object, uri);
    return is_same;
}

static void drop_target(struct object *object)
{
    lock_take(&object->lock);
    arena_free(object->target_arena);
    object->target_arena = NULL;
    object->etag[0] = '\0'; /* another server may give other tags */
    lock_drop(&object->lock);
}

static void remove_fetch(struct fetch *fetch)
{
    struct object *object = fetch->object;
    lock_take(&object->lock);
    struct fetch **at = &object->fetches;
    while (*at != fetch)
        at = &(*at)->older;
    *at = fetch->older;
    lock_drop(&object->lock);
    free(fetch->bytes);
    arena_free(fetch->arena);
    object_free(object);
}

/* Gives up granules that are under way. */
static void release(struct object *object, uint64_t first, uint64_t end, enum state after)
{
    for (uint64_t granule = first; granule < end; granule++)
        if (replace_state(object, granule, UNDER_WAY, after))
            claims_drop(&object->claims, granule, granule + 1);
    arrival_announce();
}

static void fail(struct fetch *fetch, const struct http_result *result)
{
    struct object *object = fetch->object;
    if (result->verdict == VERDICT_CHANGED)
        atomic_store(&object->has_changed, true);
    struct error error = *result->error;
    if (result->verdict == VERDICT_REFUSED && object->origin.explain != NULL)
        object->origin.explain(object->origin.who, result->answer, &error);
    lock_take(&object->lock);
    object->failure = error;
    object->failed_at = now();
    lock_drop(&object->lock);
    release(object, fetch->next, fetch->end, BROKEN);
}

static void submit(struct fetch *fetch);

/* What has come is not asked for again. */
static void skip_done(struct fetch *fetch)
{
    lock_take(&fetch->object->lock);
    while (fetch->next < fetch->end && state_of(fetch->object, fetch->next) != UNDER_WAY)
        fetch->next++;
    lock_drop(&fetch->object->lock);
}

static void done(void *context, const struct http_result *result)
{
    struct fetch *fetch = context;
    skip_done(fetch);
    bool is_elsewhere = strcmp(result->uri->text, fetch->object->origin.uri.text) != 0;
    int status = result->answer->status;
    bool is_bad_place = status == 403 || (status == 206 && result->verdict == VERDICT_REFUSED);
    if (is_elsewhere && is_bad_place && fetch->n_again++ < OBJECT_PLACES) {
        drop_target(fetch->object);
        submit(fetch);
        return;
    }
    if (result->verdict >= VERDICT_RETRY)
        fail(fetch, result);
    remove_fetch(fetch);
}

/* Asks for what is left of a fetch: where redirects led before, if they did. */
static void submit(struct fetch *fetch)
{
    struct object *object = fetch->object;
    uint64_t first = fetch->next * STORE_GRANULE, last = fetch->end * STORE_GRANULE;
    const struct object_origin *origin = &object->origin;
    struct http_request request = {.credential = origin->credential};
    request.begin = begin;
    request.take = take;
    request.done = done;
    request.context = fetch;
    request.question = (struct question){
        .is_range = origin->size > STORE_GRANULE, /* what is small is asked for whole */
        .first = first,
        .length = (last < origin->size ? last : origin->size) - first,
        .size = origin->size,
        .etag = origin->etag,
    };
    attempt_lock(&object->lock);
    request.is_urgent = fetch->is_urgent;
    if (object->etag[0] != '\0')
        request.question.etag = arena_strdup(fetch->arena, object->etag);
    bool has_target = object->target_arena != NULL;
    request.uri = uri_copy(has_target ? &object->target : &origin->uri, fetch->arena);
    attempt_unlock(&object->lock);
    http_submit(&request);
}

/* A fetch that is being started; `fetch` is NULL until there is one that the object knows, and has the arena. */
struct starting {
    struct object *object;
    uint64_t first, end;
    bool is_urgent;
    struct arena *arena;
    struct fetch *fetch;
};

static void start_fetch(void *context)
{
    struct starting *starting = context;
    struct object *object = starting->object;
    starting->arena = arena_new_shared();
    struct fetch *fetch = arena_alloc(starting->arena, sizeof *fetch);
    fetch->object = object_share(object);
    fetch->arena = starting->arena;
    fetch->next = starting->first;
    fetch->end = starting->end;
    fetch->is_urgent = starting->is_urgent;
    fetch->n_again = 0;
    fetch->bytes = NULL;
    lock_take(&object->lock);
    fetch->older = object->fetches;
    object->fetches = fetch;
    lock_drop(&object->lock);
    starting->fetch = fetch;
    submit(fetch);
}

/* Fetches granules that the caller has claimed. If memory runs out, others may claim them again. */
static void fetch_granules(struct object *object, uint64_t first, uint64_t end, bool is_urgent)
{
    struct starting starting = {.object = object, .first = first, .end = end, .is_urgent = is_urgent};
    size_t lacking = attempt_lacking(start_fetch, &starting);
    if (lacking == 0)
        return;
    release(object, first, end, ABSENT);
    if (starting.fetch != NULL)
        remove_fetch(starting.fetch);
    else
        arena_free(starting.arena);
    memory_exhausted(lacking);
}

/* Reports whether the last failure is so recent that nobody tries again. */
static bool is_down(struct object *object)
{
    lock_take(&object->lock);
    bool down = object->failure.message[0] != '\0' && now() - object->failed_at < OBJECT_PAUSE;
    lock_drop(&object->lock);
    return down;
}

/* Reports whether the caller is the one to fetch a granule: of the threads here, and then of all processes. */
static bool claim(struct object *object, uint64_t granule)
{
    enum state state = state_of(object, granule);
    bool was_absent = state == ABSENT || state == BROKEN; /* also where the store has other bytes than it should */
    if (state == UNDER_WAY || state == HERE || (!was_absent && store_has(object->stored, granule)))
        return false;
    if ((state == BROKEN && is_down(object)) || !replace_state(object, granule, state, UNDER_WAY))
        return false;
    if (!claims_take(&object->claims, object->stored, granule)) {
        replace_state(object, granule, UNDER_WAY, ELSEWHERE);
        arrival_announce();
        return false;
    }
    bool has_come = !was_absent && store_has(object->stored, granule); /* just before the other dropped its claim */
    if (has_come)
        release(object, granule, granule + 1, ELSEWHERE);
    return !has_come;
}

/* Moves what was only hinted at to the front. */
static void hurry(struct object *object, uint64_t granule)
{
    lock_take(&object->lock);
    struct fetch *fetch = object->fetches;
    while (fetch != NULL && (granule < fetch->next || granule >= fetch->end))
        fetch = fetch->older;
    if (fetch != NULL && !fetch->is_urgent) {
        fetch->is_urgent = true;
        http_hurry(fetch);
    }
    lock_drop(&object->lock);
}

/* A pass over granules that are wanted. Those from `claimed` to `end` are claimed, and not asked for yet. */
struct wanting {
    struct object *object;
    uint64_t next, last;
    bool is_urgent;
    uint64_t claimed, end;
};

static void ask_for_claimed(struct wanting *wanting)
{
    uint64_t first = wanting->claimed, end = wanting->end;
    wanting->claimed = end;
    if (end > first)
        fetch_granules(wanting->object, first, end, wanting->is_urgent);
}

static void want_granules(void *context)
{
    struct wanting *wanting = context;
    struct object *object = wanting->object;
    for (uint64_t granule = wanting->next; granule <= wanting->last; granule++) {
        if ((wanting->end - wanting->claimed) * STORE_GRANULE >= OBJECT_REQUEST)
            ask_for_claimed(wanting);
        if (claim(object, granule)) {
            wanting->claimed = wanting->end > wanting->claimed ? wanting->claimed : granule;
            wanting->end = granule + 1;
            continue;
        }
        if (wanting->is_urgent && state_of(object, granule) == UNDER_WAY)
            hurry(object, granule);
        ask_for_claimed(wanting);
    }
    ask_for_claimed(wanting);
}

void object_want(struct object *object, uint64_t offset, uint64_t length, bool is_urgent)
{
    if (length == 0 || atomic_load(&object->has_changed) || remote_options().offline)
        return;
    struct wanting wanting = {.object = object, .is_urgent = is_urgent};
    wanting.next = offset / STORE_GRANULE;
    wanting.last = (offset + length - 1) / STORE_GRANULE;
    size_t lacking = attempt_lacking(want_granules, &wanting);
    if (lacking == 0)
        return;
    release(object, wanting.claimed, wanting.end, ABSENT);
    memory_exhausted(lacking);
}

struct place {
    struct object *object;
    uint64_t granule;
};

static bool has_arrived(void *context)
{
    const struct place *place = context;
    return state_of(place->object, place->granule) != UNDER_WAY;
}

static bool is_not_elsewhere(void *context)
{
    const struct place *place = context;
    return state_of(place->object, place->granule) != ELSEWHERE;
}

static bool report_failure(struct object *object, struct error *error)
{
    lock_take(&object->lock);
    *error = object->failure;
    lock_drop(&object->lock);
    return false;
}

static bool is_here(struct object *object, uint64_t granule)
{
    enum state state = state_of(object, granule);
    if (state == UNKNOWN || (state == ELSEWHERE && store_has(object->stored, granule))) {
        bool good = store_verify(object->stored, granule);
        replace_state(object, granule, state, good ? HERE : ABSENT);
        if (state == ELSEWHERE)
            atomic_store(&object->came_elsewhere_at, now());
    }
    return state_of(object, granule) == HERE;
}

/* Waits a moment for a granule that another process fetches, since the time `since` of this clock: now or then nothing
 * tells that it has come. If nothing comes from others, ends the trust in them, and does not wait. */
static bool await_elsewhere(struct place *place, int64_t since, struct error *error)
{
    enum { MOMENT = 10 /* milliseconds */, SECOND = 1000 };
    struct object *object = place->object;
    int64_t came = atomic_load(&object->came_elsewhere_at), until = now() + MOMENT;
    const struct timespec deadline = {until / SECOND, until % SECOND * 1000000};
    if (until - (came > since ? came : since) > OBJECT_ELSEWHERE) {
        claims_ignore_others(&object->claims);
        return true;
    }
    return arrival_wait(is_not_elsewhere, place, &deadline, error) || error->code == ETIMEDOUT;
}

/* Waits for one granule. */
static bool await(struct object *object, uint64_t granule, struct error *error)
{
    struct place place = {object, granule};
    int64_t since = now();
    for (;;) {
        if (atomic_load(&object->has_changed))
            return report_failure(object, error);
        if (is_here(object, granule))
            return true;
        if (state_of(object, granule) == BROKEN && is_down(object))
            return report_failure(object, error);
        if (remote_options().offline)
            return error_set(
                error,
                "offline, and bytes [%llu, %llu) are not in the cache; read them once without -o "
                "offline",
                (unsigned long long)(granule * STORE_GRANULE),
                (unsigned long long)(granule * STORE_GRANULE + store_granule_length(object->stored, granule)));
        object_want(object, granule * STORE_GRANULE, 1, true);
        bool goes_on = state_of(object, granule) == ELSEWHERE ? await_elsewhere(&place, since, error)
                                                              : arrival_wait(has_arrived, &place, NULL, error);
        if (!goes_on)
            return false;
    }
}

bool object_wait(struct object *object, uint64_t offset, uint64_t length, struct error *error)
{
    if (length == 0)
        return true;
    object_want(object, offset, length, true);
    for (uint64_t granule = offset / STORE_GRANULE; granule <= (offset + length - 1) / STORE_GRANULE; granule++)
        if (!await(object, granule, error))
            return false;
    return true;
}

/* Reads from one granule. Bytes that leave the store after they were waited for are fetched again, a few times. */
static bool read_granule(struct object *object, uint64_t offset, size_t length, void *out, struct error *error)
{
    enum { ATTEMPTS = 8 };
    uint64_t granule = offset / STORE_GRANULE;
    for (int i = 0; i < ATTEMPTS; i++) {
        if (!await(object, granule, error))
            return false;
        if (store_read(object->stored, granule, (size_t)(offset % STORE_GRANULE), length, out))
            return true;
        replace_state(object, granule, HERE, ABSENT);
    }
    return error_set(error, "the cache loses bytes as fast as they are fetched");
}

bool object_read(struct object *object, uint64_t offset, size_t length, void *out, struct error *error)
{
    unsigned char *to = out;
    if (length > 0 && offset / STORE_GRANULE != (offset + length - 1) / STORE_GRANULE)
        object_want(object, offset, length, true);
    while (length > 0) {
        uint64_t left = STORE_GRANULE - offset % STORE_GRANULE;
        size_t n = length < left ? length : (size_t)left;
        if (!read_granule(object, offset, n, to, error))
            return false;
        offset += n;
        to += n;
        length -= n;
    }
    return true;
}

/* The bytes of an object on their way to a sealed file. */
struct sealing_pass {
    struct object *object;
    struct sha256_ctx context;
};

static bool has_stated_hash(struct sealing_pass *pass)
{
    uint8_t digest[SHA256_DIGEST_SIZE];
    char hex[SHA256_HEX + 1] = "";
    sha256_digest(&pass->context, sizeof digest, digest);
    base16_encode_update(hex, sizeof digest, digest);
    return strcmp(hex, pass->object->origin.sha256) == 0;
}

static bool fill_granule(void *context, uint64_t granule, void *out)
{
    struct sealing_pass *pass = context;
    struct object *object = pass->object;
    struct error unused;
    size_t length = store_granule_length(object->stored, granule);
    if (!object_read(object, granule * STORE_GRANULE, length, out, &unused))
        return false;
    sha256_update(&pass->context, length, out);
    return granule + 1 < n_granules(object->origin.size) || has_stated_hash(pass);
}

void object_seal(struct object *object)
{
    struct sealing_pass pass = {.object = object};
    if (object->origin.sha256 == NULL || object->origin.size == 0 || store_sealed_descriptor(object->stored) >= 0)
        return;
    sha256_init(&pass.context);
    store_seal(object->stored, fill_granule, &pass);
}

void object_discard(struct object *object, const struct error *reason)
{
    lock_take(&object->lock);
    object->failure = *reason;
    lock_drop(&object->lock);
    atomic_store(&object->has_changed, true);
    store_discard(object->stored);
}
