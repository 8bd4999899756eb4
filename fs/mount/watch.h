/* The watch on the sources of a mount.
 *
 * Files never change as long as their sources do not, and the kernel keeps their pages. A source that is written to or
 * truncated has changed for good (sources/source.h): from then on, all files that are computed from it fail with EIO,
 * so no reader gets old and new bytes without an error, the log reports the change once, and the kernel drops pages.
 *
 * Three things notice a change: inotify, for every writer on this machine that has not mapped the source; each read,
 * which takes the events that have come and compares size and time of what it has read; and each failed read. Without
 * inotify, the other two remain, the log has a note, and the kernel must ask again each time that a file is opened
 * (watch_is_blind()). Requests take no lock unless an event has come. A thread waits for events and
 * does the work that must not happen while a request is answered; it sleeps as long as nothing changes. The sources of
 * a branch are watched as soon as it is open. */
#pragma once

#include "fs/tree/tree.h"

struct watch;

struct watch *watch_new(struct tree *tree);
void watch_free(struct watch *watch); /* NULL is allowed */

/* Start and end the thread. `forget` makes the kernel drop its pages of a file. watch_start() returns 0 or an errno. */
typedef void watch_forget(void *context, node_id id);
int watch_start(struct watch *watch, watch_forget *forget, void *context);
void watch_stop(struct watch *watch);

/* Reports whether changes may happen that no event tells of, so that the kernel's pages could outlive them. */
bool watch_is_blind(const struct watch *watch);

/* Records that a file is read. Call it before each read for the kernel. */
void watch_reading(struct watch *watch, node_id id);

/* Reports whether bytes that were read from a file may be sent: its sources are unchanged until now. */
bool watch_intact(struct watch *watch, const struct origin *origin);

/* Makes the kernel drop a file's pages. Call it after a refused write, whose bytes the kernel has put into these pages,
 * where other readers would see them. */
void watch_refused_write(struct watch *watch, node_id id);

/* Reports whether a read failed because a source has changed. The watch reports that change; the caller must not. */
bool watch_explains(struct watch *watch, const struct origin *origin);
