#include "base/report.h"

#include "base/process.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

enum { REPORT_BYTES = 8192, NAME_BYTES = 4096 }; /* an error and two paths; a path */

static atomic_bool no_terminal, is_quiet;
static atomic_int log_file = -1;
static char line_name[NAME_BYTES];
static atomic_bool has_name;
static _Thread_local const struct report_sink *thread_sink;

/* Writes a line with one call, so that lines of several processes do not mix. */
static void add_to_log(int file, char *text)
{
    char head[64], date[32] = "";
    struct tm local;
    time_t now = time(NULL);
    if (localtime_r(&now, &local) != NULL)
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S%z", &local);
    int length = snprintf(head, sizeof head, "%s wfs[%d]: ", date, (int)getpid());
    const struct iovec parts[] = {{head, (size_t)length}, {text, strlen(text)}, {"\n", 1}};
    ssize_t written = writev(file, parts, sizeof parts / sizeof *parts);
    (void)written; /* a failure cannot be reported anywhere */
}

static void report_line(bool may_name, const char *format, va_list arguments)
{
    char text[REPORT_BYTES], line[sizeof text + sizeof line_name], shown[4 * sizeof line];
    vsnprintf(text, sizeof text, format, arguments);
    bool named = may_name && has_name && !text_starts_with(text, line_name);
    snprintf(line, sizeof line, "%s%s", named ? line_name : "", text);
    text_printable(line, strlen(line), shown, sizeof shown);
    if (thread_sink != NULL) {
        thread_sink->take(thread_sink->context, shown);
        return;
    }
    int file = log_file;
    if (file >= 0)
        add_to_log(file, shown);
    if (!process_allows(PROCESS_STDERR))
        return;
    if (no_terminal && file < 0)
        syslog(LOG_WARNING, "%s", shown);
    else if (!no_terminal && !(is_quiet && text_starts_with(text, "note: ")))
        fprintf(stderr, "wfs: %s\n", shown);
}

void report(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    report_line(true, format, arguments);
    va_end(arguments);
}

void report_unnamed(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    report_line(false, format, arguments);
    va_end(arguments);
}

void report_name(const char *name)
{
    snprintf(line_name, sizeof line_name, "%s: ", name);
    has_name = true;
}

void report_be_quiet(void)
{
    is_quiet = true;
}

bool report_is_quiet(void)
{
    return is_quiet;
}

const struct report_sink *report_use(const struct report_sink *sink)
{
    const struct report_sink *before = thread_sink;
    thread_sink = sink;
    return before;
}

void report_prepare_syslog(void)
{
    openlog("wfs", LOG_PID | LOG_NDELAY, LOG_DAEMON);
}

void report_to_syslog(void)
{
    openlog("wfs", LOG_PID, LOG_DAEMON);
    no_terminal = true;
}

bool report_to_file(const char *path, struct error *error)
{
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY | O_CLOEXEC, 0666);
    if (file < 0)
        return error_set_errno(error, errno, "%s", path);
    log_file = file;
    return true;
}
