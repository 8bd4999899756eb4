/* Numbers of this machine in views, whose bytes are those of files: little-endian. */
#pragma once

#include "base/little_endian.h"
#include "quant/views/view.h"

/* The bytes whose order the machine decides: of an element, of half a complex one, or one byte of a block. */
static inline size_t number_bytes(const struct dtype *dtype)
{
    if (dtype->kind == DTYPE_BLOCK || dtype->block_elements > 1)
        return 1;
    return dtype->kind == DTYPE_COMPLEX ? dtype->block_bytes / 2 : dtype->block_bytes;
}

/* Reads units like view_read(), as numbers. */
static inline bool read_numbers(const struct view *view, uint64_t first, uint64_t count, void *numbers,
                                struct error *error)
{
    size_t size = number_bytes(view->dtype);
    if (!view_read(view, first, count, numbers, error))
        return false;
    little_endian(numbers, count * view->dtype->block_bytes / size, size);
    return true;
}

/* Returns a constant like view_literal(), of numbers, or bits of numbers, which it copies. */
static inline const struct view *view_of_numbers(struct arena *arena, const struct dtype *dtype, unsigned rank,
                                                 const uint64_t *shape, const void *numbers)
{
    size_t size = number_bytes(dtype);
    const struct view *view = view_literal(arena, dtype, rank, shape, NULL);
    void *bytes = arena_copy(arena, numbers, view_bytes(view));
    little_endian(bytes, view_bytes(view) / size, size);
    return view_literal(arena, dtype, rank, shape, bytes);
}
