#include "fs/lib/parts_plan.h"

#include "quant/views/convert.h"
#include "quant/views/dependencies.h"

enum { WRITE_COST = 310 /* picoseconds for each byte: read or made, checked, written */ };

/* Returns the cost of a span in picoseconds. */
static uint64_t span_cost(const struct span *span)
{
    uint64_t cost = span->length * WRITE_COST;
    if (span->kind == SPAN_VIEW)
        cost += 1000 * convert_cost(span->view, span->encoding, span->length / span->encoding.dtype->block_bytes);
    return cost;
}

static uint64_t files_cost(const struct vfile *const *files, size_t n_files)
{
    uint64_t cost = 0;
    for (size_t i = 0; i < n_files; i++)
        for (size_t k = 0; k < files[i]->n_spans; k++)
            cost += span_cost(&files[i]->spans[k]);
    return cost;
}

/* Returns the cost of the first `n` of `n_parts` parts. */
static uint64_t cost_of_parts(uint64_t total, size_t n, size_t n_parts)
{
    return total / n_parts * n + total % n_parts * n / n_parts;
}

static void add_length(void *context, const struct extent *from, uint64_t n_bytes)
{
    *(uint64_t *)context += n_bytes;
}

/* Returns how many stored bytes must be read before the range can be made, by somebody who has read nothing. */
static uint64_t bytes_needed(const struct vfile *file, uint64_t offset, uint64_t length)
{
    uint64_t n_bytes = 0;
    struct dependencies to = {.take = add_length, .context = &n_bytes, .as_at_first = true};
    vfile_depends(file, offset, length, &to);
    dependencies_end(&to);
    return n_bytes;
}

/* Reports whether the first byte of a span needs about as much as all of its bytes. */
static bool is_undivided(const struct vfile *file, const struct span *span)
{
    return span->kind == SPAN_VIEW && span->length > CUT_UNIT &&
           2 * bytes_needed(file, span->offset, 1) > bytes_needed(file, span->offset, span->length);
}

/* Returns the offset in a file of the cut that is nearest to a share of a span. */
static uint64_t nearest_cut(const struct vfile *file, const struct span *span, double share)
{
    uint64_t offset = span->offset + (uint64_t)((double)span->length * share), rounding = CUT_UNIT / 2;
    if (is_undivided(file, span)) { /* the span is whole in a part, with some of a neighbour */
        offset = share < 0.5 ? span->offset : span->offset + span->length;
        rounding = share < 0.5 ? 0 : CUT_UNIT - 1;
    }
    uint64_t cut = (offset + rounding) / CUT_UNIT * CUT_UNIT;
    return cut < file->size ? cut : file->size;
}

struct cutting {
    uint64_t total, before; /* cost: of everything, and of what lies before the current span */
    size_t n_parts, n_cut;
    uint64_t *ends;
};

/* Adds the cuts in a span of a file that begins at `position`. */
static void cut_span(struct cutting *cutting, const struct vfile *file, const struct span *span, uint64_t position)
{
    uint64_t cost = span_cost(span);
    while (cutting->n_cut + 1 < cutting->n_parts) {
        uint64_t wanted = cost_of_parts(cutting->total, cutting->n_cut + 1, cutting->n_parts);
        if (wanted >= cutting->before + cost)
            break;
        double share = (double)(wanted - cutting->before) / (double)cost;
        uint64_t end = position + nearest_cut(file, span, share),
                 last = cutting->n_cut > 0 ? cutting->ends[cutting->n_cut - 1] : 0;
        cutting->ends[cutting->n_cut++] = end > last ? end : last;
    }
    cutting->before += cost;
}

void cut_files(const struct vfile *const *files, size_t n_files, size_t n_parts, uint64_t *ret_ends)
{
    struct cutting cutting = {.total = files_cost(files, n_files), .n_parts = n_parts, .ends = ret_ends};
    uint64_t position = 0;
    for (size_t i = 0; i < n_files; position += files[i++]->size)
        for (size_t k = 0; k < files[i]->n_spans; k++)
            cut_span(&cutting, files[i], &files[i]->spans[k], position);
    while (cutting.n_cut < n_parts)
        ret_ends[cutting.n_cut++] = position;
}
