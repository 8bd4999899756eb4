#include "models/formats.h"

#include "formats/format.h"

extern const struct format meta_format, recipe_format;

const struct format *const formats[] = {
    &ctranslate2_format,
    &dcp_format,
    &deepspeed_format,
    &flax_format,
    &ggml_format,
    &gguf_format,
    &hdf5_format,
    &huggingface_format,
    &keras_format,
    &meta_format,
    &mistral_format,
    &nemo_format,
    &numpy_format,
    &onnx_format,
    &orbax_format,
    &paddle_format,
    &pipeline_format,
    &pt2_format,
    &recipe_format,
    &safetensors_format,
    &parts_format,
    &tensorflow_format,
    &tensorflow_graph_format,
    &tensorizer_format,
    &tflite_format,
    &torch_format,
    NULL,
};
