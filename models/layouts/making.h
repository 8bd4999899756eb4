/* The files of a layout while they are made: what make.c, which goes through blocks and files, shares with the rows. */
#pragma once

#include "models/layouts/cut.h"
#include "models/layouts/make.h"
#include "models/layouts/scope.h"

/* The budget of a layout, in rows made and tensors examined: a second or two; 64 ranks of the largest models need less.
 */
enum { LAYOUT_MAX_STEPS = 100 * 1000 * 1000, LAYOUT_ROW_STEPS = 64 };

struct making {
    struct scope scope;
    struct cutter cutter;
    struct key_names layout_keys; /* without those of a user */
    const struct layout_file *file;
    const struct tensor_set *set;
    struct arena *arena;
    struct layout_product *product;
    struct layout_tensor *tensors; /* of the file that is being made */
    size_t n_tensors, capacity;
    uint64_t n_steps;
    struct error *error;
};
