#include "fs/kept/kept_scales.h"

#include "base/encodings.h"
#include "quant/blocks/codes.h"
#include "quant/views/convert.h"

#include <nettle/base16.h>
#include <nettle/sha2.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    GRANULES = SCALES_UNIT / STORE_GRANULE,
    UNDER_WAY = 16, /* units that are not complete: what threads of one reader are apart, and several readers */
    BATCH_ELEMENTS = 1 << 14, /* a whole number of blocks of every dtype */
};

/* A unit whose granules arrive. */
struct unfinished {
    uint64_t unit, order;
    unsigned added;        /* granules, a bit each; 0: the place is free */
    unsigned char *record; /* STORE_GRANULE bytes */
};

struct kept_scales {
    struct store_object *object;
    uint64_t n_units, n_orders;
    atomic_bool *is_verified; /* for each unit */
    struct unfinished unfinished[UNDER_WAY];
};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The bytes of a unit that one span has. */
struct piece {
    const struct span *span;
    uint64_t from, to; /* of the file */
    bool by_scales;
    uint64_t first, count; /* blocks of the span that overlap the piece, if it is by scales */
    size_t scales, marks;  /* places in the record */
    size_t end;            /* of what the record has of this piece and those before it */
};

static size_t block_bytes(const struct piece *piece)
{
    return piece->span->encoding.dtype->block_bytes;
}

/* Gets the next piece of a unit; begins with zeros. Returns false after the last one. */
static bool next_piece(const struct vfile *file, uint64_t unit, struct piece *piece)
{
    const uint64_t end = least((unit + 1) * SCALES_UNIT, file->size);
    uint64_t from = piece->span == NULL ? unit * SCALES_UNIT : piece->to;
    if (from >= end)
        return false;
    const struct span *span = piece->span == NULL ? vfile_span_at(file, from) : piece->span + 1;
    *piece =
        (struct piece){.span = span, .from = from, .to = least(end, span->offset + span->length), .end = piece->end};
    if (vfile_making(file, from, piece->to - from) < MADE_SLOWLY)
        return true;
    const struct dtype *dtype = span->encoding.dtype;
    piece->by_scales = codes_of(dtype) != NULL && span->view->dtype->kind != DTYPE_BLOCK;
    piece->first = (from - span->offset) / dtype->block_bytes;
    piece->count = (piece->to - span->offset + dtype->block_bytes - 1) / dtype->block_bytes - piece->first;
    piece->scales = piece->end;
    piece->marks = piece->scales + (size_t)piece->count * codes_scale_bytes(dtype);
    piece->end = piece->marks + (size_t)(piece->count + 7) / 8;
    return true;
}

static bool has_record(const struct vfile *file, uint64_t unit)
{
    struct piece piece = {0};
    bool any = false;
    while (next_piece(file, unit, &piece)) {
        bool is_slow = vfile_making(file, piece.from, piece.to - piece.from) == MADE_SLOWLY;
        if ((is_slow && !piece.by_scales) || piece.end > STORE_GRANULE)
            return false;
        any |= piece.by_scales;
    }
    return any;
}

bool kept_scales_apply(const struct vfile *file, uint64_t offset)
{
    return has_record(file, offset / SCALES_UNIT);
}

/* Makes a key of the store from that of the bytes. */
static void make_key(const char *bytes_key, char key[STORE_KEY])
{
    static const char format_version[] = "wfs kept scales 1";
    struct sha256_ctx hash;
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_init(&hash);
    sha256_update(&hash, sizeof format_version, (const uint8_t *)format_version);
    sha256_update(&hash, strlen(bytes_key), (const uint8_t *)bytes_key);
    sha256_digest(&hash, sizeof digest, digest);
    memcpy(key, STORE_COMPUTED, sizeof STORE_COMPUTED - 1);
    base16_encode_update(key + sizeof STORE_COMPUTED - 1, sizeof digest, digest);
    key[sizeof STORE_COMPUTED - 1 + SHA256_HEX] = '\0';
}

struct kept_scales *kept_scales_new(const struct vfile *file, const char *key, const char *name)
{
    char own_key[STORE_KEY];
    uint64_t n_units = (file->size + SCALES_UNIT - 1) / SCALES_UNIT, unit = 0;
    while (unit < n_units && !has_record(file, unit))
        unit++;
    if (unit == n_units)
        return NULL;
    struct kept_scales *scales = memory_alloc(sizeof *scales);
    *scales = (struct kept_scales){.n_units = n_units};
    scales->is_verified = memory_alloc(n_units * sizeof *scales->is_verified);
    for (uint64_t i = 0; i < n_units; i++)
        atomic_init(&scales->is_verified[i], false);
    make_key(key, own_key);
    scales->object = store_open_computed(own_key, n_units * STORE_GRANULE, name);
    return scales;
}

void kept_scales_free(struct kept_scales *scales)
{
    if (scales == NULL)
        return;
    store_close(scales->object);
    for (size_t i = 0; i < UNDER_WAY; i++)
        free(scales->unfinished[i].record);
    free(scales->is_verified);
    free(scales);
}

/* Some blocks of a piece, in memory. */
struct batch {
    float *values;
    unsigned char *blocks, *made, *scales;
};

static struct batch batch_new(void)
{
    enum { MOST_BYTES = 4 }; /* of an element, of a block or its scales */
    struct batch batch;
    batch.values = memory_alloc(BATCH_ELEMENTS * (sizeof *batch.values + (size_t)3 * MOST_BYTES));
    batch.blocks = (unsigned char *)(batch.values + BATCH_ELEMENTS);
    batch.made = batch.blocks + (size_t)BATCH_ELEMENTS * MOST_BYTES;
    batch.scales = batch.made + (size_t)BATCH_ELEMENTS * MOST_BYTES;
    return batch;
}

static void batch_free(struct batch *batch)
{
    free(batch->values);
}

static size_t batch_blocks(const struct piece *piece)
{
    return BATCH_ELEMENTS / piece->span->encoding.dtype->block_elements;
}

/* Makes blocks of the span from scales and values into batch->made. */
static bool make_blocks(const struct batch *batch, const struct span *span, uint64_t first, size_t count,
                        struct error *error)
{
    const struct dtype *dtype = span->encoding.dtype;
    const uint64_t n = dtype->block_elements;
    if (!convert_values(span->view, first * n, count * n, batch->values, error))
        return false;
    codes_join(dtype, batch->scales, count, batch->made);
    codes_of(dtype)(batch->values, batch->made, count);
    return true;
}

/* Copies blocks to a range of the file, as far as they lie in it. */
static void copy_overlap(const struct piece *piece, uint64_t first, size_t count, const unsigned char *blocks,
                         uint64_t offset, size_t length, unsigned char *out)
{
    uint64_t at = piece->span->offset + first * block_bytes(piece), end = at + count * block_bytes(piece);
    uint64_t from = at > offset ? at : offset, to = least(end, offset + length);
    if (from < to)
        memcpy(out + (from - offset), blocks + (from - at), (size_t)(to - from));
}

/* Computes the marked blocks of a batch by their search. */
static bool search_marked(const struct batch *batch, const struct piece *piece, uint64_t first, size_t count,
                          const unsigned char *marks, struct error *error)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t mark = first + i - piece->first;
        if ((marks[mark / 8] >> mark % 8 & 1) != 0 && !convert_read(piece->span->view, piece->span->encoding, first + i,
                                                                    1, batch->made + i * block_bytes(piece), error))
            return false;
    }
    return true;
}

/* Reads the blocks of a piece that overlap a range. */
static bool read_piece(struct kept_scales *scales, uint64_t unit, const struct piece *piece, uint64_t offset,
                       size_t length, unsigned char *out)
{
    struct error unsaid;
    const size_t scale_bytes = codes_scale_bytes(piece->span->encoding.dtype), n_marks = piece->end - piece->marks;
    const uint64_t from = offset > piece->from ? offset : piece->from, to = least(piece->to, offset + length);
    uint64_t block = (from - piece->span->offset) / block_bytes(piece);
    const uint64_t end = (to - piece->span->offset + block_bytes(piece) - 1) / block_bytes(piece);
    unsigned char *marks = memory_alloc(n_marks);
    struct batch batch = batch_new();
    bool read = store_read(scales->object, unit, piece->marks, n_marks, marks);
    for (size_t n; read && block < end; block += n) {
        n = (size_t)least(end - block, batch_blocks(piece));
        size_t at = piece->scales + (size_t)(block - piece->first) * scale_bytes;
        read = store_read(scales->object, unit, at, n * scale_bytes, batch.scales) &&
               make_blocks(&batch, piece->span, block, n, &unsaid) &&
               search_marked(&batch, piece, block, n, marks, &unsaid);
        if (read)
            copy_overlap(piece, block, n, batch.made, offset, length, out);
    }
    batch_free(&batch);
    free(marks);
    return read;
}

bool kept_scales_read(struct kept_scales *scales, const struct vfile *file, uint64_t offset, size_t length, void *out)
{
    struct error unsaid;
    const uint64_t unit = offset / SCALES_UNIT, end = offset + length;
    struct piece piece = {0};
    if (!atomic_load(&scales->is_verified[unit]) && !store_verify(scales->object, unit))
        return false;
    bool read = true;
    while (read && next_piece(file, unit, &piece) && piece.from < end) {
        uint64_t from = offset > piece.from ? offset : piece.from, to = least(piece.to, end);
        if (from >= to)
            continue;
        read = piece.by_scales
                   ? read_piece(scales, unit, &piece, offset, length, out)
                   : vfile_compute(file, from, (size_t)(to - from), (unsigned char *)out + (from - offset), &unsaid);
    }
    atomic_store(&scales->is_verified[unit], read);
    return read;
}

/* Making records. */

/* Returns the place for a unit that is not complete. */
static struct unfinished *unfinished_of(struct kept_scales *scales, uint64_t unit)
{
    struct unfinished *chosen = &scales->unfinished[0];
    for (size_t i = 0; i < UNDER_WAY; i++) {
        struct unfinished *other = &scales->unfinished[i];
        if (other->added != 0 && other->unit == unit)
            return other;
        if (chosen->added != 0 && (other->added == 0 || other->order < chosen->order))
            chosen = other;
    }
    if (chosen->record == NULL)
        chosen->record = memory_alloc(STORE_GRANULE);
    memset(chosen->record, 0, STORE_GRANULE);
    chosen->unit = unit;
    chosen->added = 0;
    chosen->order = scales->n_orders++;
    return chosen;
}

/* The bytes of a granule. */
struct granule {
    uint64_t from, to; /* of the file */
    const unsigned char *bytes;
};

/* Gets blocks of a piece: from the bytes of the granule, or, where these have only a part of a block, computed. */
static bool take_blocks(const struct batch *batch, const struct piece *piece, const struct granule *granule,
                        uint64_t first, size_t count, struct error *error)
{
    const size_t bytes = block_bytes(piece);
    for (size_t i = 0; i < count; i++) {
        uint64_t at = piece->span->offset + (first + i) * bytes;
        if (at >= granule->from && at + bytes <= granule->to)
            memcpy(batch->blocks + i * bytes, granule->bytes + (at - granule->from), bytes);
        else if (!convert_read(piece->span->view, piece->span->encoding, first + i, 1, batch->blocks + i * bytes,
                               error))
            return false;
    }
    return true;
}

/* Adds blocks to a record, and marks those whose codes do not follow from the scales. */
static bool add_blocks(const struct batch *batch, const struct piece *piece, const struct granule *granule,
                       uint64_t first, size_t count, unsigned char *record, struct error *error)
{
    const struct dtype *dtype = piece->span->encoding.dtype;
    const size_t bytes = dtype->block_bytes, scale_bytes = codes_scale_bytes(dtype);
    const uint64_t place = first - piece->first;
    if (!take_blocks(batch, piece, granule, first, count, error))
        return false;
    codes_split(dtype, batch->blocks, count, batch->scales);
    memcpy(record + piece->scales + place * scale_bytes, batch->scales, count * scale_bytes);
    if (!make_blocks(batch, piece->span, first, count, error))
        return false;
    for (size_t i = 0; i < count; i++)
        if (memcmp(batch->made + i * bytes, batch->blocks + i * bytes, bytes) != 0)
            record[piece->marks + (place + i) / 8] |= (unsigned char)(1 << (place + i) % 8);
    return true;
}

/* Adds the blocks of a piece that end in the granule, and the last one of the piece if it ends after the granule. */
static bool add_piece(const struct batch *batch, const struct piece *piece, const struct granule *granule,
                      unsigned char *record)
{
    struct error unsaid;
    const size_t bytes = block_bytes(piece);
    const uint64_t last = piece->first + piece->count, at = piece->span->offset;
    uint64_t block = granule->from > at ? (granule->from - at) / bytes : 0;
    block = block > piece->first ? block : piece->first;
    uint64_t end = least(granule->to, piece->to) == piece->to ? last : (granule->to - at) / bytes;
    for (size_t n; block < end; block += n) {
        n = (size_t)least(end - block, batch_blocks(piece));
        if (!add_blocks(batch, piece, granule, block, n, record, &unsaid))
            return false;
    }
    return true;
}

/* Returns the granules of a unit whose bytes take long to make, a bit each: the others are not kept. */
static unsigned slow_granules(const struct vfile *file, uint64_t unit)
{
    unsigned slow = 0;
    for (unsigned i = 0; i < GRANULES; i++) {
        uint64_t from = unit * SCALES_UNIT + i * STORE_GRANULE;
        if (from < file->size && vfile_making(file, from, least(STORE_GRANULE, file->size - from)) == MADE_SLOWLY)
            slow |= 1U << i;
    }
    return slow;
}

void kept_scales_add(struct kept_scales *scales, const struct vfile *file, uint64_t granule, const void *bytes)
{
    const uint64_t unit = granule / GRANULES, from = granule * STORE_GRANULE;
    const struct granule added = {from, least(from + STORE_GRANULE, file->size), bytes};
    struct unfinished *unfinished = unfinished_of(scales, unit);
    struct batch batch = batch_new();
    struct piece piece = {0};
    bool complete = true;
    while (complete && next_piece(file, unit, &piece) && piece.from < added.to)
        if (piece.by_scales && piece.to > added.from)
            complete = add_piece(&batch, &piece, &added, unfinished->record);
    batch_free(&batch);
    unfinished->added = complete ? unfinished->added | 1U << granule % GRANULES : 0;
    if (unfinished->added == slow_granules(file, unit)) {
        store_write(scales->object, unit, unfinished->record);
        unfinished->added = 0;
    }
}
