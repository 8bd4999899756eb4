#include "formats/format.h"

extern const struct format safetensors_format;

const struct format *const formats[] = {
    &safetensors_format,
    NULL,
};
