#include "models/packings/refusals.h"

#include "base/text.h"
#include "models/packings/packings.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_WORDS = 16, MAX_BITS = 16 };

/* The words allowed for a key of a method, in either case, up to a NULL. */
struct vocabulary {
    const char *method, *key;
    const char *words[MAX_WORDS];
};

static const struct vocabulary vocabularies[] = {
    {"gptq", "checkpoint_format", {"gptq", "gptq_v2"}},
    {"gptq", "format", {"gptq", "gptq_v2"}},
    {"gptq", "method", {"gptq"}},
    {"auto-round",
     "packing_format",
     {"auto_round", "auto_round:auto_gptq", "auto_round:gptq", "auto_round:gptqmodel", "auto_round:auto_awq",
      "auto_round:awq", "auto_round:llm_compressor", "auto_round:fp8", "auto_round:fp8_static", "auto_round:mlx",
      "auto_gptq", "auto_awq"}},
    {"awq", "version", {"gemm", "gemv", "gemv_fast", "exllama", "ipex"}},
    {"awq", "checkpoint_format", {"gemm", "gemv", "gemv_fast"}},
    {"awq", "format", {"gemm", "gemv", "gemv_fast"}},
    {"awq", "method", {"awq"}},
    {"modelopt",
     "quant_algo",
     {"FP8", "FP8_PER_CHANNEL_PER_TOKEN", "FP8_PB_WO", "MXFP8", "NVFP4", "NVFP4_AWQ", "W4A16_NVFP4", "W4A16_AWQ",
      "W4A8_AWQ", "MIXED_PRECISION"}},
    {"compressed-tensors",
     "format",
     {"dense", "float-quantized", "int-quantized", "naive-quantized", "pack-quantized", "nvfp4-pack-quantized",
      "mxfp4-pack-quantized", "mxfp8-quantized", "mxfp6-pack-quantized", "mixed-precision"}},
    {"fp8", "store_dtype", {"mxfp4"}},
    {"bitnet", "linear_class", {"bitlinear", "autobitlinear"}},
    {"bitnet", "quantization_mode", {"offline", "online"}},
    {"quanto",
     "weights",
     {"int2", "int4", "int8", "float8", "qint2", "qint4", "qint8", "qfloat8", "qfloat8_e4m3fn", "qfloat8_e5m2"}},
    {"mlx", "qformat_weight", {"fp8_e4m3"}},
    {"sinq", "method", {"sinq"}},
    {"sinq", "tiling_mode", {"1D"}},
};
enum { N_VOCABULARIES = sizeof vocabularies / sizeof *vocabularies };

static const struct vocabulary strategies = {
    "compressed-tensors", "strategy", {"tensor", "channel", "group", "block", "token", "tensor_group", "attn_head"}};
static const struct vocabulary types = {"compressed-tensors", "type", {"int", "float"}};

/* Returns a refusal for an unknown word; NULL: the word is known or absent. */
static const char *check_word(const struct packing_input *input, const struct json *said,
                              const struct vocabulary *vocabulary)
{
    const char *text = json_string(said, NULL);
    if (said == NULL || json_is(said, JSON_NULL))
        return NULL;
    if (text == NULL)
        return arena_printf(input->arena, "%s of quantization_config is not a string", vocabulary->key);
    for (const char *const *word = vocabulary->words; *word != NULL; word++)
        if (strcasecmp(*word, text) == 0)
            return NULL;
    return arena_printf(input->arena, "%s '%.40s' of quantization_config is not supported", vocabulary->key, text);
}

/* Returns the row for a key of the method; NULL: none. */
static const struct vocabulary *find_vocabulary(const char *method, const char *key)
{
    for (size_t i = 0; i < N_VOCABULARIES; i++)
        if (strcmp(vocabularies[i].method, method) == 0 && strcmp(vocabularies[i].key, key) == 0)
            return &vocabularies[i];
    return NULL;
}

static const char *check_group(const struct packing_input *input, const struct json *group)
{
    const struct json *weights = json_get(group, "weights"), *bits = json_get(weights, "num_bits");
    const char *refusal = check_word(input, json_get(group, "format"), find_vocabulary(input->method, "format"));
    uint64_t number;
    if (refusal == NULL)
        refusal = check_word(input, json_get(weights, "strategy"), &strategies);
    if (refusal == NULL)
        refusal = check_word(input, json_get(weights, "type"), &types);
    bool is_odd =
        bits != NULL && !json_is(bits, JSON_NULL) && (!json_u64(bits, &number) || number == 0 || number > MAX_BITS);
    if (refusal == NULL && is_odd)
        return "num_bits of quantization_config is not a number of bits";
    return refusal;
}

static const char *declared_check_groups(const struct packing_input *input)
{
    const struct json *groups = json_get(input->config, "config_groups");
    const char *refusal = NULL;
    for (struct json_member group = {0}; refusal == NULL && json_next_member(groups, &group);)
        refusal = check_group(input, group.value);
    return refusal;
}

/* Checks the transforms of compressed-tensors. Those of weights are fused on both sides of a product: the model is the
 * same. Others multiply activations when the model runs. Source: compressed_tensors/transform. */
static const char *check_transforms(const struct packing_input *input)
{
    const struct json *groups = json_get(json_get(input->config, "transform_config"), "config_groups"),
                      *sparsity = json_get(json_get(input->config, "sparsity_config"), "format");
    for (struct json_member group = {0}; json_next_member(groups, &group);) {
        const struct json *apply = json_get(group.value, "apply");
        for (const struct json *at = json_first(apply); at != NULL; at = json_next(at)) {
            const struct json *location = json_get(at, "location");
            if (!json_string_is(location, "weight_input") && !json_string_is(location, "weight_output"))
                return arena_printf(input->arena,
                                    "transform_config of quantization_config transforms activations ('%.40s'), "
                                    "which is not supported",
                                    json_string(location, NULL) != NULL ? json_string(location, NULL) : "");
        }
    }
    if (json_string(sparsity, NULL) != NULL && !json_string_is(sparsity, "dense"))
        return arena_printf(input->arena, "sparsity_config '%.40s' of quantization_config is not supported",
                            json_string(sparsity, NULL));
    return NULL;
}

const char *declared_refusal(const struct packing_input *input)
{
    const struct json *said = json_get(input->config, "quant_method");
    const char *method = input->method, *refusal = NULL;
    if (said != NULL && !json_is(said, JSON_NULL) && !json_is(said, JSON_STRING))
        return "quant_method of quantization_config is not a string";
    if (*method != '\0' && !packing_is_known(method))
        return arena_printf(input->arena, "the quantization method '%.40s' is not supported", method);
    if (strcmp(method, "intel/auto-round") == 0)
        method = "auto-round";
    for (size_t i = 0; i < N_VOCABULARIES && refusal == NULL; i++)
        if (strcmp(vocabularies[i].method, method) == 0)
            refusal = check_word(input, json_get(input->config, vocabularies[i].key), &vocabularies[i]);
    if (refusal == NULL && strcmp(method, "compressed-tensors") == 0)
        refusal = declared_check_groups(input);
    if (refusal == NULL)
        refusal = check_transforms(input);
    return refusal != NULL ? refusal : known_keys_refusal(input);
}

const char *declared_layer_refusal(const struct packing_input *input, const char *name)
{
    static const char suffix[] = ".weight";
    const struct vocabulary *vocabulary = find_vocabulary(input->method, "quant_algo");
    if (vocabulary == NULL || !text_ends_with(name, suffix))
        return NULL;
    const struct json *layers = json_get(input->config, "quantized_layers"),
                      *layer = json_get_n(layers, name, strlen(name) - (sizeof suffix - 1));
    return check_word(input, json_get(layer, "quant_algo"), vocabulary);
}

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
      "mxfp4_block_size", "export" /* of Quark */}},
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

static const char *known_keys_check_groups(const struct packing_input *input)
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
    return known_keys_check_groups(input);
}

/* Name endings, and the methods whose converter leaves such tensors out. All but the last are for activations. */
static const struct harmless {
    const char *suffix;
    const char *methods[2];
} harmless[] = {
    {".activation_scale", {"fp8"}},
    {"_activation_scale", {"fp8"}},
    {".qscale_act", {"fp8"}},
    {".input_scale", {"modelopt"}},
    {".k_scale", {"modelopt"}},
    {".v_scale", {"modelopt"}},
    {".k_cache_scale", {"gemma"}},
    {".v_cache_scale", {"gemma"}},
    {".output_scale", {NULL}},
    {".q_scale", {NULL}},
    {".input_zero_point", {NULL}},
    {".output_zero_point", {NULL}},
    {".input_global_scale", {"compressed-tensors"}},
    {"scaled_fp8", {NULL}}, /* the mark of ComfyUI's older files */
};

bool left_over_is_harmless(const struct tensor *tensor, const char *const **ret_methods)
{
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (packing_has_suffix(tensor, harmless[i].suffix)) {
            if (ret_methods != NULL)
                *ret_methods = harmless[i].methods;
            return true;
        }
    return false;
}

/* Reports whether the packing names the tensor, whose name goes on with `rest` after the module's, as harmless. */
static bool is_beside(const struct packing *packing, const char *rest)
{
    for (const char *const *suffix = packing->beside; suffix != NULL && *suffix != NULL; suffix++)
        if (strcmp(*suffix, rest) == 0)
            return true;
    return false;
}

/* Returns the packed weight to whose module the tensor belongs; NULL: none. */
static struct unpacked *owner_of(const struct text_index *modules, const struct tensor *tensor,
                                 struct unpacked_weights *found, size_t *ret_length)
{
    size_t place;
    for (size_t length = tensor->name_length; length-- > 0;)
        if (tensor->name[length] == '.' && text_index_find(modules, tensor->name, length, &place)) {
            *ret_length = length;
            return &found->weights[place];
        }
    return NULL;
}

static void refuse_owner(const struct packing_input *input, const struct tensor *tensor, struct unpacked *owner,
                         size_t length)
{
    static struct unpacked_forms no_forms;
    bool is_text = strlen(tensor->name) == tensor->name_length;
    bool is_stored_weight = is_text && strcmp(tensor->name + length, ".weight") == 0; /* the packed one replaces it */
    if (owner->refusal != NULL || is_stored_weight || packing_has_suffix(tensor, "bias") ||
        left_over_is_harmless(tensor, NULL) || (is_text && is_beside(owner->packing, tensor->name + length)))
        return;
    owner->refusal = arena_printf(input->arena, "'%.200s' is left over: the packing '%s' does not use it", tensor->name,
                                  owner->packing->name);
    owner->view = NULL;
    owner->forms = &no_forms;
}

void left_over_refuse(const struct packing_input *input, struct unpacked_weights *found)
{
    static const char own[] = ".weight";
    const struct tensor_set *set = input->set;
    struct text_index modules = {0};
    bool *is_used = memory_alloc(set->n_tensors + 1);
    memset(is_used, 0, set->n_tensors + 1);
    for (size_t i = 0; i < found->n_weights; i++) {
        const struct unpacked *weight = &found->weights[i];
        for (unsigned j = 0; j < weight->n_parts; j++)
            is_used[weight->parts[j] - set->tensors] = true;
        if (text_ends_with(weight->name, own))
            text_index_add(&modules, weight->name, strlen(weight->name) - strlen(own), i);
    }
    for (size_t i = 0; i < set->n_tensors; i++) {
        size_t length;
        struct unpacked *owner = is_used[i] ? NULL : owner_of(&modules, &set->tensors[i], found, &length);
        if (owner != NULL)
            refuse_owner(input, &set->tensors[i], owner, length);
    }
    text_index_free(&modules);
    free(is_used);
}
