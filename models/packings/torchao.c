/* TorchAO: tensor subclasses, whose inner tensors the pickle has under the weight's own name.
 *
 * Of Float8Tensor B.weight.qdata [rows, columns] in FP8 and .scale; of IntxUnpackedToInt8Tensor .qdata in I8, .scale
 * and .zero_point [rows, groups]; of AffineQuantizedTensor in its plain layout the same as .tensor_impl.int_data,
 * .scale and .zero_point, of each row or of groups: (code - zero point) * scale. The subclass itself has the shape and
 * the dtype of before, and no values: a layout for one kind of processor, as those of four bits have, has another
 * shape, and is refused. */
#include "models/packings/packed.h"

#include <inttypes.h>

extern const struct packing torchao_packing;

/* A subclass's names for codes, scales and zero points, and the part of the name before them. */
static const struct naming {
    const char *codes, *scale, *zero, *between;
} namings[] = {
    {".weight.qdata", ".weight.scale", ".weight.zero_point", NULL},
    {".weight.tensor_impl.int_data", ".weight.tensor_impl.scale", ".weight.tensor_impl.zero_point",
     ".weight.tensor_impl"},
};

static const struct naming *naming_of(const struct tensor *tensor)
{
    for (size_t i = 0; i < sizeof namings / sizeof *namings; i++)
        if (packing_has_suffix(tensor, namings[i].codes))
            return &namings[i];
    return NULL;
}

static bool is_key(const struct packing_input *input, const struct tensor *tensor)
{
    const struct naming *naming = naming_of(tensor);
    const struct tensor *outer = naming != NULL ? packing_partner(input->set, tensor, naming->codes, ".weight") : NULL;
    return outer != NULL && outer->refusal != NULL;
}

/* Adds a part that has no values, which says what the weight is; NULL where there is none. */
static const struct tensor *add_shell(struct packed *packed, const char *own, const char *suffix)
{
    const struct tensor *shell = suffix != NULL ? packing_partner(packed->input->set, packed->key, own, suffix) : NULL;
    if (shell != NULL)
        packed->unpacked->parts[packed->unpacked->n_parts++] = shell;
    return shell;
}

/* A factor of a row, of groups of its columns, or of all, as a matrix. */
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

static bool unpack(const struct packing_input *input, const struct tensor *key, struct unpacked *unpacked,
                   struct error *error)
{
    const struct naming *naming = naming_of(key);
    struct packed packed = packed_begin(input, key, naming->codes, unpacked, error);
    const struct view *zero, *codes, *scale;
    packed_name(&packed, ".weight");
    const struct tensor *shell = add_shell(&packed, naming->codes, ".weight");
    add_shell(&packed, naming->codes, naming->between);
    if ((codes = packed_need(&packed, naming->codes, F8 | I8)) == NULL ||
        (scale = packed_need(&packed, naming->scale, F16_F32)) == NULL ||
        !packed_find(&packed, naming->zero, I8 | WORDS | I64, &zero))
        return false;
    if (!packed_is_matrix(codes) || shell->rank != 2)
        return packed_misfit(&packed, naming->codes, codes, "must be a matrix");
    if (!packed_check(&packed, naming->codes, codes, shell->shape[0], shell->shape[1]) ||
        (scale = spread(&packed, naming->scale, scale, codes)) == NULL ||
        (zero != NULL && (zero = spread(&packed, naming->zero, zero, codes)) == NULL))
        return false;
    unpacked->view = combine(&packed, zero != NULL ? combine(&packed, codes, SUBTRACT, zero) : codes, MULTIPLY, scale);
    unpacked->bits = 8;
    unpacked->forms->dtype = shell->dtype;
    return true;
}

const struct packing torchao_packing = {
    .name = "torchao",
    .titles = {"TorchAO"},
    .methods = {"torchao"},
    .summary = "TorchAO's FP8, and integers in bytes",
    .place = IN_PLACE,
    .is_key = is_key,
    .unpack = unpack,
};
