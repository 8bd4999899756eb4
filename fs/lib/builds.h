/* Builds of llama.cpp that write one header for a file, for `wfs verify`.
 *
 * The known builds, in order, fall into runs that write the same keys and tensors. A rule that changed stays changed,
 * so two builds with equal headers have equal ones between them: few builds have to be tried. Runs with equal headers
 * write other values only where a packing says so (`mended`). */
#pragma once

#include "fs/lib/reproduction.h"

/* A run of builds, oldest first. */
struct build_class {
    struct build_range builds;
    struct reproduction made; /* by these builds; `opened` is NULL if they make nothing at the path */
};

struct build_classes {
    struct build_class *items;
    size_t n_items;
};

/* Returns the runs for the path and options of a reproduction of the file; NULL if llama.cpp does not make the path. */
struct build_classes *build_classes_new(const struct reproduction *like, const char *source,
                                        const struct checkpoint *file);
void build_classes_free(struct build_classes *classes); /* NULL is allowed */

/* Returns the run whose header is nearest to the file; among equals the one with more of its values, of which samples
 * are read, and then the newest. NULL: none makes anything. */
const struct build_class *build_classes_nearest(const struct build_classes *classes, const struct checkpoint *file);

/* Returns the run that a build belongs to; NULL: none. */
const struct build_class *build_classes_of(const struct build_classes *classes, unsigned build);

/* Returns a run whose header has this key with this value, or lacks the key if `kv` is NULL; NULL: none. */
const struct build_class *build_classes_with(const struct build_classes *classes, const char *key,
                                             const struct gguf_kv *kv);

/* Returns the run of the build that a reproduction follows; NULL: it follows another tool. */
const struct build_class *reproduction_builds(const struct reproduction *reproduction);
