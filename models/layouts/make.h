/* Makes what a layout file describes of a model: files of tensors, and documents. No weight is read; all sizes are
 * exact. */
#pragma once

#include "formats/artifact.h"
#include "models/huggingface/hf_model.h"
#include "models/layouts/layout_file.h"

/* A tensor of a file, and how it came about. */
struct layout_tensor {
    const char *name;
    const struct view *view;
    struct encoding encoding;
    const struct layout_row *row;
    const char *const *sources; /* names; of members that are stacked the first */
    unsigned n_sources;
};

struct layout_output {
    const char *name;
    const struct container *container;
    struct layout_tensor *tensors; /* of a raw file one */
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
    bool *used; /* by the place of a tensor in the model's set */
};

/* `parameters` are those that a user gave, "tp=2,pp=2", or NULL. An error names the layout file and the place in it.
 * All that is made lives in the arena. */
bool layout_make(const struct layout_file *file, const char *parameters, const struct hf_model *model,
                 struct arena *arena, struct layout_product *ret_product, struct error *error);

/* The artifact of an output, whose tensors are made in the arena; to be freed with artifact_free() also after a
 * failure. */
bool layout_artifact(const struct layout_output *output, struct arena *arena, struct artifact *ret_artifact,
                     struct error *error);
