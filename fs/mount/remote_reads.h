/* Reads that may wait for a network. Each is answered on a thread of its own, up to 64 at once, so that a stalled read
 * delays no worker and no other read. Threads start when reads come and end when they have nothing to do; four stay. */
#pragma once

#include "fs/mount/read_queue.h"

struct remote_reads;

/* Answers the request of a read; called on any of these threads. */
typedef void remote_read_answer(const struct queued_read *read);

struct remote_reads *remote_reads_new(remote_read_answer *answer);

/* Takes a read. Returns false, and does not take it, if no thread or no memory can be had. */
bool remote_reads_add(struct remote_reads *reads, const struct queued_read *read);

/* Answers EIO to the reads that no thread has begun, and waits for the others: call arrival_give_up() (base/arrival.h)
 * before, and add no read afterwards. */
void remote_reads_free(struct remote_reads *reads);
