/* Derivations that attach another model to a checkpoint. */
#include "base/text.h"
#include "formats/components.h"
#include "formats/huggingface/hub_cache.h"
#include "models/derive/adapter.h"
#include "models/derive/derive.h"
#include "models/facts.h"
#include "models/families/drafts/drafts.h"
#include "models/huggingface/hf_model.h"
#include "sources/location.h"

#include <string.h>

/* Weights of a model in a folder of their own, which a GGUF includes (family.folder): the dense layer after some
 * embedding models, where sentence-transformers keeps it; the encoder of an audio model's codec. With the option
 * dense-modules, the folders of all dense layers that modules.json names. */

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

static bool folder_apply(const struct checkpoint *from, const struct derive_options *options,
                         struct checkpoint **ret_derived, struct error *error)
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

const struct derivation folder_derivation = {.apply = folder_apply};

/* Returns a base that is a GGUF under the names that adapters use. Takes ownership of it, also on failure. */
static const struct checkpoint *named_as_adapters_do(const struct checkpoint *gguf, struct error *error)
{
    struct checkpoint *base = hf_checkpoint_new(gguf, error);
    if (base != NULL)
        checkpoint_use(base, BASE_ORIGIN, gguf);
    else
        checkpoint_close(gguf);
    return base;
}

const struct checkpoint *base_open(const char *path, const struct checkpoint *adapter, struct error *error)
{
    struct error unused;
    const struct checkpoint *base = derive_open(path, adapter, error);
    if (base == NULL && (base = checkpoint_open_side_files(path, adapter->formats, adapter->follows_links, &unused)))
        checkpoint_hint(adapter, SUBJECT_ADAPTER, "no weights of the base are used: %s", error->message);
    return base != NULL && facts_of(base).keys != NULL ? named_as_adapters_do(base, error) : base;
}

/* Opens the target of a draft: with its tensors if the draft replaces a row of them and they can be opened. */
static const struct checkpoint *open_target(const char *path, const struct checkpoint *draft, struct error *error)
{
    struct error unused;
    const struct open_options options = {.follow_links = draft->follows_links};
    const struct checkpoint *target =
        draft_has_mask(draft) ? checkpoint_open(path, draft->formats, &options, &unused) : NULL;
    return target != NULL ? target : checkpoint_open_side_files(path, draft->formats, draft->follows_links, error);
}

/* Opens the file with the row of a draft, which lies beside its weights. */
static const struct checkpoint *open_mask(struct arena *arena, const struct checkpoint *draft, struct error *error)
{
    enum location_links links = draft->follows_links ? LOCATION_FOLLOW : LOCATION_INSIDE;
    const struct open_options options = {.follow_links = draft->follows_links};
    const char *file, *path = hub_cache_resolve(arena, draft->path, draft->formats, links, error);
    struct location *location = path != NULL ? location_open(path, links, &file, error) : NULL;
    if (location == NULL)
        return NULL;
    if (file != NULL)
        path = arena_strndup(arena, path, strlen(path) - strlen(file));
    location_close(location);
    const char *separator = file != NULL || text_ends_with(path, "/") ? "" : "/";
    return checkpoint_open(arena_printf(arena, "%s%s%s", path, separator, DRAFT_MASK_FILE), draft->formats, &options,
                           error);
}

static void add_mask(struct checkpoint *derived, const struct checkpoint *draft)
{
    struct error error;
    const struct checkpoint *mask = open_mask(derived->arena, draft, &error);
    if (mask != NULL)
        checkpoint_use(derived, BASE_MASK, mask);
    else
        checkpoint_note(derived, SUBJECT_GGUF, "%s", error.message);
}

static bool target_apply(const struct checkpoint *from, const struct derive_options *options,
                         struct checkpoint **ret_derived, struct error *error)
{
    if (options->base == NULL)
        return true;
    bool is_draft = facts_of(from).has_class_names;
    const struct checkpoint *target =
        is_draft ? open_target(options->base, from, error) : base_open(options->base, from, error);
    if (target == NULL)
        return false;
    *ret_derived = checkpoint_derive(from);
    if (is_draft && target->n_sources > 0)
        checkpoint_use(*ret_derived, BASE_TARGET, target);
    else
        checkpoint_keep(*ret_derived, BASE_TARGET, target);
    if (is_draft && draft_has_mask(from))
        add_mask(*ret_derived, from);
    return true;
}

const struct derivation target_derivation = {.option = "base", .apply = target_apply};
