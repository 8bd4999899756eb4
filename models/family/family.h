/* The record of a family: the converter's knowledge of a kind of model, as data and hooks.
 *
 * The tensor rows work in both directions: they turn Hugging Face's names and arrangements into GGUF's and back. The
 * key rows name the hyperparameter of every key. Anything that needs code is a named hook. models/families/ and
 * models/projectors/ have the records; this folder applies one to a checkpoint, and has functions for hooks. */
#pragma once

#include "formats/gguf/kv.h"
#include "models/config/hparams.h"
#include "models/references/references.h"
#include "models/relation/relation.h"

enum { FAMILY_MAX_TABLES = 7, FAMILY_MAX_VOCABS = 5 };

/* A Hugging Face class, a name in config.json's `architectures`. */
struct family_name {
    const char *name;
    /* prefix for the names of its tensors, for models without their head: "model."; NULL: "model." if decoder_tensors
     * need it, before names that begin with embed_tokens, layers or norm */
    const char *prepended;
    unsigned since;   /* the first build of llama.cpp that knows the class, such as 11292; 0: all */
    bool without_mtp; /* the converter leaves out its layers of multi-token prediction */
};

struct config_form;
struct model_builder;
struct vocab;
struct vocab_input;

enum key_when {
    IF_PRESENT, /* if the hyperparameter exists and is not null */
    REQUIRED,   /* fails without it, as the converter does */
    OR_DEFAULT, /* `value` if it is absent or null */
    IF_TRUE,    /* if it is true, or a number other than 0 */
    ALWAYS,     /* `value` or `text`, whatever config.json says */
};

/* One key. The architecture's name is its prefix, unless the key begins with a dot: ".general.file_type". With
 * GGUF_U32, an array of whole numbers becomes an array of I32. */
struct key_row {
    const char *key;
    enum gguf_type type; /* GGUF_U32, GGUF_F32, GGUF_BOOL or GGUF_STRING */
    enum key_when when;
    const char *from; /* hyperparameters, the first present one counts: "rms_norm_eps|norm_eps"; the prefix "rope."
                         reads the rope's */
    double value;     /* for OR_DEFAULT and ALWAYS */
    double times;     /* factor; 0: none */
    const char *text; /* for ALWAYS and GGUF_STRING */

    /* Hyperparameters, as in `from`; the value is multiplied by, or increased by, their number. */
    const char *by, *plus;
    double otherwise; /* their number if absent or null; 0: then the row fails */

    /* Computes the value, instead of all members but `key`, `type` and `times`. */
    bool (*compute)(const struct model_builder *builder, double *ret_value, struct error *error);

    /* Sets any keys, instead of all other members except `since` and `until`. */
    bool (*emit)(struct model_builder *builder, struct error *error);

    enum upstream_change since, until; /* only with, or without, the rule of this change */
};

/* The type of a tensor in every output; vectors of floats are always F32. */
struct stored_type {
    const char *name; /* a pattern for a whole GGUF name */
    const struct dtype *dtype;
    const struct dtype *of;     /* only if its values have this type; NULL: any */
    enum upstream_change since; /* only with the rule of this change */
};

/* For a projector (models/projectors/projector.h): its part of a multimodal model. */
struct tower {
    struct tower_config config;
    const char *const *parts;            /* prefixes of its tensors' names, up to a NULL */
    const char *const *borrowed;         /* names of text tensors that it uses; NULL: none */
    const char *const *f16_or_f32_names; /* patterns of matrices that are F32 in all outputs except F16; NULL: none */
    bool type_of_all; /* --outtype auto also considers other tensors: all without "language_model." in the name */
};

struct family {
    const char *name;         /* the family's, unique: "qwen3" */
    const char *architecture; /* general.architecture; NULL: the name, or "clip" for a projector */
    const char *summary;      /* for people: "Qwen 3" */
    unsigned since;           /* the first build of llama.cpp that knows the family, such as 11292; 0: all */
    const struct family_name *hf;

    /* Tables up to a NULL, each ended by a zeroed row. `tensors` relate Hugging Face's names and arrangements to GGUF's
     * (models/relation/relation.h), the family's own tables before shared ones. */
    const struct relation_row *tensors[FAMILY_MAX_TABLES + 1];
    const struct key_row *keys[FAMILY_MAX_TABLES + 1];

    /* The family's own dimensions, from config.json or from hyperparameters made of a GGUF's keys. */
    const struct dimension_row *dimensions[FAMILY_MAX_TABLES + 1];

    /* Tables of one, set before and after the tokenizer's keys; NULL: none. */
    const struct key_row *keys_before_vocab, *keys_after_vocab;

    const struct vocab *vocabs[FAMILY_MAX_VOCABS]; /* kinds of tokenizer, tried in this order */

    const char *prefix;                  /* the text for '^' in the rows: "transformer."; NULL: "" */
    const char *const *dropped_prefixes; /* removed from the beginning of names, up to a NULL; NULL: none */
    const char *const *dropped_parts;    /* removed anywhere in names */

    /* The transformers classes for the way back, up to one without a class; NULL: none. Among families that share an
     * architecture, this family has that tokenizer.ggml.model and meets the conditions, written as in config_form.when;
     * NULL: any. */
    const struct config_form *forms;
    const char *tokenizer_model, *told_by;
    const char
        *no_forms; /* without forms: what is lost in a GGUF, after the architecture's name; NULL: nothing known */

    const char
        *defaults;    /* for hyperparameters that config.json and its class lack, as in hparams_default(); or NULL */
    const char *note; /* note for every model.gguf or mmproj.gguf of the family; NULL: none */

    bool matrices_alike;      /* matrices that usually stay F32, such as routers, have the output's type, too */
    const char *folder;       /* with weights that a GGUF includes: "1_Dense" (models/derive/attached.c); NULL: none */
    bool drafts;              /* a draft model, which uses the tokenizer of its target (models/derive/adapter.h) */
    bool keeps_mxfp4;         /* packed MXFP4 is copied; the converter reads it from no other families */
    const char *renamed_late; /* tensors with this beginning, which the converter renames too late for fusion.c */
    bool exports_mtp;         /* the converter writes the layers of multi-token prediction alone (tensors.c), */
    enum upstream_change mtp_since;         /* with this rule */
    const struct tower *tower;              /* NULL: a text model */
    const struct stored_type *stored_types; /* the first that fits a tensor counts; up to a NULL name; NULL: none */

    /* Hooks, in their order of calling; all may be NULL. */

    /* Reports whether a model belongs to this family, for a Hugging Face class that several families name; if none of
     * them claims it, the model belongs to the family without this hook. */
    bool (*applies)(const struct hparams *hparams);

    /* Adds dimensions that need more than a row. */
    void (*add_dimensions)(struct dimensions *dimensions, const struct hparams *hparams);

    /* Corrects the dimensions with the help of the checkpoint. */
    bool (*adjust)(struct model_builder *builder, struct error *error);

    /* Adds tensors that no file has, and their keys, before all others. */
    bool (*add_extras)(struct model_builder *builder, struct error *error);

    /* Returns the rows' name for a Hugging Face name (FORWARD), or the reverse; `name` if both are equal, NULL to leave
     * the tensor out. */
    const char *(*rename)(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                          const char *name);

    /* Changes the order of the tensors, or fixes types for every output. */
    void (*arrange)(struct model_builder *builder);

    /* Add keys before and after the tokenizer's. */
    bool (*before_vocab)(struct model_builder *builder, const struct vocab_input *input, struct error *error);
    bool (*after_vocab)(struct model_builder *builder, const struct vocab_input *input, struct error *error);

    /* On the way back, writes each tensor that keys hold. */
    void (*restore)(const struct gguf_kvs *kvs, struct arena *arena, void *context,
                    void (*write)(void *context, const char *name, const struct view *view));
};

/* Short tables at the place of use, with the ending row. */
#define FAMILY_NAMES(...) ((const struct family_name[]){__VA_ARGS__, {0}})
#define TENSORS(...)      ((const struct relation_row[]){__VA_ARGS__, {0}})
#define KEYS(...)         ((const struct key_row[]){__VA_ARGS__, {0}})
#define DIMENSIONS(...)   ((const struct dimension_row[]){__VA_ARGS__, {0}})
#define STORED_TYPES(...) ((const struct stored_type[]){__VA_ARGS__, {0}})
#define TEXTS(...)        ((const char *const[]){__VA_ARGS__, NULL})
#define TOWER(...)        (&(const struct tower){__VA_ARGS__})

/* Names of Llama and most later models. */
extern const struct relation_row decoder_tensors[];

/* Returns the family, among `all` up to a NULL, of a model with that Hugging Face class, which may be NULL; *ret_name
 * is the class's row. NULL: no family. */
const struct family *family_among(const struct family *const *all, const char *class, const struct hparams *hparams,
                                  const struct family_name **ret_name);

/* Reports whether the converter of a build knows the family and the class. */
bool family_is_known(const struct family *family, const struct family_name *hf, const struct references *references);

/* Returns the relation of a family's tables, or NULL. It is made once for all models, and stays: a library opens
 * thousands of one family. The family must be static. Safe from any thread. */
const struct relation *family_relation(const struct family *family, struct error *error);

/* Returns general.architecture. */
const char *family_architecture(const struct family *family);

/* Adds the family's own dimensions. */
void family_add_dimensions(const struct family *family, struct dimensions *dimensions, const struct hparams *hparams);

/* Reports whether a tensor with that name in the checkpoint belongs to the tower. */
bool tower_has(const struct tower *tower, const char *name);

/* Returns the name that the family's rows use for a Hugging Face name: without the prefixes around the text model, and
 * renamed by the family. Returns NULL for a tensor to leave out. */
const char *family_tensor_name(const struct family *family, const struct family_name *hf,
                               const struct dimensions *dimensions, const char *name, struct arena *arena);
