/* The budget of encoding the check text, whatever a tokenizer's file asks for: templates multiply, normalizers and
 * pre-tokenizers repeat and grow, patterns backtrack. Everything that is built or run is counted before it is, in steps
 * of some 100 nanoseconds and at most 16 bytes of memory; ordinary tokenizers take some 30,000. */
#pragma once

#include "base/error.h"

#include <stdint.h>

enum { ENCODE_WORK = 1 << 21 };

struct work {
    uint64_t left; /* 0 once more was asked for */
};

static inline void work_exceed(struct work *work)
{
    work->left = 0;
}

static inline bool work_spend(struct work *work, uint64_t steps, struct error *error)
{
    if (steps >= work->left) {
        work_exceed(work);
        return error_set(error, "encoding a short text takes more than %d steps", ENCODE_WORK);
    }
    work->left -= steps;
    return true;
}
