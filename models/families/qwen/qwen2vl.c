/* Qwen2-VL, Qwen2.5-VL, Qwen2.5-Omni and Fast-dVLM: language models. conversion/qwenvl.py. */
#include "models/families/qwen/qwen.h"

const struct family qwen2vl_family = {
    .name = "qwen2vl",
    .summary = "Qwen2-VL, Qwen2.5-VL, Qwen2.5-Omni (language model)",
    .hf = FAMILY_NAMES({"Qwen2VLForConditionalGeneration"}, {"Qwen2_5_VLForConditionalGeneration"}, {"Qwen2VLModel"},
                       {"Qwen2_5OmniModel"}),
    .tensors = {decoder_tensors},
    .forms = qwen2_half_forms,
    .keys = {base_keys},
    .vocabs = {&spm_vocab, &bpe_vocab},
    .dropped_prefixes = TEXTS("thinker."),
};

/* Computes the size from the whole model's configuration, not its text part's. */
static bool compute_block_size(const struct model_builder *builder, double *ret_value, struct error *error)
{
    const struct json *size = json_get(hparams_raw(builder->model->hparams), "bd_size");
    uint64_t whole = 32;
    if (size != NULL && !json_u64(size, &whole))
        return error_set(error, "config.json: bd_size is not a whole number");
    *ret_value = (double)whole;
    return true;
}

static const struct key_row fast_keys[] = {
    {".tokenizer.ggml.mask_token_id", GGUF_U32, ALWAYS, .value = 151665},
    {".fast_dvlm.diffusion", GGUF_BOOL, ALWAYS, .value = 1},
    {".fast_dvlm.block_size", GGUF_U32, .compute = compute_block_size},
    {".fast_dvlm.sub_block_size", GGUF_U32, OR_DEFAULT, "bd_size", 8},
    {".fast_dvlm.confidence_threshold", GGUF_F32, ALWAYS, .value = 0.9},
    {".fast_dvlm.token_shift", GGUF_U32, ALWAYS, .value = 1},
    {0},
};

const struct family fast_dvlm_family = {
    .name = "fast-dvlm",
    .architecture = "qwen2vl",
    .summary = "Fast-dVLM (language model)",
    .hf = FAMILY_NAMES({"Fast_dVLMForConditionalGeneration"}),
    .tensors = {decoder_tensors},
    .keys = {base_keys, fast_keys},
    .vocabs = {&spm_vocab, &bpe_vocab},
};
