/* Makes the output that a layout file describes, from a model: files of tensors, and documents. Reads no weights; all
 * sizes are exact. */
#pragma once

#include "formats/artifact.h"
#include "models/huggingface/hf_model.h"
#include "models/layouts/layout_file.h"

/* A tensor of a file, and its origin. */
struct layout_tensor {
    const char *name;
    const struct view *view;
    struct encoding encoding;
    const struct layout_row *row;
    const char *const *sources; /* names; for stacked members the first one's */
    unsigned n_sources;
};

struct layout_output {
    const char *name;
    const struct container *container;
    struct layout_tensor *tensors; /* one in a raw file */
    size_t n_tensors;
};

struct layout_text {
    const char *name, *text;
    size_t length;
};

struct layout_product {
    struct layout_output *outputs;
    size_t n_outputs, capacity;
    struct layout_text *texts; /* documents, and the manifest of raw files */
    size_t n_texts;
    bool *used; /* by tensor of the model's set: a row reads it */
};

/* `parameters` are the user's, "tp=2,pp=2", or NULL. An error names the layout, and for rows and files the place in its
 * file. The product lives in the arena, and uses the views of the model. */
bool layout_make(const struct layout_file *file, const char *parameters, const struct hf_model *model,
                 struct arena *arena, struct layout_product *ret_product, struct error *error);

/* Makes the artifact of an output; its tensors live in the arena. The caller frees it with artifact_free(), also after
 * a failure. */
bool layout_artifact(const struct layout_output *output, struct arena *arena, struct artifact *ret_artifact,
                     struct error *error);
