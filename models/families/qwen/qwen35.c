/* Qwen3-Next and what followed: delta attention in most layers. conversion/qwen.py. */
#include "base/text.h"
#include "models/families/layers.h"
#include "models/families/linear_attention.h"
#include "models/families/qwen/qwen.h"
#include "quant/views/convert.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Qwen3-Next and Qwen3-Coder-Next. conversion/qwen.py. */

/* Each key head's queries, keys, values and gates are adjacent. */
static const struct relation_row qwen3next_tensors[] = {
    {"model.layers.{}.linear_attn.in_proj_qkvz", "blk.{}.attn_qkv, blk.{}.attn_gate",
     "(group (half key_dim + share value_dim + share gate_dim)) c -> (half group key_dim + group share value_dim) c, "
     "(group share gate_dim) c",
     "group"},
    {"model.layers.{}.linear_attn.in_proj_ba", "blk.{}.ssm_ba", .parallel = "row"},
    {0},
};

static const struct config_row qwen3next_config_rows[] = {
    {"linear_value_head_dim", FROM_QUOTIENT, "ssm.inner_size", "ssm.time_step_rank"},
    {"partial_rotary_factor", FROM_HEAD_SHARE, "rope.dimension_count", "attention.key_length"},
    {"attention_bias", FROM_TENSOR, "blk.3.attn_q.bias"},
    {"norm_topk_prob", FROM_TEXT, .text = "true"},
    {0},
};

const struct family qwen3next_family = {
    .name = "qwen3next",
    .summary = "Qwen3-Next, Qwen3-Coder-Next",
    .hf = FAMILY_NAMES({"Qwen3NextForCausalLM"}),
    .tensors = {qwen3next_tensors, gated_delta_tensors, plus_one_tensors, nextn_tensors, qwen_moe_tensors,
                decoder_tensors},
    .forms =
        CONFIG_FORMS({"Qwen3NextForCausalLM", "qwen3_next", NULL, CONFIG_TABLES(silu_rows, qwen3next_config_rows)}),
    .keys = {base_keys, moe_keys, gated_delta_keys},
    .exports_mtp = true,
    .vocabs = {&bpe_vocab},
    .add_dimensions = gated_delta_add_dimensions,
    .adjust = gated_delta_count_predicting,
    .rename = nextn_rename,
};

/* Qwen 3.5, 3.6 and 3.8, dense and with experts; MiniCPM-V 4.6's language model. conversion/qwen.py, minicpm.py. */

/* Counts the layers that predict. The model without its head has none, whatever config.json says; MiniCPM-V's are left
 * out, but counted if config.json has their number. */
static bool qwen35_adjust(struct model_builder *builder, struct error *error)
{
    bool is_inner = strcmp(builder->hf->name, "Qwen3_5TextModel") == 0;
    if (builder->hf->without_mtp)
        dimensions_set(&builder->dimensions, "without_mtp", 1);
    if (!is_inner)
        return gated_delta_count_predicting(builder, error);
    nextn_set(&builder->dimensions, 0);
    return true;
}

static const char *qwen35_rename_tensor(struct arena *arena, const struct dimensions *dimensions,
                                        enum direction direction, const char *name)
{
    return dimensions_get(dimensions, "without_mtp") != 0 ? name : nextn_rename(arena, dimensions, direction, name);
}

static const struct config_row qwen35_config_rows[] = {
    {"linear_value_head_dim", FROM_QUOTIENT, "ssm.inner_size", "ssm.time_step_rank"},
    {"partial_rotary_factor", FROM_HEAD_SHARE, "rope.dimension_count", "attention.key_length"},
    {0},
};

const struct family qwen35_family = {
    .name = "qwen35",
    .summary = "Qwen 3.5, 3.6 and 3.8, dense",
    .hf = FAMILY_NAMES({"Qwen3_5ForConditionalGeneration"}, {"Qwen3_5ForCausalLM"},
                       {"Qwen3_5TextModel", .since = 11549, .without_mtp = true},
                       {"MiniCPMV4_6ForConditionalGeneration", .without_mtp = true}),
    .tensors = {TENSORS({"mtp*", NULL, .when = "without_mtp"}, {"model.merger.*", NULL}), gated_delta_grouped_tensors,
                gated_delta_tensors, plus_one_tensors, nextn_tensors, qwen_moe_tensors, decoder_tensors},
    .forms = CONFIG_FORMS(
        {"Qwen3_5ForCausalLM", "qwen3_5_text", NULL, CONFIG_TABLES(silu_rows, qwen35_config_rows), HALF_NOTE}),
    .keys = {base_keys, moe_keys, gated_delta_keys,
             KEYS({.emit = gated_delta_emit_sections},
                  {.emit = emit_pooling_type, .since = POOLING_OF_EMBEDDING_CONFIG})},
    .exports_mtp = true,
    .vocabs = {&bpe_vocab},
    .add_dimensions = gated_delta_add_dimensions,
    .adjust = qwen35_adjust,
    .rename = qwen35_rename_tensor,
};

const struct family qwen35moe_family = {
    .name = "qwen35moe",
    .summary = "Qwen 3.5, 3.6 and 3.8 MoE",
    .hf = FAMILY_NAMES({"Qwen3_5MoeForConditionalGeneration"}, {"Qwen3_5MoeForCausalLM"}),
    .tensors = {gated_delta_grouped_tensors, gated_delta_tensors, plus_one_tensors, nextn_tensors, qwen_moe_tensors,
                decoder_tensors},
    .forms = CONFIG_FORMS({"Qwen3_5MoeForCausalLM", "qwen3_5_moe_text", NULL,
                           CONFIG_TABLES(silu_rows, num_experts_rows, qwen35_config_rows), HALF_NOTE}),
    .keys = {base_keys, moe_keys, gated_delta_keys, KEYS({.emit = gated_delta_emit_sections})},
    .exports_mtp = true,
    .vocabs = {&bpe_vocab},
    .add_dimensions = gated_delta_add_dimensions,
    .adjust = gated_delta_count_predicting,
    .rename = nextn_rename,
};

/* Qwen 3.8 Flash Next: Qwen 3.5 MoE with hyper-connections instead of norms, an indexer in layers with full attention,
 * and one layer that looks up n-grams of tokens. conversion/qwen4exp.py.
 *
 * The shards of the table of n-grams become one tensor, in the order of their numbers. */

#define LAYER "model.layers.{}."
#define MIXER(here, there)                                                                                             \
    {here ".hc_norm", there "norm", .map = &plus_one}, {here ".input_mix_weight_down", there "down"},                  \
    {                                                                                                                  \
        here ".input_mix_weight_up", there "up"                                                                        \
    }

static const struct relation_row qwen4exp_tensors[] = {
    MIXER(LAYER "attn_hyper_connection", "blk.{}.hc_attn_"),
    {LAYER "attn_hyper_connection.block_inject_weight", "blk.{}.hc_attn_inject"},
    MIXER(LAYER "mlp_hyper_connection", "blk.{}.hc_ffn_"),
    {LAYER "mlp_hyper_connection.block_inject_weight", "blk.{}.hc_ffn_inject"},
    MIXER("model.hyper_connection_mixer", "output_hc_"),
    MIXER(LAYER "hyper_connection_mixer", "blk.{}.nextn.hc_head_"),
    {LAYER "fc_embedding.weight, " LAYER "fc_hidden.weight", "blk.{}.nextn.eh_proj.weight", "o a, o r -> o (a + r)"},
    {LAYER "self_attn.indexer.index_qk_proj.weight", "blk.{}.indexer.q_proj.weight, blk.{}.indexer.k_proj.weight",
     "(query + key) c -> query c, key c"},
    {LAYER "self_attn.indexer.q_layernorm", "blk.{}.indexer.q_norm", .map = &plus_one},
    {LAYER "self_attn.indexer.k_layernorm", "blk.{}.indexer.k_norm", .map = &plus_one},
    {LAYER "ple.key_proj", "blk.{}.ple_key"},
    {LAYER "ple.value_proj", "blk.{}.ple_value"},
    {LAYER "ple.norm_key", "blk.{}.ple_norm_key", .map = &plus_one},
    {LAYER "ple.norm_query", "blk.{}.ple_norm_query", .map = &plus_one},
    {LAYER "ple.norm_conv", "blk.{}.ple_norm_conv", .map = &plus_one},
    {LAYER "ple.conv1d.weight", "blk.{}.ple_conv1d.weight", "c 1 k -> c k"},
    {"model.ple_embedding.layer_multipliers", NULL},
    {"model.ple_embedding.ngram_heads_offsets", NULL},
    {"model.ple_embedding.ngram_heads_vocab_sizes", NULL},
    {"model.ple_embedding.ngram_embedding.shard_{}.weight", "per_layer_token_embd.{}.weight", .parallel = "row"},
    {"model.ple_embedding.ngram_embedding.shard_0", "per_layer_token_embd",
     .backward_only = true}, /* the whole table */
    {0},
};

static const char shard_pattern[] = "per_layer_token_embd.{}.weight";

/* Renames the mixer and projections beside mtp.layers to parts of the first layer that predicts, and the table of
 * n-grams, which transformers 5 has in its layer. */
static const char *qwen4exp_rename_tensor(struct arena *arena, const struct dimensions *dimensions,
                                          enum direction direction, const char *name)
{
    static const char *const parts[] = {"mtp.fc_embedding.", "mtp.fc_hidden.", "mtp.hyper_connection_mixer."};
    const char *table = direction == FORWARD ? strstr(name, ".ple.ple_embedding.") : NULL;
    if (table != NULL)
        return arena_printf(arena, "model.%s", table + strlen(".ple."));
    uint64_t first = dimensions->n_layers - dimensions_get(dimensions, "nextn");
    for (size_t i = 0; direction == FORWARD && i < sizeof parts / sizeof *parts; i++)
        if (text_starts_with(name, parts[i]))
            return arena_printf(arena, "model.layers.%" PRIu64 ".%s", first, name + strlen("mtp."));
    const char *of_first = arena_printf(arena, "model.layers.%" PRIu64 ".", first);
    for (size_t i = 0; direction == BACKWARD && i < sizeof parts / sizeof *parts; i++)
        if (text_starts_with(name, of_first) && text_starts_with(name + strlen(of_first), parts[i] + strlen("mtp.")))
            return arena_printf(arena, "mtp.%s", name + strlen(of_first));
    return nextn_rename(arena, dimensions, direction, name);
}

static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    struct error unused;
    uint64_t n_heads, size;
    bool is_known = hparams_count(hparams, "indexer_n_heads", 1, UINT16_MAX, &n_heads, &unused) &&
                    hparams_count(hparams, "indexer_head_dim", 1, UINT16_MAX, &size, &unused);
    gated_delta_add_dimensions(dimensions, hparams);
    dimensions_set(dimensions, "query", is_known ? n_heads * size : 0);
}

/* Reports whether transformers 5 gave a layer with full attention its new name. */
static bool is_indexed(const struct json *type)
{
    return json_string_is(type, "indexed_attention");
}

/* Sets the tokens that an index stands for: in layers with full attention, and those that predict. */
static bool emit_ratios(struct model_builder *builder, struct error *error)
{
    const struct json *types = hparams_get(builder->model->hparams, "layer_types");
    struct layers layers;
    uint64_t ratio;
    if (!hparams_count(builder->model->hparams, "indexer_compress_ratio", 0, INT32_MAX, &ratio, error) ||
        !layers_new(builder, &layers, error))
        return false;
    uint64_t n = layers.n - dimensions_get(&builder->dimensions, "nextn");
    if (!json_is(types, JSON_ARRAY) || json_count(types) < n)
        return error_set(error, "config.json: layer_types has %zu layers, but num_hidden_layers is %" PRIu64,
                         json_count(types), n);
    const struct json *type = json_first(types);
    while (type != NULL && !is_indexed(type))
        type = json_next(type);
    if (type != NULL)
        checkpoint_note(builder->model->checkpoint, SUBJECT_GGUF,
                        "config.json calls layers with full attention indexed_attention, as transformers 5 does; the "
                        "converter writes them without an index");
    type = json_first(types);
    for (uint64_t i = 0; i < layers.n; i++, type = type != NULL ? json_next(type) : NULL)
        layers.values[i] = i >= n || json_string_is(type, "full_attention") || is_indexed(type) ? (double)ratio : 0;
    return layers_set_i32(builder, "attention.compress_ratios", &layers, error);
}

static const struct key_row ngram_keys[] = {
    {"ple.ngram_size", GGUF_U32, REQUIRED, "ngram_size"},
    {"ple.heads_per_ngram", GGUF_U32, REQUIRED, "heads_per_ngram"},
    {"ple.conv_kernel", GGUF_U32, REQUIRED, "ple_conv_kernel_size"},
    {0},
};
static const struct key_row image_keys[] = {{"ple.image_token_id", GGUF_U32, IF_PRESENT, "image_token_id"}, {0}};

/* Sets the layers with n-grams; config.json counts from 1. */
static bool set_ngram_layers(struct model_builder *builder, const struct json *ids, struct error *error)
{
    struct layers layers;
    if (!layers_of_list(builder, ids, &layers, error))
        return false;
    layers_fill(&layers, ids);
    for (uint64_t i = 0; i < layers.n; i++)
        layers.values[i] -= 1;
    return layers_set_i32(builder, "ple.layers", &layers, error);
}

/* Sets the token that ends n-grams: the last one of a list. */
static bool set_end(struct model_builder *builder, struct error *error)
{
    const struct json *end = hparams_get(builder->model->hparams, "eos_token_id");
    uint64_t id;
    if (json_is(end, JSON_ARRAY) && json_count(end) != 0)
        for (const struct json *item = end = json_first(end); item != NULL; item = json_next(item))
            end = item;
    if (!json_u64(end, &id) || id > UINT32_MAX)
        return error_set(error, "config.json: eos_token_id is missing, or not a token: n-grams end there");
    gguf_set_u32(&builder->model->kvs, builder_key(builder, "ple.eos_token_id"), (uint32_t)id);
    return true;
}

static const struct tensor *find_ending(const struct tensor_set *set, const char *end)
{
    for (size_t i = 0; i < set->n_tensors; i++)
        if (text_ends_with(set->tensors[i].name, end))
            return &set->tensors[i];
    return NULL;
}

/* Sets an array to the whole numbers of a tensor of the checkpoint. */
static bool set_constants(struct model_builder *builder, const char *key, const char *end, struct error *error)
{
    enum { MOST = 1 << 16 };
    const struct tensor *tensor = find_ending(builder->model->checkpoint->tensors, end);
    struct buffer elements = {0};
    if (tensor == NULL || tensor->refusal != NULL || tensor->dtype != &i64_dtype)
        return error_set(error, "tensor '*%s': %s", end,
                         tensor == NULL    ? "missing, as n-grams are found by its numbers"
                         : tensor->refusal ? tensor->refusal
                                           : "its elements are not whole numbers of 64 bits");
    const struct view *view = tensor_view(tensor, builder->model->arena);
    if (view->n_elements > MOST)
        return error_set(error, "tensor '*%s' has %" PRIu64 " elements; the limit is %d", end, view->n_elements, MOST);
    uint64_t *numbers = arena_array(builder->model->arena, view->n_elements + 1, sizeof *numbers);
    if (!view_read(view, 0, view->n_elements, numbers, error))
        return false;
    buffer_append(&elements, numbers, view->n_elements * sizeof *numbers);
    gguf_set_array(&builder->model->kvs, builder_key(builder, key), GGUF_U64, view->n_elements, &elements);
    return true;
}

/* Sets the keys of the layers that look n-grams up; without such layers, none. */
static bool emit_ngrams(struct model_builder *builder, struct error *error)
{
    const struct json *ids = hparams_get(builder->model->hparams, "ple_layer_ids");
    const struct tensor *shard = find_ending(builder->model->checkpoint->tensors, ".ngram_embedding.shard_0.weight");
    if (!json_is(ids, JSON_ARRAY))
        return error_set(error, "config.json: ple_layer_ids is missing, or not a list");
    if (json_count(ids) == 0 || builder->model->part == PART_MTP)
        return true;
    if (!set_ngram_layers(builder, ids, error) || !builder_emit(builder, ngram_keys, error) ||
        !set_end(builder, error) || !builder_emit(builder, image_keys, error))
        return false;
    if (shard != NULL && shard->rank == 2 && shard->shape[1] <= UINT32_MAX)
        gguf_set_u32(&builder->model->kvs, builder_key(builder, "embedding_length_per_layer_input"),
                     (uint32_t)shard->shape[1]);
    return set_constants(builder, "ple.layer_multipliers", "ple_embedding.layer_multipliers", error) &&
           set_constants(builder, "ple.head_offsets", "ple_embedding.ngram_heads_offsets", error) &&
           set_constants(builder, "ple.head_vocab_sizes", "ple_embedding.ngram_heads_vocab_sizes", error);
}

static const struct key_row keys[] = {
    {.emit = gated_delta_emit_sections},
    {"hyper_connection.count", GGUF_U32, REQUIRED, "hc_count"},
    {"hyper_connection.low_rank", GGUF_U32, REQUIRED, "hc_lowrank"},
    {"attention.indexer.head_count", GGUF_U32, REQUIRED, "indexer_n_heads"},
    {"attention.indexer.key_length", GGUF_U32, REQUIRED, "indexer_head_dim"},
    {"attention.indexer.top_k", GGUF_U32, REQUIRED, "indexer_budget"},
    {.emit = emit_ratios},
    {.emit = emit_ngrams},
    {0},
};

/* Checks that the shards of the table are all there and fit each other. */
static bool check_shards(const struct model_builder *builder, struct error *error)
{
    const struct tensor_set *set = builder->model->checkpoint->tensors;
    const struct tensor *one = NULL;
    uint64_t n_promised, n = 0;
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        if (strstr(tensor->name, ".ngram_embedding.shard_") == NULL)
            continue;
        if (one != NULL && (tensor->rank != 2 || one->rank != 2 || tensor->shape[1] != one->shape[1]))
            return error_set(error, "tensors '%s' and '%s' are shards of one table, but their rows differ in length",
                             one->name, tensor->name);
        one = tensor;
        n++;
    }
    if (n == 0)
        return true;
    if (!hparams_count(builder->model->hparams, "split_ngram_parts", 1, UINT32_MAX, &n_promised, error))
        return false;
    return n == n_promised ||
           error_set(error, "config.json: split_ngram_parts is %" PRIu64 ", but the table has %" PRIu64 " shards",
                     n_promised, n);
}

static bool qwen4exp_adjust(struct model_builder *builder, struct error *error)
{
    return check_shards(builder, error) && gated_delta_count_predicting(builder, error);
}

struct shard {
    uint64_t number;
    const struct view *view;
};

static int compare_shards(const void *a, const void *b)
{
    uint64_t x = ((const struct shard *)a)->number, y = ((const struct shard *)b)->number;
    return (x > y) - (x < y);
}

/* Joins the shards, sorted by number, at the place of the last one read. */
static const struct view *join(struct arena *arena, struct shard *shards, size_t n_shards)
{
    const struct view **parts = arena_array(arena, n_shards, sizeof *parts);
    bool are_alike = true;
    qsort(shards, n_shards, sizeof *shards, compare_shards);
    for (size_t i = 0; i < n_shards; i++)
        are_alike = are_alike && shards[i].view->dtype == shards[0].view->dtype;
    for (size_t i = 0; i < n_shards; i++)
        parts[i] = are_alike ? shards[i].view : view_convert(arena, shards[i].view, &f32_dtype);
    return view_concatenate(arena, parts, n_shards, 0);
}

static void join_shards(struct model_builder *builder)
{
    struct arena *arena = builder->model->arena;
    const struct tensor_set *before = builder->model->tensors;
    struct tensor_set *set = tensor_set_new(arena);
    struct shard *shards = arena_array(arena, before->n_tensors + 1, sizeof *shards);
    size_t n_shards = 0, n_left = 0;
    uint64_t numbers[PATTERN_NUMBERS];
    for (size_t i = 0; i < before->n_tensors; i++)
        n_left += pattern_match(shard_pattern, before->tensors[i].name, before->tensors[i].name_length, numbers);
    for (size_t i = 0; i < before->n_tensors; i++) {
        struct tensor tensor = before->tensors[i];
        if (!pattern_match(shard_pattern, tensor.name, tensor.name_length, numbers)) {
            tensor_set_add(set, &tensor);
            continue;
        }
        shards[n_shards++] = (struct shard){numbers[0], tensor_view(&tensor, arena)};
        if (n_shards == n_left)
            tensor_set_add_view(set, "per_layer_token_embd.weight", join(arena, shards, n_shards));
    }
    builder->model->tensors = set;
}

/* Writes the numbers that n-grams are found by, which are tensors of the checkpoint. */
static void restore(const struct gguf_kvs *kvs, struct arena *arena, void *context,
                    void (*write)(void *context, const char *name, const struct view *view))
{
    static const struct {
        const char *key, *tensor;
    } constants[] = {{"qwen4exp.ple.layer_multipliers", "model.ple_embedding.layer_multipliers"},
                     {"qwen4exp.ple.head_offsets", "model.ple_embedding.ngram_heads_offsets"},
                     {"qwen4exp.ple.head_vocab_sizes", "model.ple_embedding.ngram_heads_vocab_sizes"}};
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++) {
        struct gguf_array array;
        struct error unused;
        if (gguf_get_array(kvs, constants[i].key, arena, &array, &unused) && array.type == GGUF_U64)
            write(context, constants[i].tensor,
                  view_literal(arena, &i64_dtype, 1, arena_copy(arena, &array.count, sizeof array.count),
                               arena_copy(arena, array.elements, array.count * sizeof(uint64_t))));
    }
}

/* Returns the numbers of layers with n-grams, which config.json counts from 1. */
static const char *make_ngram_layers(const struct config_material *material)
{
    struct gguf_array array;
    struct error unused;
    uint64_t layer;
    const char *list = "";
    if (!gguf_get_array(material->kvs, "qwen4exp.ple.layers", material->arena, &array, &unused) ||
        array.count > material->n_layers)
        return "[]";
    for (uint64_t i = 0; i < array.count && gguf_array_u64(&array, i, &layer); i++)
        list = arena_printf(material->arena, "%s%s%" PRIu64, list, i > 0 ? ", " : "", layer + 1);
    return arena_printf(material->arena, "[%s]", list);
}

/* Returns the ratio of layers with an indexer. */
static const char *make_ratio(const struct config_material *material)
{
    double ratio;
    for (uint64_t i = 0; i < material->n_layers; i++)
        if (config_number_of_layer(material, "attention.compress_ratios", i, &ratio) && ratio > 0)
            return arena_printf(material->arena, "%.0f", ratio);
    return NULL;
}

static const struct config_row qwen4exp_config_rows[] = {
    {"linear_value_head_dim", FROM_QUOTIENT, "ssm.inner_size", "ssm.time_step_rank"},
    {"partial_rotary_factor", FROM_HEAD_SHARE, "rope.dimension_count", "attention.key_length"},
    {"layer_types", FROM_LAYERS, "attention.compress_ratios", "'full_attention'|'linear_attention'"},
    {"indexer_compress_ratio", .make = make_ratio},
    {"indexer_kv_heads", FROM_TEXT, .text = "1"},
    {"ple_layer_ids", .make = make_ngram_layers},
    {"ngram_size", FROM_KEY, "ple.ngram_size"},
    {"heads_per_ngram", FROM_KEY, "ple.heads_per_ngram"},
    {"ple_conv_kernel_size", FROM_KEY, "ple.conv_kernel"},
    {"image_token_id", FROM_KEY, "ple.image_token_id"},
    {"eos_token_id", FROM_KEY, "ple.eos_token_id"},
    {"split_ngram_parts", FROM_TEXT, .text = "1"},
    {"output_gate_type", FROM_TEXT, .text = "'sigmoid'"},
    {0},
};

const struct family qwen4exp_family = {
    .name = "qwen4exp",
    .summary = "Qwen 3.8 Flash Next",
    .since = 10662,
    .hf = FAMILY_NAMES({"Qwen4ExpForConditionalGeneration"}, {"Qwen4ExpForCausalLM"}),
    .tensors = {qwen4exp_tensors, gated_delta_grouped_tensors, gated_delta_tensors, plus_one_tensors, nextn_tensors,
                qwen_moe_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Qwen4ExpForCausalLM", "qwen4_exp_text", NULL,
                           CONFIG_TABLES(silu_rows, num_experts_rows, qwen4exp_config_rows), HALF_NOTE}),
    .keys = {base_keys, moe_keys, gated_delta_keys, keys},
    .exports_mtp = true,
    .vocabs = {&bpe_vocab},
    .add_dimensions = add_dimensions,
    .adjust = qwen4exp_adjust,
    .rename = qwen4exp_rename_tensor,
    .arrange = join_shards,
    .restore = restore,
};
