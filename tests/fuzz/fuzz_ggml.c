/* Any bytes as a file of ggml before GGUF. */
#include "tests/fuzz/read_tensors.h"

extern const struct format ggml_format;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct open_options options = {.format = NULL};
    return fuzz_file(&ggml_format, &options, "ggml-model.bin", data, size);
}
