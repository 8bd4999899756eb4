/* Any bytes as an ONNX model, without the files that it names. */
#include "tests/fuzz/read_tensors.h"

extern const struct format onnx_format;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct open_options options = {.format = NULL};
    return fuzz_file(&onnx_format, &options, "input.onnx", data, size);
}
