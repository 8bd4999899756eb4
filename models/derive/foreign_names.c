/* Gives the weights of a model that another framework trained the names and the layout that transformers would give
 * them when it loads them, if config.json is of a model type that the framework's spelling covers: then
 * model.safetensors and model.gguf can be made. Tensors are in the order of their names, as in a single
 * model.safetensors; those that no rule fits, such as an optimizer's state, are left out. Without config.json, tensors
 * keep their names. */
#include "models/derive/foreign_names.h"

#include "base/text.h"
#include "models/derive/derive.h"
#include "models/facts.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

static const struct spelling *const spellings[] = {
    &torchtitan_spelling,      &megatron_spelling, &megatron_mixtral_spelling,
    &megatron_qwen_spelling,   &keras_spelling,    &tensorflow_bert_spelling,
    &tensorflow_gpt2_spelling, &flax_spelling,     NULL,
};

struct renaming {
    struct checkpoint *derived;
    const struct tensor_set *from;
    const struct spelling *spelling;
    struct tensor_set *renamed; /* not yet in order */
    size_t n_left_out;
};

/* Finds the spelling of a checkpoint's names for its model type; NULL: they stay. */
static const struct spelling *find_spelling(const struct tensor_set *set, const char *model_type)
{
    for (const struct spelling *const *spelling = spellings; *spelling != NULL; spelling++) {
        bool fits = false;
        for (const char *const *type = (*spelling)->model_types; *type != NULL; type++)
            fits |= strcmp(*type, model_type) == 0;
        for (size_t i = 0; fits && i < set->n_tensors; i++)
            if ((*spelling)->is_marked(set->tensors[i].name))
                return *spelling;
    }
    return NULL;
}

/* By leaves. */

static const struct leaf *find_leaf(const struct leaf *leaves, const char *name, unsigned rank)
{
    for (; leaves->there != NULL; leaves++)
        if (strcmp(leaves->there, name) == 0 && (leaves->rank == 0 || leaves->rank == rank))
            return leaves;
    return NULL;
}

static bool rearrange(struct arena *arena, const char *axes, struct tensor *tensor, struct error *error)
{
    const struct axis_sizes none = {0};
    const struct rearrangement *parsed = rearrangement_parse(arena, axes, error);
    const struct view *view = tensor_view(tensor, arena), *result;
    if (parsed == NULL || !rearrangement_apply(arena, parsed, FORWARD, &none, &view, &result, error))
        return error_prefix(error, "tensor '%.200s'", tensor->name);
    struct tensor changed = tensor_of_view(tensor->name, result);
    *tensor = changed;
    return true;
}

static bool rename_leaf(struct renaming *renaming, const struct tensor *from, struct error *error)
{
    struct arena *arena = renaming->derived->arena;
    const char *path, *leaf;
    struct tensor tensor = *from;
    if (strlen(from->name) != from->name_length || !renaming->spelling->split(arena, from->name, &path, &leaf)) {
        renaming->n_left_out++;
        return true;
    }
    const struct leaf *rule = find_leaf(renaming->spelling->leaves, leaf, from->rank);
    if (rule != NULL && rule->axes != NULL && from->refusal == NULL && !rearrange(arena, rule->axes, &tensor, error))
        return false;
    tensor.name = arena_printf(arena, "%s%s%s", path, *path != '\0' ? "." : "", rule != NULL ? rule->here : leaf);
    tensor.name_length = (uint32_t)strlen(tensor.name);
    tensor_set_add(renaming->renamed, &tensor);
    return true;
}

/* By a relation. */

static const struct view *read_tensor(void *context, const struct tensor *tensor, const char *shown,
                                      struct error *error)
{
    const struct renaming *renaming = context;
    if (tensor->refusal == NULL)
        return tensor_view(tensor, renaming->derived->arena);
    error_set(error, "tensor '%.200s': %s", shown, tensor->refusal);
    return NULL;
}

static void write_tensor(void *context, const char *name, const struct view *view)
{
    tensor_set_add_view(((struct renaming *)context)->renamed, name, view);
}

/* Adds the layers of a tensor that has all of them on its first axis. */
static bool unstack(struct renaming *renaming, const struct tensor *tensor, uint64_t n_layers, struct tensor_set *to,
                    struct error *error)
{
    struct arena *arena = renaming->derived->arena;
    const char *prefix = renaming->spelling->stacked, *rest = tensor->name + strlen(prefix);
    if (tensor->refusal != NULL)
        return error_set(error, "tensor '%.200s': %s", tensor->name, tensor->refusal);
    if (tensor->rank == 0 || tensor->shape[0] != n_layers || n_layers > TENSOR_SET_MAX - to->n_tensors)
        return error_set(error,
                         "tensor '%.200s' has %" PRIu64 " layers on its first axis, but config.json has %" PRIu64,
                         tensor->name, tensor->rank > 0 ? tensor->shape[0] : 0, n_layers);
    const struct view *stack = tensor_view(tensor, arena);
    for (uint64_t i = 0; i < n_layers; i++) {
        const struct view *layer = view_slice(arena, stack, 0, i, 1, 1);
        const char *name = arena_printf(arena, "%s%" PRIu64 ".%s", prefix, i, rest);
        tensor_set_add_view(to, name, view_reshape(arena, layer, tensor->rank - 1u, tensor->shape + 1));
    }
    return true;
}

static bool is_stacked(const struct spelling *spelling, const char *name)
{
    return spelling->stacked != NULL && text_starts_with(name, spelling->stacked) &&
           !isdigit((unsigned char)name[strlen(spelling->stacked)]);
}

/* Returns the tensors, each of one layer; NULL, with an error, on failure. */
static const struct tensor_set *tensors_of_layers(struct renaming *renaming, const struct dimensions *dimensions,
                                                  struct error *error)
{
    struct tensor_set *set = tensor_set_new(renaming->derived->arena);
    if (renaming->spelling->stacked == NULL)
        return renaming->from;
    for (size_t i = 0; i < renaming->from->n_tensors; i++) {
        const struct tensor *tensor = &renaming->from->tensors[i];
        if (!is_stacked(renaming->spelling, tensor->name))
            tensor_set_add(set, tensor);
        else if (!unstack(renaming, tensor, dimensions->n_layers, set, error))
            return NULL;
    }
    return set;
}

/* Returns the tensors that the relation knows. */
static struct tensor_set *known_tensors(struct renaming *renaming, const struct tensor_set *all,
                                        const struct relation *relation, const struct dimensions *dimensions)
{
    struct tensor_set *known = tensor_set_new(renaming->derived->arena);
    for (size_t i = 0; i < all->n_tensors; i++) {
        const struct tensor *tensor = &all->tensors[i];
        struct relation_match unused;
        if (relation_find(relation, BACKWARD, dimensions, NULL, tensor->name, &unused))
            tensor_set_add(known, tensor);
        else
            renaming->n_left_out++;
    }
    return known;
}

static bool rename_by_relation(struct renaming *renaming, const struct hparams *hparams, struct error *error)
{
    struct arena *arena = renaming->derived->arena;
    const struct spelling *spelling = renaming->spelling;
    const struct relation *relation = relation_new(arena, spelling->framework, NULL, spelling->relation, error);
    struct dimensions dimensions = {.n_sizes = 0};
    if (relation == NULL)
        return false;
    dimensions_read(&dimensions, hparams);
    if (spelling->add_dimensions != NULL)
        spelling->add_dimensions(&dimensions, hparams);
    const struct tensor_set *all = tensors_of_layers(renaming, &dimensions, error);
    if (all == NULL)
        return false;
    struct tensor_set *known = known_tensors(renaming, all, relation, &dimensions);
    const struct relation_job job = {
        .relation = relation,
        .direction = BACKWARD,
        .dimensions = &dimensions,
        .set = known,
        .dimensions_name = "config.json",
        .arena = arena,
        .context = renaming,
        .read = read_tensor,
        .write = write_tensor,
    };
    return tensor_set_seal(known, error) && relation_apply(&job, error);
}

static bool rename_tensors(struct renaming *renaming, const struct hparams *hparams, struct error *error)
{
    if (renaming->spelling->relation[0] != NULL && !rename_by_relation(renaming, hparams, error))
        return false;
    for (size_t i = 0; renaming->spelling->relation[0] == NULL && i < renaming->from->n_tensors; i++)
        if (!rename_leaf(renaming, &renaming->from->tensors[i], error))
            return false;
    if (renaming->n_left_out > 0)
        checkpoint_note(renaming->derived, SUBJECT_SOURCE,
                        "%zu tensors of %s are left out: transformers has no names for them", renaming->n_left_out,
                        renaming->spelling->framework);
    struct tensor_set *ordered = tensor_set_ordered(renaming->renamed, renaming->derived->arena);
    renaming->derived->tensors = ordered;
    return tensor_set_seal(ordered, error);
}

static bool apply(const struct checkpoint *from, const struct derive_options *options, struct checkpoint **ret_derived,
                  struct error *error)
{
    (void)options;
    struct error unused;
    const struct config_facts *config = facts_of(from).has_class_names ? config_facts_of(from, &unused) : NULL;
    const char *model_type = config != NULL ? config->model_type : NULL;
    const struct spelling *spelling = model_type != NULL ? find_spelling(from->tensors, model_type) : NULL;
    struct hparams *hparams = spelling != NULL ? hparams_of(from, error) : NULL;
    if (hparams == NULL)
        return spelling == NULL;
    struct checkpoint *derived = *ret_derived = checkpoint_derive(from);
    struct renaming renaming = {derived, from->tensors, spelling, tensor_set_new(derived->arena), 0};
    bool good = rename_tensors(&renaming, hparams, error);
    hparams_free(hparams);
    return good;
}

const struct derivation foreign_names_derivation = {.apply = apply};
