/* One line for the user: on stderr after "wfs: ", or in syslog for a process without a terminal, if the program allows
 * that (base/process.h). A thread may send its own lines elsewhere instead. Safe from any thread. Arguments may come
 * from files: bytes that a terminal would obey are escaped (base/text.h), newlines too. */
#pragma once

#include "base/error.h"

#include <stdbool.h>

void report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Begins each later line with "NAME: " unless it already does: for servers that share a log. Call it once, before the
 * threads whose lines need the name. */
void report_name(const char *name);

/* Prints a line like report(), but without the name: for the person who just started the server. */
void report_unnamed(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Where the lines of a thread go: to take(context, line), a line without "wfs:" and without a newline. */
struct report_sink {
    void (*take)(void *context, const char *line);
    void *context;
};

/* Sends later lines of the calling thread to a sink, which must live until the next call; NULL ends that. Returns the
 * sink before, so that a caller can restore it. */
const struct report_sink *report_use(const struct report_sink *sink);

/* Leaves notes, the lines that begin with "note: ", and progress off stderr. Call it before there are threads. */
void report_be_quiet(void);
bool report_is_quiet(void);

/* Connects to syslog, for report_to_syslog() in a sandbox without sockets. Lines are lost once syslog's own socket is
 * another one. */
void report_prepare_syslog(void);

/* Sends later lines to syslog instead of stderr. */
void report_to_syslog(void);

/* Appends later lines to a file as well, with time and process; the file replaces syslog. Call it once. Fails if the
 * file cannot be opened for writing. */
bool report_to_file(const char *path, struct error *error);
