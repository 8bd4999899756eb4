/* Bytes that were fetched or computed: blocks of objects on disk, shared by all processes of a user.
 *
 * The directory is that of options.h, else $CACHE_DIRECTORY (systemd), $XDG_CACHE_HOME/wfs or ~/.cache/wfs, mode 0700:
 *
 *     CACHEDIR.TAG
 *     objects/KK/KEY/NNNNNN    a segment of an object: data, sparse, then a page of words
 *     objects/KK/KEY/name      what the object was called, a line for each name; locked by claims.h
 *     objects/KK/KEY/sealed    all bytes of an object, in place of its segments (sealed.h)
 *     texts/NAME               small texts, replaced by renaming
 *
 * A granule of STORE_GRANULE bytes is there once its word, with the CRC-32 of its bytes, is; the word is written after
 * the bytes. So a process that is killed leaves at worst a granule without a word. After a power loss a word may stand
 * for lost bytes: the CRC is compared the first time that a process uses a granule which it did not make itself, and
 * a wrong one is absent. Two processes that make the same granule write the same bytes. No lock guards them. A segment
 * that was removed, cut or damaged is made again.
 *
 * As the store grows, segments are evicted (evict.c), those first that were used longest ago: a process sets the time
 * of a segment's file when it opens it, and at every 64th use. Whoever has an evicted segment open reads on, and closes
 * it when the store has grown by another step without a use of it, so that its space is free. Where the directory
 * cannot be written, or may hold nothing, computed bytes are not kept, and the last STORE_MEMORY granules of fetched
 * bytes are kept in memory; one note says so. Safe from any thread. Nothing here waits for the network.
 *
 * What a server states of its bytes identifies nothing until the bytes were compared with it. So an object of fetched
 * bytes belongs to one address, and two servers that state the same SHA-256 have two objects. Once all bytes of one
 * were hashed and agree, store_seal() keeps them under the hash itself, as a file that nobody writes to any more;
 * objects for which another server states this hash then read that file. The directory must belong to this user, and
 * nobody else may write to it. */
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
    STORE_NAMES = 4096,      /* bytes of an object's names */
};

struct store_object;

/* Opens an object of fetched bytes, called `name` in lists of the store; no bytes on disk change. Objects with the same
 * key have the same bytes: it is "url-HEX" with the hash of all that tells the object from others, its server included.
 * `sha256` is the hash of the bytes that the server states, in 64 digits, or NULL. */
struct store_object *store_open(const char *key, const char *sha256, uint64_t size, const char *name);

/* Like store_open(), for bytes that can be computed again: they are kept on disk or not at all. The key is
 * STORE_COMPUTED and a hash. */
#define STORE_COMPUTED "computed-"
struct store_object *store_open_computed(const char *key, uint64_t size, const char *name);

void store_close(struct store_object *object);

/* Returns how many bytes a granule of the object has: fewer at its end. */
size_t store_granule_length(const struct store_object *object, uint64_t granule);

/* Reports whether a granule seems to be there: its word is, or memory has it. */
bool store_has(struct store_object *object, uint64_t granule);

/* Calls take() for each granule on disk that seems to be there. */
void store_list(struct store_object *object, void (*take)(void *context, uint64_t granule), void *context);

/* Compares the bytes of a granule with its CRC. False: it is absent. */
bool store_verify(struct store_object *object, uint64_t granule);

/* Reads a whole granule from the disk, and compares the bytes with its CRC. False: it is absent. */
bool store_take(struct store_object *object, uint64_t granule, void *out);

/* Reads [offset, offset + length) of a granule that was verified or written before. False: it is absent now. */
bool store_read(struct store_object *object, uint64_t granule, size_t offset, size_t length, void *out);

/* Keeps all bytes of a granule, if possible. Pages of zeros at its end take no space. */
void store_write(struct store_object *object, uint64_t granule, const void *bytes);

/* Seals an object (sealed.h) from the bytes that `fill` gives granule after granule, and removes its segments. Stops if
 * `fill` returns false. Returns true if the object is sealed. An object that would take more than half of the store is
 * not. An object of fetched bytes needs a stated SHA-256, with which `fill` compares the bytes before it gives the last
 * granule: the sealed file serves all servers that state it. */
typedef bool store_fill(void *context, uint64_t granule, void *out);
bool store_seal(struct store_object *object, store_fill *fill, void *context);

/* Removes all bytes of an object from the store: they are not what they should be. */
void store_discard(struct store_object *object);

/* Opens a file of the object's that all processes with this store share, for locks alone. Returns -1 if there is none,
 * and if the object is sealed. */
int store_open_claims(const struct store_object *object);

/* Returns the descriptor of an object's sealed file, which has all of its bytes and is valid until store_close(); -1:
 * the object is not sealed. */
int store_sealed_descriptor(const struct store_object *object);

/* A text under a name of letters, digits, '-' and '.'; store_load() returns NULL if there is none. Neither fails
 * visibly: what is not kept is asked for again. */
void store_save(const char *name, const char *text, size_t length);
char *store_load(const char *name, size_t limit, struct arena *arena, size_t *ret_length);
