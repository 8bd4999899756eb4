/* Any bytes as a file of torch in a container without a zip directory: legacy, plain pickle. */
#include "tests/fuzz/read_tensors.h"

extern const struct format torch_format;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct open_options options = {.allow_trailing = true};
    return fuzz_file(&torch_format, &options, "input.pt", data, size);
}
