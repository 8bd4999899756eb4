#include "models/quantize/prune.h"

#include "base/text_index.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DIGITS = 9 }; /* the tool's numbers are ints */

static int compare_layers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

bool layer_list_parse(const char *text, struct arena *arena, struct layer_list *ret_list, struct error *error)
{
    uint32_t *layers = arena_array(arena, strlen(text) + 1, sizeof *layers);
    size_t n_read = 0, n_kept = 0;
    for (const char *at = text;; at++) {
        size_t n_digits = strspn(at, "0123456789");
        if (n_digits == 0 || n_digits > MOST_DIGITS || strchr(",", at[n_digits]) == NULL)
            return error_set(error, "'%s' is not a list of layer numbers separated by commas", text);
        layers[n_read++] = (uint32_t)strtoul(at, NULL, 10);
        at += n_digits;
        if (*at == '\0')
            break;
    }
    qsort(layers, n_read, sizeof *layers, compare_layers);
    for (size_t i = 0; i < n_read; i++)
        if (n_kept == 0 || layers[i] != layers[n_kept - 1])
            layers[n_kept++] = layers[i];
    *ret_list = (struct layer_list){layers, n_kept};
    return true;
}

static bool holds(const struct layer_list *list, uint32_t layer)
{
    return bsearch(&layer, list->layers, list->n_layers, sizeof layer, compare_layers) != NULL;
}

/* Returns the digits of the first "blk.N." anywhere in a name; NULL: there is none. */
static const char *find_number(const char *name, size_t *ret_length)
{
    for (const char *at = name; (at = strstr(at, "blk.")) != NULL;) {
        at += strlen("blk.");
        *ret_length = strspn(at, "0123456789");
        if (*ret_length > 0 && at[*ret_length] == '.')
            return at;
    }
    return NULL;
}

/* The new numbers of the layers met so far. */
struct renumbering {
    const struct layer_list *list;
    struct arena *arena;
    struct text_index numbers; /* by the old number */
    uint32_t next;
};

static const size_t pruned = SIZE_MAX;

static size_t new_number(struct renumbering *renumbering, uint32_t layer)
{
    size_t number;
    if (text_index_find(&renumbering->numbers, (const char *)&layer, sizeof layer, &number))
        return number;
    if (holds(renumbering->list, layer)) {
        number = pruned;
    } else {
        number = layer < renumbering->list->layers[0] ? layer : renumbering->next;
        renumbering->next = (uint32_t)number + 1;
    }
    text_index_add(&renumbering->numbers, arena_copy(renumbering->arena, &layer, sizeof layer), sizeof layer, number);
    return number;
}

/* Returns the tensor under its new name, with the values that the tool finds by that name. */
static const struct tensor *rename_tensor(const struct tensor *tensor, const char *name, const struct tensor_set *set,
                                          struct arena *arena, struct error *error)
{
    const struct tensor *found = tensor_set_find_text(set, name);
    struct tensor *renamed = arena_copy(arena, tensor, sizeof *tensor);
    if (found == NULL) {
        error_set(error, "prune-layers: llama-quantize takes the values of '%s' for '%s', but that tensor is missing",
                  name, tensor->name);
        return NULL;
    }
    bool fits = found->rank == tensor->rank && found->dtype == tensor->dtype &&
                (tensor->rank == 0 || memcmp(found->shape, tensor->shape, tensor->rank * sizeof *tensor->shape) == 0);
    if (!fits) {
        error_set(error,
                  "prune-layers: llama-quantize takes the values of '%s' for '%s', which has another shape or type: "
                  "%" PRIu64 " elements of %s, and %" PRIu64 " of %s",
                  name, tensor->name, tensor_elements(found), found->dtype->name, tensor_elements(tensor),
                  tensor->dtype->name);
        return NULL;
    }
    renamed->name = name;
    renamed->name_length = (uint32_t)strlen(name);
    renamed->view = tensor_view(found, arena);
    return renamed;
}

/* Gives a tensor of a layer its new name; *ret_tensor is NULL if its layer is pruned. */
static bool prune_tensor(struct renumbering *renumbering, const struct tensor_set *set, struct arena *arena,
                         const struct tensor *tensor, const struct tensor **ret_tensor, struct error *error)
{
    size_t length = 0;
    const char *digits = find_number(tensor->name, &length);
    *ret_tensor = tensor;
    if (digits == NULL)
        return true;
    if (length > MOST_DIGITS)
        return error_set(error, "prune-layers: tensor '%s' has a number of more than %d digits", tensor->name,
                         MOST_DIGITS);
    size_t number = new_number(renumbering, (uint32_t)strtoul(digits, NULL, 10));
    if (number == pruned) {
        *ret_tensor = NULL;
        return true;
    }
    const char *name =
        arena_printf(arena, "%.*s%zu%s", (int)(digits - tensor->name), tensor->name, number, digits + length);
    if (strcmp(name, tensor->name) != 0)
        *ret_tensor = rename_tensor(tensor, name, set, arena, error);
    return *ret_tensor != NULL;
}

bool prune_layers(const struct layer_list *list, const struct tensor_set *set, struct arena *arena,
                  struct kept_tensor *tensors, size_t *n_tensors, uint64_t *ret_n_layers, struct error *error)
{
    struct renumbering renumbering = {.list = list, .arena = arena};
    struct text_index names = {0};
    size_t n_kept = 0;
    bool good = true;
    for (size_t i = 0; good && i < *n_tensors; i++) {
        const struct tensor *tensor;
        good = prune_tensor(&renumbering, set, arena, tensors[i].original, &tensor, error);
        if (!good || tensor == NULL)
            continue;
        good = text_index_add(&names, tensor->name, tensor->name_length, i) ||
               error_set(error, "prune-layers: two tensors become '%s'", tensor->name);
        tensors[n_kept++] = (struct kept_tensor){tensor, tensors[i].original};
    }
    text_index_free(&renumbering.numbers);
    text_index_free(&names);
    *n_tensors = n_kept;
    *ret_n_layers = renumbering.next;
    return good;
}
