/* A line on a terminal that says how far a copy is: share, bytes, rate and time left, as far as its width allows.
 * Nothing where stderr is not a terminal. Not for several threads at once. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct progress {
    char name[29];
    uint64_t total, done; /* bytes */
    bool shown;           /* there is a terminal */
    struct timespec start, last;
};

void progress_begin(struct progress *progress, const char *name, uint64_t total);
void progress_add(struct progress *progress, uint64_t n_bytes);
void progress_set(struct progress *progress, uint64_t n_bytes); /* so far */
void progress_hide(const struct progress *progress);            /* until the next step: something else is printed */
void progress_end(struct progress *progress);                   /* leaves the line on the terminal, done or not */

/* "1.23 GB", "17 bytes": powers of 1000, three digits. Returns `out`. */
enum { SIZE_TEXT = 16 };
char *size_text(uint64_t n_bytes, char out[SIZE_TEXT]);
