/* Any bytes as a Flax checkpoint. */
#include "tests/fuzz/read_tensors.h"

extern const struct format flax_format;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct open_options options = {.allow_trailing = size % 2 == 0};
    return fuzz_file(&flax_format, &options, "input.msgpack", data, size);
}
