/* The header of a copy in parts (parts.h): GGUF's keys with a vocabulary take longer to make than all else that a
 * worker must know, so the first worker keeps them beside the plan, in DEST.wfs-parts/header. The others open the model
 * without its tokenizer and lay the file out with that header. */
#pragma once

#include "fs/lib/parts_plan.h"
#include "fs/tree/content_options.h"
#include "fs/tree/vfile.h"

enum { PARTS_MOST_HEADER = 1 << 28 /* bytes */ };

/* Writes the header of a file, if it has one, and sets what the plan tells of it. Without it, the other workers make it
 * themselves: no failure is an error. */
void parts_header_keep(const struct vfile *file, const char *path, struct parts_plan *plan);

/* Finds the header that was kept for part `number` of a copy to `destination`, whose plan agrees with `own` in path,
 * wfs and number of parts. Compares its bytes with their SHA-256 if the part has some of them. Returns NULL if there is
 * none. The result lives as long as the arena. */
const struct kept_header *parts_header_find(const char *destination, const struct parts_plan *own, size_t number,
                                            struct arena *arena);
