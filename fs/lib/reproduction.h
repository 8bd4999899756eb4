/* Reproductions: the virtual file, and the options, that give a GGUF: for `wfs verify`.
 *
 * A reproduction is found from headers alone: names, types and keys. It begins with the virtual GGUF that has the most
 * tensors in the file's types, then the fewest other keys, and then the most keys in the file's order. Then options are
 * added to those of the user, as long as each brings the reproduction nearer to the file: a name, types of tensors, no
 * importance matrix, another rule of Q4_0, overrides of keys that only describe the model, and a build of llama.cpp. An
 * option that would change what a model computes is never added. */
#pragma once

#include "fs/lib/lib.h"
#include "fs/lib/match.h"
#include "fs/tree/tree.h"
#include "models/references/references.h"

struct build_classes; /* below */

struct reproduction {
    const struct options *options; /* the user's, with those that were found; they live as long as the user's */
    struct tree *tree;
    const char *path;                /* of the virtual file */
    struct vfile file;               /* that file */
    const struct checkpoint *opened; /* and its header */
    struct arena *arena;
    size_t n_alike;    /* tensors that both have in one type */
    size_t n_in_place; /* of these, tensors at the same offset: tools write equal tensors in different orders */
    size_t n_keys;     /* keys that differ */
    size_t n_in_order; /* keys that follow the same key in both */
    struct build_classes *classes; /* builds of llama.cpp; NULL: the file follows another tool */
};

/* Finds the reproduction for the tensors and keys of a GGUF. Fails if nothing can be made of the source. */
bool reproduction_find(const struct checkpoint *file, const char *source, const struct options *options,
                       struct reproduction *ret_reproduction, struct error *error);
void reproduction_close(struct reproduction *reproduction);

/* Opens the virtual file at `path` of a source, made with these options; NULL: the one nearest to the file. Close it,
 * also after a failure. */
bool reproduction_open(struct reproduction *reproduction, const struct options *options, const char *path,
                       const char *source, const struct checkpoint *file, struct error *error);

/* Reports whether the first reproduction is nearer to the file than the other one. */
bool reproduction_is_better(const struct reproduction *reproduction, const struct reproduction *other);

/* Reports whether a key only describes a model: its name, origin, type, splits or quantization. */
bool key_is_descriptive(const char *key);

/* Appends the command that writes the reproduction's file as `file`, for a shell: "wfs cp -o name=X SOURCE PATH FILE".
 */
void reproduction_append_command(const struct reproduction *reproduction, const char *source, const char *file,
                                 struct buffer *out);

/* Builds of llama.cpp that write one header for a file, for `wfs verify`.
 *
 * The known builds, in order, fall into runs that write the same keys and tensors. A rule that changed stays changed,
 * so two builds with equal headers have equal ones between them: few builds have to be tried. Runs with equal headers
 * write other values only where a packing says so (`mended`). */

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
