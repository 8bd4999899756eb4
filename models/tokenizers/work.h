/* The budget for encoding the check text, whatever a tokenizer's file contains: templates multiply, normalizers and
 * pre-tokenizers repeat and grow, patterns backtrack. Each action spends steps before it runs; a step is some 100
 * nanoseconds and at most 16 bytes of memory. Ordinary tokenizers take some 30,000 steps. */
#pragma once

#include "base/error.h"

#include <stdint.h>

enum { ENCODE_WORK = 1 << 21 };

struct work {
    uint64_t left; /* 0: exceeded */
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
