#include "models/shown_tensors.h"

#include "models/convert/model.h"
#include "models/facts.h"
#include "models/huggingface/hf_model.h"
#include "models/packings/packings.h"

#include <string.h>

struct showing {
    const struct checkpoint *checkpoint;
    const struct tensor_set *stored;
    const struct unpacked **unpacked; /* by tensor of the result */
    struct tensor_set *added;
};

static bool is_part(const struct unpacked *unpacked, const struct tensor *tensor)
{
    for (unsigned i = 0; i < unpacked->n_parts; i++)
        if (unpacked->parts[i] == tensor)
            return true;
    return false;
}

static struct tensor tensor_of(const struct unpacked *unpacked)
{
    static const uint64_t nothing[1] = {0};
    struct tensor tensor = {
        .name = unpacked->name,
        .name_length = (uint32_t)strlen(unpacked->name),
        .dtype = &f32_dtype,
        .rank = 1,
        .shape = nothing,
        .view = unpacked->view,
        .refusal = unpacked->refusal,
    };
    if (unpacked->view != NULL) {
        tensor.dtype = unpacked->view->dtype;
        tensor.rank = (uint8_t)unpacked->view->rank;
        tensor.shape = unpacked->view->shape;
    }
    return tensor;
}

/* Puts a weight into the place of the part whose name it has; one with a new name comes after all stored tensors. */
static void place_weight(struct showing *showing, const struct unpacked *unpacked)
{
    const struct tensor_set *stored = showing->stored;
    const struct tensor *named =
        tensor_set_find_near(stored, unpacked->parts[0], unpacked->name, strlen(unpacked->name));
    if (named != NULL && is_part(unpacked, named)) {
        showing->unpacked[named - stored->tensors] = unpacked;
    } else if (named != NULL) {
        checkpoint_note(showing->checkpoint, SUBJECT_SOURCE,
                        "tensor '%.200s' (%s) unpacks to '%.200s', which also exists: tensors/ shows the existing one",
                        unpacked->parts[0]->name, unpacked->packing->name, unpacked->name);
    } else if (!unpacked->is_twin) {
        struct tensor tensor = tensor_of(unpacked);
        showing->unpacked[stored->n_tensors + showing->added->n_tensors] = unpacked;
        tensor_set_add(showing->added, &tensor);
    }
}

uint64_t shown_tensors_parameters(const struct checkpoint *checkpoint)
{
    const struct unpacked_weights *found = &packings_of(checkpoint)->found;
    uint64_t n_parameters = 0;
    for (size_t i = 0; i < checkpoint->tensors->n_tensors; i++)
        n_parameters += tensor_elements(&checkpoint->tensors->tensors[i]);
    for (size_t i = 0; i < found->n_weights; i++) {
        const struct unpacked *weight = &found->weights[i];
        n_parameters += weight->view != NULL ? weight->view->n_elements : 0;
        for (unsigned j = 0; j < weight->n_parts; j++)
            n_parameters -= tensor_elements(weight->parts[j]);
    }
    return n_parameters;
}

static struct shown_tensors show(const struct checkpoint *checkpoint, struct arena *arena)
{
    const struct unpacked_weights *found = &packings_of(checkpoint)->found;
    struct error error;
    if (found->n_weights == 0)
        return (struct shown_tensors){.set = checkpoint->tensors};
    struct showing showing = {
        .checkpoint = checkpoint,
        .stored = checkpoint->tensors,
        .unpacked = arena_array(arena, checkpoint->tensors->n_tensors + found->n_weights, sizeof *showing.unpacked),
        .added = tensor_set_new(arena),
    };
    for (size_t i = 0; i < found->n_weights; i++)
        place_weight(&showing, &found->weights[i]);
    if (!tensor_set_seal(showing.added, &error))
        return (struct shown_tensors){.set = checkpoint->tensors};
    return (struct shown_tensors){.set = checkpoint->tensors, .added = showing.added, .unpacked = showing.unpacked};
}

static const void *make_shown(const struct checkpoint *checkpoint, struct arena *arena)
{
    const struct shown_tensors shown = show(checkpoint, arena);
    return arena_copy(arena, &shown, sizeof shown);
}

const struct shown_tensors *shown_tensors_of(const struct checkpoint *checkpoint)
{
    return checkpoint_once(checkpoint, make_shown);
}

size_t shown_tensors_count(const struct shown_tensors *shown)
{
    return shown->set->n_tensors + (shown->added != NULL ? shown->added->n_tensors : 0);
}

const struct tensor *shown_tensors_at(const struct shown_tensors *shown, size_t index, struct tensor *room)
{
    size_t n_stored = shown->set->n_tensors;
    if (index >= n_stored)
        return &shown->added->tensors[index - n_stored];
    if (shown_tensors_unpacked(shown, index) == NULL)
        return &shown->set->tensors[index];
    *room = tensor_of(shown_tensors_unpacked(shown, index));
    return room;
}

const struct tensor *shown_tensors_stored(const struct shown_tensors *shown, size_t index)
{
    return index < shown->set->n_tensors ? &shown->set->tensors[index] : NULL;
}

const struct unpacked *shown_tensors_unpacked(const struct shown_tensors *shown, size_t index)
{
    return shown->unpacked != NULL ? shown->unpacked[index] : NULL;
}

bool shown_tensors_find(const struct shown_tensors *shown, const char *name, size_t name_length, size_t *ret_index)
{
    size_t before = 0;
    const struct tensor_set *set = shown->set;
    const struct tensor *found = tensor_set_find(set, name, name_length);
    if (found == NULL && shown->added != NULL) {
        before = set->n_tensors;
        set = shown->added;
        found = tensor_set_find(set, name, name_length);
    }
    if (found != NULL)
        *ret_index = before + (size_t)(found - set->tensors);
    return found != NULL;
}

/* Returns the tensors of a model; one whose bytes lie in a source in one piece has its place instead of a view. */
static const struct tensor_set *placed(const struct tensor_set *set, struct arena *arena)
{
    struct error unused;
    struct tensor_set *result = tensor_set_new(arena);
    for (size_t i = 0; i < set->n_tensors; i++) {
        struct tensor tensor = set->tensors[i];
        struct extent extent;
        uint64_t n_units = tensor.view != NULL ? view_units(tensor.view) : 0;
        if (n_units > 0 && view_stored(tensor.view, 0, &extent) == n_units) {
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

bool shown_tensors_renamed(const struct checkpoint *checkpoint, enum shown_names names,
                           const struct references *references, struct arena *arena, struct shown_tensors *ret_shown,
                           struct error *error)
{
    struct shown_tensors shown = {0};
    if (names == NAMES_OF_SOURCE || (names == NAMES_GGUF && facts_of(checkpoint).keys != NULL)) {
        *ret_shown = *shown_tensors_of(checkpoint);
        return true;
    }
    const struct hf_model *canonical = names == NAMES_HF ? hf_model_of(checkpoint, error) : NULL;
    if (names == NAMES_GGUF)
        shown.gguf = gguf_model_new(checkpoint, references, error);
    if (canonical == NULL && shown.gguf == NULL)
        return error_prefix(error, "tensors/ cannot use the names of %s",
                            names == NAMES_HF ? "model.safetensors" : "model.gguf");
    shown.set = placed(canonical != NULL ? canonical->tensors : shown.gguf->tensors, arena);
    *ret_shown = shown;
    return true;
}

void shown_tensors_close(struct shown_tensors *shown)
{
    gguf_model_free(shown->gguf);
}
