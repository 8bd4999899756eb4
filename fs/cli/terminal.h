/* Output for terminals: width, line breaks at words, names of any bytes, and a pager for long help, as git has one. */
#pragma once

#include "text/json_write.h"

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
