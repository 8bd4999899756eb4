#include "base/lock.h"
#include "base/pool.h"
#include "base/sort.h"
#include "fs/lib/stage.h"
#include "fs/lib/verification.h"
#include "quant/views/near_tie.h"

#include <stdlib.h>
#include <string.h>

enum {
    PIECE_ELEMENTS = 1 << 17, /* a whole number of blocks of every dtype */
    MOST_OTHERS = 16,         /* blocks of a tensor that are no near ties: the next ones are not tried */
};

static const double most_times_as_close = 1.25;

static uint64_t count_others(const struct block_counts *counts)
{
    return counts->n_different - counts->n_near - counts->n_close;
}

/* The blocks of one tensor that one task compares. */
struct piece {
    struct tensor_finding *finding;
    const struct view *found;
    const struct span *span; /* that computes the blocks; NULL: they are copied */
    uint64_t first, count;
};

struct pass {
    const struct reproduction *reproduction;
    struct piece *pieces;
    size_t n_pieces;
    struct lock lock; /* guards the following fields and the counts of the findings */
    bool failed;
    struct error *error;
};

struct span_search {
    const struct span *spans;
    uint64_t offset;
};

static bool span_is_before(const void *context, size_t index)
{
    const struct span_search *search = context;
    return search->spans[index].offset < search->offset;
}

const struct span *expected_span(const struct vfile *file, const struct tensor_finding *finding)
{
    const struct span_search wanted = {file->spans, finding->expected->offset};
    size_t at = search_first(file->n_spans, span_is_before, &wanted);
    const struct span *span = at < file->n_spans ? &file->spans[at] : NULL;
    bool fits = span != NULL && span->kind == SPAN_VIEW && span->offset == finding->expected->offset &&
                span->length == finding->expected->length && span->encoding.dtype == finding->expected->dtype;
    return fits ? span : NULL;
}

/* Reads both versions of a piece: the expected one, then the one found. */
static bool read_both(const struct pass *pass, const struct piece *piece, unsigned char *bytes, size_t length,
                      struct error *error)
{
    const struct tensor *expected = piece->finding->expected;
    uint64_t offset = expected->offset + piece->first * expected->dtype->block_bytes;
    return vfile_wait(&pass->reproduction->file, offset, length, error) &&
           vfile_read(&pass->reproduction->file, offset, length, bytes, error) &&
           view_read(piece->found, piece->first, piece->count, bytes + length, error);
}

/* Judges a block that differs: counts it as near, as close, or not. */
static bool judge_block(const struct piece *piece, uint64_t block, const unsigned char *expected,
                        const unsigned char *found, struct block_counts *counts, struct error *error)
{
    const struct view *view = piece->span->view;
    const struct dtype *dtype = piece->span->encoding.dtype;
    bool near;
    double errors[2] = {0, 1};
    if (!near_tie(view, piece->span->encoding, block, found, &near, error) ||
        (!near && view->dtype != dtype && !block_errors(view, dtype, block, expected, found, errors, error)))
        return false;
    counts->n_near += near;
    counts->n_close += !near && errors[1] <= most_times_as_close * errors[0];
    return true;
}

/* Adds the blocks of a piece that differ; `n_others` blocks of the tensor are known to be no near ties. */
static bool count_blocks(const struct piece *piece, const unsigned char *bytes, uint64_t n_others,
                         struct block_counts *counts, struct error *error)
{
    const struct dtype *dtype = piece->finding->expected->dtype;
    const unsigned char *others = bytes + piece->count * dtype->block_bytes;
    for (uint64_t i = 0; i < piece->count; i++, bytes += dtype->block_bytes, others += dtype->block_bytes) {
        if (memcmp(bytes, others, dtype->block_bytes) == 0)
            continue;
        double distance = block_distance(dtype, bytes, others);
        if (piece->span != NULL && n_others + count_others(counts) < MOST_OTHERS &&
            !judge_block(piece, piece->first + i, bytes, others, counts, error))
            return false;
        counts->first = counts->n_different == 0 ? piece->first + i : counts->first;
        counts->largest = distance > counts->largest ? distance : counts->largest;
        counts->n_different++;
    }
    return true;
}

static void add_counts(struct block_counts *sum, const struct block_counts *counts)
{
    if (counts->n_different > 0 && (sum->n_different == 0 || counts->first < sum->first))
        sum->first = counts->first;
    sum->n_different += counts->n_different;
    sum->n_near += counts->n_near;
    sum->n_close += counts->n_close;
    sum->largest = counts->largest > sum->largest ? counts->largest : sum->largest;
}

static void compare_piece(void *context, size_t index)
{
    struct pass *pass = context;
    const struct piece *piece = &pass->pieces[index];
    struct block_counts *sum = &piece->finding->blocks, counts = {0};
    struct error error;
    size_t length = (size_t)piece->count * piece->finding->expected->dtype->block_bytes;
    lock_take(&pass->lock);
    bool over = pass->failed;
    uint64_t n_others = piece->finding->is_unlike ? MOST_OTHERS : count_others(sum);
    lock_drop(&pass->lock);
    if (over)
        return;
    unsigned char *bytes = memory_alloc(2 * length);
    bool done = read_both(pass, piece, bytes, length, &error) &&
                (memcmp(bytes, bytes + length, length) == 0 || count_blocks(piece, bytes, n_others, &counts, &error));
    free(bytes);
    lock_take(&pass->lock);
    if (!done && !pass->failed)
        *pass->error = error;
    pass->failed |= !done;
    add_counts(sum, &counts);
    stage_add(length);
    lock_drop(&pass->lock);
}

static void add_pieces(struct pass *pass, struct tensor_finding *finding, struct arena *arena)
{
    const struct view *found = tensor_view(finding->found, arena);
    const struct span *span = expected_span(&pass->reproduction->file, finding);
    uint64_t step = PIECE_ELEMENTS / found->dtype->block_elements;
    finding->blocks.n_blocks = view_units(found);
    for (uint64_t first = 0, count; first < finding->blocks.n_blocks; first += count) {
        count = finding->blocks.n_blocks - first < step ? finding->blocks.n_blocks - first : step;
        pass->pieces = memory_grow(pass->pieces, pass->n_pieces, sizeof *pass->pieces);
        pass->pieces[pass->n_pieces++] = (struct piece){finding, found, span, first, count};
    }
}

bool compare_blocks(struct tensor_finding *const *findings, size_t n_findings, const struct reproduction *reproduction,
                    struct error *error)
{
    struct pass pass = {.reproduction = reproduction, .error = error};
    struct arena *arena = arena_new();
    for (size_t i = 0; i < n_findings; i++)
        add_pieces(&pass, findings[i], arena);
    lock_init(&pass.lock);
    pool_run(pass.n_pieces, compare_piece, &pass);
    lock_destroy(&pass.lock);
    free(pass.pieces);
    arena_free(arena);
    return !pass.failed;
}
