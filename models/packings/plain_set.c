/* A set with plain tensors in place of packed ones. */
#include "models/packings/packed.h"
#include "models/packings/packings.h"
#include "models/packings/refusals.h"
#include "quant/views/convert.h"

#include <stdlib.h>
#include <string.h>

/* Methods that the converter dequantizes, as far as it knows them. */
static const char *const converted_methods[] = {"fp8", "gptq", "compressed-tensors", "modelopt", "bitnet", "mxfp4"};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The replacement of a stored tensor. */
struct fate {
    const struct unpacked *unpacked; /* replaces it; NULL: none */
    bool is_left_out;
};

struct unpacking {
    const struct packed_weights *packed;
    const struct plain_wish *wish;
    const struct tensor_set *stored;
    struct arena *arena;
    struct fate *fates; /* by stored tensor */
    bool is_foreign;    /* the converter does not know the method */
    struct plain_set plain;
};

/* DeepSeek V4's converter, which keeps MXFP4, knows weights by their types, also where no method is declared. */
static bool is_converted(const char *method, const struct plain_wish *wish)
{
    if (wish->keeps_mxfp4 && *method == '\0')
        return true;
    for (size_t i = 0; i < COUNT(converted_methods); i++)
        if (strcmp(converted_methods[i], method) == 0)
            return true;
    return false;
}

static void leave_out_parts(struct unpacking *unpacking, const struct unpacked *unpacked)
{
    const struct tensor_set *stored = unpacking->stored;
    const struct tensor *key = unpacked->parts[0], *beside;
    for (unsigned i = 0; i < unpacked->n_parts; i++)
        unpacking->fates[unpacked->parts[i] - stored->tensors].is_left_out = true;
    for (const char *const *suffix = unpacked->packing->beside; suffix != NULL && *suffix != NULL; suffix++)
        if ((beside = packing_partner(stored, key, key->name + unpacked->stem, *suffix)) != NULL)
            unpacking->fates[beside - stored->tensors].is_left_out = true;
}

/* Reports whether the weight has blocks for the converter to copy. */
static bool has_blocks(const struct unpacking *unpacking, const struct unpacked *unpacked)
{
    return unpacked->forms->blocks != NULL && (!unpacked->is_of_some || unpacking->wish->keeps_mxfp4);
}

/* Gives the packed weight the place of a plain tensor with its name, else of its key. */
static void place_weight(struct unpacking *unpacking, const struct unpacked *unpacked)
{
    const struct tensor_set *stored = unpacking->stored;
    const struct tensor *key = unpacked->parts[0],
                        *at = tensor_set_find_near(stored, key, unpacked->name, strlen(unpacked->name));
    leave_out_parts(unpacking, unpacked);
    if (at == NULL)
        at = key;
    unpacking->fates[at - stored->tensors] = (struct fate){unpacked, true};
    bool is_taken = unpacked->is_of_some && has_blocks(unpacking, unpacked);
    if (unpacking->plain.beyond == NULL && !is_taken)
        unpacking->plain.beyond = unpacked->beyond;
}

static void leave_out_harmless(struct unpacking *unpacking)
{
    const struct tensor_set *stored = unpacking->stored;
    for (size_t i = 0; i < stored->n_tensors; i++) {
        const char *const *methods;
        if (unpacking->fates[i].is_left_out || !left_over_is_harmless(&stored->tensors[i], &methods))
            continue;
        unpacking->fates[i].is_left_out = true;
        bool is_known = methods[0] != NULL && strcmp(methods[0], unpacking->packed->method) == 0;
        if (!is_known && unpacking->plain.beyond == NULL)
            unpacking->plain.beyond = "scales of activations";
    }
}

/* Reports whether the converter's values differ from the format's. */
static bool is_written(const struct unpacking *unpacking, const struct unpacked_forms *forms)
{
    return forms->converted != NULL &&
           (forms->mended == CHANGE_NONE || !follows(unpacking->wish->references, forms->mended));
}

/* Returns the values of a weight, which remember their codes, or that the packing has none in groups. */
static const struct view *with_groups(const struct unpacking *unpacking, const struct unpacked *unpacked)
{
    static const struct code_groups none = {.codes = NULL};
    const struct code_groups *groups = unpacked->forms->groups != NULL ? unpacked->forms->groups : &none;
    return view_of_groups(unpacking->wish->arena, unpacked->view, groups);
}

static const struct view *view_of(const struct unpacking *unpacking, const struct unpacked *unpacked)
{
    const struct dtype *dtype = unpacking->wish->saved_as;
    if (dtype == NULL)
        dtype = unpacked->forms->dtype != NULL ? unpacked->forms->dtype : unpacking->packed->dtype;
    bool keeps_blocks = unpacking->wish->keeps_blocks;
    if (unpacking->wish->keeps_groups)
        return with_groups(unpacking, unpacked);
    if (keeps_blocks && unpacked->forms->repacked != NULL && view_repacked_holds(unpacked->forms->repacked))
        return unpacked->forms->repacked;
    if (keeps_blocks && unpacked->forms->blocks != NULL)
        return unpacked->forms->blocks;
    if (unpacking->is_foreign)
        return view_convert(unpacking->wish->arena, unpacked->view, dtype);
    if (has_blocks(unpacking, unpacked))
        return unpacked->forms->blocks;
    return is_written(unpacking, unpacked->forms) ? unpacked->forms->converted : unpacked->view;
}

static bool add_weight(struct unpacking *unpacking, const struct unpacked *unpacked, struct tensor_set *set,
                       struct error *error)
{
    if (unpacked->refusal != NULL)
        return error_set(error, "tensor '%.200s': %s", unpacked->name, unpacked->refusal);
    unpacking->plain.unpacked[set->n_tensors] = unpacked;
    tensor_set_add_view(set, unpacked->name, view_of(unpacking, unpacked));
    return true;
}

/* Adds the tensors of one place, the stored tensors in the given order. */
static bool add_place(struct unpacking *unpacking, enum packing_place place, const uint32_t *order,
                      struct tensor_set *set, struct error *error)
{
    const struct tensor_set *stored = unpacking->stored;
    for (size_t i = 0; i < stored->n_tensors; i++) {
        size_t index = order != NULL ? order[i] : i;
        const struct fate *fate = &unpacking->fates[index];
        if (fate->unpacked == NULL && !fate->is_left_out && place == IN_PLACE)
            tensor_set_add(set, &stored->tensors[index]);
        if (fate->unpacked != NULL && fate->unpacked->packing->place == place &&
            !add_weight(unpacking, fate->unpacked, set, error))
            return false;
    }
    return true;
}

/* Adds all tensors by name. */
static bool add_sorted(struct unpacking *unpacking, struct tensor_set *set, struct error *error)
{
    const struct unpacked **unpacked = unpacking->plain.unpacked;
    struct arena *scratch = arena_new();
    struct tensor_set *unsorted = tensor_set_new(scratch);
    bool good = true;
    for (enum packing_place place = BEFORE_ALL; good && place <= AFTER_ALL; place++)
        good = add_place(unpacking, place, unpacking->stored->by_name, unsorted, error);
    size_t n_tensors = unsorted->n_tensors;
    uint32_t *order = tensors_by_name(unsorted->tensors, n_tensors);
    unpacking->plain.unpacked = arena_array(unpacking->arena, n_tensors + 1, sizeof *unpacked);
    for (size_t i = 0; i < n_tensors; i++) {
        unpacking->plain.unpacked[i] = unpacked[order[i]];
        tensor_set_add(set, &unsorted->tensors[order[i]]);
    }
    free(order);
    arena_free(scratch);
    return good;
}

static bool put_in_order(struct unpacking *unpacking, struct error *error)
{
    struct arena *arena = unpacking->arena;
    struct tensor_set *set = tensor_set_new(arena);
    bool good = true;
    unpacking->plain.set = unpacking->plain.made = set;
    unpacking->plain.unpacked = arena_array(arena, unpacking->stored->n_tensors + 1, sizeof *unpacking->plain.unpacked);
    if (unpacking->is_foreign)
        return add_sorted(unpacking, set, error);
    for (enum packing_place place = BEFORE_ALL; good && place <= AFTER_ALL; place++)
        good = add_place(unpacking, place, unpacking->wish->order, set, error);
    return good;
}

static const struct tensor_set *ordered(const struct tensor_set *stored, const uint32_t *order, struct arena *arena)
{
    if (order == NULL)
        return stored;
    struct tensor_set *set = tensor_set_new(arena);
    for (size_t i = 0; i < stored->n_tensors; i++)
        tensor_set_add(set, &stored->tensors[order[i]]);
    return set;
}

/* Reports whether a tensor has a dtype that parts of packed weights have: integers of at most 32 bits, and floats of
 * less than 16. */
static bool may_be_packed(const struct tensor_set *stored)
{
    for (size_t i = 0; i < stored->n_tensors; i++) {
        const struct dtype *dtype = stored->tensors[i].dtype;
        if (dtype->block_elements == 1 && dtype->block_bytes <= (dtype->kind == DTYPE_FLOAT ? 1 : 4))
            return true;
    }
    return false;
}

/* Returns a tensor that holds codes, as no model has when it is not packed: integers of at most 32 bits, or FP8 that is
 * not a weight itself; NULL: none. */
static const struct tensor *holds_codes(const struct tensor_set *stored)
{
    for (size_t i = 0; i < stored->n_tensors; i++) {
        const struct tensor *tensor = &stored->tensors[i];
        const struct dtype *dtype = tensor->dtype;
        bool is_integer = dtype->kind == DTYPE_INTEGER && dtype->block_elements == 1 && dtype->block_bytes <= 4 &&
                          strcmp(dtype->name, "BOOL") != 0,
             is_fp8 = strncmp(dtype->name, "F8_E", 4) == 0 && !packing_has_suffix(tensor, ".weight");
        if (tensor->rank > 0 && (is_integer || is_fp8))
            return tensor;
    }
    return NULL;
}

bool packings_unpack(const struct packed_weights *packed, const struct plain_wish *wish, struct arena *arena,
                     struct plain_set *ret_plain, struct error *error)
{
    const struct tensor_set *stored = packed->checkpoint->tensors;
    const struct unpacked_weights *found = &packed->found;
    *ret_plain = (struct plain_set){.set = stored};
    if (packed->unread != NULL && may_be_packed(stored))
        return error_set(error, "%s", packed->unread);
    if (found->n_weights == 0 && *packed->method != '\0' && holds_codes(stored))
        return error_set(error,
                         "config.json declares the quantization method '%.40s', and no weight of a known packing "
                         "has been found beside '%.200s'",
                         packed->method, holds_codes(stored)->name);
    if (found->n_weights == 0) {
        ret_plain->set = ordered(stored, wish->order, arena);
        return true;
    }
    struct unpacking unpacking = {.packed = packed, .wish = wish, .stored = stored, .arena = arena};
    unpacking.is_foreign = unpacking.plain.is_saved_again = wish->is_saved_again || !is_converted(packed->method, wish);
    unpacking.fates = memory_alloc(stored->n_tensors * sizeof *unpacking.fates);
    memset(unpacking.fates, 0, stored->n_tensors * sizeof *unpacking.fates);
    if (unpacking.is_foreign)
        unpacking.plain.beyond =
            *packed->method != '\0' ? "its quantization method" : "packed weights that config.json does not describe";
    for (size_t i = 0; i < found->n_weights; i++)
        place_weight(&unpacking, &found->weights[i]);
    leave_out_harmless(&unpacking);
    bool good = put_in_order(&unpacking, error);
    free(unpacking.fates);
    if (good)
        *ret_plain = unpacking.plain;
    return good;
}

static const void *make_plain(const struct checkpoint *checkpoint, struct arena *arena)
{
    const struct packed_weights *packed = packings_of(checkpoint);
    const struct plain_wish wish = {.arena = arena, .is_saved_again = true};
    struct plain_tensors *plain = arena_alloc(arena, sizeof *plain);
    struct plain_set made;
    struct error error;
    if (packings_unpack(packed, &wish, arena, &made, &error) &&
        (made.made == NULL || tensor_set_seal(made.made, &error)))
        plain->set = made.set;
    else
        plain->refusal = arena_strdup(arena, error.message);
    return plain;
}

const struct plain_tensors *packings_plain(const struct checkpoint *checkpoint)
{
    return checkpoint_once(checkpoint, make_plain);
}
