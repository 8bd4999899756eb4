/* The parameters of a DeepSpeed ZeRO checkpoint, gathered from its ranks.
 *
 * Each rank keeps a part of flat vectors of F32: for stages 1 and 2 a part of the vector of each parameter group, for
 * stage 3 a part of each parameter. Source: deepspeed/utils/zero_to_fp32.py, whose results these are, except that
 * frozen parameters, which stage 1 saves only with the model, are here as the model has them. */
#pragma once

#include "formats/checkpoint_builder.h"
#include "formats/torch/pickle.h"

/* A file of a rank. */
struct zero_file {
    struct source *source;
    const struct tensor_set *tensors; /* sealed */
    const struct pickle_node *values; /* of its pickle; NULL: not read */
};

struct zero_ranks {
    const char *place;               /* of the files, for messages */
    unsigned n_ranks, n_model_files; /* a model file for each rank (stage 3), or one */
    const struct zero_file *models, *optimizers;
};

/* Adds the tensors to a set of the arena. */
bool zero_gather(const struct zero_ranks *ranks, struct tensor_set *set, struct arena *arena, struct error *error);
