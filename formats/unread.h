/* Names the kind of an input that wfs does not read, with the remedy. */
#pragma once

#include "formats/format.h"

/* Sets the error, and returns false, where a file's first bytes say that it is nothing that a reader takes, whatever
 * its name is: a Git LFS pointer, a page of HTML, another program's format. */
bool unread_check_content(const struct input *input, struct error *error);

/* The same for a text, which no format takes for sure: people name config.json where they mean its directory. */
bool unread_check_text(const struct input *input, struct error *error);

/* Adds to an error about a file that is missing that there is half a download, of the directory or of what it is a
 * folder of, where there is one; returns false. */
bool unread_add_half_download(const struct input *input, struct error *error);

/* Sets the error for an input that no format takes; returns false. */
bool unread_explain(const struct input *input, struct error *error);
