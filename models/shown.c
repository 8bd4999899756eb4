#include "models/shown.h"

#include "models/canonical.h"
#include "models/from_gguf.h"

#include <string.h>

struct showing {
    const struct checkpoint *checkpoint;
    struct arena *arena;
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

/* Finds the places of weights that are called as a part of them. */
static void find_places(struct showing *showing, const struct unpacked_weights *found)
{
    for (size_t i = 0; i < found->n_weights; i++) {
        const struct unpacked *unpacked = &found->weights[i];
        const struct tensor *stored = tensor_set_find_text(showing->stored, unpacked->name);
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
        if (!found->weights[i].is_twin && tensor_set_find_text(stored, found->weights[i].name) == NULL)
            add_weight(showing, &found->weights[i], NULL);
    return tensor_set_seal(showing->set, &error);
}

struct shown shown_of(const struct checkpoint *checkpoint, struct arena *arena)
{
    struct packing_config config;
    struct error error;
    struct arena *scratch = arena_new();
    if (!packing_config_open(checkpoint, scratch, &config, &error))
        config = (struct packing_config){.method = "", .dtype = &f16_dtype};
    const struct packing_input input = {arena, checkpoint->tensors, config.quantization, config.method, config.dtype};
    struct unpacked_weights found = packings_find(&input);
    struct showing showing = {.checkpoint = checkpoint, .arena = arena, .stored = checkpoint->tensors};
    struct shown shown = {.set = checkpoint->tensors};
    if (found.n_weights > 0) {
        size_t n_tensors = checkpoint->tensors->n_tensors;
        showing.set = tensor_set_new(arena);
        showing.in_place = arena_array(scratch, n_tensors, sizeof *showing.in_place);
        showing.unpacked = arena_array(arena, n_tensors + found.n_weights, sizeof *showing.unpacked);
        find_places(&showing, &found);
        if (add_all(&showing, &found))
            shown = (struct shown){showing.set, showing.unpacked};
    }
    packing_config_close(&config);
    arena_free(scratch);
    return shown;
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
