/* The GGUF that a checkpoint becomes.
 *
 * gguf_model_new() does what convert_hf_to_gguf.py does with a Hugging Face checkpoint, once for all precisions;
 * converter_artifact() and quantize_artifact() then choose the types, the order and the changed keys of one output. */
#pragma once

#include "models/convert/edits.h"
#include "models/family/gguf_model.h"

/* Returns NULL if no GGUF can be made of the checkpoint, for example because its family does not know a tensor. A
 * checkpoint of a class that is unknown, or unknown to the chosen build, becomes a plain container (unknown_family.h),
 * with a note. `references` may be NULL, for the newest builds. */
struct gguf_model *gguf_model_new(const struct checkpoint *checkpoint, const struct references *references,
                                  struct error *error);

/* Like gguf_model_new(), without the keys of the tokenizer, for files whose header is kept (gguf_kept_header). */
struct gguf_model *gguf_model_new_without_vocab(const struct checkpoint *checkpoint,
                                                const struct references *references, struct error *error);

/* Like gguf_model_new() and gguf_model_new_repacked(), without the keys of the tokenizer, whose size is known from an
 * earlier process (kept_keys.h): files of the model have exact sizes and are not to be read. NULL: it is not known, or
 * no such model can be made. */
struct gguf_model *gguf_model_new_for_sizes(const struct checkpoint *checkpoint, const struct references *references,
                                            bool is_repacked);

/* Like gguf_model_new(), with packed weights as ggml's blocks that decode to exactly their values, even where the
 * converter dequantizes them. Also returns NULL if no weight has such blocks. */
struct gguf_model *gguf_model_new_repacked(const struct checkpoint *checkpoint, const struct references *references,
                                           struct error *error);

/* Like gguf_model_new(), for the layers of multi-token prediction alone, like the converter's --mtp. Also returns NULL
 * without a family. */
struct gguf_model *gguf_model_new_mtp(const struct checkpoint *checkpoint, const struct references *references,
                                      struct error *error);

/* Reports whether the model has such layers, and the converter of these builds writes them alone. */
bool gguf_has_mtp(const struct checkpoint *checkpoint, const struct references *references);

/* Like gguf_model_new(), for the vision and audio encoders of a multimodal model, like the converter's --mmproj. Also
 * returns NULL if the checkpoint has none of their tensors, or models/projectors/ has no projector for its class. */
struct gguf_model *gguf_projector_new(const struct checkpoint *checkpoint, const struct references *references,
                                      struct error *error);

/* Reports whether config.json describes a vision or audio encoder. */
bool gguf_has_projector(const struct checkpoint *checkpoint);

/* Reports, from config.json alone, whether gguf_model_new() would make a plain container. The second also notes why. */
bool gguf_is_plain(const struct checkpoint *checkpoint, const struct references *references);
void gguf_note_family(const struct checkpoint *checkpoint, const struct references *references);

/* Returns the type of a tensor in every output: its own if the source is a GGUF, for block types, and in a plain
 * container unless it is F32, F16 or BF16; else the family's stored type. NULL: the rules of the output choose. */
const struct dtype *gguf_stored_type(const struct gguf_model *model, const struct tensor *tensor);

/* Makes the artifact of an output file; the model must outlive it. `outtype` is the converter's --outtype: "auto",
 * "f32", "f16", "bf16", "q8_0", "tq1_0", "tq2_0". */
bool converter_artifact(const struct gguf_edition *edition, const char *outtype, struct artifact *ret_artifact,
                        struct error *error);

/* Models that are a GGUF already, in one file or in splits: their keys and tensors do not change. */

/* Fills in keys and tensors. Fails if a tensor has byte-swapped blocks, which GGUF cannot hold. */
bool gguf_model_take(struct gguf_model *model, struct error *error);

/* Returns, like split_ends(), the ends of the splits of an artifact that is split like the source, up to the last split
 * with tensors. The artifact must have its tensors in the model's order. The first split of a source made with
 * llama-gguf-split --no-tensor-first-split has none. The caller frees the result. */
size_t *gguf_source_ends(const struct checkpoint *checkpoint, const struct artifact *artifact, size_t *ret_n_shards);

/* Makes the artifact of the model in one file, with the edits. For a source in splits it is the output of
 * `llama-gguf-split --merge`: the keys of the first split, split.count as 0 at their end, and trailing dimensions of 1
 * dropped. Source: tools/gguf-split/gguf-split.cpp of llama.cpp. */
void gguf_whole_artifact(const struct gguf_edition *edition, struct artifact *ret_artifact);
