/* Any bytes as a file of FORMAT, without other files that it names. */
#include "formats/format.h"

#include "tests/fuzz/read_tensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct open_options options = {.allow_trailing = size % 2 == 0};
    return fuzz_file(&FORMAT, &options, "input", data, size);
}
