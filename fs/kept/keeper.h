/* Computed bytes on their way to the store: one queue and one thread for the whole process.
 *
 * Readers copy what they have computed into the slots of the queue, one for each granule, and go on. A granule whose
 * pages are all there is written by the thread, after a check that no input of the file has changed; then the thread
 * tells the file how many it has written. Nobody waits: if
 * all slots are in use, the granule that has been incomplete for longest is dropped, else the new bytes are. The slots
 * take KEEPER_SLOTS granules of memory once bytes are kept. The thread starts with the first bytes, which is after any
 * fork of the daemon, and never ends. */
#pragma once

#include "formats/origin.h"

enum { KEEPER_SLOTS = 64 };

struct store_object;

/* A file that bytes are kept of. It must live until keeper_finish(). */
struct keeping {
    struct store_object *object;
    struct origin origin;
    void (*write)(void *context, uint64_t granule, const void *bytes); /* instead of store_write(); NULL: that */
    void (*written)(void *context, size_t n_granules);                 /* called by the thread; NULL: never */
    void *context;
};

/* Takes bytes that have been computed since the origin's sources were opened. Drops pages that are incomplete. */
void keeper_add(const struct keeping *file, uint64_t offset, size_t length, const void *bytes);

/* Lets the thread call written(context, 0), unless too many files wait for that. */
void keeper_call(const struct keeping *file);

/* Waits until all complete granules of a file are written and written() has returned, and drops the other granules. No
 * thread may add any meanwhile. */
void keeper_finish(const struct keeping *file);
