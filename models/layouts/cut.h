/* Tensors of a layout from those that they are made of: rearranged, cut, joined as a row says.
 *
 * Sizes of axes are those that the layout file gives, and numbers that its expressions know (head, kv_head ...).
 * "parallel" is the part of a rank: what the relation of the model's family divides among the ranks of tensor
 * parallelism, whose number and index are those of the axis tp. Of key heads that are fewer than ranks, and of groups
 * of states, several ranks have the same. */
#pragma once

#include "models/family/model_builder.h"
#include "models/layouts/scope.h"

enum { CUTTER_PARSED = 64 };

struct cutter {
    struct scope *scope;
    struct arena *arena;
    const struct family *family; /* NULL: none is known */
    const struct family_name *hf;
    const struct relation *relation;
    const struct relation *of_keys; /* of the family whose names the keys of the layout make; NULL: none is known */
    const struct rearrangement *parsed[CUTTER_PARSED]; /* of relations' rows: most tensors have one of a few */
    unsigned n_parsed;
};

/* Reads the facts of the model into the scope, too. */
bool cutter_init(struct cutter *cutter, struct scope *scope, struct arena *arena, struct error *error);

/* The sources of a row's tensor. */
struct layout_sources {
    const char *const *names;
    const char *const *by_keys; /* what they are called by the keys of the layout alone; NULL: not translated */
    const struct view **views;
    unsigned count;
};

/* The one tensor that a row makes of its sources. */
bool cutter_cut(struct cutter *cutter, const struct layout_row *row, const struct layout_sources *sources,
                const struct view **ret_view, struct error *error);
