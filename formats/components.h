/* Components: the checkpoints in the folders of a directory.
 *
 * In a diffusers pipeline (model_index.json) every folder with weights is a component; in a sentence-transformers model
 * (modules.json), every folder with weights that the list names; in an audio model with config.json, audio_tokenizer
 * or speech_tokenizer, if weights are in both. Links to folders and folders further down are not components. A
 * component opens on request, as if its folder had been named, and has no components itself. */
#pragma once

#include "formats/format.h"

struct component {
    const char *name;       /* the folder's name */
    const char *class_name; /* its class in the list: "UNet2DConditionModel"; NULL: none */
    uint64_t bytes;         /* of its weights files and indexes, used or not */
};

/* The components of a checkpoint, in its arena. */
struct components {
    const char *list; /* the file that lists them, or config.json */
    const struct component *items;
    size_t count;
    bool alone;                          /* the directory itself has no weights files */
    const char *path;                    /* of the directory */
    struct location *location;           /* the directory, for as long as the checkpoint is open */
    const struct format *const *formats; /* for opening components, as `options` */
    struct open_options options;
};

/* Finds the components of a directory, at most COMPONENTS_MAX; returns NULL if it has none. Adds a note if the list
 * cannot be read or names a folder that a pipeline lacks, and if there are too many. */
enum { COMPONENTS_MAX = 64 };
struct components *components_find(struct checkpoint *checkpoint, const struct input *input);

/* Returns the component of that name, or NULL. `components` may be NULL. */
const struct component *components_named(const struct components *components, const char *name);

/* Reports whether a path is below the folder of a component. */
bool components_hold(const struct components *components, const char *path);

/* Sets the error for a path that consists of components alone, which asks for one of them; returns false. */
bool components_ask_for_one(const struct components *components, struct error *error);
