#include "models/config/saved_config.h"

#include "text/json_write.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const char *const versions[] = {[TRANSFORMERS_4] = "4.57.6", [TRANSFORMERS_5] = "5.17.0"};

/* The values of PretrainedConfig itself. */
static const char common[] =
    "{'return_dict': true, 'output_hidden_states': false, 'torchscript': false, 'pruned_heads': {},"
    " 'tie_word_embeddings': true, 'chunk_size_feed_forward': 0, 'is_encoder_decoder': false, 'is_decoder': false,"
    " 'cross_attention_hidden_size': null, 'add_cross_attention': false, 'tie_encoder_decoder': false,"
    " 'architectures': null, 'finetuning_task': null, 'task_specific_params': null, 'problem_type': null,"
    " 'tokenizer_class': null, 'prefix': null, 'bos_token_id': null, 'pad_token_id': null, 'eos_token_id': null,"
    " 'sep_token_id': null, 'decoder_start_token_id': null, 'max_length': 20, 'min_length': 0, 'do_sample': false,"
    " 'early_stopping': false, 'num_beams': 1, 'temperature': 1.0, 'top_k': 50, 'top_p': 1.0, 'typical_p': 1.0,"
    " 'repetition_penalty': 1.0, 'length_penalty': 1.0, 'no_repeat_ngram_size': 0, 'encoder_no_repeat_ngram_size': 0,"
    " 'bad_words_ids': null, 'num_return_sequences': 1, 'output_scores': false, 'return_dict_in_generate': false,"
    " 'forced_bos_token_id': null, 'forced_eos_token_id': null, 'remove_invalid_values': false,"
    " 'exponential_decay_length_penalty': null, 'suppress_tokens': null, 'begin_suppress_tokens': null,"
    " 'num_beam_groups': 1, 'diversity_penalty': 0.0, 'tf_legacy_loss': false, 'use_bfloat16': false,"
    " 'output_attentions': false}";

/* The values of GenerationConfig. */
static const char of_generation[] =
    "{'max_length': 20, 'max_new_tokens': null, 'min_length': 0, 'min_new_tokens': null, 'early_stopping': false,"
    " 'max_time': null, 'stop_strings': null, 'do_sample': false, 'num_beams': 1, 'use_cache': true,"
    " 'cache_implementation': null, 'cache_config': null, 'prefill_chunk_size': null, 'temperature': 1.0, 'top_k': 50,"
    " 'top_p': 1.0, 'min_p': null, 'typical_p': 1.0, 'epsilon_cutoff': 0.0, 'eta_cutoff': 0.0,"
    " 'repetition_penalty': 1.0, 'encoder_repetition_penalty': 1.0, 'length_penalty': 1.0, 'no_repeat_ngram_size': 0,"
    " 'bad_words_ids': null, 'renormalize_logits': false, 'forced_bos_token_id': null, 'forced_eos_token_id': null,"
    " 'remove_invalid_values': false, 'exponential_decay_length_penalty': null, 'suppress_tokens': null,"
    " 'begin_suppress_tokens': null, 'sequence_bias': null, 'token_healing': false, 'guidance_scale': null,"
    " 'num_return_sequences': 1, 'output_attentions': false, 'output_hidden_states': false, 'output_scores': false,"
    " 'output_logits': null, 'return_dict_in_generate': false, 'pad_token_id': null, 'bos_token_id': null,"
    " 'eos_token_id': null, 'encoder_no_repeat_ngram_size': 0, 'decoder_start_token_id': null, 'num_beam_groups': 1,"
    " 'diversity_penalty': 0.0, '_from_model_config': false}";

static struct json_document *parse_spelled(const char *spelled)
{
    struct error error;
    struct buffer text = {0};
    buffer_append_text(&text, spelled);
    for (size_t i = 0; i < text.length; i++)
        if (text.bytes[i] == '\'')
            text.bytes[i] = '"';
    struct json_document *document = json_parse((const char *)text.bytes, text.length, &error);
    buffer_free(&text);
    return document;
}

/* Reports whether Python would call two values equal; only empty arrays and objects are compared. */
static bool are_equal(const struct json *a, const struct json *b)
{
    double x, y;
    if (json_double(a, &x) && json_double(b, &y))
        return x == y;
    if (json_type(a) != json_type(b))
        return false;
    if (json_is(a, JSON_STRING))
        return json_string_is(a, json_string(b, NULL));
    return json_count(a) + json_count_members(a) == 0 && json_count(b) + json_count_members(b) == 0;
}

static void put_value(struct json_writer *writer, const char *key, const struct json *value)
{
    json_put_key(writer, key, strlen(key));
    json_put_sorted(writer, value, NULL);
}

/* The two objects that a configuration is made from, and what all classes have. */
struct sources {
    const struct json *config, *defaults, *common;
    const struct saved_class *class;
};

/* Returns the value that the class has before it computes any. */
static const struct json *value_of(const struct sources *sources, const char *key)
{
    const struct json *value = json_get(sources->config, key);
    return value != NULL ? value : json_get(sources->defaults, key);
}

static bool number_of(const struct sources *sources, const char *key, uint64_t *ret_number)
{
    return json_u64(value_of(sources, key), ret_number);
}

/* Puts a value that the class computes from others. Returns false if the class computes none for the key. */
static bool put_computed(const struct sources *sources, struct json_writer *writer, const char *key)
{
    uint64_t heads, hidden;
    bool is_null =
        json_is(value_of(sources, key), JSON_NULL) && number_of(sources, "num_attention_heads", &heads) && heads > 0;
    const struct json *uses_window = value_of(sources, "use_sliding_window");
    if (is_null && strcmp(key, "num_key_value_heads") == 0)
        json_put_number(writer, key, heads);
    else if (is_null && strcmp(key, "head_dim") == 0 && sources->class->has_head_dim &&
             number_of(sources, "hidden_size", &hidden))
        json_put_number(writer, key, hidden / heads);
    else if (strcmp(key, "sliding_window") == 0 && uses_window != NULL && !json_bool(uses_window, false))
        json_put_null(writer, key);
    else
        return false;
    return true;
}

/* Puts the kinds of attention of all layers, which config.json seldom has. */
static void put_layer_types(const struct sources *sources, struct json_writer *writer)
{
    enum { MOST_LAYERS = 4096 };
    const struct saved_class *class = sources->class;
    uint64_t n_layers, first = UINT64_MAX;
    bool has_types = class->full_every > 0 || class->has_window_layers;
    if (!has_types || json_get(sources->config, "layer_types") != NULL ||
        !number_of(sources, "num_hidden_layers", &n_layers) || n_layers > MOST_LAYERS)
        return;
    if (class->has_window_layers && json_bool(value_of(sources, "use_sliding_window"), false) &&
        !json_is(value_of(sources, "sliding_window"), JSON_NULL))
        number_of(sources, "max_window_layers", &first);
    json_begin_array(writer, "layer_types");
    for (uint64_t i = 0; i < n_layers; i++) {
        bool slides = class->full_every > 0 ? (i + 1) % class->full_every != 0 : i >= first;
        json_put_text(writer, NULL, slides ? "sliding_attention" : "full_attention");
    }
    json_end(writer);
}

/* Reports whether a member of config.json is left out: the value is that of all classes, and of this one. */
static bool is_usual(const struct sources *sources, const struct json_member *member)
{
    const struct json *usual = json_get(sources->common, member->key), *own = json_get(sources->defaults, member->key);
    return usual != NULL && are_equal(member->value, usual) && (own == NULL || are_equal(own, usual));
}

static bool is_replaced(const char *key)
{
    static const char *const keys[] = {"torch_dtype", "dtype", "transformers_version", "_name_or_path"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return false;
}

static void put_config(const struct sources *sources, const char *dtype, struct json_writer *writer)
{
    json_begin_object(writer, NULL);
    for (struct json_member member = {0}; json_next_member(sources->config, &member);)
        if (!is_replaced(member.key) && !is_usual(sources, &member) && !put_computed(sources, writer, member.key))
            put_value(writer, member.key, member.value);
    for (struct json_member member = {0}; json_next_member(sources->defaults, &member);)
        if (json_get(sources->config, member.key) == NULL && !put_computed(sources, writer, member.key))
            put_value(writer, member.key, member.value);
    if (sources->class != NULL)
        put_layer_types(sources, writer);
    json_put_text(writer, "dtype", dtype);
    json_put_text(writer, "transformers_version", versions[TRANSFORMERS_4]);
    json_end(writer);
}

struct json_document *saved_config(const struct json *config, const char *dtype, const struct json *more,
                                   struct error *error)
{
    static const struct saved_class unknown = {.defaults = "{}"};
    const char *model_type = json_string(json_get(config, "model_type"), NULL);
    const struct saved_class *class = model_type != NULL ? saved_class_find(model_type) : NULL;
    class = class != NULL ? class : &unknown;
    struct json_document *defaults = parse_spelled(class->defaults), *usual = parse_spelled(common);
    const struct sources sources = {config, json_root(defaults), json_root(usual), class};
    struct buffer text = {0}, sorted = {0};
    put_config(&sources, dtype, &(struct json_writer){.out = &text, .letters = JSON_ASCII});
    struct json_document *document = json_parse_python((const char *)text.bytes, text.length, error);
    if (document != NULL)
        json_put_sorted(&(struct json_writer){.out = &sorted, .letters = JSON_ASCII}, json_root(document), more);
    json_free(document);
    document = document != NULL ? json_parse_python((const char *)sorted.bytes, sorted.length, error) : NULL;
    buffer_free(&text);
    buffer_free(&sorted);
    json_free(defaults);
    json_free(usual);
    return document;
}

/* Reports whether a member of the source's generation_config.json, or of config.json, is saved. `usual` is version 4's
 * default, NULL for members that no version knows. */
static bool is_saved(const struct json_member *member, const struct json *usual, bool is_of_config,
                     enum transformers version)
{
    if (strcmp(member->key, "transformers_version") == 0 || strcmp(member->key, "_from_model_config") == 0)
        return false;
    if (usual == NULL)
        return !is_of_config;
    if (json_is(member->value, JSON_NULL) && (is_of_config || version == TRANSFORMERS_5))
        return false;
    return version == TRANSFORMERS_5 || !are_equal(member->value, usual);
}

void saved_generation_config(const struct json *source, const struct json *config, enum transformers version,
                             struct buffer *out)
{
    struct json_document *defaults = parse_spelled(of_generation);
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .letters = JSON_ASCII};
    struct error error;
    bool is_of_config = source == NULL || json_bool(json_get(source, "_from_model_config"), false);
    json_begin_object(&writer, NULL);
    for (struct json_member member = {0}; json_next_member(source != NULL ? source : config, &member);)
        if (is_saved(&member, json_get(json_root(defaults), member.key), is_of_config, version))
            put_value(&writer, member.key, member.value);
    if (is_of_config)
        json_put_bool(&writer, "_from_model_config", true);
    json_put_text(&writer, "transformers_version", versions[version]);
    json_end(&writer);
    struct json_document *document = json_parse_python((const char *)text.bytes, text.length, &error);
    json_put_sorted(&(struct json_writer){.out = out, .letters = JSON_ASCII}, json_root(document), NULL);
    buffer_append_text(out, "\n");
    json_free(document);
    json_free(defaults);
    buffer_free(&text);
}

/* scripts/tables writes the values of keys from transformers 4.57.6. */

/* clang-format off */
static const struct saved_class classes[] = {
    {"bloom",
     "{'apply_residual_connection_post_layernorm': false, 'attention_dropout': 0.0, 'bos_token_id': 1, "
     "'eos_token_id': 2, 'hidden_dropout': 0.0, 'initializer_range': 0.02, 'layer_norm_epsilon': 1e-05, "
     "'pretraining_tp': 1, 'slow_but_exact': false, 'use_cache': true}"},
    {"cohere",
     "{'attention_bias': false, 'attention_dropout': 0.0, 'bos_token_id': 5, 'eos_token_id': 255001, "
     "'hidden_act': 'silu', 'initializer_range': 0.02, 'layer_norm_eps': 1e-05, 'logit_scale': 0.0625, "
     "'max_position_embeddings': 8192, 'num_key_value_heads': null, 'pad_token_id': 0, 'rope_scaling': null, "
     "'rope_theta': 10000.0, 'use_cache': true, 'use_qk_norm': false}"},
    {"cohere2",
     "{'_sliding_window_pattern': 4, 'attention_bias': false, 'attention_dropout': 0.0, 'bos_token_id': 5, "
     "'eos_token_id': 255001, 'head_dim': 128, 'hidden_act': 'silu', 'initializer_range': 0.02, "
     "'layer_norm_eps': 1e-05, 'logit_scale': 0.0625, 'max_position_embeddings': 8192, "
     "'num_key_value_heads': null, 'pad_token_id': 0, 'rope_scaling': null, 'rope_theta': 10000.0, "
     "'sliding_window': 4096, 'use_cache': true}",
     .full_every = 4},
    {"gemma",
     "{'attention_bias': false, 'attention_dropout': 0.0, 'bos_token_id': 2, 'eos_token_id': 1, "
     "'head_dim': 256, 'hidden_act': 'gelu_pytorch_tanh', 'hidden_activation': null, "
     "'initializer_range': 0.02, 'max_position_embeddings': 8192, 'num_key_value_heads': 16, "
     "'pad_token_id': 0, 'rms_norm_eps': 1e-06, 'rope_theta': 10000.0, 'use_cache': true}"},
    {"gemma2",
     "{'attention_bias': false, 'attention_dropout': 0.0, 'attn_logit_softcapping': 50.0, 'bos_token_id': 2, "
     "'eos_token_id': 1, 'final_logit_softcapping': 30.0, 'head_dim': 256, "
     "'hidden_activation': 'gelu_pytorch_tanh', 'initializer_range': 0.02, 'max_position_embeddings': 8192, "
     "'num_key_value_heads': 4, 'pad_token_id': 0, 'query_pre_attn_scalar': 256, 'rms_norm_eps': 1e-06, "
     "'rope_theta': 10000.0, 'sliding_window': 4096, 'use_cache': true}",
     .full_every = 2},
    {"gemma3_text",
     "{'_sliding_window_pattern': 6, 'attention_bias': false, 'attention_dropout': 0.0, "
     "'attn_logit_softcapping': null, 'bos_token_id': 2, 'eos_token_id': 1, 'final_logit_softcapping': null, "
     "'head_dim': 256, 'hidden_activation': 'gelu_pytorch_tanh', 'initializer_range': 0.02, "
     "'max_position_embeddings': 131072, 'num_key_value_heads': 4, 'pad_token_id': 0, "
     "'query_pre_attn_scalar': 256, 'rms_norm_eps': 1e-06, 'rope_local_base_freq': 10000.0, "
     "'rope_scaling': null, 'rope_theta': 1000000.0, 'sliding_window': 4096, "
     "'use_bidirectional_attention': false, 'use_cache': true}",
     .full_every = 6},
    {"glm4",
     "{'attention_bias': true, 'attention_dropout': 0.0, 'eos_token_id': [151329, 151336, 151338], "
     "'head_dim': 128, 'hidden_act': 'silu', 'initializer_range': 0.02, 'max_position_embeddings': 131072, "
     "'num_key_value_heads': 2, 'pad_token_id': 151329, 'partial_rotary_factor': 0.5, "
     "'rms_norm_eps': 1.5625e-07, 'rope_theta': 10000.0, 'tie_word_embeddings': false, 'use_cache': true}"},
    {"gpt2",
     "{'activation_function': 'gelu_new', 'attn_pdrop': 0.1, 'bos_token_id': 50256, 'embd_pdrop': 0.1, "
     "'eos_token_id': 50256, 'initializer_range': 0.02, 'layer_norm_epsilon': 1e-05, 'n_inner': null, "
     "'n_positions': 1024, 'reorder_and_upcast_attn': false, 'resid_pdrop': 0.1, "
     "'scale_attn_by_inverse_layer_idx': false, 'scale_attn_weights': true, 'summary_activation': null, "
     "'summary_first_dropout': 0.1, 'summary_proj_to_labels': true, 'summary_type': 'cls_index', "
     "'summary_use_proj': true, 'use_cache': true}"},
    {"gpt_neox",
     "{'attention_bias': true, 'attention_dropout': 0.0, 'bos_token_id': 0, 'classifier_dropout': 0.1, "
     "'eos_token_id': 2, 'hidden_act': 'gelu', 'hidden_dropout': 0.0, 'initializer_range': 0.02, "
     "'layer_norm_eps': 1e-05, 'max_position_embeddings': 2048, 'partial_rotary_factor': 0.25, "
     "'rope_scaling': null, 'rope_theta': 10000, 'rotary_emb_base': 10000, 'rotary_pct': 0.25, "
     "'tie_word_embeddings': false, 'use_cache': true, 'use_parallel_residual': true}"},
    {"granite",
     "{'attention_bias': false, 'attention_dropout': 0.0, 'attention_multiplier': 1.0, 'bos_token_id': 1, "
     "'embedding_multiplier': 1.0, 'eos_token_id': 2, 'hidden_act': 'silu', 'initializer_range': 0.02, "
     "'logits_scaling': 1.0, 'max_position_embeddings': 2048, 'mlp_bias': false, 'num_key_value_heads': null, "
     "'residual_multiplier': 1.0, 'rms_norm_eps': 1e-06, 'rope_scaling': null, 'rope_theta': 10000.0, "
     "'tie_word_embeddings': false, 'use_cache': true}"},
    {"llama",
     "{'attention_bias': false, 'attention_dropout': 0.0, 'bos_token_id': 1, 'eos_token_id': 2, "
     "'head_dim': null, 'hidden_act': 'silu', 'initializer_range': 0.02, 'max_position_embeddings': 2048, "
     "'mlp_bias': false, 'num_key_value_heads': null, 'pretraining_tp': 1, 'rms_norm_eps': 1e-06, "
     "'rope_scaling': null, 'rope_theta': 10000.0, 'tie_word_embeddings': false, 'use_cache': true}",
     .has_head_dim = true},
    {"mistral",
     "{'attention_dropout': 0.0, 'bos_token_id': 1, 'eos_token_id': 2, 'head_dim': null, 'hidden_act': 'silu', "
     "'initializer_range': 0.02, 'max_position_embeddings': 131072, 'num_key_value_heads': 8, "
     "'rms_norm_eps': 1e-06, 'rope_theta': 10000.0, 'sliding_window': 4096, 'tie_word_embeddings': false, "
     "'use_cache': true}"},
    {"mixtral",
     "{'attention_dropout': 0.0, 'bos_token_id': 1, 'eos_token_id': 2, 'head_dim': null, 'hidden_act': 'silu', "
     "'initializer_range': 0.02, 'max_position_embeddings': 131072, 'num_experts_per_tok': 2, "
     "'num_key_value_heads': 8, 'num_local_experts': 8, 'output_router_logits': false, 'rms_norm_eps': 1e-05, "
     "'rope_theta': 1000000.0, 'router_aux_loss_coef': 0.001, 'router_jitter_noise': 0.0, "
     "'sliding_window': null, 'tie_word_embeddings': false, 'use_cache': true}"},
    {"olmo",
     "{'attention_bias': false, 'attention_dropout': 0.0, 'clip_qkv': null, 'eos_token_id': 50279, "
     "'hidden_act': 'silu', 'initializer_range': 0.02, 'max_position_embeddings': 2048, "
     "'num_key_value_heads': null, 'pad_token_id': 1, 'rope_scaling': null, 'rope_theta': 10000.0, "
     "'tie_word_embeddings': false, 'use_cache': true}"},
    {"olmo2",
     "{'attention_bias': false, 'attention_dropout': 0.0, 'eos_token_id': 50279, 'hidden_act': 'silu', "
     "'initializer_range': 0.02, 'max_position_embeddings': 2048, 'num_key_value_heads': null, "
     "'pad_token_id': 1, 'rms_norm_eps': 1e-05, 'rope_scaling': null, 'rope_theta': 10000.0, "
     "'tie_word_embeddings': false, 'use_cache': true}"},
    {"phi",
     "{'attention_dropout': 0.0, 'bos_token_id': 1, 'embd_pdrop': 0.0, 'eos_token_id': 2, "
     "'hidden_act': 'gelu_new', 'initializer_range': 0.02, 'layer_norm_eps': 1e-05, "
     "'max_position_embeddings': 2048, 'num_key_value_heads': null, 'partial_rotary_factor': 0.5, "
     "'qk_layernorm': false, 'resid_pdrop': 0.0, 'rope_scaling': null, 'rope_theta': 10000.0, "
     "'tie_word_embeddings': false, 'use_cache': true}"},
    {"phi3",
     "{'attention_dropout': 0.0, 'bos_token_id': 1, 'embd_pdrop': 0.0, 'eos_token_id': 32000, "
     "'hidden_act': 'silu', 'initializer_range': 0.02, 'max_position_embeddings': 4096, "
     "'num_key_value_heads': null, 'original_max_position_embeddings': 4096, 'pad_token_id': 32000, "
     "'partial_rotary_factor': 1.0, 'resid_pdrop': 0.0, 'rms_norm_eps': 1e-05, 'rope_scaling': null, "
     "'rope_theta': 10000.0, 'sliding_window': null, 'tie_word_embeddings': false, 'use_cache': true}"},
    {"qwen2",
     "{'attention_dropout': 0.0, 'hidden_act': 'silu', 'initializer_range': 0.02, "
     "'max_position_embeddings': 32768, 'max_window_layers': 28, 'num_key_value_heads': 32, "
     "'rms_norm_eps': 1e-06, 'rope_scaling': null, 'rope_theta': 10000.0, 'sliding_window': 4096, "
     "'tie_word_embeddings': false, 'use_cache': true, 'use_sliding_window': false}",
     .has_window_layers = true},
    {"qwen2_moe",
     "{'attention_dropout': 0.0, 'decoder_sparse_step': 1, 'hidden_act': 'silu', 'initializer_range': 0.02, "
     "'max_position_embeddings': 32768, 'max_window_layers': 28, 'mlp_only_layers': [], "
     "'moe_intermediate_size': 1408, 'norm_topk_prob': false, 'num_experts': 60, 'num_experts_per_tok': 4, "
     "'num_key_value_heads': 16, 'output_router_logits': false, 'qkv_bias': true, 'rms_norm_eps': 1e-06, "
     "'rope_scaling': null, 'rope_theta': 10000.0, 'router_aux_loss_coef': 0.001, "
     "'shared_expert_intermediate_size': 5632, 'sliding_window': 4096, 'tie_word_embeddings': false, "
     "'use_cache': true, 'use_sliding_window': false}"},
    {"qwen3",
     "{'attention_bias': false, 'attention_dropout': 0.0, 'head_dim': 128, 'hidden_act': 'silu', "
     "'initializer_range': 0.02, 'max_position_embeddings': 32768, 'max_window_layers': 28, "
     "'num_key_value_heads': 32, 'rms_norm_eps': 1e-06, 'rope_scaling': null, 'rope_theta': 10000.0, "
     "'sliding_window': 4096, 'tie_word_embeddings': false, 'use_cache': true, 'use_sliding_window': false}",
     .has_window_layers = true},
    {"qwen3_moe",
     "{'attention_bias': false, 'attention_dropout': 0.0, 'decoder_sparse_step': 1, 'hidden_act': 'silu', "
     "'initializer_range': 0.02, 'max_position_embeddings': 32768, 'mlp_only_layers': [], "
     "'moe_intermediate_size': 768, 'norm_topk_prob': false, 'num_experts': 128, 'num_experts_per_tok': 8, "
     "'num_key_value_heads': 4, 'output_router_logits': false, 'rms_norm_eps': 1e-06, 'rope_scaling': null, "
     "'rope_theta': 10000.0, 'router_aux_loss_coef': 0.001, 'sliding_window': 4096, "
     "'tie_word_embeddings': false, 'use_cache': true, 'use_sliding_window': false}"},
    {"stablelm",
     "{'attention_dropout': 0.0, 'bos_token_id': 0, 'eos_token_id': 0, 'hidden_act': 'silu', "
     "'hidden_dropout': 0.0, 'initializer_range': 0.02, 'layer_norm_eps': 1e-05, "
     "'max_position_embeddings': 4096, 'num_key_value_heads': 32, 'partial_rotary_factor': 0.25, "
     "'qk_layernorm': false, 'rope_scaling': null, 'rope_theta': 10000, 'tie_word_embeddings': false, "
     "'use_cache': true, 'use_parallel_residual': false, 'use_qkv_bias': false}"},
    {"starcoder2",
     "{'attention_dropout': 0.0, 'bos_token_id': 50256, 'embedding_dropout': 0.0, 'eos_token_id': 50256, "
     "'hidden_act': 'gelu_pytorch_tanh', 'initializer_range': 0.018042, 'max_position_embeddings': 4096, "
     "'norm_epsilon': 1e-05, 'num_key_value_heads': 2, 'residual_dropout': 0.0, 'rope_scaling': null, "
     "'rope_theta': 10000.0, 'sliding_window': null, 'use_bias': true, 'use_cache': true}"},
    {0},
};
/* clang-format on */

const struct saved_class *saved_class_find(const char *model_type)
{
    for (const struct saved_class *class = classes; class->model_type != NULL; class ++)
        if (strcmp(class->model_type, model_type) == 0)
            return class;
    return NULL;
}
