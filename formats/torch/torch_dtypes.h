/* The element types of torch, by the names that pickles use. */
#pragma once

#include "quant/blocks/dtype.h"

struct torch_dtype {
    const char *name;        /* of the constant torch.NAME */
    const char *storage;     /* of the storage class; NULL: none */
    const char *dtype;       /* the name of wfs's dtype */
    uint8_t component_bytes; /* bytes of one number, with one sign: half an element if complex */
    bool quantized;          /* the values need scales that are kept elsewhere */
};

/* Return the row of that name ("float32") or storage ("FloatStorage"), or NULL. */
const struct torch_dtype *torch_dtype_by_name(const char *name);
const struct torch_dtype *torch_dtype_by_storage(const char *name);
