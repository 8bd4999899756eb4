#include "models/facts.h"

#include "formats/documents.h"
#include "models/config/hparams.h"
#include "models/families/families.h"
#include "models/projectors/projectors.h"
#include "sources/source.h"

#include <string.h>

struct facts facts_of(const struct checkpoint *checkpoint)
{
    bool is_gguf = checkpoint->kind == CHECKPOINT_GGUF, is_adapter = checkpoint->kind == CHECKPOINT_ADAPTER;
    bool has_config = checkpoint_side_file(checkpoint, "config.json") != NULL;
    return (struct facts){
        .keys = is_gguf ? &checkpoint->metadata : NULL,
        .has_class_names = checkpoint->kind == CHECKPOINT_WEIGHTS,
        .is_adapter = is_adapter,
        .lacks_config = checkpoint_side_file(checkpoint, hparams_file(checkpoint)) == NULL,
        .makes_directories = (is_gguf || has_config) && !is_adapter,
    };
}

static void find_names(struct config_facts *facts, const struct hparams *hparams, struct arena *arena)
{
    struct error error;
    const char *class_name = hparams_class(hparams),
               *model_type = json_string(hparams_get(hparams, "model_type"), NULL);
    facts->class_name = class_name != NULL ? arena_strdup(arena, class_name) : NULL;
    facts->model_type = model_type != NULL ? arena_strdup(arena, model_type) : NULL;
    facts->family = family_find(hparams, &facts->family_class);
    facts->projector = projector_find(hparams, &facts->projector_class, &error);
    if (facts->projector == NULL)
        facts->no_projector = arena_strdup(arena, error.message);
    facts->describes_towers = projector_is_described(hparams);
}

static void free_hparams(void *hparams)
{
    hparams_free(hparams);
}

static const void *find_config(const struct checkpoint *checkpoint, struct arena *arena, struct error *error)
{
    bool absent;
    struct hparams *hparams = hparams_load(checkpoint, &absent, error);
    if (hparams == NULL)
        return NULL;
    struct config_facts *facts = arena_alloc(arena, sizeof *facts);
    *facts = (struct config_facts){0};
    find_names(facts, hparams, arena);
    if (document_stays(checkpoint, hparams_file(checkpoint))) {
        facts->hparams = hparams;
        arena_on_free(arena, free_hparams, hparams);
    } else {
        hparams_free(hparams);
    }
    return facts;
}

const struct config_facts *config_facts_of(const struct checkpoint *checkpoint, struct error *error)
{
    return checkpoint_try(checkpoint, find_config, error);
}

bool config_is_reached(const struct checkpoint *checkpoint, struct error *error)
{
    uint64_t n_unreached = source_unreached();
    return config_facts_of(checkpoint, error) != NULL || source_unreached() == n_unreached;
}

struct hparams *hparams_of(const struct checkpoint *checkpoint, struct error *error)
{
    bool absent;
    const struct config_facts *facts = config_facts_of(checkpoint, error);
    if (facts == NULL)
        return NULL;
    return facts->hparams != NULL ? hparams_over(facts->hparams) : hparams_load(checkpoint, &absent, error);
}

const struct family *config_family(const struct config_facts *config, const struct references *references)
{
    bool is_known = config->family != NULL && family_is_known(config->family, config->family_class, references);
    return is_known ? config->family : NULL;
}

const struct family *config_projector(const struct config_facts *config, const struct references *references,
                                      struct error *error)
{
    const struct family *projector = config->projector;
    if (projector != NULL && family_is_known(projector, config->projector_class, references))
        return projector;
    if (projector == NULL)
        error_set(error, "%s", config->no_projector);
    else
        error_set(error, "llama.cpp b%u makes no mmproj.gguf of %s", reference_build(references),
                  config->projector_class->name);
    return NULL;
}
