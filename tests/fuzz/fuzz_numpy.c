/* Any bytes as numpy's arrays, in a .npy or a .npz. */
#include "tests/fuzz/read_tensors.h"

extern const struct format numpy_format;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct open_options options = {.allow_trailing = size % 2 == 0};
    return fuzz_file(&numpy_format, &options, "input.npz", data, size);
}
