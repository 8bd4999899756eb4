#include "models/quantize/imatrix.h"

#include "models/convert/model.h"
#include "models/facts.h"
#include "models/family/tensors.h"

/* The relation of a checkpoint's names to GGUF names. */
struct naming {
    struct relation_job job;
    struct model_builder builder;
    struct gguf_model model;
};

/* Reports whether a tensor's columns stay columns in the GGUF. */
static bool keeps_columns(const struct relation_match *match)
{
    const struct relation_entry *entry = match->entry;
    const struct rearrangement *axes = entry->axes[FORWARD];
    if (entry->row->map != NULL || entry->n_names[BACKWARD] != 1)
        return false;
    if (axes == NULL || axes->is_identity)
        return true;
    const struct factor *here = axes->sides[FORWARD][match->which].last, *there = axes->sides[BACKWARD][0].last;
    return here->kind == there->kind &&
           (here->kind == FACTOR_REST || (here->kind == FACTOR_AXIS && here->number == there->number));
}

/* Returns the entry of the matrix that a tensor becomes, and its member in it; UINT64_MAX: it is the whole matrix. */
static const struct imatrix_entry *find_entry(const struct naming *naming, const struct tensor *tensor,
                                              const struct imatrix *imatrix, const struct imatrix_filter *filter,
                                              uint64_t *ret_member)
{
    struct relation_match match;
    const char *name = family_tensor_name(naming->builder.family, naming->builder.hf, naming->job.dimensions,
                                          tensor->name, naming->job.arena);
    if (name == NULL || !relation_find(naming->job.relation, FORWARD, naming->job.dimensions, NULL, name, &match) ||
        match.entry->row->there == NULL || !keeps_columns(&match))
        return NULL;
    return imatrix_find(imatrix, filter, relation_target(&naming->job, &match, ret_member));
}

static struct importance related(const struct naming *naming, const struct tensor *tensor,
                                 const struct imatrix *imatrix, const struct imatrix_filter *filter)
{
    uint64_t member = UINT64_MAX;
    const struct imatrix_entry *entry = find_entry(naming, tensor, imatrix, filter, &member);
    struct importance importance = imatrix_importance(member == UINT64_MAX ? entry : NULL, tensor);
    if (entry == NULL || member == UINT64_MAX || tensor->rank != 2 || importance.n_columns == 0 ||
        entry->n_values % importance.n_columns != 0 || member >= entry->n_values / importance.n_columns)
        return importance;
    importance.columns = entry->values + member * importance.n_columns;
    return importance;
}

/* Returns false if the family is unknown, or its rows cannot be used. */
static bool begin(struct naming *naming, const struct checkpoint *checkpoint, struct arena *arena)
{
    struct error error;
    struct model_builder *builder = &naming->builder;
    naming->model = (struct gguf_model){.arena = arena, .checkpoint = checkpoint};
    const struct config_facts *config = facts_of(checkpoint).keys == NULL ? config_facts_of(checkpoint, &error) : NULL;
    const struct family *family = config != NULL ? config->family : NULL;
    naming->model.hparams = family != NULL ? hparams_of(checkpoint, &error) : NULL;
    if (naming->model.hparams == NULL)
        return false;
    builder->hf = config->family_class;
    builder->model = &naming->model;
    builder->family = naming->model.family = family;
    dimensions_read(&builder->dimensions, naming->model.hparams);
    family_add_dimensions(family, &builder->dimensions, naming->model.hparams);
    if (!builder_adjust(builder, &error))
        return false;
    naming->job = (struct relation_job){
        .relation = relation_new(arena, family->name, family->prefix, family->tensors, &error),
        .direction = FORWARD,
        .dimensions = &builder->dimensions,
        .arena = arena,
    };
    return naming->job.relation != NULL;
}

const struct importance *importances_of(const struct checkpoint *checkpoint, const struct shown_tensors *shown,
                                        const struct imatrix *imatrix, const struct imatrix_filter *filter,
                                        struct arena *arena)
{
    if (imatrix == NULL)
        return NULL;
    struct naming naming = {.job = {.relation = NULL}};
    struct arena *scratch = arena_new();
    size_t n_tensors = shown_tensors_count(shown);
    struct importance *importances = arena_array(arena, n_tensors + 1, sizeof *importances);
    bool is_named = begin(&naming, checkpoint, scratch);
    for (size_t i = 0; i < n_tensors; i++) {
        struct tensor room;
        const struct tensor *tensor = shown_tensors_at(shown, i, &room);
        importances[i] = imatrix_importance(imatrix_find(imatrix, filter, tensor->name), tensor);
        if (is_named && importances[i].columns == NULL)
            importances[i] = related(&naming, tensor, imatrix, filter);
    }
    gguf_kvs_free(&naming.model.kvs);
    hparams_free(naming.model.hparams);
    arena_free(scratch);
    return importances;
}
