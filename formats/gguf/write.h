/* Writing GGUF: version 3, little-endian. Header, keys, records of tensors, data, each aligned to what
 * general.alignment says, or 32. Any keys, any tensors; no value is read, and a long value that lies in another GGUF
 * stays there.
 *
 * Fails where sizes overflow, and where general.alignment is no power of two. */
#pragma once

#include "formats/artifact.h"

/* As gguf-py writes it, and as ggml does (gguf_write_to_file()), which leaves dimensions of 1 before a shape out of the
 * tensor's record. */
extern const struct container gguf_container, ggml_container;
