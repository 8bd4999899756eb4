/* A GGUF that exists nowhere: its keys and its tensors, as views, before any of it is laid out in a file.
 *
 * gguf_model_new() does what convert_hf_to_gguf.py does with a Hugging Face checkpoint, once for all precisions;
 * gguf_plan_converter() and gguf_plan_quantize() then say for one output what every tensor's type is, in which order
 * the tensors are, and what the changed keys are. No weight is read. Everything lives in the model's arena until
 * gguf_model_free(). */
#pragma once

#include "formats/checkpoint.h"
#include "formats/gguf/write.h"
#include "models/edits.h"
#include "models/hparams.h"
#include "quant/view.h"

struct quantize_outline; /* quantize.h */

struct gguf_model {
    struct arena *arena;
    const struct checkpoint *checkpoint;
    struct checkpoint *part;     /* a component that it has tensors of besides, closed with it; NULL: none */
    const struct family *family; /* the family, or NULL for a plain container */
    struct hparams *hparams;     /* NULL where there is no config.json */

    /* The keys of the converter's output in their order. The value of general.file_type is per output. */
    struct gguf_kvs kvs;

    /* In GGUF's names and the order of the converter's output, each a view: transformed, in the dtype the
     * transformation leaves it in. */
    struct tensor_set *tensors;
    /* the type that each has in every output whatever the precision; NULL: as rules say. Of a model that is a GGUF
     * already the type that each has there */
    const struct dtype **forced;
    const struct quantize_outline *outline; /* of the tensors; NULL: an adapter */
    const struct dtype *auto_type;          /* what --outtype auto chooses: F16 or BF16 */
    /* layers from here on had other numbers when the converter asked which matrices stay F32 by their names, and are
     * not among them; 0: none */
    uint64_t renumbered_from;
    uint32_t packed_file_type; /* general.file_type of plain outputs, where the checkpoint is packed; 0: their own */

    size_t chat_template_place; /* among the keys, of the one that the converter alone knows; 0: there is none */

    bool is_repacked;  /* has blocks in the place of packed weights, wherever they decode to the same */
    bool is_gguf;      /* the source */
    bool is_quantized; /* tensors are in blocks already */
    /* for whoever made the model to set: changes to the keys of every output; NULL: none */
    const struct gguf_edits *edits;
};

/* NULL where no GGUF can be made of the checkpoint: the error says why (a tensor that the family does not know ...). An
 * architecture that no row knows gives a plain container instead, with a note. */
struct gguf_model *gguf_model_new(const struct checkpoint *checkpoint, struct error *error);

/* The same with packed weights as blocks of ggml that decode to just their values, whatever the converter makes of
 * them. NULL, without a reason, where there are none of the kind. */
struct gguf_model *gguf_model_new_repacked(const struct checkpoint *checkpoint, struct error *error);

/* One without keys and tensors, for what fills it in. */
struct gguf_model *gguf_model_empty(const struct checkpoint *checkpoint);
void gguf_model_free(struct gguf_model *model); /* NULL is allowed */

/* The same for the part of a multimodal model that sees or hears, as the converter's --mmproj does it. NULL where there
 * is none of its tensors, or where no projector is known (models/projectors/) for the architecture. */
struct gguf_model *gguf_projector_new(const struct checkpoint *checkpoint, struct error *error);

/* Whether config.json describes such a part. */
bool gguf_has_projector(const struct checkpoint *checkpoint);

/* Notes, from config.json alone, where gguf_model_new() would make a plain container: to be said before anything is
 * asked for. */
void gguf_note_family(const struct checkpoint *checkpoint);

/* Why ggml would not open a file with a tensor of that name and shape, whatever its type; NULL where it would. A name
 * may hold NULs. Follows gguf_init_from_file_impl() in ggml/src/gguf.cpp: names of at most 63 bytes, at most 4
 * dimensions, fewer than INT64_MAX elements; a dimension of 0 is taken, and so is an empty name. */
const char *gguf_tensor_refusal(const char *name, size_t name_length, const struct view *view);

/* What an output file holds, for gguf_lay_out(); the model must outlive it. The converter's --outtype: "auto", "f32",
 * "f16", "bf16", "q8_0", "tq1_0", "tq2_0". */
bool gguf_plan_converter(const struct gguf_model *model, const char *outtype, struct gguf_plan *ret_plan,
                         struct error *error);
