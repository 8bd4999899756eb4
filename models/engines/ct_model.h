/* A model before llmcompressor quantizes it: its tensors, the file of each, and the weights that are quantized; and the
 * schemes that it knows.
 *
 * model_free_ptq reads the tensors file by file. oneshot() quantizes the model that transformers has in memory. */
#pragma once

#include "base/buffer.h"
#include "models/engines/loaded.h"
#include "quant/pack/grouped.h"

/* The numbers of a quantized tensor in config.json. */
struct ct_numbers {
    const char *type; /* "float" or "int"; NULL: not quantized */
    uint8_t bits;
    const char *strategy;    /* "channel", "group", "token" ... */
    uint16_t group;          /* 0: null */
    const char *scale_dtype; /* NULL: null */
};

/* The parts of a weight. */
enum ct_form {
    CT_PLAIN,   /* .weight with codes of 8 bits, .weight_scale */
    CT_PACKED,  /* .weight_packed in I32, .weight_scale, .weight_shape, and zero points if there are any */
    CT_NIBBLES, /* .weight_packed in U8, .weight_scale, and .weight_global_scale if the tensor has one */
};

struct ct_scheme {
    const char *name;   /* the official one: "FP8_DYNAMIC" */
    bool is_rare;       /* found by name, but not listed */
    const char *format; /* "float-quantized" */
    enum ct_form form;
    const char *code_dtype; /* of the units that hold codes */
    struct grouping grouping;
    struct ct_numbers weights, activations;
};

extern const struct ct_scheme ct_schemes[]; /* up to a NULL name */

/* Modules that engines fuse, and that share the scale of a tensor: the ends of their names, up to a NULL. */
enum { FUSED_MOST = 5 };
struct fused_set {
    const char *within[2]; /* the end of the module that holds them; none: any */
    const char *ends[FUSED_MOST];
};

/* The same for all schemes. */
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
    bool keeps_files;            /* the files are the source's */
    const struct tensor *turned; /* the first that stays as it is stored with `keeps_turned`; NULL: none */
};

/* Reports whether the weights go to files like the source's: if it is made of safetensors files with plain weights. If
 * not, or if weights are unpacked first (`is_packed`), they go to model.safetensors alone. */
bool ct_keeps_files(const struct checkpoint *checkpoint, bool is_packed);

/* Make the model in `arena`, for model_free_ptq and for oneshot(); `model` must outlive it. `keeps_files` is
 * ct_keeps_files(). With `keeps_turned`, experts of a layer in one tensor that has inputs before outputs, as classes
 * like Llama 4 have it, are not taken apart into matrices that would be turned. `patterns` are those of the modules to
 * leave as they are (ct_ignored.h), up to a NULL, and live as long; NULL: those of the tool's own examples. Read
 * config.json. Fail if config.json cannot be read, and ct_model_load() for models that oneshot() handles in a way not
 * known here. */
struct ct_model *ct_model_new(struct arena *arena, const struct hf_model *model, bool keeps_files, bool keeps_turned,
                              const char *const *patterns, struct error *error);
struct ct_model *ct_model_load(struct arena *arena, const struct hf_model *model, const char *const *patterns,
                               struct error *error);

/* The sets of oneshot(), up to one without ends. */
extern const struct fused_set ct_fused_modules[];

/* Finds the targets that are fused with a target, itself included, in the order of their set; returns their number. */
size_t ct_find_fused(const struct ct_model *model, const struct tensor *tensor, const struct tensor *fused[FUSED_MOST]);

/* Reports whether a key of config.json has "experts" in it: routers are left as they are then. */
bool ct_names_experts(const struct json *config);

/* Reads config.json without the packing that it describes; *ret_config is NULL if there is none. */
bool ct_read_config(const struct hf_model *model, struct json_document **ret_config, struct error *error);

/* Append the text of recipe.yaml and of generation_config.json, which oneshot() writes; for a model of ct_model_load().
 */
bool ct_write_recipe(const struct ct_model *model, const struct ct_scheme *scheme, struct buffer *out,
                     struct error *error);
bool ct_write_generation_config(const struct ct_model *model, struct buffer *out, struct error *error);
