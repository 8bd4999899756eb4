/* Any bytes as the data.pkl of a checkpoint whose storages are all there.
 *
 * Holds for what is accepted: each tensor lies in its storage, has a name of its own, and can be read; extras are JSON.
 */
#include "formats/json.h"
#include "formats/torch/tensors.h"

#include "tests/fuzz/read_tensors.h"

enum { STORAGE_BYTES = 4096 };

/* As a container does: storages larger than what there is are refused. */
static bool resolve(const struct torch_container *container, const struct pickle *pickle,
                    struct torch_storage *storages, struct error *error)
{
    for (uint32_t i = 0; i < pickle->persistent.n; i++) {
        struct torch_storage_id id;
        bool is_storage;
        if (!torch_storage_id(container, pickle->persistent.nodes[i], &id, &is_storage, error))
            return false;
        if (!is_storage)
            continue;
        if (id.n_bytes > STORAGE_BYTES)
            return error_set(error, "too large");
        storages[i] = (struct torch_storage){
            .source = container->file,
            .n_bytes = id.n_bytes,
            .stored = {container->file, 0, id.n_bytes},
            .dtype = id.dtype,
            .untyped = id.untyped,
        };
    }
    return true;
}

static void check(const struct checkpoint *checkpoint)
{
    struct error error;
    read_tensors(checkpoint);
    if (checkpoint->extras == NULL)
        return;
    struct json_document *document = json_parse(checkpoint->extras, strlen(checkpoint->extras), &error);
    require(document != NULL || strstr(error.message, "twice") != NULL); /* keys 1 and "1" */
    json_free(document);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t zeros[STORAGE_BYTES];
    struct error error = {""};
    struct pickle pickle;
    struct arena *scratch = arena_new();
    struct checkpoint *checkpoint = checkpoint_new("input.pt");
    struct source *file = source_of_bytes(zeros, sizeof zeros, "input.pt");
    checkpoint_add_source(checkpoint, file);
    struct torch_container container = {
        .checkpoint = checkpoint,
        .tensors = checkpoint->unsealed,
        .file = file,
        .place = "input.pt: data.pkl",
        .pickle_bytes = (const char *)data,
        .big_endian = size % 2,
    };
    bool good = pickle_read(&pickle, data, size, scratch, NULL, &error);
    if (good) {
        struct torch_storage *storages = arena_array(scratch, pickle.persistent.n, sizeof *storages);
        container.storages = storages;
        good =
            resolve(&container, &pickle, storages, &error) && torch_add_tensors(&container, &pickle, scratch, &error);
    }
    if (good) {
        require(tensor_set_seal(checkpoint->unsealed, &error));
        check(checkpoint);
    } else {
        require_one_line(&error);
    }
    arena_free(scratch);
    checkpoint_close(checkpoint);
    return 0;
}
