/* Packings whose weights are refused by name. */
#include "models/packings/packed.h"

#include <string.h>

/* Weights declared as quantized in an unknown packing: their stored codes are not values, and are refused.
 *
 * For a known method these are integers named as a weight that no packing takes; for another method, all matrices of
 * integers and of FP8, whatever their names. It comes last, after all packings that take their weights. */

enum { MOST_BYTES = 4 /* of an element: indices have 8 */ };

static const struct packing_key unsupported_keys[] = {{"", .weight = ""}, {0}};

static bool is_key(const struct packing_input *input, const struct tensor *tensor)
{
    bool is_integer = tensor->dtype->kind == DTYPE_INTEGER && tensor->dtype->block_bytes <= MOST_BYTES;
    bool is_declared = *input->method != '\0' || input->config != NULL;
    if (tensor->rank < 2 || !is_declared)
        return false;
    if (*input->method == '\0' || input->is_known)
        return is_integer && packing_has_suffix(tensor, ".weight");
    return is_integer || strncmp(tensor->dtype->name, "F8_E4", 5) == 0 || strncmp(tensor->dtype->name, "F8_E5", 5) == 0;
}

static bool unsupported_unpack(struct packed *packed)
{
    if (*packed->input->method == '\0')
        return error_set(packed->error,
                         "the weight is stored as %s, and quantization_config describes no known packing",
                         packed->key->dtype->name);
    return error_set(packed->error, "the weight is stored as %s, which no known packing of '%.40s' uses",
                     packed->key->dtype->name, packed->input->method);
}

const struct packing unsupported_packing = {
    .name = "unsupported",
    .summary = "packed weights that no packing accepts; refused",
    .place = IN_PLACE,
    .keys = unsupported_keys,
    .is_key = is_key,
    .unpack = unsupported_unpack,
};

/* Layouts for one kind of processor, or with a codec of their own, that wfs does not read: their weights are refused by
 * name. Without this, their parts would be unknown tensors, or parts of a similar packing that lack others. */

static const struct packing_key foreign_keys[] = {
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

static bool foreign_unpack(struct packed *packed)
{
    return error_set(packed->error, "the weight is packed as %s, which is not supported",
                     names[packed->spelling - foreign_keys]);
}

const struct packing foreign_packing = {
    .name = "foreign",
    .summary = "SVDQuant, FP-Quant, Marlin, EXL2, EXL3, SpQR, EETQ and QuIP#; refused by name",
    .place = IN_PLACE,
    .keys = foreign_keys,
    .unpack = foreign_unpack,
};
