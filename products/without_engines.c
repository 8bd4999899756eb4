/* A build without the directories for serving engines: their paths say so. */
#include "products/product.h"

static bool refuse(const struct product_input *input, struct product_list *hints)
{
    static const char *const roots[] = {"compressed-tensors", "fp8", "modelopt", "mlx", "bitsandbytes"};
    for (size_t i = 0; product_is_for_loaders(input, hints) && i < sizeof roots / sizeof *roots; i++)
        product_hint(hints, roots[i], "this wfs was built without directories for engines: build with -Dengines=true");
    return false;
}

static bool hide(const struct product_input *input, struct product_list *hints)
{
    return false;
}

const struct product compressed_tensors_product = {
    .name = "engines", .root = "compressed-tensors", .is_offered = refuse};
const struct product fp8_blocks_product = {.name = "fp8", .root = "fp8", .is_offered = hide};
const struct product modelopt_product = {.name = "modelopt", .root = "modelopt", .is_offered = hide};
const struct product mlx_product = {.name = "mlx", .root = "mlx", .is_offered = hide};
const struct product bitsandbytes_product = {.name = "bitsandbytes", .root = "bitsandbytes", .is_offered = hide};
const struct product comfy_product = {.name = "comfy", .root = "comfy", .is_offered = hide};
