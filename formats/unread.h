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
