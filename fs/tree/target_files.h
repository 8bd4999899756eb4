/* The files of targets (models/targets.h) that are made from one model. */
#pragma once

#include "fs/tree/lazy.h"
#include "fs/tree/tree.h"
#include "models/targets.h"

struct target_files {
    struct tree *tree;
    lazy_maker *make; /* the model, with `context` */
    void *context;
    const char *left_out; /* which files are without it, for the note that says why: "mmproj.gguf and gguf/mmproj-*
                             are"; NULL: no note */
    struct origin origin; /* of the files, once there is a model; none: that of the tree's model */
    struct lazy model;    /* a gguf_model; freed with the tree */
};

/* Begins with all but the model, which is made when the first file is planned. `files` lives as long as the tree. */
void target_files_init(struct target_files *files);

/* Adds the file of a target, which lives as long as the tree, and the directories on the way to it. */
void target_files_add(struct target_files *files, const struct target *target);

/* Adds the files of all targets of a kind of model. */
void target_files_add_all(struct target_files *files, enum target_model of);

/* Makes the artifact of a target, and the model if need be. */
enum outcome target_files_make(struct target_files *files, const struct target *target,
                               const struct quantize_options *options, struct artifact *ret_artifact,
                               struct error *error);
