/* Virtual files of GGUF. */
#pragma once

#include "formats/gguf/write.h"
#include "fs/tree/vfile.h"

/* The file of a plan, whose places are filled in; what it holds must live as long as the file. */
bool gguf_file_plan(struct gguf_plan *plan, struct origin origin, struct arena *arena, struct vfile *ret_file,
                    struct error *error);
