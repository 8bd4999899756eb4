/* The dense layer of some embedding models: sentence-transformers keeps it in a folder of its own, and the GGUF
 * includes it (family.dense_folder). */
#include "formats/components.h"
#include "models/derive/derivation.h"
#include "models/families/families.h"

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

static bool apply(const struct checkpoint *from, const struct derive_options *options, struct checkpoint **ret_derived,
                  struct error *error)
{
    if (from->components == NULL || from->kind == CHECKPOINT_GGUF)
        return true;
    const char *folder = folder_of_family(from);
    const struct component *component = folder != NULL ? components_named(from->components, folder) : NULL;
    if (component == NULL)
        return true;
    const struct checkpoint *dense = checkpoint_open_component(from, component, NULL, error);
    if (dense == NULL) {
        checkpoint_note(from, SUBJECT_SOURCE, "%s: %s", folder, error->message);
        return true;
    }
    *ret_derived = checkpoint_derive(from);
    checkpoint_use(*ret_derived, BASE_DENSE, dense);
    return true;
}

const struct derivation dense_derivation = {.apply = apply};
