/* What lines are made for: how wide a terminal is, and text broken at words. */
#pragma once

#include <stdbool.h>

/* The columns of the terminal that `fd` is; 80 where it is not one, or does not say. */
unsigned terminal_columns(int fd);

/* Writes a text to stdout, broken at words so that no line is wider than `columns`, 0 for no limit: the lines after the
 * first begin with `indent` spaces, and the first one goes on after `column` columns that are there already. An end of
 * line in the text is a space, and what a terminal would obey is escaped. Ends the line. */
void print_wrapped(const char *text, unsigned column, unsigned indent, unsigned columns);

/* Whether stdout is to have colours: `when` is "always", "never" or "auto", which is NULL too: on a terminal, unless
 * NO_COLOR is set (https://no-color.org) or TERM is "dumb". */
bool wants_colour(const char *when);
