#include "quant/views/finding.h"

#include "base/attempt.h"
#include "base/lock.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct findings {
    struct lock lock;
    struct event made;
    struct block *first; /* all that were made */
    const struct finding_keeper *keeper, *keeper_of_short;
    uint32_t count;
};

/* The memory of a finding. */
struct block {
    struct block *next;
    size_t length;
    _Alignas(max_align_t) unsigned char bytes[];
};

/* The value of a finding that a thread makes. */
static const char being_made;

static struct block *block_of(void *value)
{
    return (struct block *)(void *)((unsigned char *)value - offsetof(struct block, bytes));
}

size_t finding_length(const void *value)
{
    return ((const struct block *)(const void *)((const unsigned char *)value - offsetof(struct block, bytes)))->length;
}

static void release_all(void *context)
{
    struct findings *findings = context;
    for (struct block *block = findings->first, *next; block != NULL; block = next) {
        next = block->next;
        free(block);
    }
    event_destroy(&findings->made);
    lock_destroy(&findings->lock);
}

struct findings *findings_new(struct arena *arena)
{
    struct findings *findings = arena_alloc(arena, sizeof *findings);
    lock_init(&findings->lock);
    event_init(&findings->made);
    arena_on_free(arena, release_all, findings);
    return findings;
}

void findings_keep(struct findings *findings, const struct finding_keeper *keeper)
{
    lock_take(&findings->lock);
    findings->keeper = keeper;
    lock_drop(&findings->lock);
}

bool findings_are_kept(const struct findings *findings)
{
    return findings->keeper != NULL;
}

static void *load_from(const struct finding_keeper *keeper, uint32_t number)
{
    return keeper != NULL ? keeper->load(keeper->context, number) : NULL;
}

static void save_to(const struct finding_keeper *keeper, uint32_t number, const struct buffer *bytes)
{
    if (keeper != NULL)
        keeper->save(keeper->context, number, bytes->bytes, bytes->length);
}

void *findings_load(const struct findings *findings, uint32_t number)
{
    return load_from(findings->keeper, number);
}

bool findings_read(const struct findings *findings, uint32_t number, uint64_t size, uint64_t offset, size_t length,
                   void *out)
{
    const struct finding_keeper *keeper = findings->keeper;
    return keeper != NULL && keeper->read(keeper->context, number, size, offset, length, out);
}

void findings_save(const struct findings *findings, uint32_t number, const struct buffer *bytes)
{
    save_to(findings->keeper, number, bytes);
}

void findings_keep_short(struct findings *findings, const struct finding_keeper *keeper)
{
    lock_take(&findings->lock);
    findings->keeper_of_short = keeper;
    lock_drop(&findings->lock);
}

bool findings_short_are_kept(const struct findings *findings)
{
    return findings->keeper_of_short != NULL;
}

void *findings_load_short(const struct findings *findings, uint32_t number)
{
    return load_from(findings->keeper_of_short, number);
}

void findings_save_short(const struct findings *findings, uint32_t number, const struct buffer *bytes)
{
    save_to(findings->keeper_of_short, number, bytes);
}

struct finding *finding_new(struct arena *arena, struct findings *findings)
{
    struct finding *finding = arena_alloc(arena, sizeof *finding);
    atomic_init(&finding->value, NULL);
    atomic_init(&finding->sought, false);
    finding->findings = findings;
    finding->number = findings->count++;
    return finding;
}

void *finding_alloc(size_t length)
{
    struct block *block = memory_alloc(sizeof *block + length);
    memset(block, 0, sizeof *block + length);
    block->length = length;
    return block->bytes;
}

void *finding_of(const void *bytes, size_t length, const struct buffer *then)
{
    size_t n_then = then != NULL ? then->length : 0;
    unsigned char *value = finding_alloc(length + n_then);
    memcpy(value, bytes, length);
    if (n_then > 0)
        memcpy(value + length, then->bytes, n_then);
    return value;
}

void finding_discard(void *value)
{
    if (value != NULL)
        free(block_of(value));
}

/* Sets the value, or NULL after a failure, and lets those go on who wait for it. */
static void publish(struct finding *finding, void *value)
{
    struct findings *findings = finding->findings;
    lock_take(&findings->lock);
    if (value != NULL) {
        block_of(value)->next = findings->first;
        findings->first = block_of(value);
    }
    atomic_store(&finding->value, value);
    event_wake_all(&findings->made);
    lock_drop(&findings->lock);
}

/* The work of the thread that makes a finding; running out of memory gives the finding back. */
struct making {
    struct attempt_part part;
    struct finding *finding;
};

static void give_back(struct attempt_part *part)
{
    publish(((struct making *)part)->finding, NULL);
}

/* Takes the finding over for this thread, once no other one makes it. Returns false if there is a value by then. */
static bool take_over(struct finding *finding)
{
    struct findings *findings = finding->findings;
    lock_take(&findings->lock);
    while (atomic_load(&finding->value) == &being_made)
        event_wait(&findings->made, &findings->lock);
    bool taken = atomic_load(&finding->value) == NULL;
    if (taken)
        atomic_store(&finding->value, &being_made);
    lock_drop(&findings->lock);
    return taken;
}

/* Looks for the finding among those that are kept, once; NULL: it is not there. */
static void *load(struct finding *finding)
{
    const struct finding_keeper *keeper = finding->findings->keeper;
    return keeper != NULL && !atomic_exchange(&finding->sought, true) ? keeper->load(keeper->context, finding->number)
                                                                      : NULL;
}

static void *make(struct finding *finding, finding_function *find, const void *context, struct error *error)
{
    const struct finding_keeper *keeper = finding->findings->keeper;
    void *value = load(finding);
    if (value != NULL || find == NULL)
        return value;
    value = find(context, error);
    if (value != NULL && keeper != NULL)
        keeper->save(keeper->context, finding->number, value, finding_length(value));
    return value;
}

/* Returns the value, or makes it, if it can be made; a finding is only looked for if `find` is NULL. */
static const void *get(struct finding *finding, finding_function *find, const void *context, struct error *error)
{
    if (take_over(finding)) {
        struct making making = {.finding = finding};
        attempt_add(&making.part, give_back);
        void *value = make(finding, find, context, error);
        attempt_remove(&making.part);
        publish(finding, value);
        return value;
    }
    return atomic_load(&finding->value);
}

const void *finding_get(struct finding *finding, finding_function *find, const void *context, struct error *error)
{
    const void *value = atomic_load(&finding->value);
    return value != NULL && value != &being_made ? value : get(finding, find, context, error);
}

bool finding_known(struct finding *finding)
{
    const void *value = atomic_load(&finding->value);
    if (value == NULL && finding->findings->keeper != NULL && !atomic_load(&finding->sought))
        value = get(finding, NULL, NULL, NULL);
    return value != NULL && value != &being_made;
}
