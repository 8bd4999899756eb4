#include "fs/kept/kept.h"

#include "base/system.h"
#include "fs/kept/keeper.h"
#include "fs/kept/kept_scales.h"
#include "fs/tree/identity.h"
#include "quant/views/convert.h"
#include "quant/views/dependencies.h"
#include "remote/store.h"
#include "sources/paths.h"

#include <nettle/base16.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct kept {
    enum keep keep;
    struct keeping keeping;
    struct kept_scales *scales; /* NULL: bytes are kept */
    time_t newest;              /* input, in seconds */
    atomic_bool *is_verified;   /* for each granule */

    kept_remake *remake;
    void *context;
    uint64_t n_granules, n_missing; /* those that must be kept until the file is sealed; the keeper's thread counts */
    bool has_counted;
    atomic_bool is_ending;
};

const char *kept_name(const char *model, const char *path, struct arena *arena)
{
    const char *real = local_real_path(model, arena);
    if (real != NULL)
        model = real;
    size_t length = strlen(model);
    while (length > 0 && model[length - 1] == '/')
        length--;
    return arena_printf(arena, "%.*s/%s", (int)length, model, path);
}

time_t kept_newest(const struct origin *origin, struct timespec newest)
{
    for (size_t i = 0; i < origin->n_sources; i++)
        newest = file_time_later(newest, source_mtime(origin->sources[i]));
    return newest.tv_sec;
}

/* Reports whether the granule of a byte is to be kept. */
static bool is_wanted(const struct kept *kept, const struct vfile *file, uint64_t offset)
{
    uint64_t granule = offset / STORE_GRANULE;
    size_t length = store_granule_length(kept->keeping.object, granule);
    enum vfile_making least = kept->keep == KEEP_ALL ? MADE_BY_COMPUTING : MADE_SLOWLY;
    return vfile_making(file, granule * STORE_GRANULE, length) >= least;
}

bool kept_is_settled(time_t newest)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec - newest > KEPT_AGE;
}

/* A file that is being sealed. */
struct seal {
    struct kept *kept;
    struct vfile file;
};

/* Gives a granule: kept, or one that is quick to make. After the last one, no input may have changed. */
static bool fill_granule(void *context, uint64_t granule, void *out)
{
    struct error unsaid;
    const struct seal *seal = context;
    struct store_object *object = seal->kept->keeping.object;
    uint64_t offset = granule * STORE_GRANULE;
    if (atomic_load(&seal->kept->is_ending))
        return false;
    bool filled = is_wanted(seal->kept, &seal->file, offset)
                      ? store_take(object, granule, out)
                      : vfile_compute(&seal->file, offset, store_granule_length(object, granule), out, &unsaid);
    return filled && (granule + 1 < seal->kept->n_granules || !origin_verify(&seal->file.origin));
}

/* Counts the granules that the file lacks to be sealed: all, if most of them are not to be kept. */
static uint64_t count_missing(const struct seal *seal)
{
    const uint64_t n_granules = seal->kept->n_granules;
    uint64_t n_wanted = 0, n_missing = 0;
    for (uint64_t granule = 0; granule < n_granules; granule++)
        if (is_wanted(seal->kept, &seal->file, granule * STORE_GRANULE)) {
            n_wanted++;
            n_missing += !store_has(seal->kept->keeping.object, granule);
        }
    return n_wanted > n_granules / 2 ? n_missing : n_granules;
}

/* Seals the file if nothing is missing; called by the keeper's thread. */
static void seal_if_complete(void *context, size_t n_written)
{
    struct kept *kept = context;
    struct seal seal = {.kept = kept};
    kept->n_missing -= kept->n_missing < n_written ? kept->n_missing : n_written;
    if ((kept->has_counted && kept->n_missing > 0) || !kept->remake(kept->context, &seal.file))
        return;
    kept->n_missing = count_missing(&seal);
    kept->has_counted = true;
    if (kept->n_missing == 0 && kept_is_settled(kept->newest))
        store_seal(kept->keeping.object, fill_granule, &seal);
}

/* Keeps a granule; called by the keeper's thread. */
static void write_granule(void *context, uint64_t granule, const void *bytes)
{
    struct kept *kept = context;
    struct vfile file;
    if (!kept->remake(kept->context, &file))
        return;
    if (kept_scales_apply(&file, granule * STORE_GRANULE))
        kept_scales_add(kept->scales, &file, granule, bytes);
    else
        store_write(kept->keeping.object, granule, bytes);
}

struct kept *kept_new(const struct vfile *file, const struct kept_request *request)
{
    char key[sizeof STORE_COMPUTED + SHA256_HEX] = STORE_COMPUTED;
    if (request->keep == KEEP_NONE || file->size < STORE_GRANULE)
        return NULL;
    kept_key(file, request->identity, key + sizeof STORE_COMPUTED - 1);
    size_t n_granules = (size_t)((file->size + STORE_GRANULE - 1) / STORE_GRANULE);
    struct kept *kept = memory_alloc(sizeof *kept);
    *kept = (struct kept){.keep = request->keep, .newest = kept_newest(&file->origin, request->newest)};
    kept->remake = request->remake;
    kept->context = request->context;
    kept->n_granules = n_granules;
    kept->is_verified = memory_alloc(n_granules * sizeof *kept->is_verified);
    for (size_t i = 0; i < n_granules; i++)
        atomic_init(&kept->is_verified[i], false);
    kept->keeping = (struct keeping){store_open_computed(key, file->size, request->name), file->origin};
    if (kept->remake == NULL || store_sealed_descriptor(kept->keeping.object) >= 0)
        return kept;
    kept->keeping.context = kept;
    if (kept->keep == KEEP_QUANTIZED)
        kept->scales = kept_scales_new(file, key, request->name);
    if (kept->scales != NULL)
        kept->keeping.write = write_granule;
    else
        kept->keeping.written = seal_if_complete;
    return kept;
}

void kept_begin(struct kept *kept)
{
    if (kept != NULL && kept->keeping.written != NULL)
        keeper_call(&kept->keeping);
}

static bool verify(struct kept *kept, uint64_t granule)
{
    if (!atomic_load(&kept->is_verified[granule]))
        atomic_store(&kept->is_verified[granule], store_verify(kept->keeping.object, granule));
    return atomic_load(&kept->is_verified[granule]);
}

int kept_sealed_descriptor(struct kept *kept)
{
    if (kept == NULL || store_sealed_descriptor(kept->keeping.object) < 0)
        return -1;
    for (uint64_t granule = 0; granule < kept->n_granules; granule++)
        if (!verify(kept, granule))
            return -1;
    return store_sealed_descriptor(kept->keeping.object);
}

void kept_free(struct kept *kept)
{
    if (kept == NULL)
        return;
    atomic_store(&kept->is_ending, true);
    keeper_finish(&kept->keeping);
    kept_scales_free(kept->scales);
    store_close(kept->keeping.object);
    free(kept->is_verified);
    free(kept);
}

/* Reads a part of a granule from the store, or computes it from what is there. */
static bool take(struct kept *kept, const struct vfile *file, uint64_t offset, size_t length, void *out)
{
    uint64_t granule = offset / STORE_GRANULE;
    struct store_object *object = kept->keeping.object;
    if (kept->scales != NULL && kept_scales_apply(file, offset))
        return kept_scales_read(kept->scales, file, offset, length, out);
    bool is_whole = length == store_granule_length(object, granule), taken;
    if (is_whole && !atomic_load(&kept->is_verified[granule]))
        taken = store_take(object, granule, out);
    else
        taken = verify(kept, granule) && store_read(object, granule, (size_t)(offset % STORE_GRANULE), length, out);
    atomic_store(&kept->is_verified[granule], taken);
    return taken;
}

/* Returns how much of a range is in its first granule. */
static size_t piece(uint64_t offset, uint64_t length)
{
    uint64_t left = STORE_GRANULE - offset % STORE_GRANULE;
    return (size_t)(length < left ? length : left);
}

bool kept_has(const struct vfile *file, uint64_t offset, uint64_t length, bool is_sure)
{
    struct kept *kept = file->kept;
    bool has = kept != NULL;
    for (size_t n; has && length > 0; offset += n, length -= n) {
        uint64_t granule = offset / STORE_GRANULE;
        n = piece(offset, length);
        has = is_wanted(kept, file, offset) && (kept->scales == NULL || !kept_scales_apply(file, offset)) &&
              (is_sure ? verify(kept, granule) : store_has(kept->keeping.object, granule));
    }
    return has;
}

/* Where the bytes of a granule come from. */
enum way { TAKEN, COMPUTED_AND_KEPT, NOT_KEPT };

/* A range being read. Without an iov, all of it goes to `out`. */
struct reading {
    const struct vfile *file;
    uint64_t offset;
    unsigned char *out;
    struct iovec *iov;
    size_t n_iov;
    struct error *error;
};

static enum way way_of(const struct reading *reading, size_t at, size_t length)
{
    uint64_t offset = reading->offset + at;
    struct kept *kept = reading->file->kept;
    if (!is_wanted(kept, reading->file, offset))
        return NOT_KEPT;
    if (take(kept, reading->file, offset, length, reading->out + at))
        return TAKEN;
    return kept_is_settled(kept->newest) ? COMPUTED_AND_KEPT : NOT_KEPT;
}

/* Reads a run of pieces that go the same way. */
static bool read_run(struct reading *reading, enum way way, size_t from, size_t to)
{
    uint64_t offset = reading->offset + from;
    size_t length = to - from;
    unsigned char *bytes = reading->out + from;
    if (length == 0)
        return true;
    if (way == NOT_KEPT && reading->iov != NULL)
        return vfile_append_iov(reading->file, offset, length, reading->iov, &reading->n_iov, bytes, reading->error);
    if (way != TAKEN && !vfile_compute(reading->file, offset, length, bytes, reading->error))
        return false;
    if (way == COMPUTED_AND_KEPT)
        keeper_add(&reading->file->kept->keeping, offset, length, bytes);
    if (reading->iov != NULL)
        vfile_add_piece(reading->iov, &reading->n_iov, bytes, length);
    return true;
}

static bool read_pieces(struct reading *reading, size_t length)
{
    size_t from = 0;
    enum way way = TAKEN;
    for (size_t at = 0, n; at < length; at += n) {
        n = piece(reading->offset + at, length - at);
        enum way next = way_of(reading, at, n);
        if (next == way)
            continue;
        if (!read_run(reading, way, from, at))
            return false;
        way = next;
        from = at;
    }
    return read_run(reading, way, from, length);
}

bool kept_read(const struct vfile *file, uint64_t offset, size_t length, void *out, struct error *error)
{
    return read_pieces(&(struct reading){.file = file, .offset = offset, .out = out, .error = error}, length);
}

bool kept_iov(const struct vfile *file, uint64_t offset, size_t length, struct iovec *iov, size_t *ret_count,
              void *scratch, struct error *error)
{
    struct reading reading = {file, offset, scratch, iov, 0, error};
    bool read = read_pieces(&reading, length);
    *ret_count = reading.n_iov;
    return read;
}

/* Must change whenever keys are made otherwise, or granules of a file are. */
static const char format_version[] = "wfs kept 1";

static void add_number(struct sha256_ctx *hash, uint64_t number)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(number >> 8 * i);
    sha256_update(hash, sizeof bytes, bytes);
}

static void add_text(struct sha256_ctx *hash, const char *text)
{
    sha256_update(hash, strlen(text) + 1, (const uint8_t *)text);
}

static void add_bytes(void *hash, const void *bytes, size_t length)
{
    sha256_update(hash, length, bytes);
}

static void add_changes(struct sha256_ctx *hash, const struct origin *origin)
{
    struct buffer changes = {0};
    for (size_t i = 0; i < origin->n_sources; i++)
        source_append_change(origin->sources[i], &changes);
    sha256_update(hash, changes.length, changes.bytes);
    buffer_free(&changes);
}

static void add_extent(void *hash, const struct extent *from, uint64_t n_bytes)
{
    add_text(hash, source_name(from->source));
    add_number(hash, from->offset);
    add_number(hash, n_bytes);
}

/* Adds what a tensor is encoded as, and where its first block comes from. */
static void add_view(struct sha256_ctx *hash, const struct span *span)
{
    const struct encoding *encoding = &span->encoding;
    uint64_t n_importances = view_row_elements(span->view) * view_matrices(span->view);
    struct dependencies to = {.take = add_extent, .context = hash, .as_at_first = true};
    add_text(hash, encoding->dtype->name);
    add_text(hash, span->view->dtype->name);
    add_text(hash, encoding->rule != NULL ? encoding->rule->name : "");
    if (encoding->importance != NULL)
        sha256_update(hash, n_importances * sizeof *encoding->importance, (const uint8_t *)encoding->importance);
    convert_depends(span->view, *encoding, 0, 1, &to);
    dependencies_end(&to);
}

static void add_made_text(struct sha256_ctx *hash, const struct span *span)
{
    struct buffer text = {0};
    span->text(span->context, span->index, &text);
    sha256_update(hash, text.length, text.bytes);
    buffer_free(&text);
}

static void add_span(struct sha256_ctx *hash, const struct span *span)
{
    add_number(hash, span->kind);
    add_number(hash, span->length);
    if (span->kind == SPAN_LITERAL)
        sha256_update(hash, span->length, span->literal);
    else if (span->kind == SPAN_TEXT)
        add_made_text(hash, span);
    else if (span->kind == SPAN_VIEW)
        add_view(hash, span);
}

void kept_key_begin(struct sha256_ctx *hash, const struct origin *origin, const char *identity)
{
    sha256_init(hash);
    add_text(hash, format_version);
    system_build_id(add_bytes, hash);
    add_text(hash, identity);
    add_changes(hash, origin);
}

void kept_key_end(struct sha256_ctx *hash, char key[SHA256_HEX + 1])
{
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_digest(hash, sizeof digest, digest);
    base16_encode_update(key, sizeof digest, digest);
    key[SHA256_HEX] = '\0';
}

void kept_key(const struct vfile *file, const char *identity, char key[SHA256_HEX + 1])
{
    struct sha256_ctx hash;
    kept_key_begin(&hash, &file->origin, identity);
    for (size_t i = 0; i < file->n_spans; i++)
        add_span(&hash, &file->spans[i]);
    kept_key_end(&hash, key);
}
