/* The GGUF that a checkpoint becomes.
 *
 * gguf_model_new() does what convert_hf_to_gguf.py does with a Hugging Face checkpoint, once for all precisions;
 * converter_artifact() and quantize_artifact() then say for one output what every tensor's type is, in which order
 * the tensors are, and what the changed keys are. */
#pragma once

#include "models/convert/edits.h"
#include "models/family/gguf_model.h"

/* NULL where no GGUF can be made of the checkpoint: the error says why (a tensor that the family does not know ...). An
 * architecture that no row knows gives a plain container instead, with a note. */
struct gguf_model *gguf_model_new(const struct checkpoint *checkpoint, struct error *error);

/* The same with packed weights as blocks of ggml that decode to just their values, whatever the converter makes of
 * them. NULL where no weight has such blocks, too. */
struct gguf_model *gguf_model_new_repacked(const struct checkpoint *checkpoint, struct error *error);

/* The same for the part of a multimodal model that sees or hears, as the converter's --mmproj does it. NULL where there
 * is none of its tensors, or where no projector is known (models/projectors/) for the architecture. */
struct gguf_model *gguf_projector_new(const struct checkpoint *checkpoint, struct error *error);

/* Reports whether config.json describes such a part. */
bool gguf_has_projector(const struct checkpoint *checkpoint);

/* Notes, from config.json alone, where gguf_model_new() would make a plain container: to be said before anything is
 * asked for. */
void gguf_note_family(const struct checkpoint *checkpoint);

/* The type that a tensor of the model has in every output, whatever the precision: blocks stay as they are, and so does
 * every tensor of a GGUF. NULL: the output's rules choose. */
const struct dtype *gguf_stored_type(const struct gguf_model *model, const struct tensor *tensor);

/* Makes what an output file holds; the model must outlive it. The converter's --outtype: "auto", "f32",
 * "f16", "bf16", "q8_0", "tq1_0", "tq2_0". */
bool converter_artifact(const struct gguf_model *model, const char *outtype, struct artifact *ret_artifact,
                        struct error *error);
