/* The making of a layout's files: make.c walks blocks and files; a row finds the sources of its tensors, by a
 * dictionary of names, by names with values filled in, or by patterns that match the model's tensors. */
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

/* Makes the tensors of a row. On failure, sets making->error. */
bool row_make(struct making *making, const struct layout_row *row);

/* Make the tensor of a row from known sources (row_tensor.c): cut and map it, convert it to a dtype that the row
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
