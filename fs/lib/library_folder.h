/* GGUFs of one folder that belong together: a model and its projector, as LM Studio and llama.cpp keep them. */
#pragma once

#include "formats/checkpoint.h"
#include "sources/location.h"

/* Returns the projectors of a model file of the folder at `path`, up to one without a name, in the arena; NULL: none. A
 * projector named after models of the folder ("mmproj-NAME-F16.gguf") belongs to these, and one without such a name to
 * all. */
const struct companion *library_projectors(const char *path, const struct location_list *list, const char *model,
                                           struct arena *arena);

/* A model in the cache that llama.cpp had until 2026: one folder, with PUBLISHER_REPOSITORY_FILE.gguf. */
struct flat_model {
    const char *id; /* PUBLISHER/FILE, without the extension */
    const struct companion *companions;
};

/* Finds the names of a file of the folder, by its manifest "manifest=PUBLISHER=REPOSITORY=TAG.json", or by the URL in
 * FILE.gguf.json, or, of a file with a FILE.gguf.etag, by the ending "-GGUF" that repositories have. Returns false for
 * other files. *ret_model is in the arena. A projector, which belongs to another file, has no id. */
bool library_flat_model(const char *path, const struct location_list *list, const char *file, struct arena *arena,
                        struct flat_model *ret_model);
