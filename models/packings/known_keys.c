#include "models/packings/refusals.h"

#include <string.h>

/* Keys that change no weight, whatever the method: which modules are packed, which the tensors show; how the weights
 * were found; how activations and caches are rounded, and which kernels compute. Sources: the configuration classes of
 * transformers, AutoGPTQ, GPTQModel, AutoAWQ, AutoRound, compressed-tensors and ModelOpt. */
static const char *const neutral[] = {
    "quant_method", "quantization_method", "version", "producer", "provider", "quantizer", "meta", "backend",
    "modules_to_not_convert", "modules_to_convert", "ignore", "ignored_layers", "ignore_layers", "exclude_modules",
    "exclude", "skip_modules", "linear_weights_not_to_quantize", "llm_int8_skip_modules", "lm_head",
    "module_name_preceding_first_block", "block_name_to_quantize", "modules_in_block_to_quantize",
    "to_quant_block_names", "quant_block_list", "inside_layer_modules", "outside_layer_modules", "supported_types",
    "quant_lm_head", "model_name_or_path", "model_file_base_name", "model_seqlen", "dtype", "torch_dtype",
    /* activations and caches */
    "activation_scheme", "activation_scale_ub", "activations", "kv_cache_scheme", "kv_cache_quant_algo",
    "kv_cache_dtype", "kv_cache_qformat", "act_bits", "act_data_type", "act_group_size", "act_sym", "act_dynamic",
    "static_kv_dtype", "static_kv_granularity", "static_attention_dtype", "static_attention_granularity",
    "attention_input_activations", "qscheme_act", "smoothquant_val", "clamp_val", "use_meta_recipe", "input_mode",
    /* how the weights were found */
    "damp_percent", "damp_auto_increment", "static_groups", "true_sequential", "mse", "dataset", "tokenizer",
    "batch_size", "pad_token_id", "cache_block_outputs", "act_group_aware", "gptaq", "hessian", "fallback", "failsafe",
    "fail_safe", "mock_quantization", "hyb_act", "calib_data", "duo_scaling", "max_calib_samples", "max_calib_seq_len",
    "apply_clip", "n_parallel_calib_samples", "iters", "lr", "minmax_lr", "seqlen", "nsamples", "nblocks", "seed",
    "amp", "amp_dtype", "low_gpu_mem_usage", "low_cpu_mem_usage", "gradient_accumulate_steps", "enable_minmax_tuning",
    "enable_norm_bias_tuning", "enable_quanted_input", "enable_torch_compile", "enable_alg_ext", "disable_opt_rtn",
    "enable_full_range", "scale_dtype", "autoround_version", "regex_config", "layer_config", "quant_nontext_module",
    "enable_adam", "lr_scheduler", "sampler", "include_embedding", "kv_cache_quant_method", "extra_config",
    "not_use_best_mse", "dynamic_max_gap", "trust_remote_code", "model_free", "quantization_status",
    "global_compression_ratio", "observer", "awq_block_size", "offload_to_disk", "offload_to_disk_path", "gc_mode",
    "vram_strategy", "moe", "auto_forward_data_parallel", "wait_for_submodule_finalizers", "parallel_packing", "v2",
    "v2_alpha", "v2_memory_device",
    /* kernels and loading */
    "use_cuda_fp16", "use_exllama", "disable_exllama", "exllama_config", "max_input_length", "do_fuse",
    "fuse_max_seq_len", "modules_to_fuse", "run_compressed", "dequantize", "pack_impl", "device", "use_triton",
    "llm_int8_threshold", "llm_int8_enable_fp32_cpu_offload", "llm_int8_has_fp16_weight", "bnb_4bit_compute_dtype",
    "include_input_output_embeddings", "untie_embedding_weights", "rms_norm_eps", NULL};

/* Keys that a packing of the method reads, or finds in the tensors again. */
static const struct {
    const char *method;
    const char *keys[24];
} read_keys[] = {
    {"fp8",
     {"weight_block_size", "fmt", "scale_fmt", "weight_dtype", "bits", "group_size", "qformat_weight", "store_dtype",
      "mxfp4_block_size"}},
    {"mxfp8", {"weight_block_size", "fmt", "scale_fmt"}},
    {"fbgemm_fp8", {"weight_block_size"}},
    {"gptq",
     {"bits", "group_size", "desc_act", "sym", "checkpoint_format", "format", "method", "dynamic", "pack_dtype",
      "is_marlin_format", "data_type"}},
    {"auto-round",
     {"bits", "group_size", "desc_act", "sym", "packing_format", "data_type", "dynamic", "rotation_config",
      "rotation_configs", "fmt", "weight_block_size", "checkpoint_format"}},
    {"awq",
     {"bits", "w_bit", "group_size", "q_group_size", "zero_point", "checkpoint_format", "format", "method", "sym",
      "pack_dtype", "data_type", "desc_act", "dynamic"}},
    {"modelopt",
     {"weight_block_size", "quant_algo", "group_size", "pre_quant_scale", "quantized_layers", "config_groups",
      "format"}},
    {"compressed-tensors", {"format", "config_groups", "weight_block_size", "sparsity_config", "transform_config"}},
    {"bitnet", {"linear_class", "quantization_mode"}},
    {"bitsandbytes",
     {"load_in_8bit", "load_in_4bit", "_load_in_8bit", "_load_in_4bit", "bnb_4bit_quant_type",
      "bnb_4bit_use_double_quant", "bnb_4bit_quant_storage"}},
    {"hqq", {"quant_config", "nbits", "bits", "group_size", "axis"}},
    {"aqlm", {"in_group_size", "out_group_size", "num_codebooks", "nbits_per_codebook"}},
    {"quanto", {"weights"}},
    {"torchao", {"quant_type", "quant_type_kwargs"}},
    {"mlx", {"group_size", "bits", "mode", "qformat_weight"}},
    {"gemma", {"num_bits", "module_quant_configs", "quantize_embeddings"}},
    {"sinq", {"nbits", "group_size", "method", "tiling_mode", "sinq", "sinq_version"}},
    {"quark",
     {"global_quant_config", "layer_quant_config", "algo_config", "export", "quant_mode", "kv_cache_quant_config",
      "kv_cache_post_rope", "softmax_quant_spec"}},
};

/* Keys of the weights in a group of compressed-tensors or ModelOpt. */
static const char *const group_keys[] = {
    "num_bits",    "type",     "strategy", "symmetric",       "group_size", "block_structure", "dynamic", "actorder",
    "scale_dtype", "zp_dtype", "observer", "observer_kwargs", NULL};

static bool is_among(const char *key, const char *const *keys)
{
    while (*keys != NULL && strcmp(*keys, key) != 0)
        keys++;
    return *keys != NULL;
}

static bool is_off(const struct json *value)
{
    return json_is(value, JSON_NULL) || json_is(value, JSON_FALSE) || json_string_is(value, "") ||
           (json_is(value, JSON_ARRAY) && json_count(value) == 0) ||
           (json_is(value, JSON_OBJECT) && json_count_members(value) == 0);
}

static bool is_read(const char *method, const struct json_member *member)
{
    bool is_mlx = strcmp(method, "mlx") == 0; /* objects and truth values there are of layers */
    for (size_t i = 0; i < sizeof read_keys / sizeof *read_keys; i++)
        if (strcmp(read_keys[i].method, method) == 0 && is_among(member->key, read_keys[i].keys))
            return true;
    return is_mlx && (json_is(member->value, JSON_OBJECT) || json_is(member->value, JSON_TRUE));
}

static const char *check_groups(const struct packing_input *input)
{
    const struct json *groups = json_get(input->config, "config_groups");
    for (struct json_member group = {0}; json_next_member(groups, &group);) {
        const struct json *weights = json_get(group.value, "weights");
        for (struct json_member member = {0}; json_next_member(weights, &member);)
            if (!is_among(member.key, group_keys) && !is_off(member.value))
                return arena_printf(input->arena, "the key '%.60s' of weights in quantization_config is not supported",
                                    member.key);
    }
    return NULL;
}

const char *known_keys_refusal(const struct packing_input *input)
{
    const char *method = strcmp(input->method, "intel/auto-round") == 0 ? "auto-round" : input->method;
    if (*method == '\0')
        method = "mlx"; /* which names none in `quantization_config` */
    for (struct json_member member = {0}; json_next_member(input->config, &member);)
        if (!is_off(member.value) && !is_among(member.key, neutral) && !is_read(method, &member))
            return arena_printf(input->arena, "the key '%.60s' of quantization_config is not supported", member.key);
    return check_groups(input);
}
