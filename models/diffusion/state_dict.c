#include "models/diffusion/state_dict.h"

#include "base/sort.h"
#include "base/text.h"
#include "formats/safetensors/safetensors.h"
#include "models/diffusion/naming.h"
#include "models/facts.h"
#include "models/packings/packings.h"

#include <stdlib.h>
#include <string.h>

enum { FEWEST_TENSORS = 20 }; /* of a pickle */

/* Prefixes of the diffusion model in a whole checkpoint; the first that begins a name counts. */
static const char *const prefixes[] = {"model.diffusion_model.", "model."};

/* A prefix that counts if every name begins with it. */
static const char common_prefix[] = "net.";

struct beginning {
    const struct tensor_set *set;
    const char *text;
};

static bool name_precedes(const void *context, size_t index)
{
    const struct beginning *beginning = context;
    const struct tensor *tensor = &beginning->set->tensors[beginning->set->by_name[index]];
    return text_compare(tensor->name, tensor->name_length, beginning->text, strlen(beginning->text)) < 0;
}

static bool begins_a_name(const struct tensor_set *set, const char *prefix)
{
    const struct beginning beginning = {set, prefix};
    size_t first = search_first(set->n_tensors, name_precedes, &beginning);
    return first < set->n_tensors && text_starts_with(set->tensors[set->by_name[first]].name, prefix);
}

static bool begins_all_names(const struct tensor_set *set, const char *prefix)
{
    return set->n_tensors > 0 && text_starts_with(set->tensors[set->by_name[0]].name, prefix) &&
           text_starts_with(set->tensors[set->by_name[set->n_tensors - 1]].name, prefix);
}

static const char *prefix_of(const struct tensor_set *set)
{
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (begins_a_name(set, prefixes[i]))
            return prefixes[i];
    return begins_all_names(set, common_prefix) ? common_prefix : "";
}

/* Writes the name without any occurrence of the prefix, with a NUL at its end; returns false if it has none. */
static bool strip(const char *name, const char *prefix, struct buffer *out)
{
    size_t length = strlen(prefix);
    const char *next = length > 0 ? strstr(name, prefix) : NULL;
    out->length = 0;
    if (length > 0 && next == NULL)
        return false;
    for (; next != NULL; next = strstr(name, prefix)) {
        buffer_append(out, name, (size_t)(next - name));
        name = next + length;
    }
    buffer_append(out, name, strlen(name) + 1);
    return true;
}

/* Reports whether a name is the first of an architecture's list. */
static bool is_first(const char *name)
{
    for (const struct diffusion_architecture *const *row = diffusion_architectures; *row != NULL; row++)
        for (const char *const *const *names = (*row)->names; *names != NULL; names++)
            if (strcmp(**names, name) == 0)
                return true;
    return false;
}

/* Reports whether a tensor is named by the prefix and the first name of an architecture's list. */
static bool has_first(const struct tensor_set *set, const char *prefix, struct arena *arena)
{
    for (const struct diffusion_architecture *const *row = diffusion_architectures; *row != NULL; row++)
        for (const char *const *const *names = (*row)->names; *names != NULL; names++)
            if (tensor_set_find_text(set, arena_printf(arena, "%s%s", prefix, **names)) != NULL)
                return true;
    return false;
}

/* Like has_first(), for names with the prefix further on: rare, but the converter removes it there, too. */
static bool has_first_elsewhere(const struct tensor_set *set, const char *prefix)
{
    struct buffer stripped = {0};
    size_t length = strlen(prefix);
    bool found = false;
    for (size_t i = 0; i < set->n_tensors && !found && length > 0; i++) {
        const char *name = set->tensors[i].name;
        bool is_elsewhere = strstr(name + (strncmp(name, prefix, length) == 0 ? length : 0), prefix) != NULL;
        found = is_elsewhere && strip(name, prefix, &stripped) && is_first((const char *)stripped.bytes);
    }
    buffer_free(&stripped);
    return found;
}

/* Orders of tensors. */

static int compare_offsets(const void *context, uint32_t a, uint32_t b)
{
    const struct tensor *x = (const struct tensor *)context + a, *y = (const struct tensor *)context + b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->length > y->length) - (x->length < y->length);
}

static int compare_saved(const void *context, uint32_t a, uint32_t b)
{
    const struct tensor *tensors = context;
    return safetensors_compare(&(struct artifact_tensor){&tensors[a], encoding_of(tensors[a].dtype)},
                               &(struct artifact_tensor){&tensors[b], encoding_of(tensors[b].dtype)});
}

static bool are_stored(const struct tensor_set *set)
{
    for (size_t i = 0; i < set->n_tensors; i++)
        if (set->tensors[i].source == NULL)
            return false;
    return true;
}

static bool is_pickle(const struct checkpoint *checkpoint)
{
    return checkpoint->n_sources == 1 && strcmp(checkpoint->format, "torch") == 0;
}

/* Returns the order of a file with these tensors; NULL: they are in it. */
static sort_compare *order_of(const struct checkpoint *checkpoint, const struct tensor_set *set)
{
    if (checkpoint->n_sources != 1 || !are_stored(set))
        return compare_saved;
    return is_pickle(checkpoint) ? NULL : compare_offsets;
}

/* Adds the tensors whose names have the prefix to `to`, without it. */
static void add_stripped(const struct tensor_set *from, const char *prefix, sort_compare *compare, struct arena *arena,
                         struct tensor_set *to)
{
    struct buffer name = {0};
    uint32_t *order = memory_alloc((from->n_tensors + 1) * sizeof *order);
    for (size_t i = 0; i < from->n_tensors; i++)
        order[i] = (uint32_t)i;
    if (compare != NULL)
        sort_indices(order, from->n_tensors, compare, from->tensors);
    for (size_t i = 0; i < from->n_tensors; i++) {
        struct tensor tensor = from->tensors[order[i]];
        if (!strip(tensor.name, prefix, &name))
            continue;
        tensor.name = arena_strdup(arena, (const char *)name.bytes);
        tensor.name_length = (uint32_t)strlen(tensor.name);
        tensor_set_add(to, &tensor);
    }
    buffer_free(&name);
    free(order);
}

/* Returns why the converter refuses the model; NULL: it does not. */
static const char *refusal_of(const struct checkpoint *checkpoint, const struct diffusion_architecture *architecture,
                              const struct tensor_set *tensors, struct arena *arena)
{
    if (architecture->banned != NULL && tensor_set_find_text(tensors, architecture->banned) != NULL)
        return arena_printf(arena,
                            "tensor '%s' has the name that diffusers gives it, and ComfyUI-GGUF converts %s only under "
                            "its makers' names; mount the makers' file, or the pipeline's directory",
                            architecture->banned, architecture->summary);
    if (is_pickle(checkpoint) && checkpoint->wrapper != NULL && strcmp(checkpoint->wrapper, "state_dict") == 0)
        return "the tensors are in 'state_dict', and ComfyUI-GGUF converts a pickle only with the tensors in 'model', "
               "in 'module' or at its top; mount the model's safetensors file";
    if (is_pickle(checkpoint) && checkpoint->tensors->n_tensors < FEWEST_TENSORS)
        return arena_printf(arena, "%zu tensors, and ComfyUI-GGUF converts pickles with %d or more",
                            checkpoint->tensors->n_tensors, FEWEST_TENSORS);
    for (size_t i = 0; i < checkpoint->tensors->n_tensors; i++)
        if (strlen(checkpoint->tensors->tensors[i].name) != checkpoint->tensors->tensors[i].name_length)
            return arena_printf(arena, "tensor '%.200s': its name contains a NUL byte",
                                checkpoint->tensors->tensors[i].name);
    return NULL;
}

/* Makes the state dict of a component of a pipeline, under its makers' names. */
static bool fill_in_component(struct state_dict *dict, const struct diffusion_naming *naming,
                              const struct tensor_set *all, struct arena *arena, struct error *error)
{
    struct tensor_set *renamed = diffusion_rename(naming, FORWARD, all, arena, error);
    struct tensor_set *tensors = tensor_set_new(arena);
    if (renamed == NULL)
        return false;
    add_stripped(renamed, "", compare_saved, arena, tensors);
    if (!tensor_set_seal(tensors, error))
        return false;
    dict->tensors = tensors;
    return true;
}

static struct state_dict *make_of_component(const struct diffusion_naming *naming, const struct tensor_set *all,
                                            struct arena *arena)
{
    struct state_dict *made = arena_alloc(arena, sizeof *made);
    struct error error;
    made->architecture = diffusion_architecture_named(naming->architecture);
    made->is_component = true;
    if (!fill_in_component(made, naming, all, arena, &error))
        made->refusal = arena_strdup(arena, error.message);
    return made;
}

/* Makes the state dict of a checkpoint under the makers' names, or under others that the converter recognizes. */
static struct state_dict *make_of_names(const struct checkpoint *checkpoint, const struct tensor_set *all,
                                        struct arena *arena)
{
    const char *prefix = prefix_of(all);
    struct error unused;
    if (!has_first(all, prefix, arena) && !has_first_elsewhere(all, prefix))
        return NULL;
    struct tensor_set *tensors = tensor_set_new(arena);
    add_stripped(all, prefix, order_of(checkpoint, all), arena, tensors);
    const struct diffusion_architecture *architecture =
        tensor_set_seal(tensors, &unused) ? diffusion_architecture_of(tensors) : NULL;
    if (architecture == NULL)
        return NULL;
    struct state_dict *made = arena_alloc(arena, sizeof *made);
    *made = (struct state_dict){.architecture = architecture,
                                .refusal = refusal_of(checkpoint, architecture, tensors, arena),
                                .tensors = tensors};
    return made;
}

static struct state_dict *make_of(const struct checkpoint *checkpoint, const struct tensor_set *all,
                                  struct arena *arena)
{
    struct state_dict *made = make_of_names(checkpoint, all, arena);
    if (made != NULL && made->refusal == NULL)
        return made;
    const struct diffusion_naming *naming = diffusion_naming_of(checkpoint);
    return naming != NULL ? make_of_component(naming, all, arena) : made;
}

/* Recognizes a model by its stored tensors, and takes their values from the plain ones. */
static const void *make(const struct checkpoint *checkpoint, struct arena *arena)
{
    struct state_dict *made = make_of(checkpoint, checkpoint->tensors, arena);
    if (made == NULL)
        return NULL;
    const struct plain_tensors *plain = packings_plain(checkpoint);
    if (plain->set != NULL && plain->set != checkpoint->tensors)
        made = make_of(checkpoint, plain->set, arena);
    if (plain->refusal != NULL)
        made->refusal = plain->refusal;
    return made;
}

const struct state_dict *state_dict_of(const struct checkpoint *checkpoint)
{
    return facts_of(checkpoint).has_class_names ? checkpoint_once(checkpoint, make) : NULL;
}
