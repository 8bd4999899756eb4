/* A library: several models in one tree, under the names by which programs find models.
 *
 * - `models/PUBLISHER/NAME/`: NAME-Q4_K_M.gguf and others, mmproj-NAME-F16.gguf; of a GGUF, NAME.gguf. The directory is
 *   a branch whose tree is the whole tree of the model: all other files are found by name, and not listed
 *   (library_files.c). Looking into the directory opens the model.
 * - `ollama/`: a store for Ollama (ollama.c) of the same files.
 * - `metadata.json`: the models.
 * - `CACHEDIR.TAG`. */
#pragma once

#include "fs/tree/tree.h"
#include "sources/archive/archive.h"

struct library_model {
    const char *id;        /* "PUBLISHER/NAME", both names of files */
    const char *source;    /* as the user named it, without secrets */
    branch_function *open; /* makes its tree, with content_options.name_in_library */
    void *context;
};

/* Reports whether a text is PUBLISHER/NAME, both of which can be names of files. */
bool library_is_id(const char *id);

/* The models of a library, which must outlive its tree. */
struct library {
    const struct library_model *models;
    size_t n_models;
};

/* Returns the tree. `checkpoint` has no weights, and stands for all of them. Fails if an id is none, two models have
 * the same one, or there are too many. */
struct tree *library_new(const struct checkpoint *checkpoint, const struct content_options *options,
                         const struct library *library, struct error *error);

/* Adds ollama/. `branches` are the numbers of the models' directories, in their order, and live as long as the tree. */
void ollama_add(struct tree *tree, const struct library *library, const node_id *branches);

/* Adds CACHEDIR.TAG, by which backup programs know directories that can be made again: tar --exclude-caches, restic
 * --exclude-caches, borg --exclude-caches and others then skip the whole mount. A library has it always, the mount of a
 * model where it is asked for: a backup of that mount may be wanted. */
void cache_tag_add(struct tree *tree);

/* The original files of an archive: files/NAME/... (sources/archive/archive.h). */

/* Adds the files of a member; of all for SIZE_MAX. The tree holds the archive. */
bool archive_files_add(struct tree *tree, struct archive *archive, size_t member, struct error *error);
