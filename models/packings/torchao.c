/* TorchAO: tensor subclasses, whose inner tensors are in the pickle under the weight's own name.
 *
 * Float8Tensor has B.weight.qdata [rows, columns] in FP8 and .scale; IntxUnpackedToInt8Tensor has .qdata in I8, .scale
 * and .zero_point [rows, groups]; AffineQuantizedTensor with PlainLayout has .tensor_impl.int_data, .scale and
 * .zero_point, for each row or for groups: (code - zero point) * scale. The subclass itself has the shape and the dtype
 * from before packing, and no values. Forms for one kind of processor, such as those of four bits, have another shape,
 * and are refused. */
#include "models/packings/packed.h"

#include <inttypes.h>

static const struct packing_key keys[] = {
    {".weight.qdata", ".weight"},
    {".weight.tensor_impl.int_data", ".weight"},
    {0},
};

/* A subclass's names for scales and zero points, in the order of keys, and the prefix of those names. */
static const struct naming {
    const char *scale, *zero, *between;
} namings[] = {
    {".weight.scale", ".weight.zero_point", NULL},
    {".weight.tensor_impl.scale", ".weight.tensor_impl.zero_point", ".weight.tensor_impl"},
};

/* Returns the tensor of the subclass itself, which has no values. */
static const struct tensor *outer_of(const struct packing_input *input, const struct tensor *tensor)
{
    for (const struct packing_key *key = keys; key->suffix != NULL; key++)
        if (packing_has_suffix(tensor, key->suffix))
            return packing_partner(input->set, tensor, key->suffix, key->partner);
    return NULL;
}

static bool is_key(const struct packing_input *input, const struct tensor *tensor)
{
    const struct tensor *outer = outer_of(input, tensor);
    return outer != NULL && outer->refusal != NULL;
}

/* Adds a part without values, which describes the weight; NULL: missing. */
static const struct tensor *add_shell(struct packed *packed, const char *own, const char *suffix)
{
    const struct tensor *shell = suffix != NULL ? packing_partner(packed->input->set, packed->key, own, suffix) : NULL;
    if (shell != NULL)
        packed->unpacked->parts[packed->unpacked->n_parts++] = shell;
    return shell;
}

/* Returns a factor for each row, for groups of columns, or for all elements, as a matrix. */
static const struct view *spread(struct packed *packed, const char *suffix, const struct view *view,
                                 const struct view *codes)
{
    uint64_t n_rows = codes->shape[0], n_columns = codes->shape[1], shape[2] = {n_rows, 1};
    if (view->n_elements == 1)
        shape[0] = 1;
    else if (view->rank == 2 && view->shape[0] == n_rows && view->shape[1] > 0 && n_columns % view->shape[1] == 0)
        shape[1] = view->shape[1];
    else if (view->rank != 1 || view->shape[0] != n_rows) {
        packed_misfit(packed, suffix, view, "the weight has %" PRIu64 " rows of %" PRIu64 " columns", n_rows,
                      n_columns);
        return NULL;
    }
    return view_reshape(packed->input->arena, view, 2, shape);
}

static const struct view *combine(struct packed *packed, const struct view *codes, enum combination op,
                                  const struct view *factors)
{
    const struct sharing sharing = {codes->shape[0] / factors->shape[0], codes->shape[1] / factors->shape[1], NULL};
    return view_combine(packed->input->arena, codes, op, factors, &sharing);
}

static bool unpack(struct packed *packed)
{
    const struct naming *naming = &namings[packed->spelling - keys];
    const char *own = packed->spelling->suffix;
    const struct view *zero, *codes, *scale;
    const struct tensor *shell = add_shell(packed, own, ".weight");
    add_shell(packed, own, naming->between);
    if ((codes = packed_need(packed, own, F8 | I8)) == NULL ||
        (scale = packed_need(packed, naming->scale, F16_F32)) == NULL ||
        !packed_find(packed, naming->zero, I8 | WORDS | I64, &zero))
        return false;
    if (!packed_is_matrix(codes) || shell->rank != 2)
        return packed_misfit(packed, own, codes, "must be a matrix");
    if (!packed_check(packed, own, codes, shell->shape[0], shell->shape[1]) ||
        (scale = spread(packed, naming->scale, scale, codes)) == NULL ||
        (zero != NULL && (zero = spread(packed, naming->zero, zero, codes)) == NULL))
        return false;
    packed->unpacked->view =
        combine(packed, zero != NULL ? combine(packed, codes, SUBTRACT, zero) : codes, MULTIPLY, scale);
    packed->unpacked->bits = 8;
    packed->unpacked->forms->dtype = shell->dtype;
    return true;
}

const struct packing torchao_packing = {
    .name = "torchao",
    .titles = {"TorchAO"},
    .methods = {"torchao"},
    .summary = "TorchAO's FP8, and integers in bytes",
    .place = IN_PLACE,
    .keys = keys,
    .is_key = is_key,
    .unpack = unpack,
};
