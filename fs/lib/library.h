/* Libraries of models (fs/library/library.h): how they are found.
 *
 * A source is a model, or a directory of models: its entries that hold models, one level deeper too, so that a hub
 * cache and a folder PUBLISHER/NAME are such directories. The components of a pipeline are models, NAME-COMPONENT. Only
 * directories are listed: a model opens when somebody looks into its directory.
 *
 * A model's id is ORG/NAME if the source says so, as a repository or "ORG/NAME=SOURCE"; else local/NAME, or the folder
 * above it. */
#pragma once

#include "formats/checkpoint.h"
#include "fs/options/options.h"
#include "sources/location.h"

/* Returns the tree of the sources' models, or NULL. lib_close_tree() closes it. The options must outlive it. */
struct tree *library_open(const char *const *sources, size_t n_sources, const struct options *options,
                          struct error *error);

/* Splits "ORG/NAME=SOURCE"; an argument without '=', or one that begins like a path, is only a source. */
const char *library_split(const char *argument, struct arena *arena, const char **ret_id);

/* Returns the repository in a path of a hub cache or a URL of a hub, ORG/NAME; NULL: it has none. */
const char *library_repository(const char *source, struct arena *arena);

/* GGUFs of one folder that belong together (library_folder.c): a model and its projector, as LM Studio and llama.cpp
 * keep them. */

/* What the names and manifests of a folder say. The path and the list must outlive it. */
struct library_folder;

/* Reads each manifest of llama.cpp's cache once, in the arena. Takes time linear in the folder, but for sorting. */
const struct library_folder *library_folder_new(const char *path, const struct location_list *list,
                                                struct arena *arena);

/* Returns the projectors of a model file of the folder, up to one without a name, in the arena; NULL: none. A projector
 * named after models of the folder ("mmproj-NAME-F16.gguf") belongs to these, and one without such a name to all. */
const struct companion *library_projectors(const struct library_folder *folder, const char *model);

/* Returns the names in the folder, with which each of its files is opened. */
const struct folder_names *library_names_beside(const struct library_folder *folder);

/* A model in the cache that llama.cpp had until 2026: one folder, with PUBLISHER_REPOSITORY_FILE.gguf. */
struct flat_model {
    const char *id; /* PUBLISHER/FILE, without the extension */
    const struct companion *companions;
};

/* Finds the names of a file of the folder, by its manifest "manifest=PUBLISHER=REPOSITORY=TAG.json", or by the URL in
 * FILE.gguf.json, or, of a file with a FILE.gguf.etag, by the ending "-GGUF" that repositories have. Returns false for
 * other files. *ret_model is in the arena. A projector, which belongs to another file, has no id. */
bool library_flat_model(const struct library_folder *folder, const char *file, struct flat_model *ret_model);
