#include "models/family/model_builder.h"

#include "models/relation/pattern.h"

#include <stdlib.h>
#include <string.h>

bool builder_adjust(struct model_builder *builder, struct error *error)
{
    const struct family *family = builder->family;
    if (family->note != NULL)
        checkpoint_note(builder->model->checkpoint, family->tower != NULL ? SUBJECT_PROJECTOR : SUBJECT_GGUF, "%s",
                        family->note);
    return (family->defaults == NULL || hparams_default(builder->model->hparams, family->defaults, error)) &&
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
