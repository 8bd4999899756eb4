/* Any bytes as a program of torch.export. */
#include "tests/fuzz/read_tensors.h"

extern const struct format pt2_format;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct open_options options = {.format = NULL};
    return fuzz_file(&pt2_format, &options, "input.pt2", data, size);
}
