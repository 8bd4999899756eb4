#include "base/report.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

enum { REPORT_BYTES = 8192 }; /* more than an error and two paths */

static atomic_bool no_terminal;

void report(const char *format, ...)
{
    va_list arguments;
    char line[REPORT_BYTES], shown[4 * sizeof line];
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    text_printable(line, strlen(line), shown, sizeof shown);
    if (no_terminal)
        syslog(LOG_WARNING, "%s", shown);
    else
        fprintf(stderr, "wfs: %s\n", shown);
}

void report_to_syslog(void)
{
    openlog("wfs", LOG_PID, LOG_DAEMON);
    no_terminal = true;
}
