/* HRM Text, a hierarchical reasoning model: two stacks of layers, which alternate. conversion/hrm_text.py.
 *
 * In a GGUF the high stack's layers follow the low stack's. block_count is the number of layers that a token passes. */
#include "models/families/shared.h"

#include <inttypes.h>
#include <string.h>

#define LAYER "model.layers.{}."

static const struct relation_row tensors[] = {
    {"model.z_L_init", "hrm.z_l_init"},
    {LAYER "attn.gqkv_proj", "blk.{}.attn_gate, blk.{}.attn_q, blk.{}.attn_k, blk.{}.attn_v",
     "(g + q + k + v) c -> g c, q c, k c, v c", "g q k v"},
    {LAYER "attn.o_proj", "blk.{}.attn_output", .parallel = "column"},
    {LAYER "mlp.gate_up_proj", "blk.{}.ffn_gate, blk.{}.ffn_up", GATE_UP, "gate up"},
    {0},
};

static const char *rename_tensor(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    static const char *const stacks[] = {"model.L_module.layers.{}.*", "model.H_module.layers.{}.*"};
    static const char *const written[] = {"model.L_module.layers.%" PRIu64 "%s", "model.H_module.layers.%" PRIu64 "%s"};
    uint64_t numbers[PATTERN_NUMBERS], n = dimensions_get(dimensions, "stack");
    for (unsigned i = 0; i < 2 && direction == FORWARD; i++)
        if (pattern_match(stacks[i], name, strlen(name), numbers)) {
            const char *rest = strchr(name + strlen("model.L_module.layers."), '.');
            return arena_printf(arena, "model.layers.%" PRIu64 "%s", numbers[0] + i * n, rest);
        }
    if (direction == FORWARD || !pattern_match("model.layers.{}.*", name, strlen(name), numbers))
        return name;
    const char *rest = strchr(name + strlen("model.layers."), '.');
    bool is_high = numbers[0] >= n;
    return arena_printf(arena, written[is_high], numbers[0] - (is_high ? n : 0), rest);
}

enum { MOST = 1 << 12 };

static bool count_blocks(struct model_builder *builder, struct error *error)
{
    struct hparams *hparams = builder->model->hparams;
    uint64_t n = dimensions_get(&builder->dimensions, "stack"), high, low;
    if (n == 0 || n > MOST)
        return error_set(error, "config.json: the number of layers of a stack is missing, or not between 1 and %d",
                         MOST);
    if (!hparams_count(hparams, "H_cycles", 1, MOST, &high, error) ||
        !hparams_count(hparams, "L_cycles", 0, MOST, &low, error))
        return false;
    builder->dimensions.n_layers = 2 * n;
    return hparams_override(hparams, "n_layers", n * high * (low + 1), error);
}

static bool compute_layers(const struct model_builder *builder, double *ret_value, struct error *error)
{
    (void)error;
    *ret_value = (double)dimensions_get(&builder->dimensions, "stack");
    return true;
}

static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    uint64_t n = 0;
    if (!json_u64(hparams_get(hparams, "num_layers_per_stack"), &n) || n == 0)
        json_u64(hparams_get(hparams, "num_hidden_layers"), &n);
    dimensions_set(dimensions, "stack", n);
}

/* block_count is no number of layers that the class has. */
static const struct config_row config_rows[] = {
    {"num_layers_per_stack", FROM_KEY, "hrm.layers_per_stack"},
    {"num_hidden_layers", FROM_SUM, "hrm.layers_per_stack", "hrm.layers_per_stack"},
    {0},
};

const struct family hrm_text_family = {
    .name = "hrm_text",
    .summary = "HRM Text",
    .since = 11138,
    .hf = FAMILY_NAMES({"HrmTextForCausalLM"}),
    .tensors = {tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"HrmTextForCausalLM", "hrm_text", NULL, CONFIG_TABLES(silu_rows, config_rows)}),
    .keys = {base_keys,
             KEYS({"rope.dimension_count", GGUF_U32, .compute = compute_head_dim},
                  {"embedding_scale", GGUF_F32, REQUIRED, "embedding_scale"},
                  {"hrm.layers_per_stack", GGUF_U32, .compute = compute_layers},
                  {"hrm.h_cycles", GGUF_U32, REQUIRED, "H_cycles"}, {"hrm.l_cycles", GGUF_U32, REQUIRED, "L_cycles"},
                  {"hrm.prefix_lm", GGUF_BOOL, OR_DEFAULT, "prefix_lm", 0})},
    .vocabs = {&bpe_vocab},
    .add_dimensions = add_dimensions,
    .adjust = count_blocks,
    .rename = rename_tensor,
};
