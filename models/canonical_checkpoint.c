#include "models/canonical_checkpoint.h"

#include "formats/open.h"
#include "models/canonical.h"

static void release(void *model)
{
    canonical_model_free(model);
}

struct checkpoint *canonical_checkpoint_new(const struct checkpoint *gguf, struct error *error)
{
    static const char config[] = "config.json";
    struct canonical_model *model = canonical_model_new(gguf, NULL, error);
    if (model == NULL)
        return NULL;
    if (model->kept_names != NULL) {
        error_set(error, "what Hugging Face calls its tensors cannot be told: %s", model->kept_names);
        canonical_model_free(model);
        return NULL;
    }
    struct checkpoint *checkpoint = checkpoint_new(gguf->path);
    checkpoint->format = "canonical";
    checkpoint->model_name = gguf->model_name;
    checkpoint->tensors = (struct tensor_set *)model->tensors; /* which nobody changes */
    checkpoint_add_side_file(checkpoint, config,
                             source_of_text(gguf->sources[0], config, model->config, model->config_length));
    arena_on_free(checkpoint->arena, release, model);
    return checkpoint;
}
