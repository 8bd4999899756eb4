/* The state of a layout while its files are made, shared by make.c, which walks blocks and files, and the rows. */
#pragma once

#include "base/text_index.h"
#include "models/layouts/cut.h"
#include "models/layouts/make.h"
#include "models/layouts/scope.h"

/* The limit on repetitions of blocks, rows made and tensors examined: a second or two; 64 ranks of the largest models
 * need less. */
enum { LAYOUT_MAX_STEPS = 100 * 1000 * 1000, LAYOUT_ROW_STEPS = 64 };

struct making {
    struct scope scope;
    struct cutter cutter;
    struct key_names layout_keys; /* without the user's */
    const struct layout_file *file;
    const struct tensor_set *set;
    struct arena *arena;
    struct layout_product *product;
    struct artifact_tensor *tensors; /* the current file's */
    struct layout_origin *origins;   /* by tensor */
    size_t n_tensors;
    struct output_weight *weights; /* of all files; the scope shows them to expressions */
    struct text_index weight_names;
    uint64_t n_steps;
    struct error *error;
};
