/* Artifacts: one output each, before a container lays it out as a file: a GGUF or a split of one, a safetensors file, a
 * rank, an array, a document.
 *
 * A target (models/) makes the artifact; its container lays it out as spans; fs/ shows the spans as a file. None of
 * this reads weights, and an artifact does not change once made. It borrows tensors, views and lent metadata values
 * from the model, which must outlive it. */
#pragma once

#include "formats/gguf/kv.h"
#include "formats/span.h"
#include "formats/tensor_set.h"

struct artifact_tensor {
    const struct tensor *tensor; /* its name, shape and values */
    struct encoding encoding;    /* the type of the written values */
};

/* Returns the size of the written values. */
uint64_t artifact_tensor_bytes(const struct artifact_tensor *written);

struct container;
struct gguf_kept_header; /* formats/gguf/write.h */

struct artifact {
    const struct container *container;
    struct artifact_tensor *tensors; /* in the order of the file, unless the container sorts them */
    size_t n_tensors;
    struct gguf_kvs metadata;                   /* of the file, typed; only strings in a container without types */
    const struct gguf_kept_header *kept_header; /* of a GGUF: takes the place of the metadata; NULL: none is kept */
    struct arena *arena;                        /* owns objects made for this artifact alone; NULL: none */
};

/* A file format for artifacts. */
struct container {
    const char *name; /* "gguf" */

    /* Appends the spans of the whole file to an empty list; objects made for them, views included, live in the list's
     * arena. Fails if the container cannot hold the artifact. */
    bool (*lay_out)(const struct artifact *artifact, struct span_list *spans, struct error *error);
};

/* Adds room for `n` tensors to an artifact without tensors, for its maker to fill in. */
void artifact_reserve(struct artifact *artifact, size_t n);

/* The bytes of one tensor, without a header: `raw_container`, for an artifact of one tensor. */
extern const struct container raw_container;

void artifact_free(struct artifact *artifact); /* frees what it owns; a zeroed artifact is allowed */
