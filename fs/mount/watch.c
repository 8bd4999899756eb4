#include "fs/mount/watch.h"

#include "base/lock.h"
#include "base/report.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { HASH_BITS = 19, WORD_BITS = 64, MAX_WRITTEN = 64 };

struct watched {
    const struct source *source;
    int number; /* of the inotify watch; -1: none */
    bool reported;
};

/* The sources of a checkpoint. */
struct watched_group {
    struct watched_group *next;
    const struct checkpoint *checkpoint;
    size_t n_watched;
    struct watched watched[];
};

struct watch {
    struct tree *tree;
    _Atomic(struct watched_group *) groups; /* only ever added to */
    int inotify, bell;                      /* `bell`: an eventfd that wakes the thread */
    atomic_bool is_blind;                   /* a source is without a watch */
    pthread_t thread;
    atomic_bool stopping;
    watch_forget *forget;
    void *context;

    struct lock lock; /* one thread at a time takes events, or adds groups and written files */
    node_id written[MAX_WRITTEN];
    size_t n_written;   /* more than MAX_WRITTEN: any file that was read may be one */
    atomic_bool taking; /* an event that was taken may not have reached its source yet */

    /* Files that have been read, by a hash of their number: a collision only makes the kernel forget one more file. */
    _Atomic uint64_t read[(1 << HASH_BITS) / WORD_BITS];
};

static void note_blindness(struct watch *watch, int reason, const char *limit)
{
    if (!atomic_exchange(&watch->is_blind, true))
        report("note: inotify: %s (%s); changes of the sources are noticed only when a file is opened or read",
               strerror(reason), limit);
}

static void watch_source(struct watch *watch, struct watched_group *group, const struct source *source)
{
    if (!source_is_file(source))
        return;
    int number = source_watch(source, watch->inotify);
    if (number < 0 && source_descriptor(source) >= 0)
        note_blindness(watch, errno, "fs.inotify.max_user_watches");
    group->watched[group->n_watched++] = (struct watched){source, number, false};
}

/* Watches a checkpoint's sources, and verifies each, as it may have changed between its opening and the watch. */
static void watch_checkpoint(void *context, const struct checkpoint *checkpoint)
{
    struct watch *watch = context;
    if (checkpoint->failure != NULL)
        report("%s: %s", checkpoint->model_name, checkpoint->failure);
    struct origin weights = origin_of_weights(checkpoint);
    struct watched_group *group =
        memory_alloc(sizeof *group + (weights.n_sources + checkpoint->n_side_files) * sizeof *group->watched);
    *group = (struct watched_group){.checkpoint = checkpoint};
    lock_take(&watch->lock);
    for (size_t i = 0; i < weights.n_sources; i++)
        watch_source(watch, group, weights.sources[i]);
    for (size_t i = 0; i < checkpoint->n_side_files; i++)
        watch_source(watch, group, checkpoint->side_files[i].source);
    group->next = atomic_load(&watch->groups);
    atomic_store(&watch->groups, group);
    lock_drop(&watch->lock);
    for (size_t i = 0; i < group->n_watched; i++)
        source_verify(group->watched[i].source);
}

struct watch *watch_new(struct tree *tree)
{
    struct watch *watch = memory_alloc(sizeof *watch);
    *watch = (struct watch){
        .tree = tree,
        .inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC),
        .bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
        .lock = LOCK_INITIALIZER,
    };
    if (watch->inotify < 0)
        note_blindness(watch, errno, "fs.inotify.max_user_instances");
    tree_on_checkpoint(tree, watch_checkpoint, watch);
    return watch;
}

bool watch_is_blind(const struct watch *watch)
{
    return atomic_load(&watch->is_blind);
}

void watch_free(struct watch *watch)
{
    if (watch == NULL)
        return;
    if (watch->inotify >= 0)
        close(watch->inotify);
    if (watch->bell >= 0)
        close(watch->bell);
    tree_on_checkpoint(watch->tree, NULL, NULL);
    for (struct watched_group *group = atomic_load(&watch->groups), *next; group != NULL; group = next) {
        next = group->next;
        free(group);
    }
    free(watch);
}

static void ring(struct watch *watch)
{
    eventfd_write(watch->bell, 1);
}

static void note_event(struct watch *watch, const struct inotify_event *event)
{
    for (const struct watched_group *group = atomic_load(&watch->groups); group != NULL; group = group->next)
        for (size_t i = 0; i < group->n_watched; i++)
            if (event->mask & IN_Q_OVERFLOW)
                source_verify(group->watched[i].source);
            else if (event->mask & IN_MODIFY && group->watched[i].number == event->wd)
                source_mark_changed(group->watched[i].source);
    if (event->mask & IN_MODIFY)
        inotify_rm_watch(watch->inotify, event->wd);
}

static void take_events(struct watch *watch)
{
    alignas(struct inotify_event) char bytes[4096];
    ssize_t length;
    lock_take(&watch->lock);
    atomic_store(&watch->taking, true);
    while ((length = read(watch->inotify, bytes, sizeof bytes)) > 0)
        for (ssize_t at = 0; at < length;) {
            const struct inotify_event *event = (const void *)(bytes + at);
            note_event(watch, event);
            at += (ssize_t)(sizeof *event + event->len);
        }
    atomic_store(&watch->taking, false);
    lock_drop(&watch->lock);
}

/* Takes the events that have come. When it returns, events that other threads took have reached their sources, too. */
static void take_pending_events(struct watch *watch)
{
    struct pollfd pending = {.fd = watch->inotify, .events = POLLIN};
    if (poll(&pending, 1, 0) > 0 || atomic_load(&watch->taking))
        take_events(watch);
}

/* Reports whether a source's change was reported, perhaps for another copy: guides can be side files, too. */
static bool is_reported(const struct watch *watch, const struct source *source)
{
    for (const struct watched_group *group = atomic_load(&watch->groups); group != NULL; group = group->next)
        for (size_t i = 0; i < group->n_watched; i++)
            if (group->watched[i].reported && source_same_file(group->watched[i].source, source))
                return true;
    return false;
}

static void report_change(const struct watch *watch, const struct watched_group *group, const struct source *source)
{
    bool is_component = group->checkpoint != tree_checkpoint(watch->tree);
    char change[SOURCE_CHANGE];
    report("%s%s%s: changed since it was mounted%s; mount again", is_component ? group->checkpoint->model_name : "",
           is_component ? "/" : "", source_name(source), source_change(source, change));
}

/* Reports each source that has changed since the last call, and returns true if any has. */
static bool report_changes(struct watch *watch)
{
    bool any = false;
    for (struct watched_group *group = atomic_load(&watch->groups); group != NULL; group = group->next)
        for (size_t i = 0; i < group->n_watched; i++) {
            struct watched *watched = &group->watched[i];
            if (watched->reported || !source_known_changed(watched->source))
                continue;
            if (!is_reported(watch, watched->source))
                report_change(watch, group, watched->source);
            watched->reported = any = true;
        }
    return any;
}

static _Atomic uint64_t *word_of(struct watch *watch, node_id id, uint64_t *ret_bit)
{
    uint64_t hash =
        (id * 0x9e3779b97f4a7c15) >> (64 - HASH_BITS); /* only the high bits depend on all bits of the number */
    *ret_bit = UINT64_C(1) << hash % WORD_BITS;
    return &watch->read[hash / WORD_BITS];
}

void watch_reading(struct watch *watch, node_id id)
{
    uint64_t bit;
    _Atomic uint64_t *word = word_of(watch, id, &bit);
    if (!(atomic_load(word) & bit))
        atomic_fetch_or(word, bit);
}

static void forget_if_read(void *context, node_id id)
{
    struct watch *watch = context;
    uint64_t bit;
    if (atomic_load(word_of(watch, id, &bit)) & bit)
        watch->forget(watch->context, id);
}

void watch_refused_write(struct watch *watch, node_id id)
{
    size_t i = 0;
    lock_take(&watch->lock);
    while (i < watch->n_written && i < MAX_WRITTEN && watch->written[i] != id)
        i++;
    if (i < MAX_WRITTEN)
        watch->written[i] = id;
    if (i == watch->n_written)
        watch->n_written++;
    lock_drop(&watch->lock);
    ring(watch);
}

static void forget_written(struct watch *watch)
{
    node_id written[MAX_WRITTEN];
    lock_take(&watch->lock);
    size_t n_written = watch->n_written;
    memcpy(written, watch->written, sizeof written);
    watch->n_written = 0;
    lock_drop(&watch->lock);
    for (size_t i = 0; i < n_written && n_written <= MAX_WRITTEN; i++)
        watch->forget(watch->context, written[i]);
    if (n_written > MAX_WRITTEN)
        tree_number_files(watch->tree, forget_if_read, watch);
}

/* The thread. Marks a source before it makes the kernel forget files, so that a reader meanwhile sends no old bytes. */
static void *attend(void *context)
{
    struct watch *watch = context;
    for (;;) {
        struct pollfd events[] = {{.fd = watch->inotify, .events = POLLIN}, {.fd = watch->bell, .events = POLLIN}};
        eventfd_t count;
        poll(events, 2, -1);
        eventfd_read(watch->bell, &count);
        take_pending_events(watch);
        forget_written(watch);
        if (report_changes(watch))
            tree_number_files(watch->tree, forget_if_read, watch);
        if (atomic_load(&watch->stopping))
            return NULL;
    }
}

int watch_start(struct watch *watch, watch_forget *forget, void *context)
{
    watch->forget = forget;
    watch->context = context;
    ring(watch); /* for earlier changes */
    return pthread_create(&watch->thread, NULL, attend, watch);
}

void watch_stop(struct watch *watch)
{
    atomic_store(&watch->stopping, true);
    ring(watch);
    pthread_join(watch->thread, NULL);
}

bool watch_intact(struct watch *watch, const struct origin *origin)
{
    take_pending_events(watch);
    if (!origin_changed(origin))
        return true;
    ring(watch);
    return false;
}

bool watch_explains(struct watch *watch, const struct origin *origin)
{
    take_pending_events(watch);
    if (!origin_verify(origin))
        return false;
    ring(watch);
    return true;
}
