#include "models/dense.h"

#include "formats/components.h"
#include "models/families/family.h"
#include "models/from_gguf.h"

#include <string.h>

static const struct component *find_component(const struct checkpoint *checkpoint, const char *folder)
{
    const struct components *components = checkpoint->components;
    for (size_t i = 0; components != NULL && i < components->count; i++)
        if (strcmp(components->items[i].name, folder) == 0)
            return &components->items[i];
    return NULL;
}

static const char *folder_of_family(const struct checkpoint *checkpoint)
{
    bool absent;
    struct error unsaid;
    const struct family_name *unused;
    struct hparams *hparams = hparams_load(checkpoint, &absent, &unsaid);
    const struct family *family = hparams != NULL ? family_find(hparams, &unused) : NULL;
    hparams_free(hparams);
    return family != NULL ? family->dense_folder : NULL;
}

void dense_open(struct checkpoint *checkpoint)
{
    struct error error;
    if (checkpoint->components == NULL || gguf_is_source(checkpoint))
        return;
    const char *folder = folder_of_family(checkpoint);
    const struct component *component = folder != NULL ? find_component(checkpoint, folder) : NULL;
    if (component == NULL)
        return;
    struct checkpoint *dense = checkpoint_open_component(checkpoint, component, NULL, &error);
    if (dense != NULL)
        checkpoint_keep(checkpoint, dense);
    else
        checkpoint_note(checkpoint, "%s: %s", folder, error.message);
}

const struct tensor *dense_find(const struct checkpoint *checkpoint, const char *folder, struct error *error)
{
    static const char name[] = "linear.weight";
    const struct checkpoint *kept = checkpoint->kept;
    error->message[0] = '\0';
    if (find_component(checkpoint, folder) == NULL)
        return NULL;
    while (kept != NULL && strcmp(kept->model_name, folder) != 0)
        kept = kept->kept;
    const struct tensor *tensor = kept != NULL ? tensor_set_find_text(kept->tensors, name) : NULL;
    if (tensor != NULL && tensor->refusal == NULL && tensor->rank == 2 && dtype_kernels(tensor->dtype).decode != NULL)
        return tensor;
    error_set(error, "%s: there is no matrix %s that can be read", folder, name);
    return NULL;
}
