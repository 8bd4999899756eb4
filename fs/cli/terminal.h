/* Output for terminals: their width, text broken at words, and names that may hold any byte. */
#pragma once

#include "formats/json_write.h"

/* The columns of the terminal that `fd` is; 80 where it is not one, or does not say. */
unsigned terminal_columns(int fd);

/* Writes a text to stdout, broken at words so that no line is wider than `columns`, 0 for no limit: the lines after the
 * first begin with `indent` spaces, and the first one goes on after `column` columns that are there already. An end of
 * line in the text is a space, and what a terminal would obey is escaped. Ends the line. */
void print_wrapped(const char *text, unsigned column, unsigned indent, unsigned columns);

/* Writes the name of a file to stdout: on a terminal what a terminal would obey is escaped, as text_put() does it; into
 * a pipe or a file the bytes go as they are, since scripts open files by them. */
void print_name(const char *name);

/* How JSON on stdout is spelled: in ASCII on a terminal, where names that it would obey are safe so, else in UTF-8. */
enum json_letters stdout_letters(void);

/* Reports whether stdout is to have colours: `when` is "always", "never" or "auto", which is NULL too: on a terminal,
 * unless NO_COLOR is set (https://no-color.org) or TERM is "dumb". */
bool wants_colour(const char *when);
