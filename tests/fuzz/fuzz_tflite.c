/* Any bytes as a TensorFlow Lite model or a bundle of them. */
#include "tests/fuzz/read_tensors.h"

extern const struct format tflite_format;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct open_options options = {.format = NULL};
    return fuzz_file(&tflite_format, &options, "input.tflite", data, size);
}
