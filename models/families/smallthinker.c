/* SmallThinker. conversion/smallthinker.py. */
#include "models/families/layers.h"
#include "text/json_write.h"

static const struct relation_row tensors[] = {
    {"model.layers.{}.block_sparse_moe.experts.{expert}.down", "blk.{}.ffn_down_exps", .parallel = "column"},
    {"model.layers.{}.block_sparse_moe.experts.{expert}.gate", "blk.{}.ffn_gate_exps", .parallel = "row"},
    {"model.layers.{}.block_sparse_moe.experts.{expert}.up", "blk.{}.ffn_up_exps", .parallel = "row"},
    {"model.layers.{}.block_sparse_moe.primary_router", "blk.{}.ffn_gate_inp"},
    {0},
};

static bool compute_gating(const struct model_builder *builder, double *ret_value, struct error *error)
{
    enum { SOFTMAX = 1, SIGMOID = 2 };
    *ret_value =
        json_bool(hparams_get(builder->model->hparams, "moe_primary_router_apply_softmax"), false) ? SOFTMAX : SIGMOID;
    return true;
}

static bool emit_window(struct model_builder *builder, struct error *error)
{
    static const struct key_row rows[] = {{"attention.sliding_window", GGUF_U32, IF_TRUE, "sliding_window_size"}, {0}};
    const struct json *layout = hparams_get(builder->model->hparams, "sliding_window_layout");
    for (const struct json *item = json_is(layout, JSON_ARRAY) ? json_first(layout) : NULL; item != NULL;
         item = json_next(item)) {
        double slides;
        if (json_double(item, &slides) && slides != 0)
            return builder_emit(builder, rows, error);
    }
    return true;
}

static const struct key_row keys[] = {
    {"expert_count", GGUF_U32, IF_PRESENT, "num_experts|moe_num_primary_experts"},
    {"expert_used_count", GGUF_U32, IF_PRESENT, "num_experts_per_tok|moe_num_active_primary_experts"},
    {"expert_feed_forward_length", GGUF_U32, IF_PRESENT, "moe_ffn_hidden_size"},
    {"feed_forward_length", GGUF_U32, IF_PRESENT, "moe_ffn_hidden_size"},
    {"expert_gating_func", GGUF_U32, .compute = compute_gating},
    {.emit = emit_window},
    {0},
};

/* Every fourth layer, from the first on, has full attention and no positions; the others have a window. */
static const char *make_layout(const struct config_material *material)
{
    struct buffer out = {0};
    struct json_writer writer = {.out = &out, .letters = JSON_ASCII};
    double window;
    bool has_window = config_number_of_layer(material, "attention.sliding_window", 0, &window);
    json_begin_array(&writer, NULL);
    json_keep_line(&writer);
    for (uint64_t i = 0; i < material->n_layers && i < MAX_LISTED_LAYERS; i++)
        json_put_number(&writer, NULL, has_window && i % 4 != 0);
    json_end(&writer);
    const char *list = arena_strndup(material->arena, (const char *)out.bytes, out.length);
    buffer_free(&out);
    return list;
}

static const char *make_softmax(const struct config_material *material)
{
    enum { SOFTMAX = 1 };
    double function;
    return config_number_of_layer(material, "expert_gating_func", 0, &function) && function == SOFTMAX ? "true"
                                                                                                       : "false";
}

static const struct config_row config_rows[] = {
    {"moe_num_primary_experts", FROM_KEY, "expert_count"},
    {"moe_num_active_primary_experts", FROM_KEY, "expert_used_count"},
    {"moe_primary_router_apply_softmax", .make = make_softmax},
    {"sliding_window_layout", .make = make_layout},
    {0},
};

const struct family smallthinker_family = {
    .name = "smallthinker",
    .summary = "SmallThinker",
    .hf = FAMILY_NAMES({"SmallThinkerForCausalLM"}),
    .tensors = {tensors, decoder_tensors},
    .forms =
        CONFIG_FORMS({"SmallThinkerForCausalLM", "smallthinker", NULL, CONFIG_TABLES(config_rows), OWN_CLASS_NOTE}),
    .keys = {base_keys, keys},
    .vocabs = {&bpe_vocab},
    .dimensions = {DIMENSIONS({"expert", "num_experts|moe_num_primary_experts", .kept = true})},
};
