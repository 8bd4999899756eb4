#include "fs/cli/pack/packing_written.h"

#include "base/arena.h"
#include "base/text_index.h"
#include "fs/cli/pack/packing_index.h"
#include "sources/archive/location.h"
#include "sources/archive/pack_writer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A pack of the archive, and which of its tensors are needed: those that lists name, and those that others are coded
 * against. */
struct judged {
    struct archive_blob blob;
    struct pack *pack; /* the archive's */
    bool *is_needed;   /* by tensor */
    size_t *bases;     /* packs that its tensors are coded against */
    size_t n_bases, n_users /* that are not judged yet */;
    uint64_t n_bytes, n_needed; /* stored, once it is judged */
    bool is_rewritten, is_in_group;
    /* of a rewritten pack of which something is needed */
    struct archive_blob fresh_blob;
    struct pack *fresh;
    uint32_t *numbers; /* of its tensors in the new pack */
};

struct rewriting {
    struct blobs *blobs;
    struct archive *archive;
    struct arena *arena;
    struct text_index digests; /* numbers of `packs` */
    struct judged *packs;
    size_t n_packs;
    size_t *order; /* in which packs are judged: users before their bases */
    size_t n_judged;
};

static size_t find_number(const struct rewriting *rewriting, const struct digest *digest)
{
    size_t number;
    return text_index_find(&rewriting->digests, (const char *)digest->bytes, sizeof digest->bytes, &number) ? number
                                                                                                            : SIZE_MAX;
}

static bool open_packs(struct rewriting *rewriting, struct error *error)
{
    for (size_t i = 0; i < archive_count(rewriting->archive); i++) {
        const struct archive_member *member = archive_member(rewriting->archive, i);
        for (size_t j = 0; j < member->n_packs; j++) {
            const struct digest *digest = &member->packs[j].digest;
            if (!text_index_add(&rewriting->digests, (const char *)digest->bytes, sizeof digest->bytes,
                                rewriting->n_packs))
                continue;
            struct pack *pack = archive_pack(rewriting->archive, i, j, error);
            if (pack == NULL)
                return false;
            rewriting->packs = memory_grow(rewriting->packs, rewriting->n_packs, sizeof *rewriting->packs);
            rewriting->packs[rewriting->n_packs++] =
                (struct judged){.blob = member->packs[j],
                                .pack = pack,
                                .is_needed = arena_array(rewriting->arena, pack_count(pack) + 1, 1)};
        }
    }
    return true;
}

/* Marks the tensors that lists name. */
static bool mark_named(struct rewriting *rewriting, struct error *error)
{
    for (size_t i = 0; i < archive_count(rewriting->archive); i++) {
        const struct archive_member *member = archive_member(rewriting->archive, i);
        const struct files *files = archive_files(rewriting->archive, i, error);
        for (size_t j = 0; files != NULL && j < files->n_segments; j++) {
            const struct files_segment *segment = &files->segments[j];
            if (segment->pack == FILES_ZEROS)
                continue;
            struct judged *pack = &rewriting->packs[find_number(rewriting, &member->packs[segment->pack].digest)];
            if (segment->tensor >= pack_count(pack->pack))
                return error_set(error, "%s: a segment of tensor %" PRIu32 ", and its pack has %zu", member->name,
                                 segment->tensor, pack_count(pack->pack));
            pack->is_needed[segment->tensor] = true;
        }
        if (files == NULL)
            return false;
    }
    return true;
}

/* Finds the packs that a pack is coded against. */
static bool relate(struct rewriting *rewriting, struct judged *user, struct error *error)
{
    for (size_t i = 0; i < pack_count(user->pack); i++) {
        const struct pack_tensor *tensor = pack_tensor(user->pack, i);
        size_t base = tensor->coding->input != CODING_ALONE ? find_number(rewriting, &tensor->input_pack) : SIZE_MAX;
        if (tensor->coding->input == CODING_ALONE)
            continue;
        if (base == SIZE_MAX || tensor->input >= pack_count(rewriting->packs[base].pack))
            return error_set(error, "%s: a tensor is coded against one that no manifest lists",
                             source_name(pack_blob(user->pack)));
        size_t j = 0;
        while (j < user->n_bases && user->bases[j] != base)
            j++;
        if (j < user->n_bases)
            continue;
        user->bases = memory_grow(user->bases, user->n_bases, sizeof *user->bases);
        user->bases[user->n_bases++] = base;
        rewriting->packs[base].n_users++;
    }
    return true;
}

static uint64_t stored_bytes(const struct pack *pack, size_t index)
{
    uint64_t offset, length;
    pack_depends(pack, index, 0, pack_tensor(pack, index)->length, &offset, &length);
    return length;
}

static bool is_user_of_group(const struct rewriting *rewriting, const struct judged *judged)
{
    for (size_t i = 0; i < judged->n_bases; i++)
        if (rewriting->packs[judged->bases[i]].is_in_group)
            return true;
    return false;
}

/* Decides about a pack with its group: the packs that stay whole and are coded against it, or against another one of
 * the group. All of them are rewritten if less than half of their bytes is needed. */
static void judge_group(struct rewriting *rewriting, struct judged *judged)
{
    uint64_t n_bytes = judged->n_bytes, n_needed = judged->n_needed;
    judged->is_in_group = true;
    for (size_t i = rewriting->n_judged; i-- > 0;) {
        struct judged *user = &rewriting->packs[rewriting->order[i]];
        user->is_in_group = !user->is_rewritten && is_user_of_group(rewriting, user);
        n_bytes += user->is_in_group ? user->n_bytes : 0;
        n_needed += user->is_in_group ? user->n_needed : 0;
    }
    for (size_t i = 0; i <= rewriting->n_judged; i++) {
        struct judged *member = &rewriting->packs[rewriting->order[i]];
        member->is_rewritten |= member->is_in_group && n_needed < n_bytes / 2;
        member->is_in_group = false;
    }
}

/* Judges the next pack, whose users have been judged. */
static void judge(struct rewriting *rewriting, struct judged *judged)
{
    for (size_t i = 0; i < pack_count(judged->pack); i++) {
        uint64_t n = stored_bytes(judged->pack, i);
        judged->n_bytes += n;
        judged->n_needed += judged->is_needed[i] ? n : 0;
    }
    if (judged->n_needed < judged->n_bytes / 2)
        judge_group(rewriting, judged);
    for (size_t i = 0; i < pack_count(judged->pack); i++) {
        const struct pack_tensor *tensor = pack_tensor(judged->pack, i);
        if (tensor->coding->input == CODING_ALONE || (judged->is_rewritten && !judged->is_needed[i]))
            continue;
        rewriting->packs[find_number(rewriting, &tensor->input_pack)].is_needed[tensor->input] = true;
    }
}

/* Judges all packs but those that are coded against each other, which stay. Returns how many are rewritten. */
static size_t judge_all(struct rewriting *rewriting)
{
    size_t n_ready = 0, n_rewritten = 0;
    rewriting->order = arena_array(rewriting->arena, rewriting->n_packs + 1, sizeof *rewriting->order);
    for (size_t i = 0; i < rewriting->n_packs; i++)
        if (rewriting->packs[i].n_users == 0)
            rewriting->order[n_ready++] = i;
    for (; rewriting->n_judged < n_ready; rewriting->n_judged++) {
        struct judged *judged = &rewriting->packs[rewriting->order[rewriting->n_judged]];
        judge(rewriting, judged);
        for (size_t i = 0; i < judged->n_bases; i++)
            if (--rewriting->packs[judged->bases[i]].n_users == 0)
                rewriting->order[n_ready++] = judged->bases[i];
    }
    for (size_t i = 0; i < rewriting->n_packs; i++)
        n_rewritten += rewriting->packs[i].is_rewritten;
    return n_rewritten;
}

/* Writing. */

static bool put(void *context, const void *bytes, size_t length, struct error *error)
{
    return blobs_put(context, bytes, length, error);
}

/* Names of a pack's tensors, which its readers do not keep. */
struct names {
    struct arena *arena;
    const char **names; /* by tensor; NULL: none */
};

static bool take_name(void *context, const struct json *value, uint64_t line, struct error *error)
{
    struct names *names = context;
    const char *name = json_string(json_get(value, "name"), NULL);
    (void)error;
    names->names[line - 1] = name != NULL ? arena_strdup(names->arena, name) : NULL;
    return true;
}

static bool read_names(const struct pack *pack, struct names *names, struct error *error)
{
    uint64_t offset, length;
    names->names = arena_array(names->arena, pack_count(pack) + 1, sizeof *names->names);
    pack_list(pack, &offset, &length);
    return lines_read(pack_blob(pack), offset, length, NULL, take_name, names, error);
}

/* Copies the tensors that are needed. */
static bool copy_tensors(struct rewriting *rewriting, struct judged *judged, struct pack_writer *writer,
                         struct error *error)
{
    struct names names = {.arena = arena_new()};
    bool good = read_names(judged->pack, &names, error);
    judged->numbers = arena_array(rewriting->arena, pack_count(judged->pack) + 1, sizeof *judged->numbers);
    for (size_t i = 0; good && i < pack_count(judged->pack); i++) {
        const struct pack_tensor *tensor = pack_tensor(judged->pack, i);
        struct pack_writer_tensor copied = {.length = tensor->length,
                                            .coding = tensor->coding,
                                            .dtype = tensor->dtype,
                                            .name = names.names[i],
                                            .digest = tensor->digest};
        if (!judged->is_needed[i])
            continue;
        if (tensor->coding->input != CODING_ALONE) {
            const struct judged *base = &rewriting->packs[find_number(rewriting, &tensor->input_pack)];
            copied.input =
                (struct pack_input){.digest = base->is_rewritten ? base->fresh_blob.digest : base->blob.digest,
                                    .number = base->is_rewritten ? base->numbers[tensor->input] : tensor->input,
                                    .dtype = tensor->input_dtype,
                                    .swap = tensor->swap};
        }
        judged->numbers[i] = pack_writer_count(writer);
        good = pack_writer_copy(writer, &copied, judged->pack, i, error);
    }
    arena_free(names.arena);
    return good;
}

static bool find_pack(void *context, const struct digest *digest, struct pack **ret_pack, struct error *error)
{
    const struct rewriting *rewriting = context;
    size_t number = find_number(rewriting, digest);
    *ret_pack = number != SIZE_MAX ? rewriting->packs[number].pack : NULL;
    for (size_t i = 0; *ret_pack == NULL && i < rewriting->n_packs; i++)
        if (rewriting->packs[i].fresh != NULL && digest_same(&rewriting->packs[i].fresh_blob.digest, digest))
            *ret_pack = rewriting->packs[i].fresh;
    return *ret_pack != NULL || error_set(error, "a pack that a tensor is coded against is missing");
}

/* Writes a pack anew, and decodes it. */
static bool rewrite(struct rewriting *rewriting, struct judged *judged, struct error *error)
{
    if (!blobs_begin(rewriting->blobs, error))
        return false;
    struct pack_writer *writer = pack_writer_new(put, rewriting->blobs);
    bool good = copy_tensors(rewriting, judged, writer, error) && pack_writer_finish(writer, error) &&
                blobs_finish(rewriting->blobs, &judged->fresh_blob, error);
    pack_writer_free(writer);
    blobs_drop(rewriting->blobs);
    struct source *source = good ? archive_open_blob(rewriting->archive, &judged->fresh_blob.digest, error) : NULL;
    judged->fresh = source != NULL ? pack_open(source, find_pack, rewriting, error) : NULL;
    return judged->fresh != NULL && packing_check(judged->fresh, archive_shown(rewriting->archive), error);
}

static bool is_any_needed(const struct judged *judged)
{
    for (size_t i = 0; i < pack_count(judged->pack); i++)
        if (judged->is_needed[i])
            return true;
    return false;
}

/* Writes the new packs, bases before their users. */
static bool rewrite_all(struct rewriting *rewriting, struct error *error)
{
    for (size_t i = rewriting->n_judged; i-- > 0;) {
        struct judged *judged = &rewriting->packs[rewriting->order[i]];
        if (judged->is_rewritten && is_any_needed(judged) && !rewrite(rewriting, judged, error))
            return false;
    }
    return true;
}

/* The lists and manifests. */

static bool names_rewritten(const struct rewriting *rewriting, const struct archive_member *member)
{
    for (size_t i = 0; i < member->n_packs; i++)
        if (rewriting->packs[find_number(rewriting, &member->packs[i].digest)].is_rewritten)
            return true;
    return false;
}

/* Returns a member's list whose segments have the numbers of `packs`, and of tensors in the new packs. */
static struct files *renumbered(const struct rewriting *rewriting, const struct archive_member *member,
                                const struct files *old)
{
    struct files *files = files_new();
    for (size_t i = 0; i < old->n_entries; i++) {
        const struct files_entry *entry = &old->entries[i];
        files_add(files, entry);
        for (size_t j = 0; entry->same == i && j < entry->n_segments; j++) {
            struct files_segment segment = old->segments[entry->first_segment + j];
            if (segment.pack != FILES_ZEROS) {
                size_t number = find_number(rewriting, &member->packs[segment.pack].digest);
                segment.pack = (uint32_t)number;
                if (rewriting->packs[number].is_rewritten)
                    segment.tensor = rewriting->packs[number].numbers[segment.tensor];
            }
            files_add_segment(files, i, &segment);
        }
    }
    return files;
}

static bool write_index(struct rewriting *rewriting, const struct pack_table *packs, struct error *error)
{
    const size_t n_members = archive_count(rewriting->archive);
    struct index_member *members = arena_array(rewriting->arena, n_members + 1, sizeof *members);
    uint64_t n_written = 0;
    for (size_t i = 0; i < n_members; i++) {
        const struct archive_member *member = archive_member(rewriting->archive, i);
        members[i] = (struct index_member){member->name, member->manifest};
        if (!names_rewritten(rewriting, member))
            continue;
        struct files *files = renumbered(rewriting, member, archive_files(rewriting->archive, i, error));
        bool good = manifest_write(rewriting->blobs, files, packs, &members[i].manifest, &n_written, error);
        files_free(files);
        if (!good)
            return false;
    }
    return index_write(rewriting->blobs, members, n_members, error);
}

static bool write_lists(struct rewriting *rewriting, struct error *error)
{
    struct archive_blob *blobs = arena_array(rewriting->arena, rewriting->n_packs + 1, sizeof *blobs);
    struct pack **readers = arena_array(rewriting->arena, rewriting->n_packs + 1, sizeof(struct pack *));
    for (size_t i = 0; i < rewriting->n_packs; i++) {
        const struct judged *judged = &rewriting->packs[i];
        blobs[i] = judged->is_rewritten ? judged->fresh_blob : judged->blob;
        readers[i] = judged->is_rewritten ? judged->fresh : judged->pack;
    }
    const struct pack_table packs = {blobs, readers, rewriting->n_packs};
    return write_index(rewriting, &packs, error);
}

bool packs_rewrite(struct blobs *blobs, const char *path, size_t *ret_n_rewritten, struct error *error)
{
    struct rewriting rewriting = {.blobs = blobs, .arena = arena_new()};
    struct location *location = archive_directory(path, error);
    rewriting.archive = location != NULL ? archive_open_to_add(location, path, error) : NULL;
    bool good = rewriting.archive != NULL && open_packs(&rewriting, error) && mark_named(&rewriting, error);
    for (size_t i = 0; good && i < rewriting.n_packs; i++)
        good = relate(&rewriting, &rewriting.packs[i], error);
    *ret_n_rewritten = good ? judge_all(&rewriting) : 0;
    if (*ret_n_rewritten > 0)
        good = rewrite_all(&rewriting, error) && write_lists(&rewriting, error);
    for (size_t i = 0; i < rewriting.n_packs; i++) {
        pack_close(rewriting.packs[i].fresh);
        free(rewriting.packs[i].bases);
    }
    archive_drop(rewriting.archive);
    text_index_free(&rewriting.digests);
    free(rewriting.packs);
    arena_free(rewriting.arena);
    return good;
}
