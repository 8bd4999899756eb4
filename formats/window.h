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

/* Little-endian numbers and bytes that follow each other in a file, for readers of binary formats. Reads are short and
 * go through a window (above); data between them are skipped. */

struct file_cursor {
    struct source *file;
    struct window *window;
    uint64_t at, end;   /* what is read next; the end of what may be read */
    const char *format; /* that errors name, "CTranslate2"; NULL: none */
    struct error *error;
};

/* Begins at an offset of a file; file_cursor_end() frees the window. */
struct file_cursor file_cursor_begin(struct source *file, uint64_t at, const char *format, struct error *error);
void file_cursor_end(struct file_cursor *cursor);

/* Sets the error "FILE: FORMAT, offset AT: REASON"; returns false. */
bool file_cursor_refuse(const struct file_cursor *cursor, const char *reason);

/* Refuses the file as truncated unless so many bytes are left. */
bool file_cursor_has(const struct file_cursor *cursor, uint64_t length);

/* Each of these refuses a file that is truncated. A number has 1 to 8 bytes. */
bool file_cursor_read(struct file_cursor *cursor, uint64_t length, void *out);
bool file_cursor_number(struct file_cursor *cursor, unsigned size, uint64_t *ret_value);
bool file_cursor_skip(struct file_cursor *cursor, uint64_t length);
