/* Towers of any shapes: what config.json says of a part that sees or hears, and tensors that it might have.
 *
 * An input is as write_model() has it, its first line config.json. Holds: what becomes a tensor of mmproj.gguf can be
 * read. */
#include "models/convert/model.h"
#include "models/formats.h"

#include "tests/fuzz/read_tensors.h"
#include "tests/fuzz/write_model.h"

static const char preprocessor[] = "{\"image_mean\":[0.5],\"image_std\":[0.5],\"patch_size\":14,\"min_pixels\":4,"
                                   "\"max_pixels\":4096,\"min_num_patches\":1,\"max_num_patches\":4}";

static void remove_directory(void)
{
    remove_file("config.json");
    remove_file("model.safetensors");
    remove_file("preprocessor_config.json");
    rmdir(directory);
}

static void project(const struct checkpoint *checkpoint)
{
    struct error error;
    struct artifact artifact;
    gguf_has_projector(checkpoint);
    struct gguf_model *model = gguf_projector_new(checkpoint, &error);
    if (model == NULL) {
        require_one_line(&error);
        return;
    }
    require(converter_artifact(model, "q8_0", &artifact, &error));
    for (size_t i = 0; i < model->tensors->n_tensors; i++)
        read_ends(model->tensors->tensors[i].view);
    artifact_free(&artifact);
    gguf_model_free(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    const struct open_options options = {0};
    if (size > MOST_BYTES)
        return 0;
    make_directory(remove_directory);
    write_file("preprocessor_config.json", preprocessor, sizeof preprocessor - 1);
    write_model("config.json", "model.safetensors", data, size);
    const struct checkpoint *checkpoint = checkpoint_open(directory, formats, &options, &error);
    if (checkpoint != NULL)
        project(checkpoint);
    else
        require_one_line(&error);
    checkpoint_close(checkpoint);
    return 0;
}
