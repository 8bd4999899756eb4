/* A Stable Diffusion model in a single file as the directory of a diffusers pipeline: model_index.json, the scheduler's
 * configuration, and the components that the file holds, with the tensors that from_single_file() makes of it.
 *
 * from_single_file() recognizes the kind of a model by a few tensors, and takes the configurations from the model of
 * that kind on the hub. Here all that shapes tell comes from the shapes, and the rest from those configurations. A
 * vocabulary is in no tensor, so there is no tokenizer.
 *
 * Source: src/diffusers/loaders/single_file_utils.py of diffusers, and the configurations of stable-diffusion-v1-5,
 * stable-diffusion-2-1 and stable-diffusion-xl-base-1.0. To add a kind of model, write its row in pipeline.c. */
#pragma once

#include "base/buffer.h"
#include "formats/artifact.h"
#include "formats/checkpoint.h"
#include "models/diffusion/component.h"
#include "models/diffusion/single_file.h"

struct pipeline_kind;

/* A component in model_index.json. */
struct pipeline_part {
    const char *folder;               /* "unet" */
    const char *package, *class_name; /* NULL: the pipeline does without it */

    /* The rest is for components in the file, and zero for others. */
    const char *prefix; /* of the names of its tensors in the file */
    const char *mark;   /* a tensor by which the component is recognized, without the prefix */
    enum single_file_part part;
    const char *left_out; /* the beginning of names that diffusers leaves out; NULL: none */
    void (*describe)(struct describing *describing, const struct pipeline_kind *kind); /* puts config.json's members */
};

enum { PIPELINE_MAX_PARTS = 8 };

struct pipeline_kind {
    const char *class_name;                             /* "StableDiffusionPipeline" */
    const char *settings;                               /* of model_index.json: a template of json_write.h, or NULL */
    const char *scheduler;                              /* scheduler_config.json: such a template */
    struct pipeline_part parts[PIPELINE_MAX_PARTS + 1]; /* up to one without folder */
    bool is_xl;                                         /* for single_file_names_new() */
    uint64_t pixels;                                    /* the usual height of a picture */
    uint64_t n_heads;                                   /* of the U-Net's attentions; 0: one for 64 columns */
    bool upcasts_attention;                             /* the U-Net computes attention in F32 */
    const char *scaling_factor;                         /* of the VAE: a number in JSON */
    const char *doubt; /* what tensors do not tell about a model of this kind; NULL: nothing */
};

/* Up to one without class name, in the order in which they are tried. */
extern const struct pipeline_kind pipeline_kinds[];

/* Returns the kind of a model that becomes a pipeline; NULL: it is none of these. Safe from any thread. */
const struct pipeline_kind *pipeline_kind_of(const struct checkpoint *checkpoint);

/* Returns the name of a component's weights in its folder. */
const char *pipeline_weights_name(const struct pipeline_part *part);

/* Makes the artifact of a component's weights in `arena`; the checkpoint must outlive it. The caller frees it. Fails if
 * a tensor is missing, quantized or of another shape than expected. */
bool pipeline_artifact(const struct pipeline_kind *kind, const struct pipeline_part *part,
                       const struct checkpoint *checkpoint, struct arena *arena, struct artifact *ret_artifact,
                       struct error *error);

/* Append a component's config.json, model_index.json and scheduler_config.json. The first fails like
 * pipeline_artifact(), and if the shapes fit no configuration. */
bool pipeline_write_config(const struct pipeline_kind *kind, const struct pipeline_part *part,
                           const struct checkpoint *checkpoint, struct buffer *out, struct error *error);
void pipeline_write_index(const struct pipeline_kind *kind, struct buffer *out);
void pipeline_write_scheduler(const struct pipeline_kind *kind, struct buffer *out);
