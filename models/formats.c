#include "formats/format.h"

extern const struct format gguf_format, huggingface_format, meta_format, mistral_format, numpy_format, pipeline_format,
    safetensors_format, torch_format;

const struct format *const formats[] = {
    &gguf_format,        &huggingface_format, &meta_format, &mistral_format, &numpy_format, &pipeline_format,
    &safetensors_format, &torch_format,       NULL,
};
