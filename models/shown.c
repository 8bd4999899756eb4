#include "models/shown.h"

#include "models/canonical.h"
#include "models/from_gguf.h"

#include <stdlib.h>
#include <string.h>

struct showing {
    const struct checkpoint *checkpoint;
    const struct tensor_set *stored;
    const struct unpacked **in_place; /* of each stored tensor */
    const struct unpacked **unpacked; /* of the result */
    struct tensor_set *set;
};

static bool is_part(const struct unpacked *unpacked, const struct tensor *tensor)
{
    for (unsigned i = 0; i < unpacked->n_parts; i++)
        if (unpacked->parts[i] == tensor)
            return true;
    return false;
}

/* Adds a weight; `part` is the stored tensor of its name. */
static void add_weight(struct showing *showing, const struct unpacked *unpacked, const struct tensor *part)
{
    static const uint64_t nothing[1] = {0};
    struct tensor tensor = {
        .name = unpacked->name,
        .name_length = (uint32_t)strlen(unpacked->name),
        .is_unpacked = true,
        .dtype = &f32_dtype,
        .rank = 1,
        .shape = nothing,
        .view = unpacked->view,
        .refusal = unpacked->refusal,
        .part = part,
    };
    if (unpacked->view != NULL) {
        tensor.dtype = unpacked->view->dtype;
        tensor.rank = (uint8_t)unpacked->view->rank;
        tensor.shape = unpacked->view->shape;
    }
    showing->unpacked[showing->set->n_tensors] = unpacked;
    tensor_set_add(showing->set, &tensor);
}

/* The stored tensor that is called as the weight; NULL: none. */
static const struct tensor *find_stored(const struct tensor_set *stored, const struct unpacked *unpacked)
{
    return tensor_set_find_near(stored, unpacked->parts[0], unpacked->name, strlen(unpacked->name));
}

/* Finds the places of weights that are called as a part of them. */
static void find_places(struct showing *showing, const struct unpacked_weights *found)
{
    for (size_t i = 0; i < found->n_weights; i++) {
        const struct unpacked *unpacked = &found->weights[i];
        const struct tensor *stored = find_stored(showing->stored, unpacked);
        if (stored == NULL)
            continue;
        if (is_part(unpacked, stored))
            showing->in_place[stored - showing->stored->tensors] = unpacked;
        else
            checkpoint_note(showing->checkpoint,
                            "tensor '%.200s' is there both plain and packed (%s): tensors/ has the plain one",
                            unpacked->name, unpacked->packing->name);
    }
}

static bool add_all(struct showing *showing, const struct unpacked_weights *found)
{
    struct error error;
    const struct tensor_set *stored = showing->stored;
    for (size_t i = 0; i < stored->n_tensors; i++)
        if (showing->in_place[i] != NULL)
            add_weight(showing, showing->in_place[i], &stored->tensors[i]);
        else
            tensor_set_add(showing->set, &stored->tensors[i]);
    for (size_t i = 0; i < found->n_weights; i++)
        if (!found->weights[i].is_twin && find_stored(stored, &found->weights[i]) == NULL)
            add_weight(showing, &found->weights[i], NULL);
    return tensor_set_seal(showing->set, &error);
}

struct shown shown_of(const struct checkpoint *checkpoint, struct arena *arena)
{
    const struct unpacked_weights *found = &packings_of(checkpoint)->found;
    size_t n_tensors = checkpoint->tensors->n_tensors;
    if (found->n_weights == 0)
        return (struct shown){.set = checkpoint->tensors};
    struct showing showing = {
        .checkpoint = checkpoint,
        .stored = checkpoint->tensors,
        .in_place = memory_alloc(n_tensors * sizeof *showing.in_place),
        .unpacked = arena_array(arena, n_tensors + found->n_weights, sizeof *showing.unpacked),
        .set = tensor_set_new(arena),
    };
    memset(showing.in_place, 0, n_tensors * sizeof *showing.in_place);
    find_places(&showing, found);
    bool is_all = add_all(&showing, found);
    free(showing.in_place);
    return is_all ? (struct shown){showing.set, showing.unpacked} : (struct shown){.set = checkpoint->tensors};
}

/* The tensors of a model, those that lie in the source as they are told by their place. */
static const struct tensor_set *placed(const struct tensor_set *set, struct arena *arena)
{
    struct error unused;
    struct tensor_set *result = tensor_set_new(arena);
    for (size_t i = 0; i < set->n_tensors; i++) {
        struct tensor tensor = set->tensors[i];
        struct extent extent;
        if (tensor.view != NULL && tensor.view->n_units > 0 &&
            view_stored(tensor.view, 0, &extent) == tensor.view->n_units) {
            tensor.source = extent.source;
            tensor.offset = extent.offset;
            tensor.length = view_bytes(tensor.view);
            tensor.strides = NULL;
            tensor.view = NULL;
        }
        tensor_set_add(result, &tensor);
    }
    tensor_set_seal(result, &unused);
    return result;
}

bool shown_renamed(const struct checkpoint *checkpoint, enum shown_names names, struct arena *arena,
                   struct shown *ret_shown, struct error *error)
{
    struct shown shown = {0};
    if (names == NAMES_OF_SOURCE || (names == NAMES_GGUF && gguf_is_source(checkpoint))) {
        *ret_shown = shown_of(checkpoint, arena);
        return true;
    }
    if (names == NAMES_HF)
        shown.canonical = canonical_model_new(checkpoint, NULL, error);
    else
        shown.gguf = gguf_model_new(checkpoint, error);
    if (shown.canonical == NULL && shown.gguf == NULL)
        return error_prefix(error, "tensors/ cannot have the names of %s",
                            names == NAMES_HF ? "model.safetensors" : "model.gguf");
    shown.set = placed(shown.canonical != NULL ? shown.canonical->tensors : shown.gguf->tensors, arena);
    *ret_shown = shown;
    return true;
}

void shown_close(struct shown *shown)
{
    canonical_model_free(shown->canonical);
    gguf_model_free(shown->gguf);
}
