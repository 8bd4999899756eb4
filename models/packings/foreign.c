/* Layouts for one kind of processor, or with a codec of their own, that wfs does not read: their weights are refused by
 * name. Without this, their parts would be unknown tensors, or parts of a similar packing that lack others. */
#include "models/packings/packed.h"

static const struct packing_key keys[] = {
    {".qweight", ".wscales"},
    {".qweight", ".forward_hadamard_matrix"},
    {".B", ".s", "I32"},
    {".q_weight", ".q_scale"},
    {".trellis", ".suh"},
    {".dense_weights", ".row_offsets"},
    {".weight", ".weight_scales", "I8"},
    {".qidxs", ".SU"},
    {0},
};

/* In the order of keys. */
static const char *const names[] = {
    "SVDQuant (nunchaku)", "FP-Quant", "GPTQ in Marlin's layout", "EXL2", "EXL3", "SpQR", "EETQ", "QuIP#",
};

static bool unpack(struct packed *packed)
{
    return error_set(packed->error, "the weight is packed as %s, which is not supported",
                     names[packed->spelling - keys]);
}

const struct packing foreign_packing = {
    .name = "foreign",
    .summary = "SVDQuant, FP-Quant, Marlin, EXL2, EXL3, SpQR, EETQ and QuIP#; refused by name",
    .place = IN_PLACE,
    .keys = keys,
    .unpack = unpack,
};
