#include "fs/tree/digests.h"

#include "base/attempt.h"
#include "base/lock.h"
#include "base/report.h"
#include "base/text_index.h"
#include "remote/store.h"

#include <nettle/base16.h>
#include <nettle/sha2.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_BYTES = 4 << 20,
    REPORT_BYTES = 1 << 30, /* between two lines of progress */
    NAME_BYTES = SHA256_HEX + 16,
};

enum state { UNKNOWN, COMPUTING, KNOWN };

struct digest {
    enum state state;
    char identity[SHA256_HEX + 1], hex[SHA256_HEX + 1];
};

struct digests {
    struct lock lock;
    struct event changed;
    digests_count *count;
    void *context;
    bool are_kept;
    struct digest **all;
    struct text_index places; /* in `all`, by identity */
    atomic_bool ending;
};

struct digests *digests_new(bool are_kept, digests_count *count, void *context)
{
    struct digests *digests = memory_alloc(sizeof *digests);
    *digests = (struct digests){.count = count, .context = context, .are_kept = are_kept};
    lock_init(&digests->lock);
    event_init(&digests->changed);
    return digests;
}

void digests_end(struct digests *digests)
{
    atomic_store(&digests->ending, true);
}

void digests_free(struct digests *digests)
{
    for (size_t i = 0; i < digests->places.n_entries; i++)
        free(digests->all[i]);
    free(digests->all);
    text_index_free(&digests->places);
    event_destroy(&digests->changed);
    lock_destroy(&digests->lock);
    free(digests);
}

static const char *kept_name(const char *identity, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "sha256-%s", identity);
    return name;
}

/* Loads a digest that an earlier process kept. */
static void load(struct digest *digest)
{
    char name[NAME_BYTES];
    size_t length;
    struct arena *arena = arena_new();
    const char *text = store_load(kept_name(digest->identity, name), SHA256_HEX, arena, &length);
    if (text != NULL && length == SHA256_HEX && strspn(text, "0123456789abcdef") == SHA256_HEX) {
        memcpy(digest->hex, text, SHA256_HEX);
        digest->state = KNOWN;
    }
    arena_free(arena);
}

/* Returns the record of a file; the caller has the lock. */
static struct digest *find(struct digests *digests, const char *identity)
{
    size_t n = digests->places.n_entries, place;
    if (text_index_find(&digests->places, identity, strlen(identity), &place))
        return digests->all[place];
    digests->all = memory_grow(digests->all, n, sizeof(struct digest *));
    struct digest *digest = digests->all[n] = memory_alloc(sizeof *digest);
    *digest = (struct digest){.state = UNKNOWN};
    snprintf(digest->identity, sizeof digest->identity, "%s", identity);
    text_index_add(&digests->places, digest->identity, strlen(digest->identity), n);
    if (digests->are_kept)
        load(digest);
    return digest;
}

bool digest_known(struct digests *digests, const char *identity, char hex[SHA256_HEX + 1])
{
    attempt_lock(&digests->lock);
    const struct digest *digest = find(digests, identity);
    bool known = digest->state == KNOWN;
    if (known)
        memcpy(hex, digest->hex, SHA256_HEX + 1);
    attempt_unlock(&digests->lock);
    return known;
}

/* One pass over a file. */
struct pass {
    struct digests *digests;
    const char *name;
    const struct vfile *file;
    char *hex;
    bool done;
    struct error *error;
};

static void report_progress(const struct pass *pass, uint64_t before, uint64_t now)
{
    if (before / REPORT_BYTES != now / REPORT_BYTES)
        report("%s: SHA-256 of %.1f of %.1f GB", pass->name, (double)now / 1e9, (double)pass->file->size / 1e9);
}

static bool hash(const struct pass *pass, struct sha256_ctx *context, unsigned char *block)
{
    uint64_t size = pass->file->size, length;
    for (uint64_t at = 0; at < size; at += length) {
        length = size - at < BLOCK_BYTES ? size - at : BLOCK_BYTES;
        if (atomic_load(&pass->digests->ending))
            return error_set(pass->error, "the server ends");
        uint64_t ahead = size - at - length < BLOCK_BYTES ? size - at - length : BLOCK_BYTES;
        vfile_want(pass->file, at + length, ahead, false);
        if (!vfile_wait(pass->file, at, length, pass->error) ||
            !vfile_read(pass->file, at, (size_t)length, block, pass->error))
            return false;
        sha256_update(context, (size_t)length, block);
        if (pass->digests->count != NULL)
            pass->digests->count(pass->digests->context, length);
        report_progress(pass, at, at + length);
    }
    return !origin_changed(&pass->file->origin) ||
           error_set(pass->error, "a source has changed since it was opened; restart wfs");
}

static void make_pass(void *context)
{
    struct pass *pass = context;
    struct sha256_ctx sha256;
    uint8_t digest[SHA256_DIGEST_SIZE];
    struct arena *arena = arena_new();
    sha256_init(&sha256);
    bool hashed = hash(pass, &sha256, arena_alloc(arena, BLOCK_BYTES));
    sha256_digest(&sha256, sizeof digest, digest);
    base16_encode_update(pass->hex, sizeof digest, digest);
    const struct source *whole = pass->file->whole;
    pass->done = hashed && (whole == NULL || source_confirm(whole, pass->hex, false, pass->error));
    arena_free(arena);
}

/* Computes a digest without the lock, which the caller has. An attempt of its own: others wait for its end. */
static void compute(struct digests *digests, struct digest *digest, struct pass *pass)
{
    char name[NAME_BYTES];
    digest->state = COMPUTING;
    attempt_unlock(&digests->lock);
    bool done = attempt(make_pass, pass, pass->error) && pass->done;
    if (done && digests->are_kept)
        store_save(kept_name(digest->identity, name), pass->hex, SHA256_HEX);
    attempt_lock(&digests->lock);
    if (done)
        memcpy(digest->hex, pass->hex, SHA256_HEX);
    digest->state = done ? KNOWN : UNKNOWN;
    event_wake_all(&digests->changed);
}

bool digest_get(struct digests *digests, const char *identity, const char *name, const struct vfile *file,
                char hex[SHA256_HEX + 1], struct error *error)
{
    char computed[SHA256_HEX + 1] = "";
    struct pass pass = {.digests = digests, .name = name, .file = file, .hex = computed, .error = error};
    attempt_lock(&digests->lock);
    struct digest *digest = find(digests, identity);
    while (digest->state == COMPUTING)
        event_wait(&digests->changed, &digests->lock);
    if (digest->state == UNKNOWN)
        compute(digests, digest, &pass);
    bool known = digest->state == KNOWN;
    memcpy(hex, digest->hex, SHA256_HEX + 1);
    attempt_unlock(&digests->lock);
    return known;
}
