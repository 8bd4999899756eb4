/* Counters of a server, in the text format that Prometheus reads. Safe from any thread. */
#pragma once

#include "fs/http/answer.h"

#include <stdatomic.h>

enum { STATUS_CLASSES = 6 };

struct metrics {
    atomic_ullong requests[STATUS_CLASSES]; /* by the first digit of the status; 0: no answer was sent */
    atomic_ullong file_bytes, computed_bytes, kept_bytes, digest_bytes;
    atomic_ullong microseconds;
};

void metrics_add_request(struct metrics *metrics, unsigned status, double seconds);

/* Count bytes of files: read for clients, in blocks that are copied, computed, or read from the store; and read for
 * digests. */
enum made { COPIED, COMPUTED, KEPT };
void metrics_add_bytes(struct metrics *metrics, uint64_t n_bytes, enum made made);
void metrics_add_digest_bytes(struct metrics *metrics, uint64_t n_bytes);

void metrics_answer(const struct metrics *metrics, struct answer *answer);
