/* Tensors inside Python objects of a distributed torch checkpoint: torch cuts dicts and lists into entries, but stores
 * a tuple, and what is in it, as one torch.save(). Source: torch/distributed/checkpoint/_nested_dict.py. */
#pragma once

#include "sources/source.h"

struct checkpoint;
struct open_options;

/* Adds the tensors of the object in [offset, offset + length) of a file, which has these bytes, with the names NAME.0,
 * NAME.1 ... that the torch reader gives to a file's. *ret_found is false for an object without storages of torch,
 * which is not read. Fails if there are tensors that cannot be read, and then adds none. */
bool dcp_object_read(struct checkpoint *checkpoint, struct source *file, uint64_t offset, uint64_t length,
                     const char *name, bool *ret_found, struct error *error);
