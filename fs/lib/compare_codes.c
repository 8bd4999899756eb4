#include "base/lock.h"
#include "base/pool.h"
#include "fs/lib/stage.h"
#include "fs/lib/verification.h"
#include "quant/views/convert.h"

#include <stdlib.h>
#include <string.h>

enum {
    PIECE_ELEMENTS = 1 << 17, /* a whole number of blocks of every dtype */
    PLACES = 4,               /* of a tensor, to probe */
    PROBED_BLOCKS = 8,        /* at each place */
    LEAST_DIFFERENT = 4,      /* probed blocks, and one of LEAST_DIFFERENT: another matrix or tool, and no near ties */
};

/* Numbers that a tool may have quantized instead of those of the source. */
static const char *const casts[] = {NULL, "BF16", "F16"};
enum { N_CASTS = sizeof casts / sizeof *casts };

/* Reads blocks of the file and the values of a view in their place, and counts. `expected` is the reproduction, whose
 * blocks depend on the same stored bytes. */
static bool count_codes(const struct vfile *expected, const struct tensor_finding *finding, const struct view *found,
                        const struct view *values, uint64_t first, uint64_t count, struct code_counts *counts,
                        struct error *error)
{
    const struct dtype *dtype = finding->found->dtype;
    const uint64_t n = count * dtype->block_elements, at = finding->expected->offset + first * dtype->block_bytes;
    unsigned char *blocks = memory_alloc(count * dtype->block_bytes);
    float *numbers = memory_alloc(n * sizeof *numbers);
    bool read = vfile_wait(expected, at, count * dtype->block_bytes, error) &&
                view_read(found, first, count, blocks, error) &&
                convert_values(values, first * dtype->block_elements, n, numbers, error);
    if (read)
        codes_check(dtype, numbers, blocks, first, (size_t)count, counts);
    free(numbers);
    free(blocks);
    return read;
}

/* A tensor that is probed. */
struct probed {
    struct tensor_finding *finding;
    const struct view *found, *values[N_CASTS];
    uint64_t n_blocks, first[PLACES], count;
};

static struct probed probed_of(struct tensor_finding *finding, const struct span *span, struct arena *arena)
{
    struct probed probed = {.finding = finding, .found = tensor_view(finding->found, arena)};
    probed.n_blocks = view_units(probed.found);
    probed.count = probed.n_blocks < PROBED_BLOCKS ? probed.n_blocks : PROBED_BLOCKS;
    for (size_t i = 0; i < PLACES; i++)
        probed.first[i] = (probed.n_blocks - probed.count) * i / (PLACES - 1);
    for (size_t i = 0; i < N_CASTS; i++)
        probed.values[i] = casts[i] == NULL ? span->view : view_convert(arena, span->view, dtype_by_name(casts[i]));
    return probed;
}

/* Counts the probed blocks that the reproduction has otherwise. */
static bool count_different(const struct probed *probed, const struct vfile *expected, size_t *ret_n_different,
                            struct error *error)
{
    const struct tensor *tensor = probed->finding->expected;
    const size_t bytes = tensor->dtype->block_bytes, length = (size_t)probed->count * bytes;
    unsigned char blocks[2][PROBED_BLOCKS * 512];
    *ret_n_different = 0;
    for (size_t i = 0; i < PLACES; i++) {
        uint64_t offset = tensor->offset + probed->first[i] * bytes;
        if (!vfile_wait(expected, offset, length, error) || !vfile_read(expected, offset, length, blocks[0], error) ||
            !view_read(probed->found, probed->first[i], probed->count, blocks[1], error))
            return false;
        for (size_t j = 0; j < length; j += bytes)
            *ret_n_different += memcmp(blocks[0] + j, blocks[1] + j, bytes) != 0;
    }
    return true;
}

/* Finds the values from which the most codes follow. */
static bool find_cast(const struct probed *probed, const struct vfile *expected, size_t *ret_cast, struct error *error)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < N_CASTS && least > 0; i++) {
        struct code_counts counts = code_counts_none();
        for (size_t j = 0; j < PLACES; j++)
            if (!count_codes(expected, probed->finding, probed->found, probed->values[i], probed->first[j],
                             probed->count, &counts, error))
                return false;
        if (counts.n_other + counts.n_loose < least) {
            least = counts.n_other + counts.n_loose;
            *ret_cast = i;
        }
    }
    return true;
}

/* The blocks of one tensor that one task checks. */
struct piece {
    struct tensor_finding *finding;
    const struct view *found, *values;
    uint64_t first, count;
};

struct pass {
    const struct vfile *expected;
    struct piece *pieces;
    size_t n_pieces;
    struct arena *arena;
    struct lock lock; /* guards the following fields and the counts of the findings */
    bool failed;
    struct error *error;
};

static void add_pieces(struct pass *pass, const struct probed *probed, size_t cast)
{
    struct tensor_finding *finding = probed->finding;
    uint64_t step = PIECE_ELEMENTS / finding->found->dtype->block_elements;
    finding->by_codes = true;
    finding->cast = casts[cast];
    finding->codes = code_counts_none();
    for (uint64_t first = 0, count; first < probed->n_blocks; first += count) {
        count = probed->n_blocks - first < step ? probed->n_blocks - first : step;
        pass->pieces = memory_grow(pass->pieces, pass->n_pieces, sizeof *pass->pieces);
        pass->pieces[pass->n_pieces++] = (struct piece){finding, probed->found, probed->values[cast], first, count};
    }
}

/* Probes a tensor. If its blocks are not those of the reproduction, marks it, and adds its pieces if codes follow from
 * its scales. */
static bool probe(struct pass *pass, struct tensor_finding *finding, struct error *error)
{
    const struct span *span = expected_span(pass->expected, finding);
    size_t n_different, cast = 0;
    if (span == NULL || finding->found->dtype->kind != DTYPE_BLOCK || span->view->dtype->kind == DTYPE_BLOCK)
        return true;
    struct probed probed = probed_of(finding, span, pass->arena);
    if (!count_different(&probed, pass->expected, &n_different, error))
        return false;
    if (n_different < LEAST_DIFFERENT || n_different * LEAST_DIFFERENT < PLACES * probed.count)
        return true;
    finding->is_unlike = true;
    if (codes_of(finding->found->dtype) == NULL)
        return true;
    if (!find_cast(&probed, pass->expected, &cast, error))
        return false;
    add_pieces(pass, &probed, cast);
    return true;
}

static void fail(struct pass *pass, const struct error *error)
{
    lock_take(&pass->lock);
    if (!pass->failed)
        *pass->error = *error;
    pass->failed = true;
    lock_drop(&pass->lock);
}

static void check_piece(void *context, size_t index)
{
    struct pass *pass = context;
    const struct piece *piece = &pass->pieces[index];
    struct code_counts counts = code_counts_none();
    struct error error;
    if (!count_codes(pass->expected, piece->finding, piece->found, piece->values, piece->first, piece->count, &counts,
                     &error)) {
        fail(pass, &error);
        return;
    }
    lock_take(&pass->lock);
    code_counts_add(&piece->finding->codes, &counts);
    stage_add(piece->count * piece->finding->found->dtype->block_bytes);
    lock_drop(&pass->lock);
}

bool compare_codes(struct tensor_finding *const *findings, size_t n_findings, const struct reproduction *reproduction,
                   struct error *error)
{
    struct pass pass = {.expected = &reproduction->file, .error = error, .arena = arena_new()};
    lock_init(&pass.lock);
    for (size_t i = 0; i < n_findings && !pass.failed; i++) {
        struct error why;
        if (!probe(&pass, findings[i], &why))
            fail(&pass, &why);
    }
    if (!pass.failed)
        pool_run(pass.n_pieces, check_piece, &pass);
    lock_destroy(&pass.lock);
    free(pass.pieces);
    arena_free(pass.arena);
    return !pass.failed;
}
