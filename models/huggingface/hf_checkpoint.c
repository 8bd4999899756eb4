#include "models/huggingface/hf_checkpoint.h"

#include "formats/checkpoint_builder.h"
#include "models/huggingface/hf_model.h"

struct checkpoint *hf_checkpoint_new(const struct checkpoint *gguf, struct error *error)
{
    static const char config[] = "config.json";
    const struct hf_model *model = hf_model_of(gguf, error);
    if (model == NULL)
        return NULL;
    if (model->kept_names != NULL) {
        error_set(error, "the tensors' Hugging Face names are unknown: %s", model->kept_names);
        return NULL;
    }
    struct checkpoint *checkpoint = checkpoint_new(gguf->path);
    checkpoint->formats = gguf->formats;
    checkpoint->format = "canonical";
    checkpoint->model_name = gguf->model_name;
    checkpoint->tensors = model->tensors;
    checkpoint_add_side_file(checkpoint, config,
                             source_of_text(gguf->sources[0], config, model->config, model->config_length));
    return checkpoint;
}
