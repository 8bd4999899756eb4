#include "models/targets.h"

#include "models/convert/model.h"
#include "models/diffusion/gguf.h"

static enum outcome convert(const struct gguf_edition *edition, const char *outtype,
                            const struct quantize_options *options, struct artifact *ret_artifact, struct error *error)
{
    return converter_artifact(edition, outtype, ret_artifact, error) ? OK : FAILED;
}

static enum outcome copy(const struct gguf_edition *edition, const char *type, const struct quantize_options *options,
                         struct artifact *ret_artifact, struct error *error)
{
    gguf_whole_artifact(edition, ret_artifact);
    return OK;
}

static enum outcome convert_diffusion(const struct gguf_edition *edition, const char *type,
                                      const struct quantize_options *options, struct artifact *ret_artifact,
                                      struct error *error)
{
    diffusion_artifact(edition, ret_artifact);
    return OK;
}

/* Notes why llama-quantize makes no file from this model. */
static enum outcome note_unquantized(const struct gguf_model *model, const struct error *error)
{
    checkpoint_note(model->checkpoint, SUBJECT_QUANTIZED, "%s", error->message);
    return REPORTED;
}

/* Mixes that the tool does not have are missing for every diffusion model, which is not worth a note. */
static enum outcome quantize_diffusion(const struct gguf_edition *edition, const struct mix *mix,
                                       struct artifact *ret_artifact, struct error *error)
{
    if (!diffusion_has_mix(mix->name)) {
        error_set(error, "ComfyUI-GGUF's llama-quantize does not write %s", mix->name);
        return REPORTED;
    }
    return diffusion_quantize(edition, mix, ret_artifact, error) ? OK : note_unquantized(edition->model, error);
}

/* Hints at the option: without it every model lacks these files, which is not worth a note. */
static enum outcome hint_at_imatrix(const struct gguf_model *model, struct error *error)
{
    error_set(error, "IQ1_S to IQ2_M, IQ3_XXS, IQ3_XS and Q2_K_S need an importance matrix: -o imatrix=FILE");
    checkpoint_hint(model->checkpoint, SUBJECT_QUANTIZED, "%s", error->message);
    return REPORTED;
}

enum outcome target_quantize(const struct gguf_edition *edition, const char *type,
                             const struct quantize_options *options, struct artifact *ret_artifact, struct error *error)
{
    const struct gguf_model *model = edition->model;
    const struct mix *mix = mix_find(type);
    if (diffusion_architecture_of_model(model) != NULL)
        return quantize_diffusion(edition, mix, ret_artifact, error);
    if (model->is_gguf && !quantize_takes(edition, error)) {
        error_prefix(error, "nothing is quantized");
        return note_unquantized(model, error);
    }
    bool known = edition->outline != NULL;
    if (known && quantize_artifact(edition, mix, options, ret_artifact, error))
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
    {"model.gguf", OF_DIFFUSION_MODEL, convert_diffusion, NULL},
    {"gguf/model-F32.gguf", OF_DIFFUSION_MODEL, target_quantize, "F32"},
    {"gguf/model-F16.gguf", OF_DIFFUSION_MODEL, target_quantize, "F16"},
    {"gguf/model-BF16.gguf", OF_DIFFUSION_MODEL, target_quantize, "BF16"},
    {"gguf/model-Q8_0.gguf", OF_DIFFUSION_MODEL, target_quantize, "Q8_0"},
    {"gguf/model-Q6_K.gguf", OF_DIFFUSION_MODEL, target_quantize, "Q6_K"},
    {"gguf/model-Q5_K_M.gguf", OF_DIFFUSION_MODEL, target_quantize, "Q5_K_M"},
    {"gguf/model-Q5_K_S.gguf", OF_DIFFUSION_MODEL, target_quantize, "Q5_K_S"},
    {"gguf/model-Q5_1.gguf", OF_DIFFUSION_MODEL, target_quantize, "Q5_1"},
    {"gguf/model-Q5_0.gguf", OF_DIFFUSION_MODEL, target_quantize, "Q5_0"},
    {"gguf/model-Q4_K_M.gguf", OF_DIFFUSION_MODEL, target_quantize, "Q4_K_M"},
    {"gguf/model-Q4_K_S.gguf", OF_DIFFUSION_MODEL, target_quantize, "Q4_K_S"},
    {"gguf/model-Q4_1.gguf", OF_DIFFUSION_MODEL, target_quantize, "Q4_1"},
    {"gguf/model-Q4_0.gguf", OF_DIFFUSION_MODEL, target_quantize, "Q4_0"},
    {"gguf/model-Q3_K_L.gguf", OF_DIFFUSION_MODEL, target_quantize, "Q3_K_L"},
    {"gguf/model-Q3_K_M.gguf", OF_DIFFUSION_MODEL, target_quantize, "Q3_K_M"},
    {"gguf/model-Q3_K_S.gguf", OF_DIFFUSION_MODEL, target_quantize, "Q3_K_S"},
    {"gguf/model-Q2_K.gguf", OF_DIFFUSION_MODEL, target_quantize, "Q2_K"},
    {"mmproj.gguf", OF_PROJECTOR, convert, "auto"},
    {"gguf/mmproj-F32.gguf", OF_PROJECTOR, convert, "f32"},
    {"gguf/mmproj-F16.gguf", OF_PROJECTOR, convert, "f16"},
    {"gguf/mmproj-BF16.gguf", OF_PROJECTOR, convert, "bf16"},
    {"gguf/mmproj-Q8_0.gguf", OF_PROJECTOR, convert, "q8_0"},
    {"mtp-model.gguf", OF_MTP, convert, "auto"},
    {"gguf/mtp-model-F32.gguf", OF_MTP, convert, "f32"},
    {"gguf/mtp-model-F16.gguf", OF_MTP, convert, "f16"},
    {"gguf/mtp-model-BF16.gguf", OF_MTP, convert, "bf16"},
    {"adapter.gguf", OF_ADAPTER, convert, "f32"}, /* the default */
    {"gguf/adapter-F32.gguf", OF_ADAPTER, convert, "f32"},
    {"gguf/adapter-F16.gguf", OF_ADAPTER, convert, "f16"},
    {"gguf/adapter-BF16.gguf", OF_ADAPTER, convert, "bf16"},
    {"gguf/adapter-Q8_0.gguf", OF_ADAPTER, convert, "q8_0"},
    {NULL, 0, NULL, NULL},
};
/* clang-format on */
