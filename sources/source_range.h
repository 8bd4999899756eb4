/* A part of a source as a source: a file that lies uncompressed in another one. */
#pragma once

#include "sources/source.h"

/* Makes a source of the bytes [offset, offset + size) of `base`, which must have them and outlive it. */
struct source *source_range_new(struct source *base, const char *name, uint64_t offset, uint64_t size);
