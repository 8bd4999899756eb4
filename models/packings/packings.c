#include "models/packings/packings.h"

#include <string.h>

/* One row a line. */
/* clang-format off */
const struct packing *const packings[] = {
    &foreign_packing, /* before packings that share names with it */
    &comfy_packing, /* a file with its marks is read by them alone */
    &ctranslate2_packing, /* before packings that share names with it */
    &fp8_ranks_packing, /* before packings with similar keys */
    &gemma_packing, /* before packings that share names with them */
    &quark_packing,
    &scaled_packing,
    &pack_quantized_packing,
    &gptq_packing,
    &nvfp4_packing,
    &bitnet_packing,
    &mxfp4_packing,
    &mxfp6_packed_packing, /* before packings that share names with it */
    &mxfp4_packed_packing,
    &modelopt_int4_packing,
    &awq_packing,
    &bitsandbytes_packing,
    &sinq_packing, /* before packings that share names with it */
    &hqq_packing,
    &mlx_packing,
    &quanto_packing,
    &torchao_packing,
    &torchao_flat_packing,
    &aqlm_packing,
    &unsupported_packing, /* after all others */
    NULL,
};
/* clang-format on */

bool packing_is_known(const char *method)
{
    for (const struct packing *const *packing = packings; *packing != NULL; packing++)
        for (const char *const *name = (*packing)->methods; *name != NULL; name++)
            if (strcmp(*name, method) == 0)
                return true;
    return false;
}

const struct packer *packer_find(const char *name)
{
    for (const struct packing *const *packing = packings; *packing != NULL; packing++)
        for (const struct packer *packer = (*packing)->packers; packer != NULL && packer->name != NULL; packer++)
            if (strcmp(packer->name, name) == 0)
                return packer;
    return NULL;
}
