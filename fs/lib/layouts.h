/* What a layout (models/layouts) makes of a model: `wfs layout check`. */
#pragma once

#include "fs/options/options.h"

struct layout_tensor {
    const char *name, *type;
    const uint64_t *shape;
    unsigned rank;
    const char *const *sources; /* names; for stacked members the first one's */
    unsigned n_sources;
    const char *place; /* of its row in the layout file */
};

/* Takes the files in their order, each before its tensors; then the documents, and the model's tensors that no row
 * reads. What it is given lives as long as the call. */
struct layout_taker {
    void (*file)(const char *name, size_t n_tensors, uint64_t n_bytes); /* bytes of values, without the container */
    void (*tensor)(const struct layout_tensor *tensor);
    void (*document)(const char *name, size_t length);
    void (*unused)(const char *tensor);
};

/* Opens a source as the options say, and makes what `layout` asks for (models/layouts/layout_file.h). Fails if one of
 * them cannot be read, or the layout does not fit the model; nothing is taken then. */
bool layout_check(const char *layout, const char *source, const struct options *options,
                  const struct layout_taker *taker, struct error *error);
