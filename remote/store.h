/* Bytes that were fetched or computed: blocks of objects on disk, shared by all processes of a user.
 *
 * The directory is that of options.h, else $CACHE_DIRECTORY (systemd), $XDG_CACHE_HOME/wfs or ~/.cache/wfs, mode 0700:
 *
 *     CACHEDIR.TAG
 *     objects/KK/KEY/NNNNNN    a segment of an object: data, sparse, then a page of words
 *     objects/KK/KEY/name      what the object was called
 *     objects/KK/KEY/sealed    all bytes of a computed object, in place of its segments (sealed.h)
 *     texts/NAME               small texts, replaced by renaming
 *
 * A granule of STORE_GRANULE bytes is there once its word, with the CRC-32 of its bytes, is; the word is written after
 * the bytes. So a process that is killed leaves at worst a granule without a word. After a power loss a word may stand
 * for lost bytes: the CRC is compared the first time that a process uses a granule which it did not make itself, and
 * a wrong one is absent. Two processes that make the same granule write the same bytes. There are no locks. A segment
 * that was removed, cut or damaged is made again.
 *
 * As the store grows, segments are evicted (evict.h), those first that were used longest ago: a process sets the time
 * of a segment's file when it opens it, and at every 64th use. Whoever has an evicted segment open reads on, and closes
 * it when the store has grown by another step without a use of it, so that its space is free. Where the directory
 * cannot be written, or may hold nothing, computed bytes are not kept, and the last STORE_MEMORY granules of fetched
 * bytes are kept in memory; one note says so. Safe from any thread. Nothing here waits for the network. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <stdint.h>

#define STORE_GRANULE (UINT64_C(256) << 10)
#define STORE_SEGMENT (UINT64_C(64) << 20)
enum {
    STORE_MEMORY = 256,      /* granules */
    STORE_DESCRIPTORS = 256, /* open segments, of all objects */
    STORE_KEY = 80,          /* the longest key, with its NUL */
};

struct store_object;

/* Opens an object of fetched bytes, called `name` in lists of the store; nothing on disk changes. Objects with the same
 * key have the same bytes: it is "sha256-HEX", or "url-HEX" with the hash of all that tells the object from others. */
struct store_object *store_open(const char *key, uint64_t size, const char *name);

/* Like store_open(), for bytes that can be computed again: they are kept on disk or not at all. The key is
 * STORE_COMPUTED and a hash. */
#define STORE_COMPUTED "computed-"
struct store_object *store_open_computed(const char *key, uint64_t size, const char *name);

void store_close(struct store_object *object);

/* Returns how many bytes a granule of the object has: fewer at its end. */
size_t store_granule_length(const struct store_object *object, uint64_t granule);

/* Reports whether a granule seems to be there: its word is, or memory has it. */
bool store_has(struct store_object *object, uint64_t granule);

/* Compares the bytes of a granule with its CRC. False: it is absent. */
bool store_verify(struct store_object *object, uint64_t granule);

/* Reads a whole granule from the disk, and compares the bytes with its CRC. False: it is absent. */
bool store_take(struct store_object *object, uint64_t granule, void *out);

/* Reads [offset, offset + length) of a granule that was verified or written before. False: it is absent now. */
bool store_read(struct store_object *object, uint64_t granule, size_t offset, size_t length, void *out);

/* Keeps all bytes of a granule, if possible. */
void store_write(struct store_object *object, uint64_t granule, const void *bytes);

/* Seals an object of computed bytes (sealed.h), from the bytes that `fill` gives granule after granule, and removes its
 * segments. Stops if `fill` returns false. Returns true if the object is sealed. An object that would take more than
 * half of the store is not. */
typedef bool store_fill(void *context, uint64_t granule, void *out);
bool store_seal(struct store_object *object, store_fill *fill, void *context);

/* Returns the descriptor of an object's sealed file, which has all of its bytes and is valid until store_close(); -1:
 * the object was not sealed when it was opened. */
int store_sealed_descriptor(const struct store_object *object);

/* The directory of the store; NULL: there is none. */
const char *store_directory(void);

/* A text under a name of letters, digits, '-' and '.'; store_load() returns NULL if there is none. Neither fails
 * visibly: what is not kept is asked for again. */
void store_save(const char *name, const char *text, size_t length);
char *store_load(const char *name, size_t limit, struct arena *arena, size_t *ret_length);
