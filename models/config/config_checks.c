#include "models/config/config_class.h"

#include <stdlib.h>
#include <string.h>

/* Classes that check rope_scaling; those in the second list do not take `type` for rope_type. */
static const char *const checks_rope[] = {
    "phimoe", /* which has rope_type alone */
    "llama",          "smollm3",           "arcee",       "qwen2",       "qwen2_moe", "qwen3",    "qwen3_moe",
    "qwen2_vl_text",  "qwen2_5_omni_text", "glm4_moe",    "glm4v_text",  "ernie4_5",  "seed_oss", "qwen3_omni_moe_text",
    "glm4v_moe_text", "ernie4_5_moe",      "apertus",     "phi",         "gpt_neox",  "stablelm", "starcoder2",
    "olmoe",          "gpt_oss",           "deepseek_v2", "deepseek_v3", NULL};
static const char *const checks_rope_type[] = {
    "qwen3_vl_text", "qwen3_vl_moe_text", "qwen3_next", "gemma3_text", "gemma3n_text",     "olmo3",
    "granite",       "granitemoe",        "cohere",     "cohere2",     "granitemoeshared", NULL};

/* Classes that check layer_types. */
static const char *const checks_layers[] = {"smollm3",     "qwen2",   "qwen3",   "qwen2_vl_text", "qwen2_5_omni_text",
                                            "qwen3_next",  "gemma2",  "dots1",   "gemma3_text",   "gemma3n_text",
                                            "llama4_text", "exaone4", "cohere2", "gpt_oss",       NULL};

/* Reports whether the first model type of a class is in a list. */
static bool is_among(const char *const *types, const struct config_class *class)
{
    size_t length = strcspn(class->model_type, "|");
    for (; *types != NULL; types++)
        if (strncmp(*types, class->model_type, length) == 0 && (*types)[length] == '\0')
            return true;
    return false;
}

/* The keys that a kind of rope needs besides rope_type. */
static const struct {
    const char *type, *keys[4];
} ropes[] = {
    {"default", {NULL}},
    {"linear", {"factor"}},
    {"dynamic", {"factor"}},
    {"yarn", {"factor"}},
    {"longrope", {"short_factor", "long_factor"}},
    {"llama3", {"factor", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor"}},
};

static bool takes_rope(const struct config_class *class, const struct json *rope)
{
    const struct json *type = json_get(rope, "rope_type"), *older = json_get(rope, "type");
    bool wants_type = is_among(checks_rope_type, class);
    bool has_type = type != NULL || (older != NULL && !wants_type);
    if (rope == NULL || json_type(rope) == JSON_NULL || (!wants_type && !is_among(checks_rope, class)))
        return true;
    if (!json_is(rope, JSON_OBJECT))
        return false;
    if (older != NULL && (type == NULL || !wants_type)) /* then `type` counts, also beside rope_type */
        type = older;
    bool is_multimodal = !wants_type && json_string_is(type, "mrope"); /* Qwen's classes call it default */
    for (size_t i = 0; i < sizeof ropes / sizeof *ropes; i++) {
        if (type != NULL && !is_multimodal && !json_string_is(type, ropes[i].type))
            continue;
        for (size_t j = 0; j < 4 && ropes[i].keys[j] != NULL; j++)
            has_type = has_type && json_get(rope, ropes[i].keys[j]) != NULL;
        return has_type;
    }
    return true; /* of an unknown kind, which only warns */
}

bool config_is_shown(const struct json *config)
{
    const struct json *quantization = json_get(config, "quantization_config");
    return quantization == NULL || json_is(quantization, JSON_OBJECT);
}

/* Returns the number of layers that the object says, or else the class's default; 0: neither. */
static uint64_t count_layers(const struct config_class *class, const struct json *config)
{
    static const char name[] = "'num_hidden_layers': ";
    const struct json *given = json_get(config, "num_hidden_layers");
    const char *at = given == NULL ? strstr(class->defaults, name) : NULL;
    uint64_t n_layers = 0;
    if (at != NULL)
        return strtoull(at + strlen(name), NULL, 10);
    json_u64(given, &n_layers);
    return n_layers;
}

static bool takes_layers(const struct config_class *class, const struct json *config)
{
    static const char *const names[] = {"full_attention", "sliding_attention", "chunked_attention", "linear_attention"};
    const struct json *types = json_get(config, "layer_types");
    if (!json_is(types, JSON_ARRAY) || !is_among(checks_layers, class))
        return true;
    for (const struct json *type = json_first(types); type != NULL; type = json_next(type)) {
        bool is_known = false;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            is_known |= json_string_is(type, names[i]);
        if (!is_known)
            return false;
    }
    uint64_t n_layers = count_layers(class, config);
    return n_layers == 0 || n_layers == json_count(types);
}

bool config_class_takes(const struct config_class *class, const struct json *config)
{
    return config_is_shown(config) && takes_rope(class, json_get(config, "rope_scaling")) &&
           takes_layers(class, config);
}

bool config_class_takes_type(const struct config_class *class)
{
    return is_among(checks_rope + 1, class);
}
