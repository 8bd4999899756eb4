/* safetensors files, for formats that consist of them. */
#pragma once

#include "formats/checkpoint.h"

/* Adds the tensors of a file that one of several processes saved: parts of tensors, whose places *ret_places tells, in
 * the checkpoint's arena: the text of DCP_SHARDING_INFO; NULL if the file has none. The checkpoint owns the file. */
bool safetensors_read_parts(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                            const struct open_options *options, const char **ret_places, struct error *error);
