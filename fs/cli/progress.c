#include "fs/cli/progress.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BAR_WIDTH = 24, INTERVAL_MS = 100 };

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
    snprintf(out, SIZE_TEXT, "%.*f %s", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, units[unit]);
    return out;
}

static double seconds_between(const struct timespec *from, const struct timespec *to)
{
    return (double)(to->tv_sec - from->tv_sec) + (double)(to->tv_nsec - from->tv_nsec) / 1e9;
}

static void draw(const struct progress *progress, const struct timespec *now)
{
    char bar[BAR_WIDTH + 1], done[SIZE_TEXT], total[SIZE_TEXT], rate[SIZE_TEXT], left[32] = "";
    double share = progress->total ? (double)progress->done / (double)progress->total : 1;
    double elapsed = seconds_between(&progress->start, now), per_second = elapsed > 0 ? (double)progress->done / elapsed : 0;
    int full = (int)(share * BAR_WIDTH);
    memset(bar, ' ', BAR_WIDTH);
    memset(bar, '#', (size_t)full);
    bar[BAR_WIDTH] = '\0';
    uint64_t seconds = per_second > 0 ? (uint64_t)((double)(progress->total - progress->done) / per_second + 0.5) : 0;
    if (progress->done == progress->total)
        snprintf(left, sizeof left, "in %.1f s", elapsed);
    else if (per_second > 0)
        snprintf(left, sizeof left, "%" PRIu64 ":%02u left", seconds / 60, (unsigned)(seconds % 60));
    fprintf(stderr, "\r%-28s %3d%% [%s] %s of %s, %s/s, %s\033[K", progress->name, (int)(share * 100), bar,
            size_text(progress->done, done), size_text(progress->total, total), size_text((uint64_t)per_second, rate), left);
}

void progress_begin(struct progress *progress, const char *name, uint64_t total)
{
    *progress = (struct progress){.total = total, .shown = isatty(STDERR_FILENO)};
    text_printable(name, strlen(name), progress->name, sizeof progress->name);
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
