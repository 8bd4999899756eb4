/* Model families: what the converter knows of each architecture, as tables.
 *
 * A family is a `const struct family x_family` that a file in this folder exports, alone or with its near kin, and a
 * row in families.c. The tensor rows are read in both directions: they turn Hugging Face names and layouts into GGUF's
 * and back. The key rows name the hyperparameter of every key. What needs code is a named hook in the family's own
 * file, or one of the shared ones below; adding a family never edits another's. */
#pragma once

#include "models/config_of_keys.h"
#include "models/model.h"
#include "models/relation.h"
#include "models/tokenizers/vocab.h"

enum { FAMILY_MAX_TABLES = 6, FAMILY_MAX_VOCABS = 5 };

/* A Hugging Face architecture, as config.json names it. */
struct family_name {
    const char *name;
    /* put before its tensors' names, for models without their head: "model."; NULL: that, where decoder_tensors need
     * it, before names that begin with embed_tokens, layers or norm */
    const char *prepended;
};

struct draft;

enum key_when {
    IF_PRESENT, /* the hyperparameter is there and not null */
    REQUIRED,   /* the converter fails without it, and so do we */
    OR_DEFAULT, /* `value` where it is absent or null */
    IF_TRUE,    /* true, or a number other than 0 */
    ALWAYS,     /* `value` or `text`, whatever config.json says */
};

/* One key. Its name is put after the architecture's unless it begins with a dot: ".general.file_type". Of
 * GGUF_U32, a value that is an array of whole numbers becomes an array of I32. */
struct key_row {
    const char *key;
    enum gguf_type type; /* GGUF_U32, GGUF_F32, GGUF_BOOL or GGUF_STRING */
    enum key_when when;
    const char *from; /* hyperparameters, the first present one counts: "rms_norm_eps|norm_eps"; "rope." before it:
                         of the rope */
    double value;     /* for OR_DEFAULT and ALWAYS */
    double times;     /* factor; 0: none */
    const char *text; /* for ALWAYS and GGUF_STRING */

    /* Instead of all that but `key`, `type` and `times`: computes the value. */
    bool (*compute)(const struct draft *draft, double *ret_value, struct error *error);

    /* Instead of all that: sets whatever keys it likes. */
    bool (*emit)(struct draft *draft, struct error *error);
};

/* What a tensor is in every output; a vector is F32 all the same. */
struct stored_type {
    const char *name; /* a pattern of GGUF's names, whole */
    const struct dtype *dtype;
};

/* Of a projector (models/projectors/projector.h): which part of a multimodal model it is about. */
struct tower {
    struct tower_config config;
    const char *const *parts;    /* what the names of its tensors begin with, up to a NULL */
    const char *const *borrowed; /* names of tensors of the text model that it takes something of; NULL: none */
    const struct stored_type *stored_types; /* up to a NULL name; NULL: none */
    const char *const *f16_or_f32_names;    /* patterns of matrices that are F32 in all outputs but that of F16; NULL */
    bool type_of_all; /* --outtype auto goes by other tensors, too: all but those with "language_model." in the name */
};

/* Whether a tensor of that name in the checkpoint is one of the tower's. */
bool tower_has(const struct tower *tower, const char *name);

struct family {
    const char *name;         /* of the family, unique: "qwen3" */
    const char *architecture; /* general.architecture; NULL: the name */
    const char *summary;      /* for people: "Qwen 3" */
    const struct family_name *hf;

    /* Tables up to a NULL; each ends with a row whose first member is NULL and whose other members that count are, too.
     * `tensors` relate Hugging Face's names and layout to GGUF's (models/relation.h), the family's own before those it
     * shares. */
    const struct relation_row *tensors[FAMILY_MAX_TABLES + 1];
    const struct key_row *keys[FAMILY_MAX_TABLES + 1];

    const struct vocab *vocabs[FAMILY_MAX_VOCABS]; /* kinds of tokenizer, tried in this order */

    const char *prefix;                  /* what a '^' in the rows stands for: "transformer."; NULL: nothing */
    const char *const *dropped_prefixes; /* taken off the beginning of names, up to a NULL; NULL: none */
    const char *const *dropped_parts;    /* taken out of names wherever they are */

    /* The classes of transformers that the way back writes, up to one without an architecture; NULL: it cannot. Of
     * families that share an architecture, which one it is: tokenizer.ggml.model, or by keys of the architecture,
     * "a|b". */
    const struct config_form *forms;
    const char *tokenizer_model, *told_by;

    bool matrices_alike;       /* also those that otherwise stay F32, such as routers, have the output's type */
    const char *dense_folder;  /* of the dense layer after the model, "1_Dense" (models/dense.h); NULL: none */
    bool drafts;               /* its tokenizer is that of the model that it drafts for (models/target.h) */
    bool keeps_mxfp4;          /* packed MXFP4 is written as it is, where the converter reads it of no other family */
    const struct tower *tower; /* NULL: it is a text model */

    /* Hooks, in their order of calling; all may be NULL. */

    /* Whether it is this family, for a Hugging Face architecture that several rows name. */
    bool (*applies)(const struct hparams *hparams);

    /* More facts than all families have, from config.json or what was made of a GGUF's keys. */
    void (*add_facts)(struct facts *facts, const struct hparams *hparams);

    /* A last look at the facts, with the checkpoint at hand. */
    bool (*adjust)(struct draft *draft, struct error *error);

    /* Tensors that are in no file, and keys that go with them: they come before all others. */
    bool (*add_extras)(struct draft *draft, struct error *error);

    /* The name that the rows are about, of one that Hugging Face has (FORWARD), or the other way; `name` where it is
     * the same. NULL: the tensor is left out. */
    const char *(*rename)(struct arena *arena, const struct facts *facts, enum direction direction, const char *name);

    /* A last look at the tensors: another order than the checkpoint's, types whatever the precision. */
    void (*arrange)(struct draft *draft);

    /* Keys before and after the tokenizer's own. */
    bool (*before_vocab)(struct draft *draft, const struct vocab_input *input, struct error *error);
    bool (*after_vocab)(struct draft *draft, const struct vocab_input *input, struct error *error);

    /* On the way back, tensors that keys hold: writes each of them. */
    void (*restore)(const struct gguf_kvs *kvs, struct arena *arena, void *context,
                    void (*write)(void *context, const char *name, const struct view *view));
};

/* All families, NULL at the end. */
extern const struct family *const families[];

/* The family of the model that `hparams` describe, or NULL; *ret_name is the row of its architecture. */
const struct family *family_find(const struct hparams *hparams, const struct family_name **ret_name);

/* general.architecture. */
const char *family_architecture(const struct family *family);

/* A model while it is being made. */
struct draft {
    struct gguf_model *model; /* its arena, checkpoint, hparams, kvs */
    const struct family *family;
    const struct family_name *hf;
    struct facts facts;
    size_t forced_capacity; /* of model->forced */
    bool *is_partial;       /* that of the relation's job: the tensors need not be all of a model */
};

/* For hooks: one more tensor. `name` and `view` live in the model's arena. */
void draft_add_tensor(struct draft *draft, const char *name, const struct view *view, const struct dtype *forced);

/* The same before tensor `place`. */
void draft_insert_tensor(struct draft *draft, size_t place, const char *name, const struct view *view);

/* For family.arrange: puts the tensors of these names, patterns up to a NULL, before all others: layer by layer, and in
 * each in the order of the names. */
void draft_put_first(struct draft *draft, const char *const *names);

/* The same for one tensor that comes after all others, where it is there. */
void draft_put_last(struct draft *draft, const char *name);

/* The name of a key of the architecture, in the model's arena: "llama.block_count". */
const char *draft_key(const struct draft *draft, const char *key);

/* Sets the keys of a table. */
bool draft_emit(struct draft *draft, const struct key_row *rows, struct error *error);

/* The number that hyperparameters hold, as in key_row.from; `otherwise` where it is absent or null; false where it is
 * not a number. */
bool draft_number(const struct draft *draft, const char *from, double otherwise, double *ret_value,
                  struct error *error);

/* The sum of two such numbers; false where one is missing. */
bool draft_sum(const struct draft *draft, const char *first, const char *second, double *ret_value,
               struct error *error);

/* What families share. */

/* Of forms whose class is no part of transformers. */
#define OWN_CLASS_NOTE "its class is in files that are published with the model, and that the GGUF does not have"

extern const struct relation_row decoder_tensors[];    /* names of Llama and most that came after it */
extern const struct relation_row sparse_moe_tensors[]; /* experts as Mixtral has them */
/* the converter's common emitter, general.file_type at its end */
extern const struct key_row base_keys[];
extern const struct key_row moe_keys[]; /* expert_feed_forward_length and the shared expert's */

/* Rearrangements that several families have: rotary rows, whose halves become pairs, and fused matrices. */
#define QUERY_ROTARY "(head half pair) ... -> (head pair half) ..."
#define KEY_ROTARY   "(kv_head half pair) ... -> (kv_head pair half) ..."
#define GATE_UP      "... (gate + up) c -> ... gate c, ... up c"

/* Hyperparameters under which configurations have the number of layers. */
#define BLOCK_COUNT "n_layers|num_hidden_layers|n_layer|num_layers"

/* general.file_type; its value is of the output. */
#define FILE_TYPE_KEY                                                                                                  \
    {                                                                                                                  \
        .key = ".general.file_type", .type = GGUF_U32, .when = ALWAYS                                                  \
    }

/* pooling_type, from modules.json and the configuration it names. */
bool emit_pooling_type(struct draft *draft, struct error *error);

/* rope.dimension_count, in the ways families compute it. */
bool compute_head_dim(const struct draft *draft, double *ret_value, struct error *error);
bool compute_rotary_of_hidden(const struct draft *draft, double *ret_value, struct error *error);
bool compute_rotary_of_head(const struct draft *draft, double *ret_value, struct error *error);
bool compute_rotary_of_half(const struct draft *draft, double *ret_value, struct error *error);

/* The part of a head's dimensions that partial_rotary_factor says; `otherwise` where it says nothing, NAN: an error. */
bool rotary_of_head_dim(const struct draft *draft, double otherwise, double *ret_value, struct error *error);

/* Backwards: the name of expert_gating_func as config.json has it, in quotation marks; NULL where the key is absent. */
const char *config_gating_function(const struct config_material *material);

/* rope_freqs.weight, where the rope is scaled the Llama 3 way. */
bool add_rope_freqs(struct draft *draft, struct error *error);

/* For families to whose models the converter gives a chat template of its own, which is not known here: add_extras
 * keeps its place among the keys for that of the files; where they have none after_vocab says so, and leaves the place
 * to the user's. */
bool hold_chat_template(struct draft *draft, struct error *error);
bool release_chat_template(struct draft *draft, const struct vocab_input *input, struct error *error);
