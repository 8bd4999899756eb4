/* Copying from a mapped file that may be truncated at any time: a missing page makes the copy fail instead of ending
 * the process (SIGBUS).
 *
 * The first copy sets a handler for SIGBUS, for the whole process, if the program allows it (base/process.h). A SIGBUS
 * outside a copy goes to the earlier handler. Threads must not block SIGBUS. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies `count` runs of `length` bytes, `stride` bytes from the start of one to the start of the next, to `out`, one
 * after the other. Returns false, with undefined bytes in `out`, if a page is missing or the handler is not allowed. */
bool guarded_copy(unsigned char *out, const unsigned char *mapping, uint64_t count, size_t length, uint64_t stride);
