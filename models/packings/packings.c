#include "models/packings/packing.h"

#include <stdlib.h>
#include <string.h>

extern const struct packing mxfp4_packing;

/* clang-format off: one row a line */
const struct packing *const packings[] = {
    &mxfp4_packing,
    NULL,
};
/* clang-format on */

const struct packing *packing_of_method(const char *method)
{
    for (const struct packing *const *packing = packings; *packing != NULL; packing++)
        for (const char *const *name = (*packing)->methods; *name != NULL; name++)
            if (strcmp(*name, method) == 0)
                return *packing;
    return NULL;
}

bool packing_has_suffix(const struct tensor *tensor, const char *suffix)
{
    size_t length = strlen(suffix);
    return tensor->name_length >= length && memcmp(tensor->name + tensor->name_length - length, suffix, length) == 0;
}

const struct tensor *packing_partner(const struct packing_input *input, const struct tensor *tensor, const char *own,
                                     const char *suffix)
{
    size_t kept = tensor->name_length - strlen(own), length = strlen(suffix);
    char *name = memory_alloc(kept + length + 1);
    memcpy(name, tensor->name, kept);
    memcpy(name + kept, suffix, length + 1);
    const struct tensor *found = tensor_set_find(input->set, name, kept + length);
    free(name);
    return found;
}

/* What becomes of each stored tensor. */
struct fate {
    const struct unpacked *unpacked; /* that it is the key of; NULL: none */
    bool is_part;
};

static const struct packing *packing_of_key(const struct packing_input *input, const struct tensor *tensor)
{
    for (const struct packing *const *packing = packings; *packing != NULL; packing++)
        if ((*packing)->is_key(input, tensor))
            return *packing;
    return NULL;
}

static bool find_fates(const struct packing_input *input, struct fate *fates, size_t *ret_count, struct error *error)
{
    const struct tensor_set *set = input->set;
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct packing *packing = packing_of_key(input, &set->tensors[i]);
        if (packing == NULL)
            continue;
        struct unpacked *unpacked = arena_alloc(input->arena, sizeof *unpacked);
        unpacked->packing = packing;
        if (!packing->unpack(input, &set->tensors[i], unpacked, error))
            return error_prefix(error, "tensor '%.200s'", set->tensors[i].name);
        fates[i].unpacked = unpacked;
        for (unsigned part = 0; part < unpacked->n_parts; part++)
            fates[unpacked->parts[part] - set->tensors].is_part = true;
        ++*ret_count;
    }
    return true;
}

/* Adds the tensors of one place. */
static void add_place(const struct packing_input *input, const struct fate *fates, enum packing_place place,
                      const struct unpacked **ret_unpacked, struct tensor_set *set)
{
    for (size_t i = 0; i < input->set->n_tensors; i++) {
        const struct unpacked *unpacked = fates[i].unpacked;
        if (unpacked != NULL && unpacked->packing->place == place) {
            ret_unpacked[set->n_tensors] = unpacked;
            tensor_set_add_view(set, unpacked->name, unpacked->view);
        } else if (!fates[i].is_part && place == IN_PLACE) {
            tensor_set_add(set, &input->set->tensors[i]);
        }
    }
}

bool packings_unpack(struct packing_input *input, struct plain_set *ret_plain, struct error *error)
{
    size_t n_tensors = input->set->n_tensors, n_unpacked = 0;
    const char *method = json_string(json_get(input->config, "quant_method"), NULL);
    input->declared = method != NULL ? packing_of_method(method) : NULL;
    struct fate *fates = memory_alloc(n_tensors * sizeof *fates + 1);
    memset(fates, 0, n_tensors * sizeof *fates);
    bool good = find_fates(input, fates, &n_unpacked, error);
    struct plain_set plain = {input->set, arena_array(input->arena, n_tensors + 1, sizeof *plain.unpacked)};
    if (good && n_unpacked > 0) {
        struct tensor_set *set = tensor_set_new(input->arena);
        plain.set = set;
        for (enum packing_place place = BEFORE_ALL; place <= AFTER_ALL; place++)
            add_place(input, fates, place, plain.unpacked, set);
        good = tensor_set_seal(set, error);
    }
    free(fates);
    if (good)
        *ret_plain = plain;
    return good;
}
