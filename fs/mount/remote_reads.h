/* Reads that may wait for a network. Each is answered on a thread of its own, as far as there are threads, so that a
 * stalled read holds up no worker and no other read. Threads start when reads come and end when they have nothing to
 * do; a few stay. */
#pragma once

#include "fs/mount/read_queue.h"

struct remote_reads;

/* Answers the request of a read; called on any of the threads. */
typedef void remote_read_answer(const struct queued_read *read);

struct remote_reads *remote_reads_new(remote_read_answer *answer);

/* Takes a read. Returns false, and does not take it, if no thread or no memory can be had. */
bool remote_reads_add(struct remote_reads *reads, const struct queued_read *read);

/* Answers EIO to the reads that no thread has begun, and waits for those that have begun: call arrival_give_up() before
 * (base/arrival.h). No read may be added any more. */
void remote_reads_free(struct remote_reads *reads);
