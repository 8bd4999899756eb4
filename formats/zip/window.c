#include "formats/zip/window.h"

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
