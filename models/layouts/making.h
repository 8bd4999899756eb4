/* Inside the making of a layout's files (make.h). */
#pragma once

#include "base/text_index.h"
#include "models/family/model_builder.h"
#include "models/layouts/make.h"
#include "models/layouts/scope.h"

/* Makes a layout's tensors from their sources: rearranges, cuts and joins these as a row says.
 *
 * Axes have the sizes that the layout file gives, and the numbers that its expressions know (head, kv_head ...).
 * "parallel" takes a rank's slice of each source, as the relation of the model's family divides the source among the
 * ranks of tensor parallelism; the axis tp has the number of ranks and the rank's index. If there are fewer key heads
 * or groups of states than ranks, several ranks get the same slice. */

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

/* The making of a layout's files: make.c walks blocks and files; a row finds the sources of its tensors, by a
 * dictionary of names, by names with values filled in, or by patterns that match the model's tensors. */

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

/* Makes the tensors of a row. On failure, sets making->error. */
bool row_make(struct making *making, const struct layout_row *row);

/* Make the tensor of a row from known sources (row.c): cut and map it, convert it to a dtype that the row
 * allows, and add it to the file. On failure, they set making->error. */

/* Finds the source of that name and marks it as used; *ret_view is NULL if it is missing. */
bool row_read_source(struct making *making, const char *name, const struct view **ret_view);

/* Makes the tensor of a row from its sources. */
bool row_make_tensor(struct making *making, const struct layout_row *row, const struct layout_sources *sources);

/* Makes the tensor of a row from sources of these names, still without views, if its condition holds. A missing source
 * is an error, unless the row is optional and all are missing. */
bool row_make_named(struct making *making, const struct layout_row *row, const struct layout_sources *named);

/* The JSON that a layout writes, in the style of json.dumps() with an indentation of 4: the manifest of raw files, and
 * documents (config.json ...). */

/* Appends {"tensors": [{"name": ..., "file": ..., "dtype": ..., "shape": [...], "bytes": ...}, ...]}. */
void layout_json_manifest(const struct layout_product *product, struct buffer *out);

/* Appends the members of the sections whose conditions hold; a later member replaces an earlier one of the same name. A
 * text that begins with '=' is an expression, and becomes its value. */
bool layout_json_document(const struct layout_document *document, struct scope *scope,
                          const struct checkpoint *checkpoint, struct buffer *out, struct error *error);
