/* Output for terminals: width, line breaks at words, names of any bytes, and a pager for long help, as git has one. */
#pragma once

#include "text/json_write.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Returns the columns of the terminal `fd`, at least 20; 80 if it is no terminal or its width is unknown. */
unsigned terminal_columns(int fd);

/* Writes a text to stdout, broken at words so that lines keep within `columns`, 0 for no limit. The first line
 * continues after `column` columns; the others begin with `indent` spaces. Line ends in the text become spaces, and
 * control characters are escaped. A word has 1023 bytes at most. Ends the line. */
void print_wrapped(const char *text, unsigned column, unsigned indent, unsigned columns);

/* Writes a file's name to stdout: escaped by text_put() on a terminal, else unchanged, since scripts open that file. */
void print_name(const char *name);

/* Returns the spelling of JSON on stdout: ASCII on a terminal, where it makes control characters safe, else UTF-8. */
enum json_letters stdout_letters(void);

/* Reports whether stdout gets colours. `when` is "always", "never" or "auto"; "auto" or NULL means on a terminal,
 * unless NO_COLOR is set and not empty (https://no-color.org), or TERM is unset or "dumb". */
bool wants_colour(const char *when);

/* Sends what is written to stdout through $PAGER, or less, which ends at once if a screen holds everything. Has no
 * effect if stdout is no terminal or there is no such program. */
void pager_begin(void);

/* Returns the columns of the terminal that stdout is, or that it was before the pager. */
unsigned pager_columns(void);

/* Waits until the user has left the pager. Call it after stdout was flushed, if pager_begin() was called. */
void pager_end(void);

/* A progress line on stderr: share, bytes, rate and time left, as far as the terminal's width allows; nothing if stderr
 * is not a terminal. Only one thread at a time may use it. */

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
