#include "fs/cli/pack/packing.h"

#include "base/attempt.h"
#include "base/report.h"
#include "base/system.h"
#include "base/text_index.h"
#include "fs/cli/pack/packing_bases.h"
#include "fs/cli/pack/packing_index.h"
#include "fs/cli/pack/packing_read.h"
#include "fs/cli/pack/packing_written.h"
#include "fs/cli/terminal.h"
#include "sources/archive/location.h"
#include "sources/archive/pack_writer.h"
#include "sources/source_kinds.h"
#include "text/json_write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LARGE_PACK = 1 << 20, /* bytes after which a pack ends with the file: the next file may be coded against it */
    ROOM = 128 << 20,     /* bytes of a file that are held in memory */
};

/* Where a tensor of the archive is: `pack` is a number among those of struct packing. */
struct known {
    uint32_t pack, tensor;
};

/* Packs that no manifest names are what a run left that was killed, or of a source that was removed. They are used only
 * if they turn out to be whole when a tensor of them is needed first. */
enum pack_state { PACK_WHOLE, PACK_UNCHECKED, PACK_DAMAGED };

struct packing {
    struct blobs *blobs;
    const char *path;
    struct archive *old; /* as it was before */
    struct arena *arena;
    struct archive_blob *packs;
    struct pack **readers; /* of the packs; NULL of the one that is being written */
    enum pack_state *states;
    size_t n_packs;
    struct bases *bases;
    struct text_index digests; /* of tensors: numbers of `known` */
    struct known *known;
    size_t n_known;
    struct index_member *members;
    size_t n_members;
    struct packing_sums *sums;
    bool keeps_folders;

    /* the source that is being added */
    struct scan *scan;
    struct files *fresh;        /* with the packs' numbers of above */
    struct pack_writer *writer; /* NULL: nothing is new yet */
    struct text_index inodes;
    unsigned char *room; /* for struct reading */
    struct progress progress;
};

static void add_known(struct packing *packing, const struct digest *digest, uint32_t pack, uint32_t tensor)
{
    const char *key = arena_copy(packing->arena, digest->bytes, sizeof digest->bytes);
    size_t number;
    if (!text_index_add(&packing->digests, key, sizeof digest->bytes, packing->n_known)) {
        text_index_find(&packing->digests, key, sizeof digest->bytes, &number);
        if (packing->states[packing->known[number].pack] == PACK_DAMAGED)
            packing->known[number] = (struct known){pack, tensor};
        return;
    }
    packing->known = memory_grow(packing->known, packing->n_known, sizeof *packing->known);
    packing->known[packing->n_known++] = (struct known){pack, tensor};
}

static void add_pack(struct packing *packing, const struct archive_blob *blob)
{
    packing->packs = memory_grow(packing->packs, packing->n_packs, sizeof *packing->packs);
    packing->readers = memory_grow(packing->readers, packing->n_packs, sizeof *packing->readers);
    packing->states = memory_grow(packing->states, packing->n_packs, sizeof *packing->states);
    packing->states[packing->n_packs] = PACK_WHOLE;
    packing->packs[packing->n_packs] = *blob;
    packing->readers[packing->n_packs++] = NULL;
}

/* Returns the number of a pack, which is added if it is new. */
static uint32_t number_of_pack(struct packing *packing, const struct archive_blob *blob, bool *ret_is_new)
{
    *ret_is_new = false;
    for (size_t i = 0; i < packing->n_packs; i++)
        if (digest_same(&packing->packs[i].digest, &blob->digest))
            return (uint32_t)i;
    *ret_is_new = true;
    add_pack(packing, blob);
    return (uint32_t)packing->n_packs - 1;
}

/* Learns the tensors of a member's packs. */
static bool learn_member(struct packing *packing, size_t member, struct error *error)
{
    const struct archive_member *old = archive_member(packing->old, member);
    for (size_t i = 0; i < old->n_packs; i++) {
        bool is_new;
        uint32_t number = number_of_pack(packing, &old->packs[i], &is_new);
        struct pack *pack = is_new ? archive_pack(packing->old, member, i, error) : NULL;
        if (is_new && pack == NULL)
            return false;
        if (is_new) {
            packing->readers[number] = pack;
            bases_add_pack(packing->bases, pack, &old->packs[i].digest);
        }
        for (size_t j = 0; is_new && j < pack_count(pack); j++)
            add_known(packing, &pack_tensor(pack, j)->digest, number, (uint32_t)j);
    }
    return true;
}

static void set_member(struct packing *packing, const char *name, const struct archive_blob *manifest)
{
    for (size_t i = 0; i < packing->n_members; i++)
        if (strcmp(packing->members[i].name, name) == 0) {
            packing->members[i].manifest = *manifest;
            return;
        }
    packing->members = memory_grow(packing->members, packing->n_members, sizeof *packing->members);
    packing->members[packing->n_members++] = (struct index_member){name, *manifest};
}

/* Finds the pack that a tensor of another one is coded against. */
static bool find_pack(void *context, const struct digest *digest, struct pack **ret_pack, struct error *error)
{
    const struct packing *packing = context;
    for (size_t i = 0; i < packing->n_packs; i++)
        if (packing->readers[i] != NULL && digest_same(&packing->packs[i].digest, digest)) {
            *ret_pack = packing->readers[i];
            return true;
        }
    return error_set(error, "%s: a pack that a tensor is coded against is missing", packing->path);
}

/* Learns the tensors of a blob that no manifest names, if it is a pack. */
static bool learn_blob(void *context, const struct digest *digest, uint64_t size, struct error *error)
{
    struct packing *packing = context;
    const struct archive_blob blob = {*digest, size};
    struct error unsaid;
    for (size_t i = 0; i < packing->n_packs; i++)
        if (digest_same(&packing->packs[i].digest, digest))
            return true;
    struct source *source = archive_open_blob(packing->old, digest, &unsaid);
    struct pack *pack = source != NULL ? pack_open(source, find_pack, packing, &unsaid) : NULL;
    if (pack == NULL)
        return true;
    add_pack(packing, &blob);
    packing->readers[packing->n_packs - 1] = pack;
    packing->states[packing->n_packs - 1] = PACK_UNCHECKED;
    for (size_t i = 0; i < pack_count(pack); i++)
        add_known(packing, &pack_tensor(pack, i)->digest, (uint32_t)packing->n_packs - 1, (uint32_t)i);
    return true;
}

static bool is_whole(struct packing *packing, uint32_t number, unsigned depth);

/* Reports whether the packs are whole that tensors of a pack are coded against. */
static bool has_inputs(struct packing *packing, const struct pack *pack, unsigned depth)
{
    bool whole = true;
    for (size_t i = 0; whole && i < pack_count(pack); i++) {
        const struct pack_tensor *tensor = pack_tensor(pack, i);
        uint32_t number = 0;
        if (tensor->coding->input == CODING_ALONE)
            continue;
        while (number < packing->n_packs && !digest_same(&packing->packs[number].digest, &tensor->input_pack))
            number++;
        whole = number < packing->n_packs && packing->readers[number] != pack && is_whole(packing, number, depth + 1);
    }
    return whole;
}

/* Reports whether a pack is whole, which is checked if no manifest names it. A pack counts as damaged while it is
 * checked, so that none is checked for ever which would be coded against itself; so does one below MOST_DEPTH others.
 */
static bool is_whole(struct packing *packing, uint32_t number, unsigned depth)
{
    enum { MOST_DEPTH = 8 };
    const struct archive_blob nothing = {.size = 0};
    struct error unsaid;
    struct pack *pack = packing->readers[number];
    const struct digest digest = packing->packs[number].digest;
    if (packing->states[number] != PACK_UNCHECKED)
        return packing->states[number] == PACK_WHOLE;
    packing->states[number] = PACK_DAMAGED;
    if (depth <= MOST_DEPTH && packing_check_blob(pack_blob(pack), &digest) && has_inputs(packing, pack, depth) &&
        packing_check(pack, packing->path, &unsaid)) {
        packing->states[number] = PACK_WHOLE;
        bases_add_pack(packing->bases, pack, &digest);
        return true;
    }
    pack_close(pack);
    packing->readers[number] = NULL;
    packing->packs[number] = nothing; /* a new pack may have its digest */
    return false;
}

static bool learn(struct packing *packing, struct error *error)
{
    struct location *location = archive_directory(packing->path, error);
    packing->old = location != NULL ? archive_open_to_add(location, packing->path, error) : NULL;
    for (size_t i = 0; packing->old != NULL && i < archive_count(packing->old); i++) {
        set_member(packing, archive_member(packing->old, i)->name, &archive_member(packing->old, i)->manifest);
        if (!learn_member(packing, i, error))
            return false;
    }
    return packing->old != NULL && blobs_list(packing->blobs, learn_blob, packing, error);
}

/* Writing tensors. */

static bool put(void *context, const void *bytes, size_t length, struct error *error)
{
    return blobs_put(context, bytes, length, error);
}

/* A file that is being read. */
struct packed_file {
    struct packing *packing;
    size_t entry; /* of packing->fresh */
    struct source *source;
    struct reading reading;
    uint64_t n_equal; /* bytes that the archive had */
};

/* An extent that is stored. */
struct stored {
    struct packed_file *file;
    const struct packed_extent *extent;
    const unsigned char *bytes; /* NULL: they are read again */
    struct digest digest;
};

static bool read_sample(void *context, uint64_t offset, size_t length, void *out, struct error *error)
{
    const struct stored *stored = context;
    if (stored->bytes == NULL)
        return source_read(stored->file->source, stored->extent->offset + offset, length, out, error);
    memcpy(out, stored->bytes + offset, length);
    return true;
}

/* Begins a tensor in the new pack; returns where it is. */
static bool begin_tensor(struct stored *stored, struct known *ret_place, struct error *error)
{
    struct packing *packing = stored->file->packing;
    const struct packed_extent *extent = stored->extent;
    const struct archive_blob unknown = {.size = 0};
    const struct base_query query = {
        .dtype = extent->dtype,
        .name = extent->name != NULL ? pack_name_hash(extent->name, strlen(extent->name)) : 0,
        .length = extent->length,
        .row = extent->row,
        .read = read_sample,
        .context = stored,
    };
    struct pack_writer_tensor tensor = {
        .length = extent->length, .dtype = extent->dtype, .name = extent->name, .digest = stored->digest};
    if (packing->writer == NULL) {
        if (!blobs_begin(packing->blobs, error))
            return false;
        packing->writer = pack_writer_new(put, packing->blobs);
        add_pack(packing, &unknown);
    }
    if (!bases_choose(packing->bases, &query, &tensor, error))
        return false;
    *ret_place = (struct known){(uint32_t)packing->n_packs - 1, pack_writer_count(packing->writer)};
    add_known(packing, &stored->digest, ret_place->pack, ret_place->tensor);
    pack_writer_begin(packing->writer, &tensor);
    return true;
}

/* Bytes that are hashed while they are coded. */
struct hashing {
    struct sha256_ctx hash;
    const unsigned char *bytes;
    size_t left;
};

static void hash_some(void *context)
{
    enum { STEP = 2 << 20 /* bytes */ };
    struct hashing *hashing = context;
    const size_t n = hashing->left < STEP ? hashing->left : STEP;
    sha256_update(&hashing->hash, n, hashing->bytes);
    hashing->bytes += n;
    hashing->left -= n;
}

/* Writes an extent that is read again. Fails if its bytes are others now: no other check would tell. */
static bool write_again(const struct stored *stored, struct error *error)
{
    enum { PIECE = 8 << 20 /* bytes */ };
    const struct packing *packing = stored->file->packing;
    const struct packed_extent *extent = stored->extent;
    struct hashing hashing;
    struct digest digest;
    sha256_init(&hashing.hash);
    pack_writer_beside(packing->writer, hash_some, &hashing);
    for (uint64_t at = 0, n; at < extent->length; at += n) {
        n = extent->length - at < PIECE ? extent->length - at : PIECE;
        if (!source_read(stored->file->source, extent->offset + at, (size_t)n, packing->room, error))
            return false;
        hashing.bytes = packing->room;
        hashing.left = (size_t)n;
        if (!pack_writer_add(packing->writer, packing->room, (size_t)n, error))
            return false;
        while (hashing.left > 0)
            hash_some(&hashing);
    }
    sha256_digest(&hashing.hash, sizeof digest.bytes, digest.bytes);
    return digest_same(&digest, &stored->digest) ||
           error_set(error, "%s: changed while it was packed; pack it again", source_name(stored->file->source));
}

/* Writes an extent while the next one is read. */
static bool write_extent(const struct stored *stored, struct error *error)
{
    struct pack_writer *writer = stored->file->packing->writer;
    if (stored->bytes == NULL)
        return write_again(stored, error);
    pack_writer_beside(writer, reading_ahead, &stored->file->reading);
    return pack_writer_add(writer, stored->bytes, (size_t)stored->extent->length, error);
}

static bool add_extent(struct packed_file *file, const struct packed_extent *extent, struct error *error)
{
    struct packing *packing = file->packing;
    struct stored stored = {.file = file, .extent = extent};
    struct known place;
    size_t number;
    if (!reading_next(&file->reading, &stored.digest, &stored.bytes, error))
        return false;
    progress_add(&packing->progress, extent->length);
    if (text_index_find(&packing->digests, (const char *)stored.digest.bytes, sizeof stored.digest.bytes, &number) &&
        is_whole(packing, packing->known[number].pack, 0)) {
        place = packing->known[number];
        file->n_equal += extent->length;
    } else if (!begin_tensor(&stored, &place, error) || !write_extent(&stored, error)) {
        return false;
    }
    files_add_segment(packing->fresh, file->entry,
                      &(struct files_segment){extent->offset, 0, place.pack, place.tensor});
    return true;
}

static bool check_unchanged(struct packing *packing, const struct scanned *entry, int fd, struct error *error)
{
    struct stat now;
    return (fstat(fd, &now) == 0 && scan_is_same(&now, &entry->status)) ||
           error_set(error, "%s/%s: changed while it was packed; pack it again", packing->scan->source, entry->path);
}

static bool add_extents(struct packed_file *file, const char *name, struct error *error)
{
    size_t count;
    struct packed_extent *extents = extents_of(file->source, name, &count);
    bool good = true;
    file->reading = reading_of(file->source, extents, count, file->packing->room, ROOM);
    for (size_t i = 0; good && i < count; i++)
        good = add_extent(file, &extents[i], error);
    extents_free(extents, count);
    return good;
}

static void print_file(const struct packing *packing, const struct scanned *entry, uint64_t n_equal, uint64_t n_new)
{
    char size[SIZE_TEXT], equal[SIZE_TEXT], added[SIZE_TEXT];
    if (report_is_quiet())
        return;
    struct arena *arena = arena_new();
    print_name(*entry->path != '\0' ? arena_printf(arena, "%s/%s", packing->scan->name, entry->path)
                                    : packing->scan->name);
    printf(": %s: %s in the archive already, %s written\n", size_text((uint64_t)entry->status.st_size, size),
           size_text(n_equal, equal), size_text(n_new, added));
    arena_free(arena);
}

/* Reads a file and adds its bytes. `index` is that of the entry in packing->fresh, too. */
static bool read_file(struct packing *packing, size_t index, int fd, struct error *error)
{
    struct scanned *entry = &packing->scan->entries[index];
    struct arena *arena = arena_new();
    const char *path =
        *entry->path != '\0' ? arena_printf(arena, "%s/%s", packing->scan->source, entry->path) : packing->scan->source;
    struct packed_file file = {.packing = packing, .entry = index, .source = source_file_open(fd, path, error)};
    uint64_t before = packing->writer != NULL ? pack_writer_bytes(packing->writer) : 0;
    bool good = file.source != NULL && check_unchanged(packing, entry, fd, error) && add_extents(&file, path, error) &&
                check_unchanged(packing, entry, fd, error);
    source_close(file.source);
    arena_free(arena);
    if (!good)
        return false;
    sha256_digest(&file.reading.file_hash, sizeof entry->digest.bytes, entry->digest.bytes);
    packing->fresh->entries[index].digest = entry->digest;
    packing->sums->n_files++;
    packing->sums->n_bytes += (uint64_t)entry->status.st_size;
    packing->sums->n_equal_bytes += file.n_equal;
    progress_hide(&packing->progress);
    print_file(packing, entry, file.n_equal,
               (packing->writer != NULL ? pack_writer_bytes(packing->writer) : 0) - before);
    return true;
}

static bool end_pack(struct packing *packing, struct error *error);

static bool add_file(struct packing *packing, size_t index, struct error *error)
{
    const struct scanned *entry = &packing->scan->entries[index];
    int fd = scan_open(packing->scan, entry, O_RDONLY);
    if (fd < 0)
        return error_set_errno(error, errno, "%s/%s", packing->scan->source, entry->path);
    bool good = read_file(packing, index, fd, error);
    close(fd);
    bool is_large = packing->writer != NULL && pack_writer_bytes(packing->writer) >= LARGE_PACK;
    return good && (!is_large || end_pack(packing, error));
}

static enum files_kind kind_of(mode_t mode)
{
    return S_ISDIR(mode) ? FILES_FOLDER : S_ISLNK(mode) ? FILES_LINK : FILES_FILE;
}

/* Adds an entry, whose bytes are added later. A second name of an inode shares the first one's. */
static void add_entry(struct packing *packing, const struct scanned *entry)
{
    const struct stat *status = &entry->status;
    struct files *fresh = packing->fresh;
    uint64_t inode[2] = {(uint64_t)status->st_dev, (uint64_t)status->st_ino};
    size_t first = fresh->n_entries;
    struct files_entry added = {
        .path = entry->path,
        .target = entry->target,
        .size = S_ISREG(status->st_mode) ? (uint64_t)status->st_size : 0,
        .seconds = system_modified(status).tv_sec,
        .nanoseconds = (uint32_t)system_modified(status).tv_nsec,
        .mode = status->st_mode & 07777,
        .kind = kind_of(status->st_mode),
        .same = (uint32_t)fresh->n_entries,
    };
    if (added.kind == FILES_FILE && status->st_nlink > 1 &&
        !text_index_add(&packing->inodes, arena_copy(packing->arena, inode, sizeof inode), sizeof inode, first))
        text_index_find(&packing->inodes, (const char *)inode, sizeof inode, &first);
    added.same = (uint32_t)first;
    files_add(fresh, &added);
}

/* The order in which files are read: first those with the most precise weights, which others may be coded against. */

struct turn {
    size_t index;
    unsigned rank;
};

static int compare_turns(const void *a, const void *b)
{
    const struct turn *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Returns a rank by most of a file's bytes: of 64 or 32 bits, of 16, quantized, of no checkpoint. Quantized ones count
 * more: an embedding that was not quantized may be half of a file. */
static unsigned rank_of(struct packing *packing, size_t index)
{
    enum { WIDE, HALF, QUANTIZED, OTHER, RANKS, WEIGHT = 8 };
    uint64_t n_bytes[RANKS] = {0};
    size_t count;
    struct error unused;
    unsigned best = OTHER;
    int fd = scan_open(packing->scan, &packing->scan->entries[index], O_RDONLY);
    struct source *source = fd >= 0 ? source_file_open(fd, packing->scan->entries[index].path, &unused) : NULL;
    struct packed_extent *extents =
        source != NULL ? extents_of(source, source_name(source), &count) : (count = 0, NULL);
    for (size_t i = 0; i < count; i++) {
        const struct dtype *dtype = extents[i].dtype;
        bool is_float = dtype != NULL && dtype->kind == DTYPE_FLOAT && dtype->block_bytes > 1;
        if (dtype != NULL && !is_float)
            n_bytes[QUANTIZED] += extents[i].length * WEIGHT;
        else
            n_bytes[dtype == NULL ? OTHER : dtype->block_bytes >= 4 ? WIDE : HALF] += extents[i].length;
    }
    for (unsigned rank = WIDE; rank < OTHER; rank++)
        best = n_bytes[rank] > n_bytes[best] ? rank : best;
    extents_free(extents, count);
    source_close(source);
    if (fd >= 0)
        close(fd);
    return best;
}

/* Adds the bytes of all files. */
static bool add_files(struct packing *packing, struct error *error)
{
    struct files *fresh = packing->fresh;
    struct turn *turns = memory_alloc((fresh->n_entries + 1) * sizeof *turns);
    size_t n_turns = 0;
    bool good = true;
    for (size_t i = 0; i < fresh->n_entries; i++)
        if (fresh->entries[i].kind == FILES_FILE && fresh->entries[i].same == i)
            turns[n_turns++] = (struct turn){i, rank_of(packing, i)};
    qsort(turns, n_turns, sizeof *turns, compare_turns);
    for (size_t i = 0; good && i < n_turns; i++)
        good = add_file(packing, turns[i].index, error);
    for (size_t i = 0; good && i < fresh->n_entries; i++)
        packing->scan->entries[i].digest = fresh->entries[i].digest = fresh->entries[fresh->entries[i].same].digest;
    free(turns);
    return good;
}

/* The new pack. */

/* Opens the new pack, whose chunks were decoded when they were coded. It stays open: its tensors may be bases. */
static bool open_new_pack(struct packing *packing, const struct archive_blob *blob, struct error *error)
{
    struct source *source = archive_open_blob(packing->old, &blob->digest, error);
    struct pack *pack = source != NULL ? pack_open(source, find_pack, packing, error) : NULL;
    if (pack == NULL)
        return false;
    packing->readers[packing->n_packs - 1] = pack;
    bases_add_pack(packing->bases, pack, &blob->digest);
    return true;
}

/* Ends the new pack, if there is one. */
static bool end_pack(struct packing *packing, struct error *error)
{
    struct archive_blob blob;
    if (packing->writer == NULL)
        return true;
    bool good = pack_writer_finish(packing->writer, error) && blobs_finish(packing->blobs, &blob, error);
    pack_writer_free(packing->writer);
    packing->writer = NULL;
    if (!good)
        return false;
    packing->packs[packing->n_packs - 1] = blob;
    packing->sums->n_written += blob.size;
    return open_new_pack(packing, &blob, error);
}

/* The list and the manifest. */

/* Adds what is in the archive under the source's name. */
static bool add_old(struct packing *packing, struct error *error)
{
    const char *name = packing->scan->name;
    size_t member = archive_find(packing->old, name, strlen(name));
    const struct files *old = member != SIZE_MAX ? archive_files(packing->old, member, error) : NULL;
    if (old == NULL)
        return member == SIZE_MAX;
    if (old->entries[0].kind != packing->fresh->entries[0].kind)
        return error_set(error, "%s: in the archive, %s is a %s; give the source another name: --as NAME",
                         packing->scan->source, name, old->entries[0].kind == FILES_FOLDER ? "folder" : "file");
    const struct archive_member *from = archive_member(packing->old, member);
    uint32_t *packs = memory_alloc((from->n_packs + 1) * sizeof *packs);
    bool unused;
    for (size_t i = 0; i < from->n_packs; i++)
        packs[i] = number_of_pack(packing, &from->packs[i], &unused);
    struct files *merged = merge_lists(old, packs, packing->fresh, packing->keeps_folders);
    free(packs);
    files_free(packing->fresh);
    packing->fresh = merged;
    return true;
}

static uint64_t bytes_of(const struct scan *scan)
{
    uint64_t n = 0;
    for (size_t i = 0; i < scan->n_entries; i++)
        n += S_ISREG(scan->entries[i].status.st_mode) ? (uint64_t)scan->entries[i].status.st_size : 0;
    return n;
}

/* Adds a source, which the index then names. */
static bool add_source(struct packing *packing, struct scan *scan, struct error *error)
{
    struct archive_blob manifest;
    bool good = true;
    packing->scan = scan;
    packing->fresh = files_new();
    progress_begin(&packing->progress, scan->name, bytes_of(scan));
    for (size_t i = 0; i < scan->n_entries; i++)
        add_entry(packing, &scan->entries[i]);
    good = add_files(packing, error);
    progress_end(&packing->progress);
    good = good && end_pack(packing, error) && add_old(packing, error);
    const struct pack_table packs = {packing->packs, packing->readers, packing->n_packs};
    good = good && manifest_write(packing->blobs, packing->fresh, &packs, &manifest, &packing->sums->n_written, error);
    if (good) {
        set_member(packing, scan->name, &manifest);
        good = index_write(packing->blobs, packing->members, packing->n_members, error);
    }
    pack_writer_free(packing->writer);
    packing->writer = NULL;
    blobs_drop(packing->blobs);
    files_free(packing->fresh);
    text_index_free(&packing->inodes);
    packing->inodes = (struct text_index){0};
    return good;
}

/* Reports whether a pack was in the archive before, which then closes it. */
static bool is_old_pack(const struct archive *old, const struct archive_blob *blob)
{
    for (size_t i = 0; old != NULL && i < archive_count(old); i++)
        for (size_t j = 0; j < archive_member(old, i)->n_packs; j++)
            if (digest_same(&archive_member(old, i)->packs[j].digest, &blob->digest))
                return true;
    return false;
}

bool packing_run(struct blobs *blobs, const char *archive, struct scan *scans, size_t n_scans, bool keeps_folders,
                 struct packing_sums *ret_sums, struct error *error)
{
    struct packing packing = {.blobs = blobs,
                              .path = archive,
                              .arena = arena_new(),
                              .sums = ret_sums,
                              .keeps_folders = keeps_folders,
                              .room = memory_alloc(ROOM),
                              .bases = bases_new()};
    *ret_sums = (struct packing_sums){0};
    bool good = learn(&packing, error);
    for (size_t i = 0; good && i < n_scans; i++)
        good = add_source(&packing, &scans[i], error);
    for (size_t i = 0; i < packing.n_packs; i++)
        if (!is_old_pack(packing.old, &packing.packs[i]))
            pack_close(packing.readers[i]);
    archive_drop(packing.old);
    bases_free(packing.bases);
    free(packing.readers);
    free(packing.states);
    text_index_free(&packing.digests);
    free(packing.room);
    free(packing.packs);
    free(packing.known);
    free(packing.members);
    arena_free(packing.arena);
    return good;
}
