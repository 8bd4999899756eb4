/* MiMo-V2: sinks in layers that look at a window. conversion/mimo.py.
 *
 * The number of layers that predict is nowhere in the configuration: the converter takes it to be 3. */
#include "models/families/experts.h"
#include "models/families/layers.h"
#include "models/families/nextn.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { N_PREDICTING = 3 };

static const struct family_name names[] = {{"MiMoV2FlashForCausalLM"}, {"MiMoV2ForCausalLM"}, {0}};

static const struct relation_row tensors[] = {
    {"model.layers.{}.self_attn.attention_sink_bias", "blk.{}.attn_sinks.weight", .parallel = "row"},
    {"model.layers.{}.self_attn.qkv_proj", "blk.{}.attn_qkv", .parallel = "row"},
    {"model.layers.{}.pre_mlp_layernorm", "blk.{}.ffn_norm", .forward_only = true},
    {"model.layers.{}.final_layernorm", "blk.{}.layer_output_norm"},
    {0},
};

/* Layers that predict are below model.mtp. */
static const char *rename_tensor(struct arena *arena, const struct facts *facts, enum direction direction,
                                 const char *name)
{
    static const char stored[] = "model.mtp.layers.", counted[] = "model.layers.";
    const char *prefix = direction == FORWARD ? stored : counted;
    uint64_t numbers[PATTERN_NUMBERS], first = facts->n_layers - facts_get(facts, "nextn");
    size_t length = strlen(prefix), digits;
    if (strncmp(name, prefix, length) != 0)
        return name;
    digits = strspn(name + length, "0123456789");
    if (name[length + digits] != '.' || !pattern_match("{}", name + length, digits, numbers))
        return name;
    if (direction == FORWARD)
        return arena_printf(arena, "%s%" PRIu64 "%s", counted, first + numbers[0], name + length + digits);
    return numbers[0] < first
               ? name
               : arena_printf(arena, "%s%" PRIu64 "%s", stored, numbers[0] - first, name + length + digits);
}

/* The layers that look at a window; those that predict do. */
static bool mark_window(const struct draft *draft, struct layers *layers, struct error *error)
{
    const struct json *pattern = hparams_get(draft->model->hparams, "hybrid_layer_pattern");
    if (!layers_new(draft, layers, error))
        return false;
    if (!json_is(pattern, JSON_ARRAY))
        return error_set(error, "config.json: hybrid_layer_pattern is missing, or not a list");
    layers_fill(layers, pattern);
    for (uint64_t i = layers->n - N_PREDICTING; i < layers->n; i++)
        layers->values[i] = 1;
    return true;
}

static bool emit_windows(struct draft *draft, struct error *error)
{
    struct layers window, kv_heads;
    double n_full, n_window, size;
    if (!mark_window(draft, &window, error) || !layers_new(draft, &kv_heads, error) ||
        !draft_number(draft, "num_key_value_heads", -1, &n_full, error) ||
        !draft_number(draft, "swa_num_key_value_heads", -1, &n_window, error) ||
        !draft_number(draft, "sliding_window", -1, &size, error))
        return false;
    if (n_full < 0 || n_window < 0 || !(size >= 0 && size <= UINT32_MAX))
        return error_set(error,
                         "config.json: num_key_value_heads, swa_num_key_value_heads or sliding_window is missing");
    for (uint64_t i = 0; i < window.n; i++)
        kv_heads.values[i] = window.values[i] == 1 ? n_window : n_full;
    layers_set(draft, "attention.head_count_kv", GGUF_I32, &kv_heads);
    gguf_set_u32(&draft->model->kvs, draft_key(draft, "attention.sliding_window"), (uint32_t)size);
    layers_set(draft, "attention.sliding_window_pattern", GGUF_I32, &window);
    return true;
}

static bool compute_rotary(const struct draft *draft, double *ret_value, struct error *error)
{
    return rotary_of_head_dim(draft, NAN, ret_value, error);
}

static const struct key_row keys[] = {
    {.emit = emit_windows},
    {"attention.value_length", GGUF_U32, REQUIRED, "v_head_dim"},
    {"expert_count", GGUF_U32, REQUIRED, "n_routed_experts"},
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size"},
    {"rope.dimension_count", GGUF_U32, .compute = compute_rotary},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, OR_DEFAULT, "layernorm_epsilon", 1e-5},
    {"attention.value_scale", GGUF_F32, IF_PRESENT, "attention_value_scale"},
    {.emit = nextn_emit},
    {0},
};

static void add_facts(struct facts *facts, const struct hparams *hparams)
{
    (void)hparams;
    nextn_set(facts, N_PREDICTING);
}

const struct family mimo2_family = {
    .name = "mimo2",
    .summary = "MiMo-V2",
    .hf = names,
    .tensors = {tensors, nextn_tensors, experts_gate_first_tensors, decoder_tensors},
    .keys = {base_keys, keys},
    .vocabs = {&bpe_vocab},
    .rename = rename_tensor,
    .add_facts = add_facts,
    .adjust = nextn_count_blocks,
};
