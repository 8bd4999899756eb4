/* The watch on the sources of a mount.
 *
 * What is served never changes as long as the sources do not, and the kernel keeps it. A source that somebody writes to
 * or cuts has changed for good (formats/source.h): from then on all files that are computed from it fail with EIO, so
 * that nobody gets bytes of before and after without an error; the log says so once; and the kernel is made to forget
 * the pages it has.
 *
 * A change is noticed by inotify, which every writer on this machine sets off but one who has mapped the source; by
 * each request that reads, which asks for the events that have come and, at most every SOURCE_CHECK_MS, for size and
 * time; and by each read that fails. Where inotify cannot be had, the others are left. Requests take no lock unless
 * there is an event. A thread waits for events and does what must not be done while a request is answered: it sleeps as
 * long as nothing changes. The sources of a branch are watched from when it is opened on. */
#pragma once

#include "fs/tree/tree.h"

struct watch;

struct watch *watch_new(struct tree *tree);
void watch_free(struct watch *watch); /* NULL is allowed */

/* Starts and ends the thread. `forget` makes the kernel drop what it keeps of a file; returns 0 or a reason. */
typedef void watch_forget(void *context, node_id id);
int watch_start(struct watch *watch, watch_forget *forget, void *context);
void watch_stop(struct watch *watch);

/* To be called before a file is read for the kernel. */
void watch_reading(struct watch *watch, node_id id);

/* Reports whether what has been read of a file may be sent: its sources are unchanged until now. */
bool watch_intact(struct watch *watch, const struct origin *origin);

/* To be called after a write was refused: the kernel, which others read from, has the new bytes in its pages of the
 * file, and is made to forget them. */
void watch_refused_write(struct watch *watch, node_id id);

/* Reports whether a read has failed because a source has changed: that is said by the watch, and needs no other
 * message. */
bool watch_explains(struct watch *watch, const struct origin *origin);
