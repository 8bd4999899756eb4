/* Layout files: what an engine wants a model to look like, as JSON. models/layouts/NOTATION.md explains the notation to
 * those who write them.
 *
 *     {"files": {"name": "rank{rank}.safetensors", "for": {"rank": "tp"}},
 *      "parameters": {"tp": 1},
 *      "axes": {"tp": {"size": "tp", "part": "rank"}},
 *      "tensors": [{"for": {"layer": "layers"}, "tensors": [
 *          {"to": "layers.{layer}.mlp.up", "from": "model.layers.{layer}.mlp.up_proj.weight",
 *           "axes": "(tp row) column -> row column", "dtype": "BF16"}]}]}
 *
 * Here they are read and checked, but for what depends on a model: names, expressions and rearrangements are of their
 * notations, every member has the type that it must have, and there are no others. Errors have the file, the line and
 * the place in it: "my.json:7: tensors[0].axes: '...': column 5: ...". Everything lives in the arena. */
#pragma once

#include "formats/json.h"
#include "formats/source.h"
#include "models/family/family.h"
#include "models/packings/packing.h"
#include "models/relation/axes.h"
#include "models/relation/elementwise.h"

/* A name and an expression. */
struct layout_value {
    const char *name, *expression;
};

/* An axis whose size is known: all of it, or the equal part at an index. */
struct layout_axis {
    const char *name, *size, *part; /* expressions; part may be NULL */
};

/* A table of rotary positions: see quant/rotary.h. All but `factors` are expressions of numbers. */
struct layout_rotary {
    const char *base, *factors; /* factors: of an array of numbers */
    const char *positions;      /* NULL: the table is of the frequencies themselves */
    const char *trained;        /* the number of positions that the model was trained on */
};

/* A rule that makes tensors. */
struct layout_row {
    const char *place; /* "tensors[0].tensors[3]" */
    const char *to;    /* the name, with {expression} */
    const char *when;  /* NULL: always */
    const char *const *from;
    unsigned n_from;
    const char *translated;                  /* instead of `from`: the name whose translation by the keys they are */
    const struct json *keys;                 /* that go before those of the file; NULL: none */
    const struct rearrangement *const *axes; /* one after the other; NULL: what a rank has, by a family's relation */
    unsigned n_axes;
    bool is_parallel;          /* one of them is NULL */
    const char *const *dtypes; /* the first that the shape allows; names or expressions */
    unsigned n_dtypes;         /* 0: those of the file */
    const struct rule *rule;
    const struct elementwise *map;
    const struct json *constant; /* a number that is the value of a scalar in F32, or several of a vector; NULL: none */
    const struct layout_rotary *rotary; /* the tensor is such a table instead; NULL: none */
    const char *packed_when;            /* the tensor is packed where this holds; NULL: never */
    const struct packer *packer;        /* how */
    const char *scales;                 /* the name of the second part, a template; NULL: as the packer has it */
    bool optional;                      /* nothing where the sources are not there */
};

/* Rows that are done one after the other for each number from 0 on, if `name` is not NULL. */
struct layout_block {
    const char *place, *name, *count, *when;
    struct layout_row *rows;
    unsigned n_rows;
};

struct layout_files {
    bool raw;         /* one file for each tensor, and a manifest */
    const char *name; /* a template; of raw files {name} is the tensor's */
    struct layout_value each;
    const char *manifest;
    const char *part_size; /* the most bytes of a part; NULL: no parts */
};

struct layout_document {
    const char *name, *when;
    const char *of;             /* the side file whose members come first; NULL: none */
    const struct json *members; /* an array of {"when": ..., "set": {...}} */
};

struct layout_refusal {
    const char *when, *because; /* a template */
};

struct layout_file {
    const char *path, *name; /* "layouts/NAME/" */
    const struct json *root;
    const struct json *parameters; /* their defaults; NULL: none */
    struct layout_value *lets;
    struct layout_axis *axes;
    struct layout_refusal *refusals;
    struct layout_block *blocks;
    struct layout_document *documents;
    size_t n_lets, n_axes, n_refusals, n_blocks, n_documents;
    const struct json *keys;
    const struct family *family; /* whose names the keys make; NULL: none that is known */
    const char *const *dtypes;
    unsigned n_dtypes; /* 0: as the source has it */
    struct layout_files files;
    bool side_files; /* those of the model beside them */
};

/* "my.json:7: tensors[0]", for errors: the line is that of the innermost value there is on the way to the place. */
const char *layout_file_place(const struct layout_file *file, const char *place, struct arena *arena);

const struct layout_file *layout_file_read(const struct source *source, const char *name, struct arena *arena,
                                           struct error *error);
