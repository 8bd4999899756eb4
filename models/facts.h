/* What is known of a checkpoint before anything is made of it. */
#pragma once

#include "formats/checkpoint.h"
#include "models/family/family.h"

/* What its kind and the names of its files say: no file is read for it. */
struct facts {
    const struct gguf_kvs *keys; /* that describe the model, of a GGUF; NULL: config.json does */
    bool has_class_names;        /* the tensors have the names of the model's class, as in save_pretrained() */
    bool is_adapter;             /* the tensors are changes to those of another model */
    bool lacks_config;           /* there is no config.json, or params.json in Mistral's format */
    bool makes_directories;      /* has config.json or gets one, and is no adapter: engines and loaders can open it */
};

struct facts facts_of(const struct checkpoint *checkpoint);

/* What config.json says, beside a GGUF, too, which is described by its keys. Families and projectors are those of the
 * newest builds. */
struct config_facts {
    const struct hparams *hparams; /* NULL: config.json is large, and read again for each caller */
    const char *model_type;        /* NULL: none is named */
    const char *class_name;        /* that chooses the family; NULL: none is named */
    const struct family *family;   /* NULL: it is unknown */
    const struct family_name *family_class;
    const struct family *projector; /* NULL: none is known, for this reason */
    const struct family_name *projector_class;
    const char *no_projector;
    bool describes_towers; /* a vision or audio part */
};

/* Returns the facts, found on the first call, for all callers. They live as long as the checkpoint. Returns NULL, with
 * the reason, if config.json is missing or invalid or cannot be read; asks again if a source could not be reached. */
const struct config_facts *config_facts_of(const struct checkpoint *checkpoint, struct error *error);

/* Fails if config.json could not be reached: it decides which tensors and files there are. Succeeds for any other
 * outcome of config_facts_of(). */
bool config_is_reached(const struct checkpoint *checkpoint, struct error *error);

/* Returns the hyperparameters, which the caller may change and frees before the checkpoint is closed; NULL like
 * config_facts_of(). */
struct hparams *hparams_of(const struct checkpoint *checkpoint, struct error *error);

/* Return the family or projector if it is not younger than the chosen build of llama.cpp (NULL: the newest); else NULL,
 * a projector with the reason. */
const struct family *config_family(const struct config_facts *config, const struct references *references);
const struct family *config_projector(const struct config_facts *config, const struct references *references,
                                      struct error *error);
