/* One line for the user: on stderr after "wfs: ", or in syslog for a process that has no terminal any more.
 * Safe from any thread. Arguments may come from anywhere: what a terminal would obey is escaped (base/text.h), newlines
 * too. */
#pragma once

#include "base/error.h"

void report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* From now on to syslog instead of stderr. */
void report_to_syslog(void);

/* From now on to the end of a file as well, with time and process; to that alone where it would be syslog. Once. */
bool report_to_file(const char *path, struct error *error);
