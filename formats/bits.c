#include "formats/bits.h"

#include <assert.h>

struct changed {
    struct view view;
    const struct view *inner;
    struct bits bits;
};

static void swap_bytes(unsigned char *bytes, size_t n_components, unsigned component_bytes)
{
    for (size_t i = 0; i < n_components; i++, bytes += component_bytes)
        for (unsigned low = 0, high = component_bytes - 1; low < high; low++, high--) {
            unsigned char byte = bytes[low];
            bytes[low] = bytes[high];
            bytes[high] = byte;
        }
}

/* Flips sign bits: the top bit of each component's last byte, in little-endian order. */
static void flip_signs(unsigned char *bytes, size_t n_bytes, unsigned step, unsigned sign)
{
    for (size_t i = sign; i < n_bytes; i += step)
        bytes[i] ^= 0x80;
}

static bool changed_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct changed *changed = (const struct changed *)view;
    const struct bits *bits = &changed->bits;
    if (!view_read(changed->inner, first, count, out, error))
        return false;
    unsigned element = view->dtype->block_bytes, component = bits->component_bytes;
    size_t n_bytes = count * element;
    if (bits->swap)
        swap_bytes(out, n_bytes / component, component);
    if (bits->negate)
        flip_signs(out, n_bytes, component, component - 1);
    if (bits->conjugate)
        flip_signs(out, n_bytes, element, element - 1);
    return true;
}

static void changed_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    view_depends(((const struct changed *)view)->inner, first, count, to);
}

static const struct view_op changed_op = {.name = "bits", .read = changed_read, .depends = changed_depends};

const struct view *view_bits(struct arena *arena, const struct view *view, struct bits bits)
{
    unsigned element = view->dtype->block_bytes;
    assert(view->dtype->block_elements == 1 && bits.component_bytes > 0 && element % bits.component_bytes == 0);
    bits.swap = bits.swap && bits.component_bytes > 1;
    bits.conjugate = bits.conjugate && element == 2u * bits.component_bytes;
    if (!bits.swap && !bits.negate && !bits.conjugate)
        return view;
    struct changed *changed = arena_alloc(arena, sizeof *changed);
    view_init_shared(&changed->view, &changed_op, view->dtype, view->rank, view->shape);
    changed->inner = view;
    changed->bits = bits;
    return &changed->view;
}
