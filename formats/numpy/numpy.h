/* The header of a .npy file, version 1.0, as numpy.save writes it before the elements.
 *
 * C order, padded with spaces to a multiple of 64 bytes, so that the elements are aligned for
 * numpy.load(mmap_mode="r"). Source: numpy/lib/format.py. */
#pragma once

#include "quant/blocks/dtype.h"

enum { NUMPY_HEADER_MAX = 2048 }; /* enough for any shape of up to VIEW_MAX_RANK dimensions */

/* Writes the header of an array of `dtype`, which has a numpy name, into `out`; returns its length. */
size_t numpy_header(const struct dtype *dtype, const uint64_t *shape, unsigned rank, char out[NUMPY_HEADER_MAX]);
