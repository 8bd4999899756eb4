/* One line for the user: on stderr behind "wfs: ", or in syslog for a process that has no terminal any more.
 * Safe from any thread. */
#pragma once

void report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* From now on to syslog. */
void report_to_syslog(void);
