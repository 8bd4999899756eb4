/* Components: the checkpoints that a directory is made of, a folder each.
 *
 * The root of a diffusers pipeline tells in model_index.json what its folders are for, and a sentence-transformers
 * model in modules.json which folders its layers are in; a model that hears may have what makes tokens of sound in
 * audio_tokenizer. A component is a folder with weights in it, of a pipeline any, otherwise one that is named; no link
 * to one, and nothing further down. It is what its folder would be if that
 * had been named, and is opened when somebody wants it. A component has no components. */
#pragma once

#include "formats/format.h"

struct component {
    const char *name;       /* of its folder */
    const char *class_name; /* what it is an object of, as the list says: "UNet2DConditionModel"; NULL: it does not */
    uint64_t bytes;         /* of the files of weights that are there, whichever of them are used */
};

/* In the arena of the checkpoint that is made of them. */
struct components {
    const char *list; /* the name of the file that says what they are */
    const struct component *items;
    size_t count;
    bool alone;                          /* the directory itself has no files of weights */
    const char *path;                    /* of the directory */
    struct location *location;           /* the directory, for as long as the checkpoint is open */
    const struct format *const *formats; /* that they are opened with, and the options */
    struct open_options options;
};

/* Those of a directory, at most COMPONENTS_MAX; NULL where it has none. What the list names and is not there is noted,
 * and a list that cannot be read. */
enum { COMPONENTS_MAX = 64 };
struct components *components_find(struct checkpoint *checkpoint, const struct input *input);

/* The one of that name; NULL where there is none. `components` may be NULL. */
const struct component *components_named(const struct components *components, const char *name);

/* Reports whether a path is below the folder of one. */
bool components_hold(const struct components *components, const char *path);

/* Sets the error that says of something made of nothing but components which one to name instead; returns false. */
bool components_ask_for_one(const struct components *components, struct error *error);
