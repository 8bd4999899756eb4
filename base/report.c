#include "base/report.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <syslog.h>

static atomic_bool no_terminal;

void report(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (no_terminal) {
        vsyslog(LOG_WARNING, format, arguments);
    } else {
        flockfile(stderr);
        fputs("wfs: ", stderr);
        vfprintf(stderr, format, arguments);
        fputc('\n', stderr);
        funlockfile(stderr);
    }
    va_end(arguments);
}

void report_to_syslog(void)
{
    openlog("wfs", LOG_PID, LOG_DAEMON);
    no_terminal = true;
}
