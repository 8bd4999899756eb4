#include "formats/window.h"

#include "base/arena.h"
#include "base/checked.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool holds(const struct window *window, uint64_t offset, size_t length)
{
    return offset >= window->start && offset - window->start <= window->length &&
           length <= window->length - (offset - window->start);
}

/* Returns how many bytes to read at `offset`. */
static size_t next_length(const struct window *window, uint64_t offset)
{
    uint64_t end = window->start + window->length;
    bool is_near = window->length > 0 && offset >= window->start && offset <= end + WINDOW_LEAST;
    size_t length = is_near ? 2 * window->length : WINDOW_LEAST;
    return length < WINDOW_MOST ? length : WINDOW_MOST;
}

bool window_read(struct window *window, uint64_t offset, size_t length, void *out, struct error *error)
{
    uint64_t size = source_size(window->source);
    if (!holds(window, offset, length)) {
        size_t wanted = next_length(window, offset);
        if (length > wanted || offset > size || length > size - offset)
            return source_read(window->source, offset, length, out, error);
        size_t available = size - offset < wanted ? (size_t)(size - offset) : wanted;
        window->length = 0;
        if (!source_read(window->source, offset, available, window->bytes, error))
            return false;
        window->start = offset;
        window->length = available;
    }
    memcpy(out, window->bytes + (offset - window->start), length);
    return true;
}

struct file_cursor file_cursor_begin(struct source *file, uint64_t at, const char *format, struct error *error)
{
    struct window *window = memory_alloc(sizeof *window);
    window->source = file;
    window->start = window->length = 0;
    return (struct file_cursor){file, window, at, source_size(file), format, error};
}

void file_cursor_end(struct file_cursor *cursor)
{
    free(cursor->window);
}

bool file_cursor_refuse(const struct file_cursor *cursor, const char *reason)
{
    bool names = cursor->format != NULL;
    return error_set(cursor->error, "%s: %s%soffset %" PRIu64 ": %s", source_name(cursor->file),
                     names ? cursor->format : "", names ? ", " : "", cursor->at, reason);
}

bool file_cursor_has(const struct file_cursor *cursor, uint64_t length)
{
    return length <= cursor->end - cursor->at || file_cursor_refuse(cursor, "truncated");
}

bool file_cursor_read(struct file_cursor *cursor, uint64_t length, void *out)
{
    if (!file_cursor_has(cursor, length) ||
        !window_read(cursor->window, cursor->at, (size_t)length, out, cursor->error))
        return false;
    cursor->at += length;
    return true;
}

bool file_cursor_number(struct file_cursor *cursor, unsigned size, uint64_t *ret_value)
{
    unsigned char bytes[8];
    if (!file_cursor_read(cursor, size, bytes))
        return false;
    *ret_value = read_le(bytes, size);
    return true;
}

bool file_cursor_skip(struct file_cursor *cursor, uint64_t length)
{
    if (!file_cursor_has(cursor, length))
        return false;
    cursor->at += length;
    return true;
}
