/* Weights of a model in a folder of their own, which a GGUF includes (family.folder): the dense layer after some
 * embedding models, where sentence-transformers keeps it; the encoder of an audio model's codec. With the option
 * dense-modules, the folders of all dense layers that modules.json names. */
#include "base/text.h"
#include "formats/components.h"
#include "models/derive/derive.h"
#include "models/facts.h"

#include <string.h>

static const char *folder_of_family(const struct checkpoint *checkpoint)
{
    struct error unused;
    const struct config_facts *config = config_facts_of(checkpoint, &unused);
    return config != NULL && config->family != NULL ? config->family->folder : NULL;
}

/* Opens a component as a base of the derived checkpoint, which is made with the first one. */
static void use_component(const struct checkpoint *from, const struct component *component, enum base_role role,
                          struct checkpoint **derived)
{
    struct error error;
    const struct checkpoint *inside = checkpoint_open_component(from, component, NULL, &error);
    if (inside == NULL) {
        checkpoint_note(from, SUBJECT_SOURCE, "%s: %s", component->name, error.message);
        return;
    }
    if (*derived == NULL)
        *derived = checkpoint_derive(from);
    checkpoint_use(*derived, role, inside);
}

static bool apply(const struct checkpoint *from, const struct derive_options *options, struct checkpoint **ret_derived,
                  struct error *error)
{
    if (from->components == NULL || facts_of(from).keys != NULL)
        return true;
    const char *folder = folder_of_family(from);
    const struct component *component = folder != NULL ? components_named(from->components, folder) : NULL;
    if (component != NULL)
        use_component(from, component, BASE_FOLDER, ret_derived);
    for (size_t i = 0; options->dense_modules && i < from->components->count; i++) {
        const struct component *dense = &from->components->items[i];
        if (dense->class_name != NULL && text_ends_with(dense->class_name, "Dense"))
            use_component(from, dense, strcmp(dense->name, "2_Dense") == 0 ? BASE_DENSE_2 : BASE_DENSE_3, ret_derived);
    }
    return true;
}

const struct derivation folder_derivation = {.apply = apply};
