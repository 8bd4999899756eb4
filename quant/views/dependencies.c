#include "quant/views/dependencies.h"

static void take_added(struct dependencies *to)
{
    if (to->n_bytes > 0)
        to->take(to->context, &to->from, to->n_bytes);
    to->n_bytes = 0;
}

void dependencies_add(struct dependencies *to, const struct extent *from, uint64_t n_bytes)
{
    uint64_t start = from->offset, end = start + n_bytes, known_end = to->from.offset + to->n_bytes;
    bool is_near = to->n_bytes > 0 && to->from.source == from->source && start <= known_end + DEPENDENCY_GAP &&
                   to->from.offset <= end + DEPENDENCY_GAP;
    if (!is_near)
        take_added(to);
    if (is_near && to->from.offset < start)
        start = to->from.offset;
    if (is_near && known_end > end)
        end = known_end;
    to->from = (struct extent){from->source, start};
    to->n_bytes = end - start;
}

void dependencies_end(struct dependencies *to)
{
    take_added(to);
}
