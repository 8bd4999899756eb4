/* Configuration classes of transformers: what they fill in where config.json is silent.
 *
 * Only values that some family (families/) or tokenizer (tokenizers/) reads are listed. Numbers are spelled as Python
 * shows them, since a whole number and a float are different types of key in a GGUF.
 *
 * Source: configuration_*.py of transformers; checked against AutoConfig by tests/unit/models/config/hparams.c.
 */
#pragma once

#include <stdbool.h>

/* A key that config.json may use in place of the class's own name for it: "a.b" for b of the object a. One that
 * the class takes and forgets is called "". */
struct config_alias {
    const char *alias, *key;
};

/* A value the class computes where it is absent or null: the value of `from`, divided (rounded down) by that of
 * `divided_by`. */
struct config_computed {
    const char *key, *from, *divided_by; /* divided_by may be NULL */
};

struct config_class {
    const char *model_type;                 /* with | between several of the same values: "gpt2|gpt_bigcode" */
    const char *defaults;                   /* a JSON object, spelled with ' for the quotation mark */
    const struct config_alias *aliases;     /* up to a NULL alias; NULL: none */
    const struct config_computed *computed; /* up to a NULL key; NULL: none */
    const char *text_class;                 /* model_type of text_config, where it does not say so itself */
    const char *text_defaults;              /* of text_config, before those of its class; NULL: none */
    bool is_raw;                            /* the converter reads config.json itself, without the class */
    bool text_may_be_flat;                  /* without text_config, its keys are those of the whole */

    /* The same for the parts that see and hear, which have rows of their own: those with is_tower have model types that
     * no text model has. */
    const char *vision_class, *audio_class;
    bool is_tower;
};

/* NULL where transformers does not know the model type, or we do not. */
const struct config_class *config_class_find(const char *model_type);

/* Defaults of every class. */
extern const char config_common_defaults[];
