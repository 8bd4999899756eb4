/* A progress line on stderr: share, bytes, rate and time left, as far as the terminal's width allows; nothing if stderr
 * is not a terminal. Only one thread at a time may use it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct progress {
    char name[29];
    uint64_t total, done; /* bytes */
    bool shown;           /* stderr is a terminal */
    struct timespec start, last;
};

void progress_begin(struct progress *progress, const char *name, uint64_t total);
void progress_rename(struct progress *progress, const char *name); /* for the next of several files */
void progress_add(struct progress *progress, uint64_t n_bytes);
void progress_set(struct progress *progress, uint64_t n_bytes); /* sets the bytes done so far */
void progress_hide(const struct progress *progress);            /* until the next step, to print something else */
void progress_end(struct progress *progress);                   /* leaves the line on the terminal, complete or not */

/* Shows the stages of libwfs (fs/lib/stage.h) as such lines. Call it before there are threads. */
void progress_of_stages(void);

/* Writes "1.23 GB" or "17 bytes": powers of 1000, three digits. Returns `out`. */
enum { SIZE_TEXT = 16 };
char *size_text(uint64_t n_bytes, char out[SIZE_TEXT]);

/* Writes "7.24 billion", or all digits of a number below a million. Returns `out`. */
enum { NUMBER_TEXT = 32 };
char *number_text(uint64_t number, char out[NUMBER_TEXT]);
