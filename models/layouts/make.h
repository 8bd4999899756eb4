/* Makes the output that a layout file describes, from a model: files of tensors, and documents. Reads no weights; all
 * sizes are exact. */
#pragma once

#include "formats/artifact.h"
#include "models/huggingface/hf_model.h"
#include "models/layouts/layout_file.h"

/* The origin of a tensor. */
struct layout_origin {
    const char *place;          /* of its row in the layout file */
    const char *const *sources; /* names; for stacked members the first one's */
    unsigned n_sources;
};

/* A file of tensors; one tensor if it is raw. */
struct layout_artifact {
    const char *name;
    struct artifact artifact;            /* in the product's arena: not for artifact_free() */
    const struct layout_origin *origins; /* by tensor */
};

struct layout_text {
    const char *name, *text;
    size_t length;
};

struct layout_product {
    struct layout_artifact *artifacts;
    size_t n_artifacts;
    struct layout_text *texts; /* documents, and the manifest of raw files */
    size_t n_texts;
    bool *used; /* by tensor of the model's set: a row reads it */
};

/* `parameters` are the user's, "tp=2,pp=2", or NULL. An error names the layout, and for rows and files the place in its
 * file. The product lives in the arena, and uses the views of the model. */
bool layout_make(const struct layout_file *file, const char *parameters, const struct hf_model *model,
                 struct arena *arena, struct layout_product *ret_product, struct error *error);
