#include "models/family/gguf_model.h"

#include "models/config/constants.h"
#include "models/config/hparams.h"
#include "models/family/model_builder.h"
#include "models/relation/pattern.h"

#include <stdlib.h>
#include <string.h>

enum { GGML_MAX_NAME = 64, GGML_MAX_DIMS = 4 };

struct gguf_model *gguf_model_empty(const struct checkpoint *checkpoint, const struct references *references)
{
    struct gguf_model *model = memory_alloc(sizeof *model);
    struct arena *arena = arena_new();
    *model = (struct gguf_model){
        .arena = arena,
        .checkpoint = checkpoint,
        .references = references != NULL ? *references : (struct references){0},
        .tensors = tensor_set_new(arena),
        .auto_type = &f16_dtype,
    };
    return model;
}

void gguf_model_free(struct gguf_model *model)
{
    if (model == NULL)
        return;
    hparams_free(model->hparams);
    gguf_kvs_free(&model->kvs);
    arena_free(model->arena);
    free(model);
}

static void free_model(void *model)
{
    gguf_model_free(model);
}

const struct gguf_edition *gguf_edition_new(struct arena *arena, struct gguf_model *model,
                                            const struct gguf_edits *edits, const struct quantize_outline *outline)
{
    if (model == NULL)
        return NULL;
    struct gguf_edition *edition = arena_alloc(arena, sizeof *edition);
    *edition = (struct gguf_edition){model, edits, outline};
    arena_on_free(arena, free_model, model);
    return edition;
}

const char *gguf_tensor_refusal(const char *name, size_t name_length, const struct view *view)
{
    if (name_length >= GGML_MAX_NAME)
        return "its name is longer than ggml's limit of 63 bytes";
    if (memchr(name, '\0', name_length) != NULL)
        return "its name contains a NUL byte";
    if (view->rank > GGML_MAX_DIMS)
        return "it has more than ggml's limit of 4 dimensions";
    uint64_t n_elements = 1;
    for (unsigned i = view->rank; i-- > 0; n_elements *= view->shape[i])
        if (view->shape[i] > INT64_MAX || (view->n_elements > 0 && INT64_MAX / view->shape[i] <= n_elements))
            return "it has more elements than ggml supports";
    return NULL;
}

/* Adds what transformers 5 leaves out of a text model's config.json. */
static bool add_constants(struct model_builder *builder, struct error *error)
{
    const char *added;
    if (!hparams_add_constants(builder->model->hparams, &added, error))
        return false;
    if (added != NULL)
        checkpoint_note(builder->model->checkpoint, SUBJECT_GGUF,
                        "config.json of transformers 5 lacks what its class always computes with, so the converter "
                        "does not write it: wfs reads it with %s",
                        added);
    return true;
}

bool builder_adjust(struct model_builder *builder, struct error *error)
{
    const struct family *family = builder->family;
    if (family->note != NULL)
        checkpoint_note(builder->model->checkpoint, family->tower != NULL ? SUBJECT_PROJECTOR : SUBJECT_GGUF, "%s",
                        family->note);
    return (family->tower != NULL || add_constants(builder, error)) &&
           (family->defaults == NULL || hparams_default(builder->model->hparams, family->defaults, error)) &&
           (family->adjust == NULL || family->adjust(builder, error));
}

void builder_insert_tensor(struct model_builder *builder, size_t place, const char *name, const struct view *view)
{
    struct tensor_set *set = builder->model->tensors;
    tensor_set_add_view(set, name, view);
    size_t last = set->n_tensors - 1;
    struct tensor *tensors = tensor_set_edit(set), added = tensors[last];
    memmove(&tensors[place + 1], &tensors[place], (last - place) * sizeof added);
    tensors[place] = added;
}

/* A tensor's place among those with the names: by its layer, and by the number of its name. */
struct place {
    uint64_t layer;
    size_t which, at;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->layer != y->layer)
        return x->layer < y->layer ? -1 : 1;
    return (x->which > y->which) - (x->which < y->which);
}

static size_t find_places(const struct tensor_set *set, const char *const *names, struct place *places)
{
    size_t n_places = 0;
    for (size_t i = 0; i < set->n_tensors; i++)
        for (size_t which = 0; names[which] != NULL; which++) {
            uint64_t numbers[PATTERN_NUMBERS];
            const struct tensor *tensor = &set->tensors[i];
            if (!pattern_match(names[which], tensor->name, tensor->name_length, numbers))
                continue;
            places[n_places++] = (struct place){numbers[0], which, i};
            break;
        }
    return n_places;
}

void builder_put_first(struct model_builder *builder, const char *const *names)
{
    struct tensor_set *set = builder->model->tensors;
    size_t n = set->n_tensors, n_done;
    struct tensor *tensors = memory_alloc((n + 1) * sizeof *tensors);
    struct place *places = memory_alloc((n + 1) * sizeof *places);
    bool *is_placed = memory_alloc(n + 1);
    memset(is_placed, 0, n + 1);
    size_t n_places = find_places(set, names, places);
    qsort(places, n_places, sizeof *places, compare_places);
    for (n_done = 0; n_done < n_places; n_done++) {
        tensors[n_done] = set->tensors[places[n_done].at];
        is_placed[places[n_done].at] = true;
    }
    for (size_t i = 0; i < n; i++)
        if (!is_placed[i])
            tensors[n_done++] = set->tensors[i];
    memcpy(tensor_set_edit(set), tensors, n * sizeof *tensors);
    free(tensors);
    free(places);
    free(is_placed);
}

void builder_put_last(struct model_builder *builder, const char *name)
{
    struct tensor *tensors = tensor_set_edit(builder->model->tensors);
    size_t n = builder->model->tensors->n_tensors, at = 0;
    while (at < n && strcmp(tensors[at].name, name) != 0)
        at++;
    if (at == n)
        return;
    struct tensor tensor = tensors[at];
    memmove(&tensors[at], &tensors[at + 1], (n - at - 1) * sizeof tensor);
    tensors[n - 1] = tensor;
}
