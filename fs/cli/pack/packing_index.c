#include "fs/cli/pack/packing_index.h"

#include "base/text_index.h"
#include "sources/archive/location.h"

#include <stdlib.h>
#include <string.h>

static void put_descriptor(struct json_writer *writer, const char *key, const char *type,
                           const struct archive_blob *blob, const char *name)
{
    char hex[SHA256_HEX + 1];
    struct arena *arena = arena_new();
    digest_hex(&blob->digest, hex);
    json_begin_object(writer, key);
    json_put_text(writer, "mediaType", type);
    if (name != NULL)
        json_put_text(writer, "artifactType", ARCHIVE_TYPE);
    json_put_text(writer, "digest", arena_printf(arena, "sha256:%s", hex));
    json_put_number(writer, "size", blob->size);
    if (name != NULL) {
        json_begin_object(writer, "annotations");
        json_put_text(writer, ARCHIVE_NAME_KEY, name);
        json_end(writer);
    }
    json_end(writer);
    arena_free(arena);
}

/* Manifests. */

/* The packs of a manifest: their numbers in the table, and the other way round. */
struct layers {
    const struct pack_table *packs;
    uint32_t *numbers; /* by number in the table; UINT32_MAX: not in the manifest */
    uint32_t *used;
    size_t count;
};

static void use_pack(struct layers *layers, uint32_t pack)
{
    if (layers->numbers[pack] != UINT32_MAX)
        return;
    layers->numbers[pack] = (uint32_t)layers->count;
    layers->used[layers->count++] = pack;
}

/* Adds the packs that tensors of a pack are coded against. */
static void use_inputs(struct layers *layers, const struct pack *pack)
{
    const struct digest *last = NULL; /* most tensors of a pack have the inputs of their neighbours */
    for (size_t i = 0; i < pack_count(pack); i++) {
        const struct pack_tensor *tensor = pack_tensor(pack, i);
        if (tensor->coding->input == CODING_ALONE || (last != NULL && digest_same(last, &tensor->input_pack)))
            continue;
        last = &tensor->input_pack;
        for (uint32_t j = 0; j < layers->packs->count; j++)
            if (digest_same(&layers->packs->blobs[j].digest, last))
                use_pack(layers, j);
    }
}

static void number_packs(struct layers *layers, struct files *files)
{
    for (size_t i = 0; i < files->n_segments; i++) {
        struct files_segment *segment = &files->segments[i];
        if (segment->pack == FILES_ZEROS)
            continue;
        use_pack(layers, segment->pack);
        segment->pack = layers->numbers[segment->pack];
    }
    for (size_t i = 0; i < layers->count; i++)
        use_inputs(layers, layers->packs->readers[layers->used[i]]);
}

static bool write_list(struct blobs *blobs, const struct files *files, struct archive_blob *ret_blob,
                       uint64_t *n_written, struct error *error)
{
    struct buffer frame = {0};
    files_append_frame(files, &frame);
    bool good = blobs_add(blobs, frame.bytes, frame.length, ret_blob, error);
    *n_written += frame.length;
    buffer_free(&frame);
    return good;
}

static void put_manifest(struct buffer *text, const struct layers *layers, const struct archive_blob *empty,
                         const struct archive_blob *list)
{
    struct json_writer writer = {.out = text, .letters = JSON_UTF8, .compact = true};
    json_begin_object(&writer, NULL);
    json_put_template(&writer, "'schemaVersion': %u, 'mediaType': %s, 'artifactType': %s", (uint64_t)2,
                      ARCHIVE_MANIFEST_TYPE, ARCHIVE_TYPE);
    put_descriptor(&writer, "config", ARCHIVE_EMPTY_TYPE, empty, NULL);
    json_begin_array(&writer, "layers");
    put_descriptor(&writer, NULL, ARCHIVE_FILES_TYPE, list, NULL);
    for (size_t i = 0; i < layers->count; i++)
        put_descriptor(&writer, NULL, ARCHIVE_PACK_TYPE, &layers->packs->blobs[layers->used[i]], NULL);
    json_end(&writer);
    json_end(&writer);
}

bool manifest_write(struct blobs *blobs, struct files *files, const struct pack_table *packs,
                    struct archive_blob *ret_manifest, uint64_t *n_written, struct error *error)
{
    static const char nothing[] = "{}";
    struct layers layers = {packs, merge_numbers(packs->count), merge_numbers(packs->count), 0};
    struct buffer text = {0};
    struct archive_blob empty, list;
    number_packs(&layers, files);
    bool good =
        blobs_add(blobs, nothing, strlen(nothing), &empty, error) && write_list(blobs, files, &list, n_written, error);
    if (good) {
        put_manifest(&text, &layers, &empty, &list);
        good = blobs_add(blobs, text.bytes, text.length, ret_manifest, error);
    }
    buffer_free(&text);
    free(layers.numbers);
    free(layers.used);
    return good;
}

/* The index. */

bool index_write(struct blobs *blobs, const struct index_member *members, size_t n_members, struct error *error)
{
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .letters = JSON_UTF8, .compact = true};
    json_begin_object(&writer, NULL);
    json_put_template(&writer, "'schemaVersion': %u, 'mediaType': %s", (uint64_t)2, ARCHIVE_INDEX_TYPE);
    json_begin_array(&writer, "manifests");
    for (size_t i = 0; i < n_members; i++)
        put_descriptor(&writer, NULL, ARCHIVE_MANIFEST_TYPE, &members[i].manifest, members[i].name);
    json_end(&writer);
    json_end(&writer);
    bool good = blobs_set_index(blobs, text.bytes, text.length, error);
    buffer_free(&text);
    return good;
}

static struct archive *open_archive(const char *path, struct error *error)
{
    struct location *location = archive_directory(path, error);
    return location != NULL ? archive_open_to_add(location, path, error) : NULL;
}

static bool write_others(struct blobs *blobs, const struct archive *archive, size_t removed, struct error *error)
{
    size_t n_members = 0;
    struct index_member *members = memory_alloc((archive_count(archive) + 1) * sizeof *members);
    for (size_t i = 0; i < archive_count(archive); i++)
        if (i != removed)
            members[n_members++] =
                (struct index_member){archive_member(archive, i)->name, archive_member(archive, i)->manifest};
    bool good = index_write(blobs, members, n_members, error);
    free(members);
    return good;
}

bool index_remove(struct blobs *blobs, const char *path, const char *name, struct error *error)
{
    struct archive *archive = open_archive(path, error);
    if (archive == NULL)
        return false;
    size_t member = archive_find(archive, name, strlen(name));
    bool good = member != SIZE_MAX ? write_others(blobs, archive, member, error)
                                   : error_set(error, "%s has no source '%s'", path, name);
    archive_drop(archive);
    return good;
}

/* The blobs that are needed, and what was removed. */
struct pruning {
    struct blobs *blobs;
    struct text_index needed; /* digests */
    struct pruned *pruned;
};

static void need(struct pruning *pruning, const struct digest *digest)
{
    text_index_add(&pruning->needed, (const char *)digest->bytes, sizeof digest->bytes, 0);
}

static bool prune(void *context, const struct digest *digest, uint64_t size, struct error *error)
{
    struct pruning *pruning = context;
    size_t unused;
    if (text_index_find(&pruning->needed, (const char *)digest->bytes, sizeof digest->bytes, &unused))
        return true;
    pruning->pruned->n_blobs++;
    pruning->pruned->n_bytes += size;
    return blobs_remove(pruning->blobs, digest, error);
}

bool index_prune(struct blobs *blobs, const char *path, struct pruned *pruned, struct error *error)
{
    static const char empty_config[] = "{}";
    struct pruning pruning = {.blobs = blobs, .pruned = pruned};
    const struct digest config = digest_of(empty_config, strlen(empty_config));
    struct archive *archive = blobs_check_unread(blobs, error) ? open_archive(path, error) : NULL;
    if (archive == NULL)
        return false;
    if (archive_count(archive) > 0)
        need(&pruning, &config);
    for (size_t i = 0; i < archive_count(archive); i++) {
        const struct archive_member *member = archive_member(archive, i);
        need(&pruning, &member->manifest.digest);
        need(&pruning, &member->list.digest);
        for (size_t j = 0; j < member->n_packs; j++)
            need(&pruning, &member->packs[j].digest);
    }
    bool good = blobs_list(blobs, prune, &pruning, error);
    text_index_free(&pruning.needed);
    archive_drop(archive);
    return good;
}
