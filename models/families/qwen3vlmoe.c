/* Qwen3-VL and Qwen3-Omni with experts: the text half. conversion/qwen3vl.py. */
#include "base/text.h"
#include "models/families/qwen3vl.h"

/* Experts are stored in one piece, transposed, but for those that later releases of transformers save; they come back
 * as those of Qwen 3. */
static const struct relation_row tensors[] = {
    {"model.layers.{}.mlp.experts.down_proj", "blk.{}.ffn_down_exps.weight", "e f c -> e c f", "f",
     .forward_only = true, .when = "transposed"},
    {"model.layers.{}.mlp.experts.gate_up_proj", "blk.{}.ffn_gate_exps.weight, blk.{}.ffn_up_exps.weight",
     "e c (gate + up) -> e gate c, e up c", "gate up", .forward_only = true, .when = "transposed"},
    {0},
};

/* Where the width of an expert is that of the model, both look alike: then they are as released. */
static bool look_at_experts(struct model_builder *builder, struct error *error)
{
    const struct tensor_set *set = builder->model->checkpoint->tensors;
    uint64_t hidden = dimensions_get(&builder->dimensions, "hidden");
    dimensions_set(&builder->dimensions, "transposed", 1);
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        if (tensor->rank == 3 && text_ends_with(tensor->name, ".mlp.experts.down_proj")) {
            bool is_transposed = tensor->shape[1] != hidden || tensor->shape[2] == hidden;
            dimensions_set(&builder->dimensions, "transposed", is_transposed);
            if (!is_transposed)
                checkpoint_note(builder->model->checkpoint, SUBJECT_GGUF,
                                "experts lie as later releases of transformers save them; the converter "
                                "would transpose them");
            return true;
        }
    }
    return true;
}

const struct family qwen3vlmoe_family = {
    .name = "qwen3vlmoe",
    .summary = "Qwen3-VL, Qwen3-Omni MoE (language model)",
    .hf = FAMILY_NAMES({"Qwen3VLMoeForConditionalGeneration"}, {"Qwen3OmniMoeForConditionalGeneration"}),
    .tensors = {tensors, qk_norm_tensors, qwen_moe_tensors, decoder_tensors},
    .forms = qwen3moe_half_forms,
    .keys = {base_keys, moe_keys, qwen3vl_keys},
    .vocabs = {&bpe_vocab},
    .dropped_parts = qwen3vl_dropped_parts,
    .adjust = look_at_experts,
    .after_vocab = qwen3vl_after_vocab,
};
