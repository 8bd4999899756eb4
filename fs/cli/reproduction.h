/* Reproductions: the virtual file, and the options, that give a GGUF: for `wfs verify`.
 *
 * A reproduction is found from headers alone: names, types and keys. It begins with the virtual GGUF that has the most
 * tensors in the file's types and then the fewest other keys. Then options are added to those of the user, as long as
 * each brings the reproduction nearer to the file: a name, types of tensors, no importance matrix, another rule of
 * Q4_0, and overrides of keys that only describe the model. An option that would change what a model computes is never
 * added. */
#pragma once

#include "fs/cli/command.h"
#include "fs/cli/match.h"
#include "fs/tree/tree.h"

struct reproduction {
    const struct options *options; /* the user's, with those that were found; they live as long as the user's */
    struct tree *tree;
    const char *path;                /* of the virtual file */
    struct vfile file;               /* that file */
    const struct checkpoint *opened; /* and its header */
    struct arena *arena;
    size_t n_alike; /* tensors that both have in one type */
    size_t n_keys;  /* keys that differ */
};

/* Finds the reproduction for the tensors and keys of a GGUF. Fails if nothing can be made of the source. */
bool reproduction_find(const struct checkpoint *file, const char *source, const struct options *options,
                       struct reproduction *ret_reproduction, struct error *error);
void reproduction_close(struct reproduction *reproduction);

/* Reports whether a key only describes a model: its name, origin, type, splits or quantization. */
bool key_is_descriptive(const char *key);

/* Appends the command that writes the reproduction's file as `file`, for a shell: "wfs cp -o name=X SOURCE PATH FILE".
 */
void reproduction_append_command(const struct reproduction *reproduction, const char *source, const char *file,
                                 struct buffer *out);
