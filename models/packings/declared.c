#include "models/packings/refusals.h"

#include "base/text.h"
#include "models/packings/packings.h"

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

static const char *check_groups(const struct packing_input *input)
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
        refusal = check_groups(input);
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
