#include "models/packings/packed.h"

#include "base/checked.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 32, PIECE = 512 /* blocks */ };

struct repacked {
    struct view view;
    struct repacking of;
    uint64_t n_groups; /* in a row */
};

/* Some rows of groups, read at once. */
struct shared {
    unsigned char *scales, *offsets, *zeros;
    uint64_t first_row;
};

static bool read_rows(const struct repacked *repacked, const struct view *view, const struct shared *shared,
                      uint64_t n_rows, unsigned char *out, struct error *error)
{
    return view == NULL ||
           view_read(view, shared->first_row * repacked->n_groups, n_rows * repacked->n_groups, out, error);
}

static bool check_zeros(const struct repacked *repacked, const struct shared *shared, uint64_t n_rows,
                        struct error *error)
{
    for (uint64_t i = 0; repacked->of.zeros != NULL && i < n_rows * repacked->n_groups; i++)
        if (shared->zeros[i] != repacked->of.zero)
            return error_set(error, "row %" PRIu64 " has the zero point %u, but repacked blocks need %u",
                             shared->first_row + i / repacked->n_groups, shared->zeros[i], repacked->of.zero);
    return true;
}

static bool check_groups(const struct repacked *repacked, struct error *error)
{
    const struct view *groups = repacked->of.groups;
    if (groups == NULL)
        return true;
    unsigned size = groups->dtype->block_bytes;
    unsigned char *stored = memory_alloc(groups->n_elements * size);
    bool good = view_read(groups, 0, groups->n_elements, stored, error);
    for (uint64_t i = 0; good && i < groups->n_elements; i++)
        if (read_le(stored + i * size, size) != i / repacked->of.group_size)
            good = error_set(error, "column %" PRIu64 " is not in group %" PRIu64 ", where repacked blocks need it", i,
                             i / repacked->of.group_size);
    free(stored);
    return good;
}

static void pack_block(const struct repacked *repacked, const struct shared *shared, uint64_t block,
                       const unsigned char *codes, unsigned char *out)
{
    uint64_t n_columns = repacked->view.shape[1], element = block * BLOCK;
    uint64_t group =
        (element / n_columns - shared->first_row) * repacked->n_groups + element % n_columns / repacked->of.group_size;
    memcpy(out, shared->scales + 2 * group, 2);
    out += 2;
    if (repacked->of.offsets != NULL) {
        memcpy(out, shared->offsets + 2 * group, 2);
        out += 2;
    }
    if (repacked->of.bits == 8)
        for (unsigned i = 0; i < BLOCK; i++)
            out[i] = codes[i] ^ 0x80;
    else
        for (unsigned i = 0; i < BLOCK / 2; i++)
            out[i] = (unsigned char)(codes[i] | codes[i + BLOCK / 2] << 4);
}

/* Makes the blocks of one piece of codes. */
static bool read_piece(const struct repacked *repacked, uint64_t first, uint64_t count, unsigned char *out,
                       struct error *error)
{
    uint64_t n_columns = repacked->view.shape[1], last_row = ((first + count) * BLOCK - 1) / n_columns;
    struct shared shared = {.first_row = first * BLOCK / n_columns};
    uint64_t n_rows = last_row - shared.first_row + 1, n_shared = n_rows * repacked->n_groups;
    unsigned char *codes = memory_alloc(count * BLOCK + 5 * n_shared);
    shared.scales = codes + count * BLOCK;
    shared.offsets = shared.scales + 2 * n_shared;
    shared.zeros = shared.offsets + 2 * n_shared;
    bool good = view_read(repacked->of.codes, first * BLOCK, count * BLOCK, codes, error) &&
                read_rows(repacked, repacked->of.scales, &shared, n_rows, shared.scales, error) &&
                read_rows(repacked, repacked->of.offsets, &shared, n_rows, shared.offsets, error) &&
                read_rows(repacked, repacked->of.zeros, &shared, n_rows, shared.zeros, error) &&
                check_zeros(repacked, &shared, n_rows, error);
    for (uint64_t i = 0; good && i < count; i++)
        pack_block(repacked, &shared, first + i, codes + i * BLOCK, out + i * repacked->view.dtype->block_bytes);
    free(codes);
    return good;
}

static bool repacked_read(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    const struct repacked *repacked = (const struct repacked *)view;
    unsigned char *to = out;
    bool good = check_groups(repacked, error);
    while (good && count > 0) {
        uint64_t n = count < PIECE || view->scattered ? count : PIECE;
        good = read_piece(repacked, first, n, to, error);
        to += n * view->dtype->block_bytes;
        first += n;
        count -= n;
    }
    return good;
}

static void repacked_depends(const struct view *view, uint64_t first, uint64_t count, struct dependencies *to)
{
    const struct repacked *repacked = (const struct repacked *)view;
    const struct view *of_rows[] = {repacked->of.scales, repacked->of.offsets, repacked->of.zeros};
    uint64_t n_columns = view->shape[1], first_row = first * BLOCK / n_columns;
    uint64_t n_rows = ((first + count) * BLOCK - 1) / n_columns - first_row + 1;
    if (repacked->of.groups != NULL)
        view_depends(repacked->of.groups, 0, repacked->of.groups->n_elements, to);
    view_depends(repacked->of.codes, first * BLOCK, count * BLOCK, to);
    for (size_t i = 0; i < sizeof of_rows / sizeof *of_rows; i++)
        if (of_rows[i] != NULL)
            view_depends(of_rows[i], first_row * repacked->n_groups, n_rows * repacked->n_groups, to);
}

static const struct view_op repacked_op = {.name = "repacked", .read = repacked_read, .depends = repacked_depends};

const struct view *view_of_repacked(struct arena *arena, const struct repacking *repacking)
{
    bool has_offsets = repacking->offsets != NULL;
    uint64_t n_columns = repacking->codes->shape[1];
    const char *name = has_offsets ? "Q4_1" : "Q4_0";
    if (repacking->bits == 8)
        name = "Q8_0";
    if ((repacking->bits != 4 && (repacking->bits != 8 || has_offsets)) || repacking->scales->dtype != &f16_dtype ||
        (has_offsets && repacking->offsets->dtype != &f16_dtype) || repacking->group_size % BLOCK != 0 ||
        n_columns % repacking->group_size != 0)
        return NULL;
    struct repacked *repacked = arena_alloc(arena, sizeof *repacked);
    view_init_shared(&repacked->view, &repacked_op, dtype_by_name(name), 2, repacking->codes->shape);
    repacked->of = *repacking;
    repacked->n_groups = n_columns / repacking->group_size;
    repacked->view.scattered = repacking->codes->scattered || repacking->scales->scattered;
    return &repacked->view;
}

bool view_repacked_holds(const struct view *view)
{
    enum { ROWS_BYTES = 256 * 1024 };
    const struct repacked *repacked = (const struct repacked *)view;
    struct error error;
    if (view->op != &repacked_op)
        return true;
    bool holds = check_groups(repacked, &error);
    if (repacked->of.zeros == NULL)
        return holds;
    uint64_t n_rows = view->shape[0], step = ROWS_BYTES / repacked->n_groups + 1;
    step = repacked->of.zeros->scattered || step > n_rows ? n_rows : step;
    struct shared shared = {.zeros = memory_alloc(step * repacked->n_groups)};
    for (; holds && shared.first_row < n_rows; shared.first_row += step) {
        uint64_t n = n_rows - shared.first_row < step ? n_rows - shared.first_row : step;
        holds = read_rows(repacked, repacked->of.zeros, &shared, n, shared.zeros, &error) &&
                check_zeros(repacked, &shared, n, &error);
    }
    free(shared.zeros);
    return holds;
}
