/* Virtual files of safetensors. */
#pragma once

#include "formats/safetensors/write.h"
#include "fs/tree/vfile.h"

/* The file of `n_places` tensors, which are sorted here; `metadata` as for safetensors_lay_out(). */
bool safetensors_file_plan(struct safetensors_place *places, size_t n_places,
                           const struct safetensors_metadata *metadata, struct origin origin, struct arena *arena,
                           struct vfile *ret_file, struct error *error);
