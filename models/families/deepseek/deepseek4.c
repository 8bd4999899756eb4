/* DeepSeek V4: keys compressed in time, hyper-connections, layers that look experts up by the token.
 * conversion/deepseek.py.
 *
 * Weights stored as F32 or BF16 keep their type in every output; FP8 becomes Q8_0 and packed MXFP4 keeps its bits. The
 * converter writes tables and experts before all other tensors. */
#include "base/text.h"
#include "models/families/drafts/drafts.h"
#include "models/families/drafts/nextn.h"
#include "models/families/layers.h"
#include "quant/views/unpack.h"
#include "text/json_write.h"

#include <inttypes.h>
#include <string.h>

static const struct relation_row tensors[] = {
    {"mtp.*", NULL},
    {"layers.{}.nextn.e_proj.weight, layers.{}.nextn.h_proj.weight", "blk.{}.nextn.eh_proj.weight",
     "o a, o r -> o (a + r)"},
    {"layers.{}.nextn.enorm", "blk.{}.nextn.enorm"},
    {"layers.{}.nextn.hnorm", "blk.{}.nextn.hnorm"},
    {"layers.{}.nextn.shared_head_norm", "blk.{}.nextn.shared_head_norm"},
    {"embed", "token_embd", .parallel = "row"},
    {"norm", "output_norm"},
    {"head", "output", .parallel = "row"},
    {"hc_head_fn", "output_hc_fn.weight"},
    {"hc_head_base", "output_hc_base.weight"},
    {"hc_head_scale", "output_hc_scale.weight"},
    {"layers.{}.hc_attn_fn", "blk.{}.hc_attn_fn.weight"},
    {"layers.{}.hc_attn_base", "blk.{}.hc_attn_base.weight"},
    {"layers.{}.hc_attn_scale", "blk.{}.hc_attn_scale.weight"},
    {"layers.{}.hc_ffn_fn", "blk.{}.hc_ffn_fn.weight"},
    {"layers.{}.hc_ffn_base", "blk.{}.hc_ffn_base.weight"},
    {"layers.{}.hc_ffn_scale", "blk.{}.hc_ffn_scale.weight"},
    {"layers.{}.attn_norm", "blk.{}.attn_norm"},
    {"layers.{}.attn.attn_sink", "blk.{}.attn_sinks.weight", .parallel = "row"},
    {"layers.{}.attn.wq_a", "blk.{}.attn_q_a"},
    {"layers.{}.attn.q_norm", "blk.{}.attn_q_a_norm"},
    {"layers.{}.attn.wq_b", "blk.{}.attn_q_b", "(head d) ...", "head"},
    {"layers.{}.attn.wkv", "blk.{}.attn_kv"},
    {"layers.{}.attn.kv_norm", "blk.{}.attn_kv_a_norm"},
    {"layers.{}.attn.wo_a", "blk.{}.attn_output_a", "(group d) ...", "group"},
    {"layers.{}.attn.wo_b", "blk.{}.attn_output_b", "row (group d) -> row (group d)", "group"},
    {"layers.{}.attn.compressor.ape", "blk.{}.attn_compressor_ape.weight"},
    {"layers.{}.attn.compressor.wkv", "blk.{}.attn_compressor_kv"},
    {"layers.{}.attn.compressor.wgate", "blk.{}.attn_compressor_gate"},
    {"layers.{}.attn.compressor.norm", "blk.{}.attn_compressor_norm"},
    {"layers.{}.attn.indexer.wq_b", "blk.{}.indexer.attn_q_b"},
    {"layers.{}.attn.indexer.weights_proj", "blk.{}.indexer.proj"},
    {"layers.{}.attn.indexer.compressor.ape", "blk.{}.indexer_compressor_ape.weight"},
    {"layers.{}.attn.indexer.compressor.wkv", "blk.{}.indexer_compressor_kv"},
    {"layers.{}.attn.indexer.compressor.wgate", "blk.{}.indexer_compressor_gate"},
    {"layers.{}.attn.indexer.compressor.norm", "blk.{}.indexer_compressor_norm"},
    {"layers.{}.ffn_norm", "blk.{}.ffn_norm"},
    {"layers.{}.ffn.gate.weight", "blk.{}.ffn_gate_inp.weight"},
    {"layers.{}.ffn.gate.bias", "blk.{}.exp_probs_b.bias"},
    {"layers.{}.ffn.gate.bias_vl", "blk.{}.exp_probs_b_vl.bias"},
    {"layers.{}.ffn.gate.tid2eid", "blk.{}.ffn_gate_tid2eid.weight"},
    {"layers.{}.ffn.experts.{expert}.w1", "blk.{}.ffn_gate_exps", .parallel = "row"},
    {"layers.{}.ffn.experts.{expert}.w2", "blk.{}.ffn_down_exps", .parallel = "column"},
    {"layers.{}.ffn.experts.{expert}.w3", "blk.{}.ffn_up_exps", .parallel = "row"},
    {"layers.{}.ffn.shared_experts.w1", "blk.{}.ffn_gate_shexp", .parallel = "row"},
    {"layers.{}.ffn.shared_experts.w2", "blk.{}.ffn_down_shexp", .parallel = "column"},
    {"layers.{}.ffn.shared_experts.w3", "blk.{}.ffn_up_shexp", .parallel = "row"},
    {0},
};

static const char table[] = "blk.{}.ffn_gate_tid2eid.weight";

static bool emit_clamps(struct model_builder *builder, struct error *error)
{
    return layers_set_clamps(builder, hparams_get(builder->model->hparams, "swiglu_limit"), error);
}

/* Fills in the ratios that transformers 5 gives for each kind of layer. */
static bool fill_rates(const struct model_builder *builder, struct layers *layers, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    const struct json *rates = hparams_get(hparams, "compress_rates"), *types = hparams_get(hparams, "layer_types");
    const struct json *type = json_is(types, JSON_ARRAY) ? json_first(types) : NULL;
    for (uint64_t i = 0; i < layers->n && type != NULL; i++, type = json_next(type)) {
        const char *name = json_string(type, NULL);
        if (name == NULL ||
            (strcmp(name, "sliding_attention") != 0 && !json_double(json_get(rates, name), &layers->values[i])))
            return error_set(error, "config.json: compress_rates has no number for layer %" PRIu64 " of layer_types",
                             i);
    }
    return true;
}

/* Sets the ratios of compression; the draft's layers do not compress. */
static bool emit_ratios(struct model_builder *builder, struct error *error)
{
    static const struct key_row rows[] = {{"attention.compress_ratios", GGUF_U32, REQUIRED, "compress_ratios"}, {0}};
    const struct hparams *hparams = builder->model->hparams;
    bool has_rates = hparams_get(hparams, "compress_ratios") == NULL && hparams_get(hparams, "compress_rates") != NULL;
    struct layers layers;
    if (!builder->family->drafts && !has_rates)
        return builder_emit(builder, rows, error);
    if (!builder->family->drafts)
        return layers_new(builder, &layers, error) && fill_rates(builder, &layers, error) &&
               layers_set_i32(builder, "attention.compress_ratios", &layers, error);
    return layers_new(builder, &layers, error) && layers_set_i32(builder, "attention.compress_ratios", &layers, error);
}

/* Puts the members of an object, without nulls and those that `others` has. */
static void put_members(struct json_writer *writer, const struct json *object, const struct json *others)
{
    for (struct json_member member = {0}; json_next_member(object, &member);) {
        if (json_is(member.value, JSON_NULL) || json_get_n(others, member.key, member.key_length) != NULL)
            continue;
        json_put_key(writer, member.key, member.key_length);
        json_put_edited(writer, member.value, NULL, NULL);
    }
}

/* Adds rope_scaling to rope_parameters that have no type, as transformers 5 writes those of two ropes. */
static bool merge_scaling(struct model_builder *builder, struct error *error)
{
    struct hparams *hparams = builder->model->hparams;
    const struct json *parameters = hparams_get(hparams, "rope_parameters"), *type = hparams_rope(hparams, "rope_type"),
                      *scaling = json_get(hparams_raw(hparams), "rope_scaling");
    const char *older = json_string(json_get(scaling, "type"), NULL);
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .compact = true};
    if (!json_is(scaling, JSON_OBJECT) || (type != NULL && !json_is(type, JSON_NULL)) ||
        json_get(parameters, "full_attention") != NULL)
        return true;
    json_begin_object(&writer, NULL);
    json_begin_object(&writer, "rope_parameters");
    put_members(&writer, parameters, scaling);
    put_members(&writer, scaling, NULL);
    if (json_get(scaling, "rope_type") == NULL && older != NULL)
        json_put_text(&writer, "rope_type", older);
    json_end(&writer);
    json_end(&writer);
    bool done = hparams_put_first(hparams, (const char *)text.bytes, text.length, error);
    buffer_free(&text);
    return done;
}

/* Puts the rope that transformers 5 names "compress", whose scaling is the model's, in the place of both. */
static bool merge_ropes(struct model_builder *builder, struct error *error)
{
    struct hparams *hparams = builder->model->hparams;
    const struct json *rope = json_get(hparams_get(hparams, "rope_parameters"), "compress");
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .compact = true};
    if (!json_is(rope, JSON_OBJECT))
        return true;
    json_begin_object(&writer, NULL);
    json_begin_object(&writer, "rope_parameters");
    for (struct json_member member = {0}; json_next_member(rope, &member);)
        if (strcmp(member.key, "rope_theta") != 0 && strcmp(member.key, "partial_rotary_factor") != 0) {
            json_put_key(&writer, member.key, member.key_length);
            json_put_edited(&writer, member.value, NULL, NULL);
        }
    json_end(&writer);
    json_end(&writer);
    bool done = hparams_put_first(hparams, (const char *)text.bytes, text.length, error);
    buffer_free(&text);
    return done;
}

/* Counts the first layers that look experts up, which transformers 5 names one by one. */
static bool count_looked_up(struct model_builder *builder, struct error *error)
{
    struct hparams *hparams = builder->model->hparams;
    const struct json *types = hparams_get(hparams, "mlp_layer_types");
    uint64_t n = 0;
    if (hparams_get(hparams, "num_hash_layers") != NULL || !json_is(types, JSON_ARRAY))
        return true;
    for (const struct json *type = json_first(types); json_string_is(type, "hash_moe"); type = json_next(type))
        n++;
    dimensions_set(&builder->dimensions, "looked_up", n);
    return hparams_override(hparams, "num_hash_layers", n, error);
}

static bool adjust(struct model_builder *builder, struct error *error)
{
    return merge_ropes(builder, error) && merge_scaling(builder, error) && count_looked_up(builder, error) &&
           nextn_count_blocks(builder, error);
}

/* Counts the layers that predict only in a file of their own. */
static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    if (dimensions_get(dimensions, "only_mtp") != 0)
        nextn_add_dimensions(dimensions, hparams);
}

static const struct key_row keys[] = {
    {"rope.dimension_count", GGUF_U32, REQUIRED, "qk_rope_head_dim"},
    {"attention.q_lora_rank", GGUF_U32, REQUIRED, "q_lora_rank"},
    {"attention.sliding_window", GGUF_U32, REQUIRED, "sliding_window"},
    {"expert_feed_forward_length", GGUF_U32, REQUIRED, "moe_intermediate_size"},
    {"expert_shared_count", GGUF_U32, REQUIRED, "n_shared_experts"},
    {"expert_weights_scale", GGUF_F32, REQUIRED, "routed_scaling_factor"},
    {"expert_weights_norm", GGUF_BOOL, REQUIRED, "norm_topk_prob"},
    {.emit = emit_clamps},
    {"attention.indexer.head_count", GGUF_U32, REQUIRED, "index_n_heads"},
    {"attention.indexer.key_length", GGUF_U32, REQUIRED, "index_head_dim"},
    {"attention.indexer.top_k", GGUF_U32, REQUIRED, "index_topk"},
    {"attention.output_group_count", GGUF_U32, REQUIRED, "o_groups"},
    {"attention.output_lora_rank", GGUF_U32, REQUIRED, "o_lora_rank"},
    {.emit = emit_ratios},
    {"attention.compress_rope_freq_base", GGUF_F32, REQUIRED, "compress_rope_theta"},
    {"hyper_connection.count", GGUF_U32, REQUIRED, "hc_mult"},
    {"hyper_connection.sinkhorn_iterations", GGUF_U32, REQUIRED, "hc_sinkhorn_iters"},
    {"hyper_connection.epsilon", GGUF_F32, REQUIRED, "hc_eps"},
    {"hash_layer_count", GGUF_U32, REQUIRED, "num_hash_layers"},
    {0},
};

/* Returns the rest of a name after "mtp.N."; NULL: the name begins otherwise. */
static const char *after_stage(const char *name, uint64_t *ret_stage)
{
    static const char mtp[] = "mtp.";
    uint64_t numbers[PATTERN_NUMBERS];
    if (!text_starts_with(name, mtp))
        return NULL;
    const char *number = name + strlen(mtp);
    size_t digits = strspn(number, "0123456789");
    if (number[digits] != '.' || !pattern_match("{}", number, digits, numbers))
        return NULL;
    *ret_stage = numbers[0];
    return number + digits + 1;
}

/* Names the tensors of layers that predict, below "mtp.", as the layers after the others; the head of their
 * hyper-connections takes the place of the model's. */
static const char *rename_predicting(struct arena *arena, const struct dimensions *dimensions, const char *name)
{
    static const char *const of_nextn[][2] = {{"e_proj.", "nextn.e_proj."},
                                              {"h_proj.", "nextn.h_proj."},
                                              {"enorm.", "nextn.enorm."},
                                              {"hnorm.", "nextn.hnorm."},
                                              {"norm.", "nextn.shared_head_norm."}};
    uint64_t stage, first = dimensions->n_layers - dimensions_get(dimensions, "nextn");
    const char *rest = after_stage(name, &stage);
    if (rest == NULL)
        return text_starts_with(name, "hc_head_") ? NULL : name;
    if (text_starts_with(rest, "hc_head_"))
        return rest;
    for (size_t i = 0; i < sizeof of_nextn / sizeof *of_nextn; i++)
        if (text_starts_with(rest, of_nextn[i][0]))
            return arena_printf(arena, "layers.%" PRIu64 ".%s%s", first + stage, of_nextn[i][1],
                                rest + strlen(of_nextn[i][0]));
    return arena_printf(arena, "layers.%" PRIu64 ".%s", first + stage, rest);
}

/* Returns the published name of a tensor that transformers 5 saved, whose names are the published ones but for these.
 */
static const char *published_name(struct arena *arena, const char *name)
{
    static const char prefix[] = "model.";
    static const char *const parts[][2] = {
        {"embed_tokens.", "embed."}, {"hc_head.hc_", "hc_head_"}, {".attn.norm.", ".attn.kv_norm."}};
    name += text_starts_with(name, prefix) ? sizeof prefix - 1 : 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *at = strstr(name, parts[i][0]);
        if (at != NULL)
            return arena_printf(arena, "%.*s%s%s", (int)(at - name), name, parts[i][1], at + strlen(parts[i][0]));
    }
    return name;
}

/* Leaves out image tensors, and the router's correction in layers that look experts up. */
static const char *rename_tensor(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    uint64_t numbers[PATTERN_NUMBERS];
    if (direction == BACKWARD)
        return name;
    name = published_name(arena, name);
    if (text_starts_with(name, "aligner.") || text_starts_with(name, "image_"))
        return NULL;
    if (dimensions_get(dimensions, "only_mtp") != 0)
        name = rename_predicting(arena, dimensions, name);
    if (name == NULL)
        return NULL;
    bool is_bias = pattern_match("layers.{}.ffn.gate.bias", name, strlen(name), numbers);
    return is_bias && numbers[0] < dimensions_get(dimensions, "looked_up") ? NULL : name;
}

/* Cuts whole numbers of 64 bits to 32. */
static const struct view *low_halves(struct arena *arena, const struct view *view)
{
    view = view_reinterpret(arena, view, &i32_dtype);
    return view_slice(arena, view, view->rank - 1, 0, view->shape[view->rank - 1] / 2, 2);
}

static const struct stored_type stored_types[] = {
    {table, &i32_dtype},
    {"*", &f32_dtype, &f32_dtype},
    {"*", &bf16_dtype, &bf16_dtype},
    {0},
};

static void arrange(struct model_builder *builder)
{
    enum { FILE_TYPE_MXFP4 = 38 };
    static const char *const experts[] = {"blk.{}.ffn_gate_exps.weight", "blk.{}.ffn_down_exps.weight",
                                          "blk.{}.ffn_up_exps.weight", NULL};
    static const char *const tables[] = {table, NULL};
    static const char *const projections[] = {"blk.{}.nextn.eh_proj.weight", NULL};
    struct gguf_model *model = builder->model;
    uint64_t numbers[PATTERN_NUMBERS];
    builder_put_first(builder, projections);
    builder_put_first(builder, experts);
    builder_put_first(builder, tables);
    for (size_t i = 0; i < model->tensors->n_tensors; i++) {
        struct tensor *tensor = &tensor_set_edit(model->tensors)[i];
        if (tensor->view->rank > 0 && tensor->view->dtype == &i64_dtype &&
            pattern_match(table, tensor->name, tensor->name_length, numbers))
            tensor->view = low_halves(model->arena, tensor->view);
    }
    model->packed_file_type = FILE_TYPE_MXFP4;
}

static const struct config_row config_rows[] = {
    {"scoring_func", .make = config_gating_function, .text = "'sqrtsoftplus'"},
    {"topk_method", FROM_TEXT, .text = "'noaux_tc'"},
    {"swiglu_limit", .make = layers_clamp},
    {"num_nextn_predict_layers", FROM_TEXT, .text = "0"},
    {0},
};

const struct family deepseek4_family = {
    .name = "deepseek4",
    .summary = "DeepSeek V4",
    .hf = FAMILY_NAMES({"DeepseekV4ForCausalLM"}),
    .tensors = {tensors},
    .forms = CONFIG_FORMS({"DeepseekV4ForCausalLM", "deepseek_v4", NULL, CONFIG_TABLES(silu_rows, config_rows)}),
    .keys = {base_keys, keys,
             KEYS({"embedding_length_out", GGUF_U32, REQUIRED, "hidden_size", .by = "hc_mult"}, {.emit = nextn_emit})},
    .exports_mtp = true,
    .vocabs = {&bpe_vocab},
    .keeps_mxfp4 = true,
    .stored_types = stored_types,
    .dimensions = {DIMENSIONS({"group", "o_groups", .kept = true}, {"expert", "n_routed_experts", .kept = true},
                              {"looked_up", "num_hash_layers"})},
    .add_dimensions = add_dimensions,
    .adjust = adjust,
    .add_extras = hold_chat_template,
    .rename = rename_tensor,
    .arrange = arrange,
    .after_vocab = release_chat_template,
};

/* DSpark, a draft in the directory of the whole model, below "mtp.". DeepseekV4DSparkModel. */
static const struct relation_row draft_tensors[] = {
    {"main_proj", "fc"},
    {"main_norm", "enc.output_norm"},
    {"markov_head.markov_w1", "markov_w1", .parallel = "row"},
    {"markov_head.markov_w2", "markov_w2", .parallel = "row"},
    {"confidence_head.proj", "conf_proj"},
    {0},
};

/* Names the parts that the draft has once without their stage, and the others as layers. */
static const char *rename_draft(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                const char *name)
{
    static const char *const once[] = {"main_proj.",   "main_norm.",       "norm.",
                                       "markov_head.", "confidence_head.", "hc_head_"};
    uint64_t stage;
    const char *rest = after_stage(name, &stage);
    (void)dimensions;
    if (direction == BACKWARD)
        return name;
    if (rest == NULL || text_ends_with(rest, "ffn.gate.bias_vl") || text_ends_with(rest, "ffn.gate.tid2eid"))
        return NULL;
    for (size_t i = 0; i < sizeof once / sizeof *once; i++)
        if (text_starts_with(rest, once[i]))
            return rest;
    return arena_printf(arena, "layers.%" PRIu64 ".%s", stage, rest);
}

/* Counts the layers, whatever config.json says: that describes the whole model. None looks experts up. */
static bool adjust_draft(struct model_builder *builder, struct error *error)
{
    const struct tensor_set *set = builder->model->checkpoint->tensors;
    struct arena *scratch = arena_new();
    uint64_t n_layers = 0, stage;
    for (size_t i = 0; i < set->n_tensors; i++) {
        const char *name = rename_draft(scratch, &builder->dimensions, FORWARD, set->tensors[i].name);
        if (name != NULL && text_starts_with(name, "layers.") && after_stage(set->tensors[i].name, &stage) != NULL &&
            stage >= n_layers)
            n_layers = stage + 1;
    }
    arena_free(scratch);
    if (n_layers == 0)
        return error_set(error, "no tensor begins with 'mtp.': the draft's layers are missing");
    builder->dimensions.n_layers = n_layers;
    return merge_scaling(builder, error) && hparams_override(builder->model->hparams, "n_layers", n_layers, error) &&
           hparams_override(builder->model->hparams, "num_hash_layers", 0, error);
}

static bool emit_draft_targets(struct model_builder *builder, struct error *error)
{
    return draft_list_target_layers(builder, hparams_get(builder->model->hparams, "dspark_target_layer_ids"), 1, error);
}

static bool finish_draft(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    static const struct key_row rows[] = {
        {".tokenizer.ggml.mask_token_id", GGUF_U32, REQUIRED, "dspark_noise_token_id"}, {0}};
    return builder_emit(builder, rows, error) && release_chat_template(builder, input, error);
}

const struct family deepseek4_dspark_family = {
    .name = "dflash-deepseek4",
    .told_by = "key:hyper_connection.count",
    .no_forms = "the number of layers of the model whose config.json the draft shares, nor the layers below mtp. of "
                "its single tensors",
    .architecture = "dflash",
    .summary = "DeepSeek V4's DSpark",
    .hf = FAMILY_NAMES({"DeepseekV4DSparkModel"}),
    .tensors = {draft_tensors, tensors},
    .keys = {base_keys, keys,
             KEYS({"block_size", GGUF_U32, REQUIRED, "dspark_block_size"}, {.emit = emit_draft_targets})},
    .drafts = true,
    .keeps_mxfp4 = true,
    .stored_types = stored_types,
    .dimensions = {DIMENSIONS({"group", "o_groups", .kept = true}, {"expert", "n_routed_experts", .kept = true})},
    .add_extras = hold_chat_template,
    .rename = rename_draft,
    .adjust = adjust_draft,
    .arrange = arrange,
    .after_vocab = finish_draft,
};
