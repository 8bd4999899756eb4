/* The names in the expressions of a layout file: numbers that count files and layers, the layout's parameters, its
 * definitions, and values of the model. A name is looked up in this order:
 *
 *     locals       rank, layer ...; sources: their number; rows, columns: of the first source; rest, name, part
 *     parameters   with '_' for '-'
 *     let          the layout file's definitions, an expression each
 *     config.KEY   from config.json as transformers shows it; rope.KEY: a rope parameter; null: absent
 *     architecture the Hugging Face class, or ''; layers, hidden, head, kv_head, expert: numbers, 0 if unknown
 *
 * Functions: has('NAME') reports whether the model has that tensor; translated('NAME') is the first name that the keys
 * make from NAME; of('PART', 'TEXT') reports whether TEXT contains PART; quantization('NAME') is the configuration of
 * the packer of that name (models/packings/packing.h) for the tensors of all files, so it is of use in documents alone;
 * fail('REASON') is an error. */
#pragma once

#include "models/huggingface/hf_model.h"
#include "models/layouts/expression.h"
#include "models/layouts/key_names.h"
#include "models/layouts/layout_file.h"
#include "models/relation/dimensions.h"

enum { SCOPE_MAX_LOCALS = 16 };

struct scope_name {
    const char *name;
    struct value value;
};

struct scope {
    const struct layout_file *file;
    const struct tensor_set *set;
    struct hparams *hparams; /* NULL: no config.json */
    struct dimensions dimensions;
    struct scope_name *parameters;
    size_t n_parameters;
    struct scope_name locals[SCOPE_MAX_LOCALS];
    unsigned n_locals, depth;
    struct known_lets *lets; /* the definitions' values that are known; NULL: none */
    struct key_names keys;
    const struct output_weight *weights; /* those made so far, by the rows of all files */
    size_t n_weights;
    struct arena *arena;
    uint64_t n_looked_up; /* for a limit, because definitions may use each other */
};

/* Reads the user's parameters, "tp=2,parallel-embedding"; NULL: none. Fails for one that the file lacks, or whose value
 * is not of the kind of its default. From then on a definition is computed once for the locals that definitions name,
 * unless it calls translated() or quantization(). */
bool scope_read_parameters(struct scope *scope, const char *text, struct error *error);

/* Evaluate an expression: to any value, to a number from 0 to `limit`, or to whether it is true. Only scope_holds()
 * takes NULL, which is true. */
bool scope_value(struct scope *scope, const char *expression, struct value *ret_value, struct error *error);
bool scope_number(struct scope *scope, const char *expression, uint64_t limit, uint64_t *ret_number,
                  struct error *error);
bool scope_holds(struct scope *scope, const char *expression, bool *ret_holds, struct error *error);

/* Reports whether a name has a value. */
bool scope_knows(struct scope *scope, const char *name);

/* Replaces the {expressions} of a template, in the arena; fails for a value that is neither a number nor a text. */
bool scope_fill(struct scope *scope, const char *text, const char **ret_text, struct error *error);

void scope_push(struct scope *scope, const char *name, struct value value); /* at most SCOPE_MAX_LOCALS at a time */
void scope_pop(struct scope *scope);
