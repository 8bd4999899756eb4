/* The formats that tests of formats/ open checkpoints in. */
#pragma once

#include "formats/format.h"

static const struct format *const readers[] = {
    &dcp_format,
    &deepspeed_format,
    &flax_format,
    &gguf_format,
    &hdf5_format,
    &huggingface_format,
    &keras_format,
    &mistral_format,
    &nemo_format,
    &numpy_format,
    &onnx_format,
    &orbax_format,
    &pipeline_format,
    &safetensors_format,
    &tensorflow_format,
    &tensorflow_graph_format,
    &tflite_format,
    &torch_format,
    NULL,
};
