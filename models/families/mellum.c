/* Mellum 2, of JetBrains: Qwen 3 with experts, and some layers with a window. conversion/mellum.py. */
#include "models/families/layers.h"
#include "models/families/qwen/qwen.h"

static bool emit_window(struct model_builder *builder, struct error *error)
{
    static const struct key_row window[] = {{"attention.sliding_window", GGUF_U32, REQUIRED, "sliding_window"}, {0}};
    const struct json *used = hparams_get(builder->model->hparams, "use_sliding_window"),
                      *size = hparams_get(builder->model->hparams, "sliding_window"),
                      *types = hparams_get(builder->model->hparams, "layer_types");
    bool is_used = used == NULL || json_is(used, JSON_NULL) || json_is(used, JSON_TRUE);
    if (!is_used || size == NULL || json_is(size, JSON_NULL))
        return true;
    if (!json_is(types, JSON_ARRAY))
        return error_set(error, "config.json: there is a sliding_window, and no layer_types");
    return builder_emit(builder, window, error) && emit_listed_windows(builder, error);
}

const struct family mellum_family = {
    .name = "mellum",
    .summary = "Mellum 2",
    .hf = FAMILY_NAMES({"MellumForCausalLM"}),
    .tensors = {qk_norm_tensors, qwen_moe_tensors, decoder_tensors},
    .keys = {base_keys, KEYS({"expert_feed_forward_length", GGUF_U32, IF_PRESENT, "moe_intermediate_size"},
                             {.emit = emit_window})},
    .vocabs = {&bpe_vocab},
};
