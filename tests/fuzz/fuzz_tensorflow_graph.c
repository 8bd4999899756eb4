/* Any bytes as a frozen graph of TensorFlow. */
#include "tests/fuzz/read_tensors.h"

extern const struct format tensorflow_graph_format;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct open_options options = {.format = NULL};
    return fuzz_file(&tensorflow_graph_format, &options, "input.pb", data, size);
}
