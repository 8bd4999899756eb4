#include "models/targets.h"

#include "models/convert/from_gguf.h"

static enum outcome convert(const struct gguf_model *model, const char *outtype, const struct quantize_options *options,
                            struct artifact *ret_artifact, struct error *error)
{
    return converter_artifact(model, outtype, ret_artifact, error) ? OK : FAILED;
}

static enum outcome copy(const struct gguf_model *model, const char *type, const struct quantize_options *options,
                         struct artifact *ret_artifact, struct error *error)
{
    gguf_whole_artifact(model, ret_artifact);
    return OK;
}

/* Notes why llama-quantize makes no file from this model. */
static enum outcome note_unquantized(const struct gguf_model *model, const struct error *error)
{
    checkpoint_note(model->checkpoint, SUBJECT_QUANTIZED, "%s", error->message);
    return REPORTED;
}

/* Hints at the option: without it every model lacks these files, which is not worth a note. */
static enum outcome hint_at_imatrix(const struct gguf_model *model, struct error *error)
{
    error_set(error, "IQ1_S to IQ2_M, IQ3_XXS, IQ3_XS and Q2_K_S need an importance matrix: -o imatrix=FILE");
    checkpoint_hint(model->checkpoint, SUBJECT_QUANTIZED, "%s", error->message);
    return REPORTED;
}

enum outcome target_quantize(const struct gguf_model *model, const char *type, const struct quantize_options *options,
                             struct artifact *ret_artifact, struct error *error)
{
    const struct mix *mix = mix_find(type);
    if (model->is_gguf && !quantize_takes(model, error)) {
        error_prefix(error, "nothing is quantized");
        return note_unquantized(model, error);
    }
    bool known = model->outline != NULL;
    if (known && quantize_artifact(model, mix, options, ret_artifact, error))
        return OK;
    if (model->is_quantized && !options->requantize)
        error_set(error, "the source is already quantized; -o requantize quantizes it again");
    else if (known && options->imatrix == NULL && mix_wants_imatrix(mix))
        return hint_at_imatrix(model, error);
    else if (known)
        return FAILED;
    else
        error_set(error, "nothing is quantized, because the model's family is unknown");
    return note_unquantized(model, error);
}

/* One row a line. */
/* clang-format off */
const struct target targets[] = {
    {"model.gguf", OF_CHECKPOINT, convert, "auto"},
    {"gguf/model-F32.gguf", OF_CHECKPOINT, convert, "f32"},
    {"gguf/model-F16.gguf", OF_CHECKPOINT, convert, "f16"},
    {"gguf/model-BF16.gguf", OF_CHECKPOINT, convert, "bf16"},
    {"gguf/converter/model-q8_0.gguf", OF_CHECKPOINT, convert, "q8_0"},
    {"gguf/converter/model-tq1_0.gguf", OF_CHECKPOINT, convert, "tq1_0"},
    {"gguf/converter/model-tq2_0.gguf", OF_CHECKPOINT, convert, "tq2_0"},
    {"gguf/model-repacked.gguf", OF_PACKED_CHECKPOINT, convert, "auto"},
    {"model.gguf", OF_GGUF, copy, NULL},
    {"gguf/model-F32.gguf", OF_GGUF, target_quantize, "F32"},
    {"gguf/model-F16.gguf", OF_GGUF, target_quantize, "F16"},
    {"gguf/model-BF16.gguf", OF_GGUF, target_quantize, "BF16"},
    {"mmproj.gguf", OF_PROJECTOR, convert, "auto"},
    {"gguf/mmproj-F32.gguf", OF_PROJECTOR, convert, "f32"},
    {"gguf/mmproj-F16.gguf", OF_PROJECTOR, convert, "f16"},
    {"gguf/mmproj-BF16.gguf", OF_PROJECTOR, convert, "bf16"},
    {"gguf/mmproj-Q8_0.gguf", OF_PROJECTOR, convert, "q8_0"},
    {"adapter.gguf", OF_ADAPTER, convert, "f32"}, /* the default */
    {"gguf/adapter-F32.gguf", OF_ADAPTER, convert, "f32"},
    {"gguf/adapter-F16.gguf", OF_ADAPTER, convert, "f16"},
    {"gguf/adapter-BF16.gguf", OF_ADAPTER, convert, "bf16"},
    {"gguf/adapter-Q8_0.gguf", OF_ADAPTER, convert, "q8_0"},
    {NULL, 0, NULL, NULL},
};
/* clang-format on */
