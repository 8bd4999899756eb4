/* Configuration classes of transformers: the values that they fill in for keys that config.json lacks.
 *
 * Only values that a family (families/), projector or tokenizer reads are listed. Numbers are spelled as Python shows
 * them, because a whole number and a float become keys of different types in a GGUF.
 *
 * Source: configuration_*.py of transformers; checked against AutoConfig by tests/unit/models/config/hparams.c.
 */
#pragma once

#include "text/json.h"

#include <stdbool.h>

/* A key that config.json may use instead of the class's own name for it; "a.b" is b of the object a. The key "" means
 * that the class accepts and ignores the alias. */
struct config_alias {
    const char *alias, *key;
};

/* A value that the class computes if it is absent or null: the value of `from`, divided by that of `divided_by` and
 * rounded down. */
struct config_computed {
    const char *key, *from, *divided_by; /* divided_by may be NULL */
};

struct config_class {
    const char *model_type;                 /* model types that share the values: "gpt2|gpt_bigcode" */
    const char *defaults;                   /* a JSON object, spelled with ' for the quotation mark */
    const struct config_alias *aliases;     /* up to a NULL alias; NULL: none */
    const struct config_computed *computed; /* up to a NULL key; NULL: none */
    const char *text_class;                 /* model_type of a text_config that has none */
    const char *text_defaults;              /* for text_config, before those of its class; NULL: none */
    bool is_raw;                            /* the converter reads config.json without the class */
    bool text_may_be_flat;                  /* without text_config, config.json itself has its keys */

    /* Like text_class, for the vision and audio encoders. Encoders have rows of their own, with is_tower; no text model
     * has their model types. */
    const char *vision_class, *audio_class;
    bool is_tower;
};

/* Returns the class of a model type, or NULL if transformers does not know the type or this table lacks it. */
const struct config_class *config_class_find(const char *model_type);

/* The defaults of all classes: a JSON object, spelled with ' for the quotation mark. */
extern const char config_common_defaults[];

/* What configuration classes of transformers refuse. The converter then reads config.json without any class.
 *
 * Source: rope_config_validation() and layer_type_validation() of transformers 4.57.6, the classes that call them, and
 * to_dict() of PretrainedConfig. */

/* Reports whether to_dict() shows the object: it fails for a quantization_config of null. */
bool config_is_shown(const struct json *config);

/* Reports whether the class takes the object: rope_scaling has the keys that its kind needs, and layer_types has known
 * names, one for each layer. */
bool config_class_takes(const struct config_class *class, const struct json *config);

/* Reports whether the class takes `type` of rope_scaling for rope_type, even if both are there. */
bool config_class_takes_type(const struct config_class *class);
