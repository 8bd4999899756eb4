/* The files of targets (models/targets.h) that are made from one model. */
#pragma once

#include "formats/once.h"
#include "fs/tree/tree.h"
#include "models/targets.h"

struct target_files {
    struct tree *tree;
    once_maker *make; /* makes the model, a gguf_edition, from `context` */
    void *context;
    const char *left_out; /* the beginning of the note if the model fails: "mmproj.gguf and gguf/mmproj-* are";
                             NULL: no note */
    struct origin origin; /* of the files, valid once there is a model; empty: tree_origin_of_model() */
    struct once model;    /* freed with the tree */
};

/* Prepares `files`, where only the model is missing, which the first plan makes. They must live as long as the tree. */
void target_files_init(struct target_files *files);

/* Adds the file of a target and the directories of its path. The target must live as long as the tree. */
void target_files_add(struct target_files *files, const struct target *target);

/* Adds the files of all targets of a kind of model. */
void target_files_add_all(struct target_files *files, enum target_model of);

/* Returns the edition, which is made if necessary. If it has failed, notes that once and returns NULL, with the reason.
 */
const struct gguf_edition *target_files_edition(struct target_files *files, struct error *error);

/* Makes the artifact of a target, and first the model if necessary. Returns REPORTED if the model has failed. */
enum outcome target_files_make(struct target_files *files, const struct target *target,
                               const struct quantize_options *options, struct artifact *ret_artifact,
                               struct error *error);
