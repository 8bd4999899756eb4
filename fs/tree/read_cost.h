/* The time that reading a virtual file takes. */
#pragma once

#include "fs/tree/vfile.h"

/* Returns the approximate time to compute [offset, offset + length), inside the file, on one core in nanoseconds; 0 if
 * its bytes are only copied (convert_cost()). */
uint64_t vfile_read_cost(const struct vfile *file, uint64_t offset, uint64_t length);
