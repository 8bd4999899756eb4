/* The names in the expressions of a layout file: numbers that count files and layers, the layout's parameters, its
 * definitions, and values of the model. The first of these with a name wins, in this order:
 *
 *     locals       rank, layer ...; rows, columns: of the first source
 *     parameters   with '_' for '-'
 *     let          of the layout file, an expression each
 *     config.KEY   of config.json as transformers shows it; null where it is absent. rope.KEY: of the rope parameters
 *     architecture, layers, hidden, head, kv_head, expert
 *
 * Functions: has('NAME'), whether the model has that tensor; translated('NAME'), the first name that the keys make of
 * it; of('PART', 'TEXT'): whether one text is part of another; quantization('NAME'), what a configuration says of the
 * packer of that name (models/packings/packing.h); fail('REASON'): an error. */
#pragma once

#include "models/huggingface/hf_model.h"
#include "models/layouts/expression.h"
#include "models/layouts/key_names.h"
#include "models/layouts/layout_file.h"
#include "models/relation/facts.h"

enum { SCOPE_MAX_LOCALS = 16 };

struct scope_name {
    const char *name;
    struct value value;
};

struct scope {
    const struct layout_file *file;
    const struct tensor_set *set;
    struct hparams *hparams; /* NULL: there is no config.json */
    struct dimensions dimensions;
    struct scope_name *parameters;
    size_t n_parameters;
    struct scope_name locals[SCOPE_MAX_LOCALS];
    unsigned n_locals, depth;
    struct key_names keys;
    struct arena *arena;
    uint64_t n_looked_up; /* definitions may use each other: what that costs is bounded */
};

/* Reads the parameters that a user gave, "tp=2,parallel-embedding": those of the file, each of the kind of its default.
 */
bool scope_read_parameters(struct scope *scope, const char *text, struct error *error);

/* The value of a name or an expression. NULL is true. */
bool scope_value(struct scope *scope, const char *expression, struct value *ret_value, struct error *error);
bool scope_number(struct scope *scope, const char *expression, uint64_t limit, uint64_t *ret_number,
                  struct error *error);
bool scope_holds(struct scope *scope, const char *expression, bool *ret_holds, struct error *error);

/* Reports whether a name has a meaning. */
bool scope_knows(struct scope *scope, const char *name);

/* A template with its {expressions} replaced. */
bool scope_fill(struct scope *scope, const char *text, const char **ret_text, struct error *error);

void scope_push(struct scope *scope, const char *name, struct value value); /* of SCOPE_MAX_LOCALS at most */
void scope_pop(struct scope *scope);
