/* Files of archives as sources. */
#include "sources/archive/archive.h"

#include "base/checked.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct packed {
    struct archive *archive; /* held */
    size_t member;
    const struct files *files;
    const struct files_entry *entry;
    struct pack **packs; /* of the member; those that the file needs are open */
};

/* A part of a file that lies in one segment. */
struct part {
    struct pack *pack; /* NULL: zeros */
    uint32_t tensor;
    uint64_t offset, length;
};

static struct part part_at(const struct packed *packed, uint64_t offset, uint64_t length)
{
    uint64_t end;
    const struct files_segment *segment = files_segment_at(packed->files, packed->entry, offset, &end);
    uint64_t left = end - offset;
    return (struct part){
        .pack = segment->pack != FILES_ZEROS ? packed->packs[segment->pack] : NULL,
        .tensor = segment->tensor,
        .offset = segment->offset + (offset - segment->start),
        .length = left < length ? left : length,
    };
}

static bool packed_read(void *context, uint64_t offset, size_t length, void *out, struct error *error)
{
    const struct packed *packed = context;
    unsigned char *to = out;
    for (size_t done = 0; done < length;) {
        const struct part part = part_at(packed, offset + done, length - done);
        if (part.pack == NULL)
            memset(to + done, 0, (size_t)part.length);
        else if (!pack_read(part.pack, part.tensor, part.offset, (size_t)part.length, to + done, error))
            return false;
        done += (size_t)part.length;
    }
    return true;
}

static void packed_release(void *context)
{
    struct packed *packed = context;
    archive_drop(packed->archive);
    free(packed->packs);
    free(packed);
}

static bool want_range(void *context, struct source *blob, uint64_t offset, uint64_t length, struct error *error)
{
    const bool *urgent = context;
    (void)error;
    source_want(blob, offset, length, *urgent);
    return true;
}

static bool wait_range(void *context, struct source *blob, uint64_t offset, uint64_t length, struct error *error)
{
    (void)context;
    return source_wait(blob, offset, length, error);
}

/* Calls each() with the ranges of blobs that a range is read from. */
static bool each_range(const struct packed *packed, uint64_t offset, uint64_t length, pack_range *each, void *context,
                       struct error *error)
{
    for (uint64_t done = 0; done < length;) {
        const struct part part = part_at(packed, offset + done, length - done);
        if (part.pack != NULL && !pack_ranges(part.pack, part.tensor, part.offset, part.length, each, context, error))
            return false;
        done += part.length;
    }
    return true;
}

static void packed_want(void *context, uint64_t offset, uint64_t length, bool urgent)
{
    struct error unused; /* the read fails, too */
    each_range(context, offset, length, want_range, &urgent, &unused);
}

static bool packed_wait(void *context, uint64_t offset, uint64_t length, struct error *error)
{
    return each_range(context, offset, length, wait_range, NULL, error);
}

static const struct source_ops packed_ops = {.read = packed_read, .release = packed_release};
static const struct source_ops remote_packed_ops = {
    .read = packed_read, .release = packed_release, .want = packed_want, .wait = packed_wait};

/* Opens the packs of a file's segments, whose tensors must hold them. */
static bool open_packs(struct packed *packed, bool *ret_is_remote, struct error *error)
{
    for (size_t i = 0; i < packed->entry->n_segments; i++) {
        const struct files_segment *segment = &packed->files->segments[packed->entry->first_segment + i];
        uint64_t length = (i + 1 < packed->entry->n_segments ? segment[1].start : packed->entry->size) - segment->start;
        if (segment->pack == FILES_ZEROS)
            continue;
        struct pack **pack = &packed->packs[segment->pack];
        if (*pack == NULL && (*pack = archive_pack(packed->archive, packed->member, segment->pack, error)) == NULL)
            return false;
        if (segment->tensor >= pack_count(*pack))
            return error_set(error, "a segment of tensor %" PRIu32 ", and its pack has %zu", segment->tensor,
                             pack_count(*pack));
        uint64_t whole = pack_tensor(*pack, segment->tensor)->length;
        if (segment->offset > whole || length > whole - segment->offset)
            return error_set(error, "a segment of bytes [%" PRIu64 ", +%" PRIu64 ") of a tensor of %" PRIu64,
                             segment->offset, length, whole);
        *ret_is_remote |= source_is_remote(pack_blob(*pack));
    }
    return true;
}

void archive_identify(const struct archive *archive, size_t member, const struct files_entry *entry,
                      struct source_identity *ret_identity)
{
    const struct digest path = digest_of(entry->path, strlen(entry->path));
    *ret_identity = (struct source_identity){
        .key = {read_le(archive_member(archive, member)->list.digest.bytes, 8) ^ read_le(entry->digest.bytes, 8),
                read_le(path.bytes, 8)},
        .size = entry->size,
        .mtime = {.tv_sec = (time_t)entry->seconds, .tv_nsec = entry->nanoseconds},
        .permissions = entry->mode & 0777,
        .group = getgid(),
    };
}

struct source *archive_source(struct archive *archive, size_t member, size_t entry, const char *name,
                              struct error *error)
{
    struct source_identity identity;
    bool is_remote = false;
    const struct files *files = archive_files(archive, member, error);
    if (files == NULL)
        return NULL;
    struct packed *packed = memory_alloc(sizeof *packed);
    *packed = (struct packed){archive_hold(archive), member, files, &files->entries[entry], NULL};
    packed->packs = calloc(archive_member(archive, member)->n_packs + 1, sizeof(struct pack *));
    if (packed->packs == NULL)
        memory_exhausted(archive_member(archive, member)->n_packs);
    if (!open_packs(packed, &is_remote, error)) {
        error_prefix(error, "%s", name);
        packed_release(packed);
        return NULL;
    }
    archive_identify(archive, member, packed->entry, &identity);
    return source_new_file(&identity, name, is_remote ? &remote_packed_ops : &packed_ops, packed);
}

static const struct packed *packed_of(const struct source *source)
{
    const struct packed *packed = source_context(source, &packed_ops);
    return packed != NULL ? packed : source_context(source, &remote_packed_ops);
}

const struct digest *archive_digest_of_source(const struct source *source)
{
    const struct packed *packed = packed_of(source);
    return packed != NULL ? &packed->entry->digest : NULL;
}

struct archive *archive_of_source(const struct source *source, size_t *ret_member)
{
    const struct packed *packed = packed_of(source);
    if (packed != NULL)
        *ret_member = packed->member;
    return packed != NULL ? packed->archive : NULL;
}
