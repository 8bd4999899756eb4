/* Whisper models as whisper.cpp's files: what its two conversion scripts and whisper-quantize write.
 *
 * Three sources become such a model: a Hugging Face directory (hugging_face.c), a file as OpenAI published them
 * (openai.c), whose tokens are another file's, and a file of whisper.cpp, which whisper-quantize reads. A model is its
 * header (formats/ggml/whisper.h) and its tensors, both as in ggml-model.bin.
 *
 * Source: whisper.cpp, models/convert-h5-to-ggml.py, models/convert-pt-to-ggml.py, examples/quantize,
 * ggml_common_quantize_0(). */
#pragma once

#include "formats/artifact.h"
#include "formats/checkpoint.h"

struct whisper_tensor {
    struct tensor tensor;      /* under whisper.cpp's name, in its shape */
    const struct dtype *dtype; /* in ggml-model.bin */
};

/* Everything lives in the model's arena. */
struct whisper_model {
    struct arena *arena;
    const struct checkpoint *checkpoint;
    struct gguf_kvs metadata; /* the header of ggml-model.bin */
    struct whisper_tensor *tensors;
    size_t n_tensors;
    bool is_ggml; /* the source is a file of whisper.cpp */
};

/* The files that are made from a model, a row each, up to a NULL path. */
struct whisper_file {
    const char *path;   /* "ggml/ggml-model-q5_0.bin" */
    uint32_t ggml_type; /* of its matrices */
    uint32_t ftype;     /* in its header */
};
extern const struct whisper_file whisper_files[];

/* Reports whether the checkpoint is a Whisper model in one of the three forms. */
bool whisper_is(const struct checkpoint *checkpoint);

/* Returns the model; NULL, with the reason, if a script would refuse it. The checkpoint must outlive the model. Adds a
 * note where a script would refuse or damage a model that is complete. */
struct whisper_model *whisper_model_new(const struct checkpoint *checkpoint, struct error *error);
void whisper_model_free(struct whisper_model *model); /* NULL is allowed */

/* Makes the artifact of a file, with new tensors in `arena`; the caller frees it with artifact_free(). REPORTED: the
 * model has no such file, and the error says why. */
enum outcome whisper_artifact(const struct whisper_model *model, const struct whisper_file *file, struct arena *arena,
                              struct artifact *ret_artifact, struct error *error);

/* Reports whether a file is the source itself: a file of whisper.cpp of that type. */
bool whisper_is_source(const struct checkpoint *checkpoint, const struct whisper_file *file);
