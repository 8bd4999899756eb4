/* Artifacts, and the spans of the files that they become. */
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "formats/gguf/kv.h"
#include "formats/tensor_set.h"
#include "quant/blocks/dtype.h"
#include "quant/views/view.h"

/* Spans: the pieces a file is made of, sorted by offset and without gaps.
 *
 * Containers lay artifacts out as spans; fs/tree reads ranges of them. Making spans reads and copies no
 * contents: literals, views and contexts of texts belong to the caller and live as long as the spans. */

/* Appends the text of piece `index`: always the same bytes, as many as were counted when the file was planned. */
typedef void text_function(const void *context, size_t index, struct buffer *out);

enum span_kind { SPAN_LITERAL, SPAN_ZEROS, SPAN_VIEW, SPAN_TEXT };

struct span {
    uint64_t offset, length; /* bytes of the file */
    enum span_kind kind;
    union {
        const void *literal;
        struct {
            const struct view *view;
            struct encoding encoding; /* of the view's values */
        };
        struct {
            text_function *text;
            const void *context;
            size_t index;
        };
    };
};

/* The bytes of a file before its tensors, and among them the records of the tensors, for who keeps the former and
 * compares the latter; all zero: the container does not tell. */
struct span_header {
    uint64_t length;
    uint64_t table, table_length; /* where the records begin */
};

/* The spans of one file while they are collected, each after the one before; empty pieces are left out. Begins with an
 * arena and zeros. */
struct span_list {
    struct arena *arena;
    struct span *spans; /* in the arena */
    size_t n_spans, capacity;
    uint64_t size; /* bytes of all spans */
    struct span_header header;
    bool has_size_alone; /* some pieces have the right length and no bytes: the file is not to be read */
};

/* Makes room for `n` more spans at once, for callers that know how many there will be. */
void spans_reserve(struct span_list *list, size_t n);

/* Adds the bytes of a buffer, which it leaves empty: the arena takes them. */
void spans_add_buffer(struct span_list *list, struct buffer *buffer);

void spans_add_literal(struct span_list *list, const void *bytes, uint64_t length);
void spans_add_zeros(struct span_list *list, uint64_t length);
void spans_add_view(struct span_list *list, const struct view *view, struct encoding encoding);

/* Adds the values of a tensor, like spans_add_view(); if a value cannot be read, the error names the tensor. The name
 * lives as long as the list. */
void spans_add_tensor(struct span_list *list, const struct tensor *tensor, struct encoding encoding);
void spans_add_text(struct span_list *list, text_function *text, const void *context, size_t index, uint64_t length);

/* Adds the spans of another file, each after the one before, whatever their offsets were. */
void spans_add_all(struct span_list *list, const struct span *spans, size_t n_spans);

/* Artifacts: one output each, before a container lays it out as a file: a GGUF or a split of one, a safetensors file, a
 * rank, an array, a document.
 *
 * A target (models/) makes the artifact; its container lays it out as spans; fs/ shows the spans as a file. None of
 * this reads weights, and an artifact does not change once made. It borrows tensors, views and lent metadata values
 * from the model, which must outlive it. */

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
