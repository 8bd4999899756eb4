/* The list of files of a source that is packed again: what is new takes the place of what was in the archive under that
 * path, or below it; the rest stays. */
#pragma once

#include "sources/archive/files.h"

/* Returns the merged list; the caller frees it. `packs` has the new numbers of the old list's packs; `fresh` uses the
 * new ones. With `keeps_folders`, folders of both lists have the mode and time of the old one. */
struct files *merge_lists(const struct files *old, const uint32_t *packs, const struct files *fresh,
                          bool keeps_folders);

/* Returns numbers that are not set, UINT32_MAX, for as many things; the caller frees them. */
uint32_t *merge_numbers(size_t count);
