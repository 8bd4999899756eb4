/* Granite Switch: Granite with built-in adapters, chosen by tokens. conversion/granite.py.
 *
 * Adapters are stacked; the first ("empty" is 1) is all zeros and means none. */
#include "models/families/granite/granite.h"
#include "models/families/llama/llama.h"

#define ATTENTION    "model.layers.{}.self_attn."
#define FEED_FORWARD "model.layers.{}.shared_mlp."
#define STACKED      "n 1 o c -> (empty + n) o c"

static const struct relation_row tensors[] = {
    {"lm_head.weight", NULL},
    {"model.switch.*", NULL},
    {"switch.*", NULL},
    {"model.adapter_token_ids", NULL},
    {"model.control_to_substitute_lut", NULL},
    {"adapter_token_ids", NULL},
    {"control_to_substitute_lut", NULL},
    {ATTENTION "qkv_proj.base_layer.weight", "blk.{}.attn_qkv.weight",
     "(query head half pair + key kv_head half pair + value kv_head half pair) c -> "
     "(query head pair half + key kv_head pair half + value kv_head half pair) c",
     "head kv_head"},
    {ATTENTION "qkv_proj.lora_A_slices.0", "blk.{}.attn_q.lora_a", STACKED},
    {ATTENTION "qkv_proj.lora_A_slices.1", "blk.{}.attn_k.lora_a", STACKED},
    {ATTENTION "qkv_proj.lora_A_slices.2", "blk.{}.attn_v.lora_a", STACKED},
    {ATTENTION "qkv_proj.lora_B_slices.0", "blk.{}.attn_q.lora_b",
     "n 1 (head half pair) o -> (empty + n) (head pair half) o", "head"},
    {ATTENTION "qkv_proj.lora_B_slices.1", "blk.{}.attn_k.lora_b",
     "n 1 (kv_head half pair) o -> (empty + n) (kv_head pair half) o", "kv_head"},
    {ATTENTION "qkv_proj.lora_B_slices.2", "blk.{}.attn_v.lora_b", STACKED, "o"},
    {ATTENTION "o_proj.base_layer.weight", "blk.{}.attn_output.weight", .parallel = "column"},
    {ATTENTION "o_proj.lora_A", "blk.{}.attn_output.lora_a", STACKED, "c"},
    {ATTENTION "o_proj.lora_B", "blk.{}.attn_output.lora_b", STACKED},
    {FEED_FORWARD "input_linear.base_layer", "blk.{}.ffn_gate, blk.{}.ffn_up", GATE_UP, "gate up"},
    {FEED_FORWARD "input_linear.lora_A_slices.0", "blk.{}.ffn_gate.lora_a", STACKED},
    {FEED_FORWARD "input_linear.lora_A_slices.1", "blk.{}.ffn_up.lora_a", STACKED},
    {FEED_FORWARD "input_linear.lora_B_slices.0", "blk.{}.ffn_gate.lora_b", STACKED, "o"},
    {FEED_FORWARD "input_linear.lora_B_slices.1", "blk.{}.ffn_up.lora_b", STACKED, "o"},
    {FEED_FORWARD "output_linear.base_layer.weight", "blk.{}.ffn_down.weight", .parallel = "column"},
    {FEED_FORWARD "output_linear.lora_A", "blk.{}.ffn_down.lora_a", STACKED, "c"},
    {FEED_FORWARD "output_linear.lora_B", "blk.{}.ffn_down.lora_b", STACKED},
    {0},
};

/* Sets the number of experts used to 0 for a model without experts, whatever config.json says. */
static bool emit_used_experts(struct model_builder *builder, struct error *error)
{
    double n_experts;
    if (!builder_number(builder, "num_local_experts", 0, &n_experts, error))
        return false;
    if (n_experts == 0)
        gguf_set_u32(&builder->model->kvs, builder_key(builder, "expert_used_count"), 0);
    return true;
}

static const struct key_row keys[] = {
    {"expert_shared_feed_forward_length", GGUF_U32, IF_TRUE, "shared_intermediate_size"},
    {.emit = emit_used_experts},
    {"adapters.count", GGUF_U32, REQUIRED, "num_adapters"},
    {"adapters.lora_rank", GGUF_U32, REQUIRED, "max_lora_rank"},
    {"adapters.token_ids_activate", GGUF_U32, REQUIRED, "adapter_token_ids"},
    {"adapters.token_ids_substitute", GGUF_U32, REQUIRED, "adapter_substitute_token_ids"},
    {"adapters.router_gain", GGUF_F32, OR_DEFAULT, "control_token_gain", 15},
    {0},
};

/* Subtracts a layer: the switch counts as one, but has no weights. */
static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    uint64_t head_dim = 0;
    if (dimensions->n_layers > 0)
        dimensions->n_layers--;
    if (!json_u64(hparams_find(hparams, "projection_head_dim|head_dim"), &head_dim) &&
        dimensions_get(dimensions, "head") != 0)
        head_dim = dimensions_get(dimensions, "hidden") / dimensions_get(dimensions, "head");
    dimensions_set(dimensions, "pair", head_dim / 2);
}

static bool count_layers(struct model_builder *builder, struct error *error)
{
    return hparams_override(builder->model->hparams, "n_layers", builder->dimensions.n_layers, error);
}

const struct family granite_switch_family = {
    .name = "graniteswitch",
    .summary = "Granite Switch",
    .hf = FAMILY_NAMES({"GraniteSwitchForCausalLM"}),
    .tensors = {tensors, decoder_tensors},
    .keys = {base_keys, granite_keys, keys},
    LLAMA_VOCABS,
    .dimensions = {qkv_dimensions, DIMENSIONS({"empty", NULL, 1})},
    .add_dimensions = add_dimensions,
    .adjust = count_layers,
    .add_extras = add_rope_freqs,
};
