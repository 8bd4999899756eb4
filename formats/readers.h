/* The formats that are read here without knowing of models. A program's table of formats consists of those that it
 * needs: it links no others. */
#pragma once

#include "formats/format.h"

extern const struct format gguf_format, huggingface_format, mistral_format, numpy_format, pipeline_format,
    safetensors_format, torch_format;
