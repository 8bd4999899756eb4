/* Makes a layout's tensors from their sources: rearranges, cuts and joins these as a row says.
 *
 * Axes have the sizes that the layout file gives, and the numbers that its expressions know (head, kv_head ...).
 * "parallel" takes a rank's slice of each source, as the relation of the model's family divides the source among the
 * ranks of tensor parallelism; the axis tp has the number of ranks and the rank's index. If there are fewer key heads
 * or groups of states than ranks, several ranks get the same slice. */
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
    const struct rearrangement *parsed[CUTTER_PARSED]; /* parsed texts of relations' rows; most tensors share a few */
    unsigned n_parsed;
};

/* Also reads the dimensions of the model into the scope. Everything is made in the arena. */
bool cutter_init(struct cutter *cutter, struct scope *scope, struct arena *arena, struct error *error);

/* The sources of a row's tensor. */
struct layout_sources {
    const char *const *names;
    const char *const *by_keys; /* their names by the layout's own keys, for `of_keys`; NULL: not translated */
    const struct view **views;
    unsigned count;
};

/* Makes the one tensor of a row from its sources. Fails if they do not become one, unless the row is a constant. */
bool cutter_cut(struct cutter *cutter, const struct layout_row *row, const struct layout_sources *sources,
                const struct view **ret_view, struct error *error);
