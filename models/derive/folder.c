/* Weights of a model in a folder of their own, which a GGUF includes (family.folder): the dense layer after some
 * embedding models, where sentence-transformers keeps it; the encoder of an audio model's codec. */
#include "formats/components.h"
#include "models/derive/derivation.h"
#include "models/families/families.h"

static const char *folder_of_family(const struct checkpoint *checkpoint)
{
    bool absent;
    struct error unsaid;
    const struct family_name *unused;
    struct hparams *hparams = hparams_load(checkpoint, &absent, &unsaid);
    const struct family *family = hparams != NULL ? family_find(hparams, NULL, &unused) : NULL;
    hparams_free(hparams);
    return family != NULL ? family->folder : NULL;
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
    const struct checkpoint *inside = checkpoint_open_component(from, component, NULL, error);
    if (inside == NULL) {
        checkpoint_note(from, SUBJECT_SOURCE, "%s: %s", folder, error->message);
        return true;
    }
    *ret_derived = checkpoint_derive(from);
    checkpoint_use(*ret_derived, BASE_FOLDER, inside);
    return true;
}

const struct derivation folder_derivation = {.apply = apply};
