/* A buffer for short reads near one another: headers of small members need no system call each.
 *
 * A read outside the buffer refills it from that offset. The buffer doubles while reads go forward in small steps, and
 * starts small again after a jump: headers between large members do not read the data around them. Not safe for several
 * threads at once. */
#pragma once

#include "sources/source.h"

enum { WINDOW_LEAST = 192, WINDOW_MOST = 64 * 1024 };

struct window {
    const struct source *source;
    uint64_t start; /* the buffer holds [start, start + length) of the source */
    size_t length;
    unsigned char bytes[WINDOW_MOST];
};

/* Reads exactly [offset, offset + length), like source_read(). */
bool window_read(struct window *window, uint64_t offset, size_t length, void *out, struct error *error);
