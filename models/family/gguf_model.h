/* A GGUF before it is laid out as a file: its keys, and its tensors as views.
 *
 * Everything lives in the model's arena until gguf_model_free(). */
#pragma once

#include "formats/checkpoint.h"
#include "formats/gguf/write.h"
#include "models/references/references.h"
#include "quant/views/view.h"

struct family;
struct gguf_edits; /* models/convert/edits.h */
struct hparams;
struct quantize_outline; /* quantize.h */

/* What a file has of a model with layers of multi-token prediction (tensors.c). */
enum gguf_part { PART_WHOLE, PART_WITHOUT_MTP, PART_MTP };

struct gguf_model {
    struct arena *arena;
    const struct checkpoint *checkpoint;
    struct references references; /* the builds that the model follows */
    const struct family *family;  /* NULL: a plain container (models/convert/unknown_family.h) */

    /* What filled it in, and what makes another one with its long keys (models/convert/kept_keys.h) as they were read,
     * which the caller frees. */
    bool (*fill)(struct gguf_model *model, struct error *error);
    struct gguf_model *(*make_again)(const struct gguf_model *model, struct error *error);
    struct hparams *hparams; /* NULL: the checkpoint has no config.json */

    /* The keys of the converter's output, in its order. Each output sets the value of general.file_type. */
    struct gguf_kvs kvs;

    /* Under GGUF's names and in the order of the converter's output: views in the dtypes that the relation gives. */
    struct tensor_set *tensors;
    const struct stored_type *stored_types; /* of the family; NULL: none */
    const struct dtype *auto_type;          /* the choice of --outtype auto: F16 or BF16 */
    /* layers from here on, which the converter renumbers later, are exempt from the names of matrices that stay F32; 0:
     * none */
    uint64_t renumbered_from;
    uint32_t packed_file_type; /* general.file_type of unquantized outputs of a packed checkpoint; 0: their own */

    const char *const *weights_only; /* NVFP4 tensors whose activations are not quantized (nvfp4_activations.h) */
    size_t n_weights_only;

    size_t chat_template_place; /* key number of a chat template that only the converter has; 0: none */

    enum gguf_part part;
    bool is_repacked;  /* packed weights become blocks wherever these decode to the same values */
    bool lacks_vocab;  /* made without the keys of the tokenizer */
    bool is_remade;    /* by make_again() */
    bool is_gguf;      /* the source is a GGUF */
    bool is_quantized; /* some tensors have block types already */
};

/* A model as a request wants it: what outputs are made of. The request's changes are not the model's. */
struct gguf_edition {
    const struct gguf_model *model;
    const struct gguf_edits *edits;         /* changes to the keys of every output; NULL: none */
    const struct quantize_outline *outline; /* quantize_outline_of(); NULL: the model is not quantized */
};

/* Returns a model without keys and tensors. `references` may be NULL, for the newest builds. */
struct gguf_model *gguf_model_empty(const struct checkpoint *checkpoint, const struct references *references);
void gguf_model_free(struct gguf_model *model); /* NULL is allowed */

/* Returns the edition of a model in an arena that frees the model; NULL for NULL. The last step of a maker (once.h). */
const struct gguf_edition *gguf_edition_new(struct arena *arena, struct gguf_model *model,
                                            const struct gguf_edits *edits, const struct quantize_outline *outline);

/* Returns why ggml would not open a file with a tensor of that name, which may contain NULs, and that shape; NULL if it
 * would. Follows gguf_init_from_file_impl() in ggml/src/gguf.cpp: names of at most 63 bytes, at most 4 dimensions,
 * fewer than INT64_MAX elements; a dimension of 0 and an empty name are valid. */
const char *gguf_tensor_refusal(const char *name, size_t name_length, const struct view *view);
