/* Any bytes as a file of ggml before GGUF. */
#include "tests/fuzz/read_tensors.h"

#include "formats/ggml/whisper.h"

static void read_header(const uint8_t *data, size_t size)
{
    struct error error = {""};
    struct gguf_kvs metadata;
    struct source *file = source_of_bytes(data, size, "ggml-model.bin");
    if (whisper_read_metadata(file, &metadata, &error))
        gguf_kvs_free(&metadata);
    else
        require_one_line(&error);
    source_close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct open_options options = {.format = NULL};
    read_header(data, size);
    return fuzz_file(&ggml_format, &options, "ggml-model.bin", data, size);
}
