/* The options of a request as one text, equal for equal requests: fs/tree/file_time.h.
 *
 * Of the options that say how a source is opened and what is shown of it each is a line, in the order of the table,
 * whatever order they were given in; those that may be repeated keep theirs, which counts. After it come the files that
 * it names, with sizes and times. Options of mounts change no bytes, and are not in it. */
#pragma once

#include "fs/cli/options.h"

/* Notes an option that has been parsed; `value` lives as long as the options. */
void request_add(struct options *options, const struct option_row *row, const char *value);

/* Makes options->content.request of what has been noted. */
void request_finish(struct options *options);
