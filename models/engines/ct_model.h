/* A model before llmcompressor quantizes it: its tensors, the file of each, and the weights that are quantized. Of this
 * room alone; others see struct ct_model as compressed_tensors.h declares it.
 *
 * model_free_ptq reads the tensors file by file. oneshot() quantizes the model that transformers has in memory. */
#pragma once

#include "models/engines/compressed_tensors.h"
#include "models/engines/loaded.h"

/* Modules that engines fuse, and that share the scale of a tensor: the ends of their names, up to a NULL. */
enum { FUSED_MOST = 3 };
struct fused_set {
    const char *within[2]; /* the end of the module that holds them; none: any */
    const char *ends[FUSED_MOST];
};

struct ct_model {
    const struct hf_model *model;
    const struct loaded_model *loaded; /* for oneshot(); NULL: model_free_ptq */
    const struct tensor_set *tensors;
    uint32_t *file_of;                  /* by tensor */
    bool *is_target;                    /* by tensor: the weight of a module that is quantized */
    const struct fused_set *fused_sets; /* up to one without ends */
    const char *const *patterns;        /* of the modules that are not: the rules, up to a NULL */
    const char *const *ignored;         /* the same as config.json lists it, up to a NULL */
    const char **names;                 /* of the files */
    size_t n_files;
    bool keeps_files; /* the files are the source's */
};

/* The sets of oneshot(), up to one without ends. */
extern const struct fused_set ct_fused_modules[];

/* Finds the targets that are fused with a target, itself included, in the order of their set; returns their number. */
size_t ct_find_fused(const struct ct_model *model, const struct tensor *tensor, const struct tensor *fused[FUSED_MOST]);

/* Reports whether a key of config.json has "experts" in it: routers are left as they are then. */
bool ct_names_experts(const struct json *config);

/* Reads config.json without the packing that it describes; *ret_config is NULL if there is none. */
bool ct_read_config(const struct hf_model *model, struct json_document **ret_config, struct error *error);
