/* Any bytes as a file of tensorizer. */
#include "tests/fuzz/read_tensors.h"

extern const struct format tensorizer_format;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct open_options options = {.format = NULL};
    return fuzz_file(&tensorizer_format, &options, "model.tensors", data, size);
}
