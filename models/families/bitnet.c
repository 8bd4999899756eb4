/* BitNet b1.58, whose weights are ternary. conversion/bitnet.py.
 *
 * The converter knows the names of its first release. llama.cpp computes only silu, and uses the embedding as the
 * output: a model with another activation is unknown. */
#include "models/families/shared.h"
#include "quant/pack/ternary_weights.h"

static const struct view *make_ternary(struct arena *arena, const struct dimensions *dimensions,
                                       enum direction direction, const struct view *view)
{
    return direction == FORWARD ? view_ternary(arena, view) : view;
}

static const struct elementwise ternary = {
    .forward_text = "-1, 0 or 1, times the mean of |x|",
    .backward_text = "x",
    .apply = make_ternary,
    .is_one_way = true,
    .exactness = "what was rounded stays so",
};

#define LAYER "model.layers.{}."

static const struct relation_row tensors[] = {
    {LAYER "self_attn.q_proj.weight", "blk.{}.attn_q.weight", "(head d) ...", "head", &ternary},
    {LAYER "self_attn.k_proj.weight", "blk.{}.attn_k.weight", "(kv_head d) ...", "kv_head", &ternary},
    {LAYER "self_attn.v_proj.weight", "blk.{}.attn_v.weight", "(kv_head d) ...", "kv_head", &ternary},
    {LAYER "self_attn.o_proj.weight", "blk.{}.attn_output.weight", .parallel = "column", .map = &ternary},
    {LAYER "mlp.gate_proj.weight", "blk.{}.ffn_gate.weight", .parallel = "row", .map = &ternary},
    {LAYER "mlp.up_proj.weight", "blk.{}.ffn_up.weight", .parallel = "row", .map = &ternary},
    {LAYER "mlp.down_proj.weight", "blk.{}.ffn_down.weight", .parallel = "column", .map = &ternary},
    {LAYER "self_attn.attn_sub_norm", "blk.{}.attn_sub_norm"},
    {LAYER "self_attn.inner_attn_ln", "blk.{}.attn_sub_norm", .forward_only = true},
    {LAYER "mlp.ffn_sub_norm", "blk.{}.ffn_sub_norm"},
    {LAYER "mlp.ffn_layernorm", "blk.{}.ffn_sub_norm", .forward_only = true},
    {0},
};

static bool has_silu(const struct hparams *hparams)
{
    const struct json *activation = hparams_get(hparams, "hidden_act");
    return activation == NULL || json_string_is(activation, "silu");
}

const struct family bitnet_family = {
    .name = "bitnet",
    .summary = "BitNet b1.58",
    .hf = FAMILY_NAMES({"BitnetForCausalLM"}, {"BitNetForCausalLM"}),
    .tensors = {tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"BitNetForCausalLM", "bitnet", NULL, CONFIG_TABLES(silu_rows, CONFIG_ROWS({"rope_scaling", FROM_NOWHERE}))}),
    .keys = {base_keys, KEYS({"rope.scaling.type", GGUF_STRING, ALWAYS, .text = "linear"},
                             {"rope.scaling.factor", GGUF_F32, ALWAYS, .value = 1})},
    .vocabs = {&spm_vocab},
    .applies = has_silu,
};
