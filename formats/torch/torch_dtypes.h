/* The element types of torch, by the names that pickles use. */
#pragma once

#include "quant/dtype.h"

struct torch_dtype {
    const char *name;        /* of the constant: torch.<name> */
    const char *storage;     /* of the storage class, or NULL */
    const char *dtype;       /* the name of ours */
    uint8_t component_bytes; /* what is swapped as one number, and has one sign: half an element for complex numbers */
    bool quantized;          /* the values are scaled by something that is elsewhere */
};

/* NULL where there is none. `name` is "float32", or "FloatStorage" for the second. */
const struct torch_dtype *torch_dtype_by_name(const char *name);
const struct torch_dtype *torch_dtype_by_storage(const char *name);
