#include "fs/cli/terminal.h"

#include "base/report.h"

#include "base/buffer.h"
#include "base/text.h"
#include "fs/lib/stage.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { INTERVAL_MS = 100 };

char *size_text(uint64_t n_bytes, char out[SIZE_TEXT])
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    if (n_bytes < 1000) {
        snprintf(out, SIZE_TEXT, "%" PRIu64 " bytes", n_bytes);
        return out;
    }
    double value = (double)n_bytes / 1000;
    size_t unit = 0;
    for (; value >= 999.5 && unit + 1 < sizeof units / sizeof *units; unit++)
        value /= 1000;
    int decimals = (value < 9.995) + (value < 99.95);
    snprintf(out, SIZE_TEXT, "%.*f %s", decimals, value, units[unit]);
    return out;
}

char *number_text(uint64_t number, char out[NUMBER_TEXT])
{
    static const struct {
        double unit;
        const char *name;
    } scales[] = {{1e12, "trillion"}, {1e9, "billion"}, {1e6, "million"}};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
        if ((double)number >= scales[i].unit) {
            snprintf(out, NUMBER_TEXT, "%.2f %s", (double)number / scales[i].unit, scales[i].name);
            return out;
        }
    snprintf(out, NUMBER_TEXT, "%" PRIu64, number);
    return out;
}

static double seconds_between(const struct timespec *from, const struct timespec *to)
{
    return (double)(to->tv_sec - from->tv_sec) + (double)(to->tv_nsec - from->tv_nsec) / 1e9;
}

/* The contents of a line, the longest first; the first that fits the terminal is used. */
static const struct line_form {
    int name, bar; /* columns */
    bool rate;
} line_forms[] = {{28, 24, true}, {28, 12, true}, {20, 0, true}, {20, 0, false}, {10, 0, false}, {0, 0, false}};

static void append_bar(struct buffer *line, int columns, double share)
{
    if (columns == 0)
        return;
    buffer_append_text(line, "[");
    for (int i = 0; i < columns; i++)
        buffer_append_text(line, i < (int)(share * columns) ? "#" : " ");
    buffer_append_text(line, "] ");
}

static struct buffer make_line(const struct progress *progress, const struct line_form *form, double elapsed)
{
    char name[sizeof progress->name], done[SIZE_TEXT], total[SIZE_TEXT], rate[SIZE_TEXT];
    struct buffer line = {0};
    double share = progress->total ? (double)progress->done / (double)progress->total : 1;
    double per_second = elapsed > 0 ? (double)progress->done / elapsed : 0;
    uint64_t left = per_second > 0 ? (uint64_t)((double)(progress->total - progress->done) / per_second + 0.5) : 0;
    text_printable(progress->name, strlen(progress->name), name, (size_t)form->name + 1);
    if (form->name != 0)
        buffer_printf(&line, "%-*s ", form->name, name);
    buffer_printf(&line, "%3d%% ", (int)(share * 100));
    append_bar(&line, form->bar, share);
    buffer_printf(&line, "%s of %s", size_text(progress->done, done), size_text(progress->total, total));
    if (form->rate)
        buffer_printf(&line, ", %s/s", size_text((uint64_t)per_second, rate));
    if (progress->done == progress->total)
        buffer_printf(&line, ", in %.1f s", elapsed);
    else if (per_second > 0)
        buffer_printf(&line, ", %" PRIu64 ":%02u left", left / 60, (unsigned)(left % 60));
    return line;
}

/* Draws a line that fits the terminal's current width, since a wrapped line could not be erased. */
static void draw(const struct progress *progress, const struct timespec *now)
{
    const size_t n_forms = sizeof line_forms / sizeof *line_forms;
    double elapsed = seconds_between(&progress->start, now);
    size_t columns = terminal_columns(STDERR_FILENO) - 1, i = 0;
    struct buffer line = make_line(progress, &line_forms[i], elapsed);
    while (line.length > columns && ++i < n_forms) {
        buffer_free(&line);
        line = make_line(progress, &line_forms[i], elapsed);
    }
    fprintf(stderr, "\r%.*s\033[K", (int)(line.length < columns ? line.length : columns), (const char *)line.bytes);
    buffer_free(&line);
}

void progress_rename(struct progress *progress, const char *name)
{
    text_printable(name, strlen(name), progress->name, sizeof progress->name);
}

void progress_begin(struct progress *progress, const char *name, uint64_t total)
{
    *progress = (struct progress){.total = total, .shown = isatty(STDERR_FILENO) && !report_is_quiet()};
    progress_rename(progress, name);
    clock_gettime(CLOCK_MONOTONIC, &progress->start);
    progress->last = progress->start;
}

void progress_set(struct progress *progress, uint64_t n_bytes)
{
    struct timespec now;
    progress->done = n_bytes;
    if (!progress->shown)
        return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (seconds_between(&progress->last, &now) * 1000 < INTERVAL_MS)
        return;
    progress->last = now;
    draw(progress, &now);
}

void progress_add(struct progress *progress, uint64_t n_bytes)
{
    progress_set(progress, progress->done + n_bytes);
}

void progress_hide(const struct progress *progress)
{
    if (progress->shown)
        fputs("\r\033[K", stderr);
}

void progress_end(struct progress *progress)
{
    struct timespec now;
    if (!progress->shown)
        return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    draw(progress, &now);
    fputc('\n', stderr);
}

static struct progress stage;

static void begin_stage(const char *name, uint64_t n_bytes)
{
    progress_begin(&stage, name, n_bytes);
}

static void add_to_stage(uint64_t n_bytes)
{
    progress_add(&stage, n_bytes);
}

static void end_stage(void)
{
    progress_end(&stage);
}

void progress_of_stages(void)
{
    static const struct stage_watcher watcher = {begin_stage, add_to_stage, end_stage};
    stage_watch(&watcher);
}
