/* Copying from a mapped file, which may become shorter at any time: a page that is gone is a failure here, where
 * touching it would end the process (SIGBUS).
 *
 * The first copy sets a handler for SIGBUS, for the whole process. What it finds outside of a copy is handled as it was
 * before. Threads must not block SIGBUS. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies `count` runs of `length` bytes, `stride` bytes from the start of one to the start of the next, to `out`, one
 * after the other. False where some of it is gone; `out` then holds anything. */
bool guarded_copy(unsigned char *out, const unsigned char *mapping, uint64_t count, size_t length, uint64_t stride);
