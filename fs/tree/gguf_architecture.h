/* The architecture that a virtual GGUF names. */
#pragma once

#include "fs/tree/vfile.h"

/* Returns general.architecture, in `arena`: "llama". NULL, with an error, if the file has none or cannot be read. */
const char *gguf_architecture(const struct vfile *file, struct arena *arena, struct error *error);
