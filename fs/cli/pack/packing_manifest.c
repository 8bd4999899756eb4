#include "fs/cli/pack/packing_index.h"

#include <stdlib.h>
#include <string.h>

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
    index_put_descriptor(&writer, "config", ARCHIVE_EMPTY_TYPE, empty, NULL);
    json_begin_array(&writer, "layers");
    index_put_descriptor(&writer, NULL, ARCHIVE_FILES_TYPE, list, NULL);
    for (size_t i = 0; i < layers->count; i++)
        index_put_descriptor(&writer, NULL, ARCHIVE_PACK_TYPE, &layers->packs->blobs[layers->used[i]], NULL);
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
