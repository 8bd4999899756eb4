/* Any bytes as the data.pkl of a checkpoint whose storages are all there.
 *
 * Holds for what is accepted: each tensor lies in its storage, has a name of its own, and can be read; extras are JSON.
 */
#include "text/json.h"

#include "tests/fuzz/read_pickle.h"
#include "tests/fuzz/read_tensors.h"

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
    struct error error = {""};
    struct arena *scratch = arena_new();
    struct checkpoint *checkpoint = checkpoint_new("input.pt");
    struct source *file = source_of_storages("input.pt");
    checkpoint_add_source(checkpoint, file);
    if (add_tensors_of_pickle(checkpoint, checkpoint->unsealed, file, data, size, scratch, &error)) {
        require(tensor_set_seal(checkpoint->unsealed, &error));
        check(checkpoint);
    } else {
        require_one_line(&error);
    }
    arena_free(scratch);
    checkpoint_close(checkpoint);
    return 0;
}
