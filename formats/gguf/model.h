/* A GGUF that exists nowhere: its keys and its tensors, as views, before any of it is laid out in a file.
 *
 * gguf_model_new() does what convert_hf_to_gguf.py does with a Hugging Face checkpoint, once for all precisions;
 * gguf_plan_converter() and gguf_plan_quantize() then say for one output what every tensor's type is, in which order tensors
 * stand, and what the changed keys are. No weight is read. Everything lives in the model's arena until gguf_model_free(). */
#pragma once

#include "formats/checkpoint.h"
#include "formats/gguf/hparams.h"
#include "formats/gguf/kv.h"
#include "quant/view.h"

struct gguf_tensor {
    const char *name;
    const struct view *view;    /* transformed, in the dtype the transformation leaves it in; shape row-major */
    const struct dtype *forced; /* the type it has in every converter output whatever the precision; NULL: as rules say */
};

struct gguf_model {
    struct arena *arena;
    const struct checkpoint *checkpoint;
    const struct arch *arch; /* the family, or NULL for a plain container */
    struct hparams *hparams; /* NULL where there is no config.json */

    /* All keys of the converter's output in their order, tokenizer included; the values of general.file_type are
     * per output. `tokenizer_begin` is the first of the tokenizer's keys, which are shared by all outputs. */
    struct gguf_kvs kvs;
    size_t tokenizer_begin, tokenizer_end;

    struct gguf_tensor *tensors; /* in the order of the converter's output */
    size_t n_tensors;
    const struct dtype *auto_type; /* what --outtype auto chooses: F16 or BF16 */
};

/* NULL where no GGUF can be made of the checkpoint: the error says why (a tensor that the family does not know ...). An
 * architecture that no row knows gives a plain container instead, with a note. */
struct gguf_model *gguf_model_new(const struct checkpoint *checkpoint, struct error *error);
void gguf_model_free(struct gguf_model *model); /* NULL is allowed */

/* One output file: which tensors as what, and where. */
struct gguf_plan_tensor {
    const struct gguf_tensor *tensor;
    const struct dtype *type;
    uint64_t offset; /* from the start of the data section */
};

struct gguf_plan {
    struct gguf_plan_tensor *tensors;
    size_t n_tensors;
    uint64_t size; /* of the whole file */

    /* The bytes before the first tensor's data are head, then the model's tokenizer keys, then tail (which ends with the
     * padding). */
    struct buffer head, tail;
};

void gguf_plan_free(struct gguf_plan *plan);

/* The converter's --outtype: "auto", "f32", "f16", "bf16", "q8_0", "tq1_0", "tq2_0". */
bool gguf_plan_converter(const struct gguf_model *model, const char *outtype, struct gguf_plan *ret_plan, struct error *error);

/* The keys that are shared by all plans, as bytes of the file. Owned by the model; made once, from any thread. */
const struct buffer *gguf_tokenizer_bytes(const struct gguf_model *model);
