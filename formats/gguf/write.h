/* Writing GGUF: version 3, little-endian. Header, keys, records of tensors, data, each aligned to what
 * general.alignment says, or 32. Any keys, any tensors. Laying a file out reads no tensor values, and a long metadata
 * value of another GGUF stays in that file.
 *
 * Fails if sizes overflow, or general.alignment is not a power of two. */
#pragma once

#include "formats/artifact.h"

/* Files as gguf-py writes them, and as ggml does (gguf_write_to_file()), whose tensor records omit leading dimensions
 * of 1. */
extern const struct container gguf_container, ggml_container;
