/* A GGUF that exists nowhere: its keys and its tensors, as views, before any of it is laid out in a file.
 *
 * No weight is read. Everything lives in the model's arena until gguf_model_free(). */
#pragma once

#include "formats/checkpoint.h"
#include "formats/gguf/write.h"
#include "quant/view.h"

struct family;
struct gguf_edits; /* models/convert/edits.h */
struct hparams;
struct quantize_outline; /* quantize.h */

struct gguf_model {
    struct arena *arena;
    const struct checkpoint *checkpoint;
    const struct checkpoint *part; /* a component that it has tensors of besides, closed with it; NULL: none */
    const struct family *family;   /* the family, or NULL for a plain container */
    struct hparams *hparams;       /* NULL where there is no config.json */

    /* The keys of the converter's output in their order. The value of general.file_type is per output. */
    struct gguf_kvs kvs;

    /* In GGUF's names and the order of the converter's output, each a view: transformed, in the dtype the
     * transformation leaves it in. */
    struct tensor_set *tensors;
    const struct stored_type *stored_types; /* of the family; NULL: none */
    const struct dtype *auto_type;          /* what --outtype auto chooses: F16 or BF16 */
    /* layers from here on had other numbers when the converter asked which matrices stay F32 by their names, and are
     * not among them; 0: none */
    uint64_t renumbered_from;
    uint32_t packed_file_type; /* general.file_type of plain outputs, where the checkpoint is packed; 0: their own */

    size_t chat_template_place; /* among the keys, of the one that the converter alone knows; 0: there is none */

    bool is_repacked;  /* has blocks in the place of packed weights, wherever they decode to the same */
    bool is_gguf;      /* the source */
    bool is_quantized; /* tensors are in blocks already */
    /* set by the maker of the model: changes to the keys of every output; NULL: none */
    const struct gguf_edits *edits;
    const struct quantize_outline *outline; /* set by quantize_prepare() (models/quantize/quantize.h); else NULL */
};

/* One without keys and tensors, for what fills it in. */
struct gguf_model *gguf_model_empty(const struct checkpoint *checkpoint);
void gguf_model_free(struct gguf_model *model); /* NULL is allowed */

/* Why ggml would not open a file with a tensor of that name and shape, whatever its type; NULL where it would. A name
 * may hold NULs. Follows gguf_init_from_file_impl() in ggml/src/gguf.cpp: names of at most 63 bytes, at most 4
 * dimensions, fewer than INT64_MAX elements; a dimension of 0 is taken, and so is an empty name. */
const char *gguf_tensor_refusal(const char *name, size_t name_length, const struct view *view);
