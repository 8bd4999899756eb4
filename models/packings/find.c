/* The packed weights of a checkpoint. */
#include "base/sort.h"
#include "base/text.h"
#include "models/packings/packed.h"
#include "models/packings/packings.h"
#include "models/packings/refusals.h"
#include "sources/source.h"

#include <stdlib.h>
#include <string.h>

static bool is_of(const struct tensor *tensor, const char *dtype)
{
    return dtype == NULL || strcmp(tensor->dtype->name, dtype) == 0;
}

/* The ends of a checkpoint's names, from the last dot on, each as the first tensor that has it: few, as layers are
 * alike.
 */
enum { MOST_ENDINGS = 64 };
struct endings {
    const struct tensor *of[MOST_ENDINGS];
    size_t count;
    bool has_more; /* than are listed */
};

static const char *ending_of(const struct tensor *tensor, size_t *ret_length)
{
    const char *dot = text_last(tensor->name, tensor->name_length, '.');
    const char *ending = dot != NULL ? dot : tensor->name;
    *ret_length = (size_t)(tensor->name + tensor->name_length - ending);
    return ending;
}

static bool have_same_ending(const struct tensor *tensor, const struct tensor *other)
{
    size_t length, other_length;
    const char *ending = ending_of(tensor, &length), *other_ending = ending_of(other, &other_length);
    return length == other_length && memcmp(ending, other_ending, length) == 0;
}

static struct endings find_endings(const struct tensor_set *set)
{
    struct endings endings = {.count = 0};
    for (size_t i = 0; i < set->n_tensors && !endings.has_more; i++) {
        size_t known = 0;
        while (known < endings.count && !have_same_ending(endings.of[known], &set->tensors[i]))
            known++;
        endings.has_more = known == MOST_ENDINGS;
        if (known == endings.count && !endings.has_more)
            endings.of[endings.count++] = &set->tensors[i];
    }
    return endings;
}

static bool may_have_suffix(const struct endings *endings, const char *suffix)
{
    bool may = endings->has_more;
    const char *dot = strrchr(suffix, '.');
    for (size_t i = 0; !may && i < endings->count; i++)
        may = packing_has_suffix(endings->of[i], dot != NULL ? dot : suffix);
    return may;
}

/* Lists the packings whose keys and partners may be there, in their order, up to a NULL. */
static const struct packing **find_candidates(const struct packing_input *input, const struct endings *endings)
{
    size_t count = 0, n_packings = 0;
    while (packings[n_packings] != NULL)
        n_packings++;
    const struct packing **candidates = arena_array(input->arena, n_packings + 1, sizeof *candidates);
    for (const struct packing *const *packing = packings; *packing != NULL; packing++) {
        const struct packing_key *key = (*packing)->keys;
        while (key->suffix != NULL && !(may_have_suffix(endings, key->suffix) &&
                                        (key->partner == NULL || may_have_suffix(endings, key->partner))))
            key++;
        if (key->suffix != NULL)
            candidates[count++] = *packing;
    }
    candidates[count] = NULL;
    return candidates;
}

/* Returns the spelling whose key the tensor is; NULL if it is no key of the packing. */
static const struct packing_key *find_spelling(const struct packing *packing, const struct packing_input *input,
                                               const struct tensor *tensor)
{
    for (const struct packing_key *key = packing->keys; key->suffix != NULL; key++) {
        if (!is_of(tensor, key->dtype) || !packing_has_suffix(tensor, key->suffix) ||
            (packing->is_key != NULL && !packing->is_key(input, tensor)))
            continue;
        const struct tensor *partner =
            key->partner != NULL ? packing_partner(input->set, tensor, key->suffix, key->partner) : NULL;
        if (key->partner == NULL || (partner != NULL && is_of(partner, key->partner_dtype)))
            return key;
    }
    return NULL;
}

static const struct packing *packing_of_key(const struct packing *const *candidates, const struct packing_input *input,
                                            const struct tensor *tensor)
{
    if (tensor->refusal != NULL || memchr(tensor->name, '\0', tensor->name_length) != NULL)
        return NULL;
    for (const struct packing *const *packing = candidates; *packing != NULL; packing++)
        if (find_spelling(*packing, input, tensor) != NULL)
            return *packing;
    return NULL;
}

static struct unpacked_forms no_forms; /* stays empty */

static bool has_any(const struct unpacked_forms *forms)
{
    return forms->blocks != NULL || forms->repacked != NULL || forms->groups != NULL || forms->factors[0] != NULL ||
           forms->factors[1] != NULL || forms->converted != NULL || forms->mended != CHANGE_NONE ||
           forms->dtype != NULL;
}

/* Unpacks a weight. `declared` is the reason why no weight of the checkpoint has values; NULL: none. */
static void unpack(const struct packing_input *input, const struct tensor *key, const char *declared,
                   struct unpacked *unpacked)
{
    const struct tensor *parts[PACKING_MAX_PARTS] = {key};
    struct unpacked_forms forms = {0};
    struct error error;
    unpacked->forms = &forms;
    unpacked->parts = parts;
    unpacked->n_parts = 1;
    struct packed packed = packed_begin(input, key, find_spelling(unpacked->packing, input, key), unpacked, &error);
    bool is_good = unpacked->packing->unpack(&packed) && rotation_undo(&packed);
    if (declared == NULL && is_good)
        declared = declared_layer_refusal(input, unpacked->name);
    if (declared != NULL)
        is_good = error_set(&error, "%s", declared);
    if (!is_good) {
        unpacked->refusal = arena_strdup(input->arena, error.message);
        unpacked->view = NULL;
        forms = no_forms;
    }
    unpacked->forms = has_any(&forms) ? arena_copy(input->arena, &forms, sizeof forms) : &no_forms;
    unpacked->parts = arena_copy(input->arena, parts, unpacked->n_parts * sizeof(struct tensor *));
}

static const char *name_of(const void *context, uint32_t index, size_t *ret_length)
{
    const struct unpacked *weights = context;
    *ret_length = strlen(weights[index].name);
    return weights[index].name;
}

/* Refuses the second of two weights with one name: either may be the right one. */
static void refuse_twins(const struct packing_input *input, struct unpacked_weights *found)
{
    uint32_t *sorted = memory_alloc(found->n_weights * sizeof *sorted);
    for (size_t i = 0; i < found->n_weights; i++)
        sorted[i] = (uint32_t)i;
    sort_texts(sorted, found->n_weights, name_of, found->weights);
    for (size_t i = 1; i < found->n_weights; i++) {
        struct unpacked *first = &found->weights[sorted[i - 1]], *second = &found->weights[sorted[i]];
        if (strcmp(first->name, second->name) != 0)
            continue;
        second->is_twin = true;
        second->refusal = arena_printf(input->arena, "the weight is packed twice: as %s and as %s",
                                       first->packing->name, second->packing->name);
        second->view = NULL;
        second->forms = &no_forms;
    }
    free(sorted);
}

/* Reports whether the name of some tensor ends with a suffix. The suffix begins with its only dot. */
static bool is_any(const struct tensor_set *set, const struct endings *endings, const char *suffix)
{
    bool is = false;
    for (size_t i = 0; !is && i < endings->count; i++)
        is = packing_has_suffix(endings->of[i], suffix);
    for (size_t i = 0; !is && endings->has_more && i < set->n_tensors; i++)
        is = packing_has_suffix(&set->tensors[i], suffix);
    return is;
}

struct unpacked_weights packings_find(const struct packing_input *input)
{
    const struct tensor_set *set = input->set;
    struct packing_input own = *input;
    own.is_known = packing_is_known(input->method);
    const struct endings endings = find_endings(set);
    own.has_comfy_marks = input->comfy_layers != NULL || is_any(set, &endings, ".comfy_quant");
    own.has_old_comfy_marks = is_any(set, &endings, ".scale_weight");
    struct unpacked_weights found = {0};
    const struct packing *const *candidates = find_candidates(&own, &endings);
    const struct packing **packing_of = memory_alloc((set->n_tensors + 1) * sizeof *packing_of);
    for (size_t i = 0; i < set->n_tensors; i++) {
        packing_of[i] = packing_of_key(candidates, &own, &set->tensors[i]);
        found.n_weights += packing_of[i] != NULL;
    }
    found.weights = arena_array(input->arena, found.n_weights, sizeof *found.weights);
    struct unpacked *weight = found.weights;
    const char *declared = input->unread != NULL ? input->unread : declared_refusal(input);
    own.scratch = arena_new();
    for (size_t i = 0; i < set->n_tensors; i++)
        if (packing_of[i] != NULL) {
            weight->packing = packing_of[i];
            unpack(&own, &set->tensors[i], declared, weight++);
        }
    arena_free(own.scratch);
    free(packing_of);
    if (found.n_weights > 0)
        left_over_refuse(input, &found);
    if (found.n_weights > 1)
        refuse_twins(input, &found);
    return found;
}

static const void *find_packed(const struct checkpoint *checkpoint, struct arena *arena)
{
    struct packed_weights *packed = arena_alloc(arena, sizeof *packed);
    struct packing_config config;
    struct error error;
    uint64_t n_unreached = source_unreached();
    if (!packing_config_open(checkpoint, arena, &config, &error)) {
        config = (struct packing_config){.method = "", .dtype = &f16_dtype};
        packed->unread = arena_strdup(arena, error.message);
    }
    const struct packing_input input = {
        .arena = arena,
        .set = checkpoint->tensors,
        .config = config.quantization,
        .method = config.method,
        .dtype = config.dtype,
        .model = config.model,
        .metadata = &checkpoint->metadata,
        .differing = &checkpoint->differing,
        .comfy_layers = config.comfy_layers,
        .unread = packed->unread,
    };
    packed->checkpoint = checkpoint;
    packed->is_unreached = packed->unread != NULL && source_unreached() != n_unreached;
    packed->method = config.method;
    packed->dtype = config.dtype;
    packed->is_nvfp4 = config.is_nvfp4;
    packed->found = packings_find(&input);
    packing_config_close(&config);
    return packed;
}

const struct packed_weights *packings_of(const struct checkpoint *checkpoint)
{
    return checkpoint_once(checkpoint, find_packed);
}
