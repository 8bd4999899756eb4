/* One line for the user: on stderr after "wfs: ", or in syslog for a process that has no terminal any more.
 * Safe from any thread. Arguments may come from anywhere: what a terminal would obey is escaped (base/text.h), newlines
 * too. */
#pragma once

void report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* From now on to syslog. */
void report_to_syslog(void);
