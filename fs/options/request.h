/* The options of a request as one text, equal for equal requests (fs/tree/file_time.h).
 *
 * Each option that affects how a source is opened or shown is a line, in the order of the table; repeated options keep
 * their order, which counts. The files that an option names follow its line, with sizes and times. Options for mounts
 * and for fetching change no bytes, and are left out. */
#pragma once

#include "fs/options/options.h"

/* Adds an option that has been parsed; `value` must live as long as the options. */
void request_add(struct options *options, const struct option_row *row, const char *value);

/* Sets options->content.file_request from the options added so far. */
void request_finish(struct options *options);

/* Opens the single files that options name, such as an importance matrix; folders are left out. The sources are closed
 * with the arena. */
struct source *const *request_open_files(const struct options *options, struct arena *arena, size_t *ret_count);
