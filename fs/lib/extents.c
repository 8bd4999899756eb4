/* The tensors of a file, by the readers of formats. */
#include "fs/lib/extents.h"

#include "base/arena.h"
#include "base/attempt.h"
#include "base/checked.h"
#include "base/text.h"
#include "models/formats.h"
#include "sources/archive/digest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAST_TENSOR = 1024,          /* bytes of a tensor that is stored apart: its line takes about 60 */
    LEAST_CHECKPOINT = 64 * 1024, /* bytes of a file that is tried as one */
    LEAST_PIECE = 8 * 1024,       /* bytes between tensors that are stored as one */
    LARGEST_PIECE = 64 * 1024,
    LARGEST_TEXT = 64 << 20, /* bytes between tensors that are cut into pieces */
};

static const uint64_t WHOLE = UINT64_MAX; /* of no part */

/* A file while its tensors are found. */
struct finding {
    struct source *file;
    const char *path;
    struct packed_extent *extents;
    size_t count;
};

static void add(struct finding *finding, const struct packed_extent *extent)
{
    finding->extents = memory_grow(finding->extents, finding->count, sizeof *finding->extents);
    finding->extents[finding->count++] = *extent;
}

/* Returns the name of a tensor, or of one of its parts, if it can be written as JSON; NULL: it cannot, or is too long
 * to be one. */
static char *name_of(const struct tensor *tensor, uint64_t part)
{
    enum { LONGEST = 1000, NUMBER = 24 };
    if (tensor->name_length > LONGEST || strlen(tensor->name) != tensor->name_length ||
        text_valid_prefix(tensor->name, tensor->name_length) != tensor->name_length)
        return NULL;
    char *name = memory_alloc(tensor->name_length + NUMBER);
    if (part == WHOLE)
        memcpy(name, tensor->name, tensor->name_length + 1);
    else
        snprintf(name, tensor->name_length + NUMBER, "%s[%" PRIu64 "]", tensor->name, part);
    return name;
}

static uint64_t row_of(const struct tensor *tensor)
{
    return tensor->rank > 0 && tensor->strides == NULL ? tensor->shape[tensor->rank - 1] : 0;
}

/* Returns the parts in which a tensor is stored: of experts in one tensor each is a part, because other files have them
 * as tensors of their own. */
static uint64_t parts_of(const struct tensor *tensor)
{
    enum { EXPERTS_RANK = 3, LEAST_EXPERT = 16 * 1024 /* bytes; kernels of convolutions are smaller */ };
    const uint64_t n = tensor->rank == EXPERTS_RANK && tensor->strides == NULL ? tensor->shape[0] : 1;
    return n > 0 && tensor->length / n >= LEAST_EXPERT && tensor->length % n == 0 &&
                   tensor->length / n % tensor->dtype->block_bytes == 0
               ? n
               : 1;
}

static void add_tensor(struct finding *finding, const struct tensor *tensor)
{
    const uint64_t n_parts = parts_of(tensor), length = tensor->length / n_parts;
    for (uint64_t i = 0; i < n_parts; i++)
        add(finding, &(struct packed_extent){tensor->offset + i * length, length, tensor->dtype, row_of(tensor),
                                             name_of(tensor, n_parts > 1 ? i : WHOLE)});
}

/* Adds the stored tensors of the file, if it is a checkpoint. A reader that fails finds none. */
static void find(void *context)
{
    struct finding *finding = context;
    struct error unused;
    struct source *range = source_range_new(finding->file, finding->path, 0, source_size(finding->file));
    const struct checkpoint *checkpoint = checkpoint_of_source(range, formats, &unused);
    for (size_t i = 0; checkpoint != NULL && i < checkpoint->tensors->n_tensors; i++) {
        const struct tensor *tensor = &checkpoint->tensors->tensors[i];
        if (tensor->source == range && tensor->dtype != NULL && tensor->length >= LEAST_TENSOR &&
            tensor->offset <= source_size(range) && tensor->length <= source_size(range) - tensor->offset)
            add_tensor(finding, tensor);
    }
    checkpoint_close(checkpoint);
}

static int compare_extents(const void *a, const void *b)
{
    const struct packed_extent *x = a, *y = b;
    return x->offset != y->offset ? (x->offset > y->offset) - (x->offset < y->offset)
                                  : (x->length < y->length) - (x->length > y->length);
}

/* Fills in a number for each byte, whose sums look random. */
static void fill_gears(uint64_t gears[256])
{
    for (uint64_t i = 0; i < 256; i++)
        gears[i] = read_le(digest_of(&(unsigned char){(unsigned char)i}, 1).bytes, 8);
}

/* Returns how many of these bytes are the next piece. It ends where the last 64 bytes say so, not after so many: equal
 * runs of two files become equal pieces wherever they begin, such as the vocabularies in the headers of GGUFs. Source:
 * the hash is that of Xia et al., FastCDC: a fast and efficient content-defined chunking approach, 2016. */
static size_t piece_length(const uint64_t gears[256], const unsigned char *bytes, size_t n)
{
    enum { WINDOW = 64, CUT_BITS = 14 };
    uint64_t hash = 0;
    for (size_t i = LEAST_PIECE - WINDOW; i < n; i++) {
        hash = (hash << 1) + gears[bytes[i]];
        if (i >= LEAST_PIECE && hash >> (64 - CUT_BITS) == 0)
            return i + 1;
    }
    return n;
}

/* Adds the bytes from `from` to `to`, which no tensor holds. What cannot be read now fails when it is packed. */
static void add_between(struct finding *finding, struct source *file, uint64_t from, uint64_t to)
{
    uint64_t gears[256];
    unsigned char bytes[LARGEST_PIECE];
    struct error unused;
    const bool cuts = to - from > LEAST_PIECE && to - from <= LARGEST_TEXT;
    if (cuts)
        fill_gears(gears);
    for (uint64_t n, most; from < to; from += n) {
        most = cuts ? LARGEST_PIECE : LARGEST_TEXT;
        n = to - from < most ? to - from : most;
        if (cuts && source_read(file, from, (size_t)n, bytes, &unused))
            n = piece_length(gears, bytes, (size_t)n);
        add(finding, &(struct packed_extent){.offset = from, .length = n});
    }
}

struct packed_extent *extents_of(struct source *file, const char *path, size_t *ret_count)
{
    struct finding found = {.file = file, .path = path}, all = {0};
    struct error unused;
    uint64_t end = 0;
    if (source_size(file) >= LEAST_CHECKPOINT && !attempt(find, &found, &unused))
        found.count = 0;
    if (found.count > 0)
        qsort(found.extents, found.count, sizeof *found.extents, compare_extents);
    for (size_t i = 0; i < found.count; i++)
        if (found.extents[i].offset >= end) {
            add_between(&all, file, end, found.extents[i].offset);
            add(&all, &found.extents[i]);
            end = found.extents[i].offset + found.extents[i].length;
        } else {
            free(found.extents[i].name);
        }
    add_between(&all, file, end, source_size(file));
    free(found.extents);
    *ret_count = all.count;
    return all.extents;
}

void extents_free(struct packed_extent *extents, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(extents[i].name);
    free(extents);
}
