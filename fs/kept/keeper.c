#include "fs/kept/keeper.h"

#include "base/attempt.h"
#include "base/lock.h"
#include "remote/store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_BYTES = 4096, GRANULE_PAGES = STORE_GRANULE / PAGE_BYTES };
_Static_assert(GRANULE_PAGES == 64, "a granule's pages are the bits of a uint64_t");

enum slot_state { FREE, FILLING, COMPLETE, WRITING };

struct slot {
    enum slot_state state;
    const struct keeping *file;
    uint64_t granule, order;
    uint64_t claimed, filled; /* pages, a bit each: being copied or there; there */
    unsigned char *bytes;     /* NULL until the slot is first used */
};

static struct lock lock = LOCK_INITIALIZER; /* guards all that follows, and no bytes of claimed pages */
static struct event work_came = EVENT_INITIALIZER, work_ended = EVENT_INITIALIZER;
static struct slot slots[KEEPER_SLOTS];
static uint64_t n_orders;                          /* slots taken so far */
static const struct keeping *called[KEEPER_SLOTS]; /* files that wait for a call of written() */
static size_t n_called;
static const struct keeping *served; /* the file that the thread works for; NULL: none */
static bool has_thread;

static struct slot *find(const struct keeping *file, uint64_t granule)
{
    for (size_t i = 0; i < KEEPER_SLOTS; i++)
        if (slots[i].state != FREE && slots[i].file == file && slots[i].granule == granule)
            return &slots[i];
    return NULL;
}

/* Returns the slot in a state that was taken first; NULL: none is in it. Leaves out slots that bytes are copied to. */
static struct slot *first_in(enum slot_state state)
{
    struct slot *first = NULL;
    for (size_t i = 0; i < KEEPER_SLOTS; i++)
        if (slots[i].state == state && slots[i].claimed == slots[i].filled &&
            (first == NULL || slots[i].order < first->order))
            first = &slots[i];
    return first;
}

/* Takes a slot for a granule; NULL: it must be dropped. */
static struct slot *take_slot(const struct keeping *file, uint64_t granule)
{
    struct slot *slot = first_in(FREE);
    if (slot == NULL)
        slot = first_in(FILLING);
    if (slot == NULL)
        return NULL;
    unsigned char *bytes = slot->bytes;
    if (bytes == NULL)
        bytes = aligned_alloc(PAGE_BYTES, STORE_GRANULE);
    if (bytes == NULL)
        return NULL;
    *slot = (struct slot){.state = FILLING, .file = file, .granule = granule, .order = n_orders++, .bytes = bytes};
    return slot;
}

static uint64_t bits(uint64_t first, uint64_t end)
{
    uint64_t below_end = end == GRANULE_PAGES ? UINT64_MAX : (UINT64_C(1) << end) - 1;
    return first < end ? below_end & ~((UINT64_C(1) << first) - 1) : 0;
}

/* Returns the pages that [from, to) of a granule holds as a whole; the granule's last one may be short. */
static uint64_t pages_within(const struct keeping *file, uint64_t granule, size_t from, size_t to)
{
    bool is_end = to == store_granule_length(file->object, granule);
    return bits((from + PAGE_BYTES - 1) / PAGE_BYTES, (to + (is_end ? PAGE_BYTES - 1 : 0)) / PAGE_BYTES);
}

/* Copies pages of [from, to) of a granule; `bytes` begins at `from`. */
static void copy_pages(struct slot *slot, uint64_t pages, size_t from, size_t to, const unsigned char *bytes)
{
    for (size_t page = 0; page < GRANULE_PAGES; page++) {
        size_t at = page * PAGE_BYTES;
        if ((pages >> page & 1) != 0)
            memcpy(slot->bytes + at, bytes + (at - from), to - at < PAGE_BYTES ? to - at : PAGE_BYTES);
    }
}

/* Adds [from, to) of a granule. Several threads may fill a slot, each other pages. */
static void add_piece(const struct keeping *file, uint64_t granule, size_t from, size_t to, const unsigned char *bytes)
{
    const size_t whole = store_granule_length(file->object, granule);
    const uint64_t offered = pages_within(file, granule, from, to);
    lock_take(&lock);
    struct slot *slot = find(file, granule);
    if (slot == NULL && offered != 0)
        slot = take_slot(file, granule);
    uint64_t pages = slot != NULL && slot->state == FILLING ? offered & ~slot->claimed : 0;
    if (pages != 0) {
        slot->claimed |= pages;
        lock_drop(&lock);
        copy_pages(slot, pages, from, to, bytes);
        lock_take(&lock);
        slot->filled |= pages;
        if (slot->filled == pages_within(file, granule, 0, whole)) {
            slot->state = COMPLETE;
            event_wake(&work_came);
        }
    }
    lock_drop(&lock);
}

/* Waits for work, makes its file the served one, and takes the file's complete granules, of which there may be none. */
static size_t take_work(struct slot *taken[KEEPER_SLOTS])
{
    size_t n_taken = 0;
    const struct slot *first;
    while ((first = first_in(COMPLETE)) == NULL && n_called == 0)
        event_wait(&work_came, &lock);
    served = first != NULL ? first->file : called[--n_called];
    for (size_t i = 0; i < KEEPER_SLOTS; i++)
        if (slots[i].state == COMPLETE && slots[i].file == served) {
            slots[i].state = WRITING;
            taken[n_taken++] = &slots[i];
        }
    return n_taken;
}

static void write_granule(void *context)
{
    const struct slot *slot = context;
    if (slot->file->write != NULL)
        slot->file->write(slot->file->context, slot->granule, slot->bytes);
    else
        store_write(slot->file->object, slot->granule, slot->bytes);
}

/* The number of granules that the thread has written for the served file. */
static size_t n_written;

static void call_written(void *unused)
{
    served->written(served->context, n_written);
}

/* Writes granules of the served file, unless an input has changed since the file was opened. */
static void write_taken(struct slot *const taken[], size_t n_taken)
{
    struct error unsaid;
    bool changed = origin_verify(&served->origin);
    n_written = 0;
    for (size_t i = 0; i < n_taken; i++) {
        if (!changed && attempt(write_granule, taken[i], &unsaid))
            n_written++;
        lock_take(&lock);
        taken[i]->state = FREE;
        lock_drop(&lock);
    }
    if (!changed && served->written != NULL)
        attempt(call_written, NULL, &unsaid);
}

static void *write_granules(void *unused)
{
    struct slot *taken[KEEPER_SLOTS];
    for (;;) {
        lock_take(&lock);
        size_t n_taken = take_work(taken);
        lock_drop(&lock);
        write_taken(taken, n_taken);
        lock_take(&lock);
        served = NULL;
        event_wake_all(&work_ended);
        lock_drop(&lock);
    }
    return NULL;
}

/* Starts the thread if there is none. */
static bool is_running(void)
{
    pthread_t thread;
    lock_take(&lock);
    if (!has_thread && pthread_create(&thread, NULL, write_granules, NULL) == 0) {
        pthread_detach(thread);
        has_thread = true;
    }
    bool running = has_thread;
    lock_drop(&lock);
    return running;
}

void keeper_add(const struct keeping *file, uint64_t offset, size_t length, const void *bytes)
{
    const unsigned char *at = bytes;
    if (!is_running())
        return;
    while (length > 0) {
        uint64_t granule = offset / STORE_GRANULE;
        size_t from = (size_t)(offset % STORE_GRANULE), left = STORE_GRANULE - from, n = length < left ? length : left;
        add_piece(file, granule, from, from + n, at);
        offset += n;
        at += n;
        length -= n;
    }
}

void keeper_call(const struct keeping *file)
{
    if (!is_running())
        return;
    lock_take(&lock);
    if (n_called < KEEPER_SLOTS)
        called[n_called++] = file;
    event_wake(&work_came);
    lock_drop(&lock);
}

static void forget_calls(const struct keeping *file)
{
    size_t n_left = 0;
    for (size_t i = 0; i < n_called; i++)
        if (called[i] != file)
            called[n_left++] = called[i];
    n_called = n_left;
}

static bool is_being_served(const struct keeping *file)
{
    if (served == file)
        return true;
    for (size_t i = 0; i < KEEPER_SLOTS; i++)
        if (slots[i].file == file && slots[i].state >= COMPLETE)
            return true;
    return false;
}

void keeper_finish(const struct keeping *file)
{
    lock_take(&lock);
    forget_calls(file);
    while (is_being_served(file))
        event_wait(&work_ended, &lock);
    for (size_t i = 0; i < KEEPER_SLOTS; i++)
        if (slots[i].file == file)
            slots[i].state = FREE;
    lock_drop(&lock);
}
