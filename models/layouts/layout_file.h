/* Layout files: JSON that describes an engine's files of a model. models/layouts/NOTATION.md explains the notation.
 *
 *     {"files": {"name": "rank{rank}.safetensors", "for": {"rank": "tp"}},
 *      "parameters": {"tp": 1},
 *      "axes": {"tp": {"size": "tp", "part": "rank"}},
 *      "tensors": [{"for": {"layer": "layers"}, "tensors": [
 *          {"to": "layers.{layer}.mlp.up", "from": "model.layers.{layer}.mlp.up_proj.weight",
 *           "axes": "(tp row) column -> row column", "dtype": "BF16"}]}]}
 *
 * layout_file_read() checks all that does not depend on a model: the syntax of names, expressions and rearrangements,
 * and that every member is known and has the right type. Errors have the file, the line and the place in it:
 * "my.json:7: tensors[0].axes: '...': column 5: ...". Everything lives in the arena. */
#pragma once

#include "models/family/family.h"
#include "models/packings/packing.h"
#include "models/relation/axes.h"
#include "models/relation/elementwise.h"
#include "sources/source.h"
#include "text/json.h"

/* A name, and the expression of its value. */
struct layout_value {
    const char *name, *expression;
};

/* An axis of known size: the whole axis, or one of equal slices. */
struct layout_axis {
    const char *name, *size, *part; /* size: an expression; part: the slice's index, likewise; NULL: the whole axis */
};

/* A table of rotary positions: see quant/views/positions.h. All members except `factors` are expressions of numbers. */
struct layout_rotary {
    const char *base, *factors; /* factors: an expression of an array of numbers */
    const char *positions;      /* the number of positions; NULL: the table has the frequencies themselves */
    const char *trained;        /* the number of positions that the model was trained on */
};

/* A rule that makes tensors. */
struct layout_row {
    const char *place; /* "tensors[0].tensors[3]" */
    const char *to;    /* the name, with {expression} */
    const char *when;  /* NULL: always */
    const char *const *from;
    unsigned n_from;
    const char *translated;                  /* instead of `from`: a name that the keys translate to the sources */
    const struct json *keys;                 /* override those of the file; NULL: none */
    const struct rearrangement *const *axes; /* applied in order; a NULL one is "parallel": takes a rank's slice */
    unsigned n_axes;
    bool is_parallel;          /* an element of `axes` is NULL */
    const char *const *dtypes; /* names or expressions; the first that the shape allows is used */
    unsigned n_dtypes;         /* 0: the file's dtypes */
    const struct rule *rule;
    const struct elementwise *map;
    const struct json *constant;        /* a number, for an F32 scalar, or several, for a vector; NULL: none */
    const struct layout_rotary *rotary; /* the tensor is this table instead; NULL: none */
    const char *packed_when;            /* pack the tensor if this holds; NULL: never */
    const struct packer *packer;        /* the packing */
    const char *scales;                 /* the name of the second part, a template; NULL: the packer's */
    bool optional;                      /* no tensor, and no error, if all sources are missing */
};

/* Rows that are made in order; if `name` is not NULL, for each of its values from 0 up to `count` - 1. */
struct layout_block {
    const char *place, *name, *count, *when;
    struct layout_row *rows;
    unsigned n_rows;
};

struct layout_files {
    bool raw;         /* one file for each tensor, and a manifest */
    const char *name; /* a template; in raw files' names, {name} is the tensor's */
    struct layout_value each;
    const char *manifest;
    const char *part_size; /* a limit in bytes at which a file is cut into several, {part}; NULL: none */
};

struct layout_document {
    const char *name, *when;
    const char *of;             /* a side file whose members come first; NULL: none */
    const struct json *members; /* an array of {"when": ..., "set": {...}} */
};

struct layout_refusal {
    const char *when, *because; /* a template */
};

struct layout_file {
    const char *path, *name; /* name: the NAME of layouts/NAME/ */
    const struct json *root;
    const struct json *parameters; /* parameters with their defaults; NULL: none */
    struct layout_value *lets;
    struct layout_axis *axes;
    struct layout_refusal *refusals;
    struct layout_block *blocks;
    struct layout_document *documents;
    size_t n_lets, n_axes, n_refusals, n_blocks, n_documents;
    const struct json *keys;
    const struct family *family; /* the family whose names the keys make; NULL: not given */
    const char *const *dtypes;
    unsigned n_dtypes; /* 0: tensors keep the source's dtype */
    struct layout_files files;
    bool side_files; /* add the model's side files */
};

/* Returns "my.json:7: tensors[0]", for errors: the line of the innermost existing value on the way to the place. */
const char *layout_file_place(const struct layout_file *file, const char *place, struct arena *arena);

/* Returns the layout file in `source`; `name` is its name for users. Returns NULL if it is invalid. */
const struct layout_file *layout_file_read(const struct source *source, const char *name, struct arena *arena,
                                           struct error *error);

/* Layout files by name: "trtllm" is trtllm.json in share/wfs/layouts beside the program's bin/, or in models/layouts of
 * the program's own directory. A text with a slash, or with .json at its end, is a path, which must not contain ':'.
 *
 * A layout is asked for as NAME or NAME:PARAMETER=VALUE,... */

struct layout_request {
    const struct layout_file *file;
    const char *parameters; /* NULL: none */
};

struct layout_requests {
    const struct layout_request *items;
    size_t count;
};

/* Returns the names of the installed layouts, in the arena; NULL at the end. */
const char *const *layout_names(struct arena *arena);

/* Returns the directories where they may be installed, in the arena; NULL at the end. */
const char *const *layout_directories(struct arena *arena);

/* Reads the layout file that `text` asks for. Everything is made in the arena. */
bool layout_find(const char *text, struct arena *arena, struct layout_request *ret_request, struct error *error);
