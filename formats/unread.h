/* Errors for inputs that wfs does not read: the kind of the input, and the remedy. */
#pragma once

#include "formats/format.h"

/* Returns false, with an error, if a file is empty or its first bytes show something that no reader takes, whatever its
 * name: a Git LFS pointer, an HTML page, another program's format. */
bool unread_check_content(const struct input *input, struct error *error);

/* Like unread_check_content(), for a text that no format is sure of: people name config.json and mean its directory. */
bool unread_check_text(const struct input *input, struct error *error);

/* Adds to an error about a missing file, of that path in the directory, that a download of the directory, or of its
 * parent, is unfinished, if it is; returns false. */
bool unread_add_half_download(const struct input *input, const char *path, struct error *error);

/* Sets the error for an input that no format takes; returns false. */
bool unread_explain(const struct input *input, struct error *error);

/* The table of what wfs recognizes and does not read (unread_kinds.c): other programs' files, and files that are not
 * whole. A text of the table states the kind and what to do; it follows "FILE: " or "FILE is ". */

/* Returns what a file is by its first bytes, or by what these lead to, before any reader is asked; NULL: unknown. */
const char *unread_kind_of_content(const struct input *input);

/* Returns what a file or folder is whose name alone tells; NULL: unknown. */
const char *unread_kind_of_name(const char *name);

/* Returns what a file is that no reader takes, also by files beside it, and by bytes that other files may have, too;
 * NULL: unknown. */
const char *unread_kind_of_file(const struct input *input);

/* Returns what an entry of the input's directory is, by its name or, if several programs use the name, by its content.
 * Opens at most *budget files, and counts it down. */
const char *unread_kind_in_directory(const struct input *input, const struct location_entry *entry, unsigned *budget);

/* Reports whether a text of the table is about an unfinished download. */
bool unread_is_half_download(const char *kind);
