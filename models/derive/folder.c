/* Weights of a model in a folder of their own, which a GGUF includes (family.folder): the dense layer after some
 * embedding models, where sentence-transformers keeps it; the encoder of an audio model's codec. */
#include "formats/components.h"
#include "models/derive/derivation.h"
#include "models/facts.h"

static const char *folder_of_family(const struct checkpoint *checkpoint)
{
    struct error unused;
    const struct config_facts *config = config_facts_of(checkpoint, &unused);
    return config != NULL && config->family != NULL ? config->family->folder : NULL;
}

static bool apply(const struct checkpoint *from, const struct derive_options *options, struct checkpoint **ret_derived,
                  struct error *error)
{
    if (from->components == NULL || facts_of(from).keys != NULL)
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
