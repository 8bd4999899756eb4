/* Expected values: AutoConfig.for_model / AutoConfig.from_pretrained(dir).to_dict() of transformers on a
 * directory with the config.json of the row, and the rope normalization of TextModel.__init__ in conversion/base.py. */
#include "models/config/hparams.h"
#include "tests/unit/check.h"

#include <stdio.h>

/* The spelling of a value, "absent" where there is none. */
static const char *text_of(const struct json *value)
{
    if (value == NULL)
        return "absent";
    switch (json_type(value)) {
    case JSON_NULL:
        return "null";
    case JSON_FALSE:
        return "false";
    case JSON_TRUE:
        return "true";
    case JSON_NUMBER:
        return json_number_text(value);
    case JSON_STRING:
        return json_string(value, NULL);
    case JSON_ARRAY:
        return "array";
    case JSON_OBJECT:
        return "object";
    }
    return "?";
}

static const struct {
    const char *config, *key, *expected;
} lookups[] = {
    /* class defaults come after what the file says, null included */
    {"{\"model_type\":\"llama\"}", "rms_norm_eps", "1e-06"},
    {"{\"model_type\":\"llama\",\"rms_norm_eps\":1e-5}", "rms_norm_eps", "1e-5"},
    {"{\"model_type\":\"llama\",\"rope_theta\":null}", "rope_theta", "null"},
    {"{\"model_type\":\"llama\"}", "unheard_of", "absent"},
    {"{\"model_type\":\"llama\",\"unheard_of\":3}", "unheard_of", "3"},
    {"{\"model_type\":\"unheard_of\"}", "rms_norm_eps", "absent"},
    {"{\"model_type\":\"llama\"}", "max_length", "20"},
    /* transformers does not make the class, or does not show it: then there are no defaults */
    {"{\"model_type\":\"llama\",\"rope_scaling\":{\"rope_type\":\"yarn\"}}", "rms_norm_eps", "absent"},
    {"{\"model_type\":\"llama\",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2.0}}", "rms_norm_eps", "1e-06"},
    {"{\"model_type\":\"llama\",\"rope_scaling\":{\"type\":\"unheard_of\"}}", "rms_norm_eps", "1e-06"},
    {"{\"model_type\":\"llama\",\"rope_scaling\":{}}", "rms_norm_eps", "absent"},
    {"{\"model_type\":\"llama\",\"rope_scaling\":[2]}", "rms_norm_eps", "absent"},
    {"{\"model_type\":\"cohere\",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2.0}}", "layer_norm_eps", "absent"},
    {"{\"model_type\":\"cohere\",\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":2}}", "layer_norm_eps", "1e-05"},
    {"{\"model_type\":\"qwen2_vl\",\"rope_scaling\":{\"type\":\"mrope\",\"mrope_section\":[1,1,2]}}", "rms_norm_eps",
     "1e-05"},
    {"{\"model_type\":\"qwen2_vl\",\"rope_scaling\":{\"mrope_section\":[1,1,2]}}", "rms_norm_eps", "absent"},
    {"{\"model_type\":\"qwen2\",\"num_hidden_layers\":1,\"layer_types\":[\"full_attention\"]}", "rms_norm_eps",
     "1e-06"},
    {"{\"model_type\":\"qwen2\",\"num_hidden_layers\":2,\"layer_types\":[\"full_attention\"]}", "rms_norm_eps",
     "absent"},
    {"{\"model_type\":\"qwen2\",\"num_hidden_layers\":1,\"layer_types\":[\"conv\"]}", "rms_norm_eps", "absent"},
    {"{\"model_type\":\"llama\",\"quantization_config\":null}", "rms_norm_eps", "absent"},
    {"{\"model_type\":\"llama\",\"quantization_config\":{}}", "rms_norm_eps", "1e-06"},
    {"{\"model_type\":\"gemma3\",\"quantization_config\":null,\"text_config\":{\"model_type\":\"gemma3_text\"}}",
     "rms_norm_eps", "absent"},
    {"{\"model_type\":\"gemma3\",\"text_config\":{\"model_type\":\"gemma3_text\",\"rope_scaling\":{\"type\":\"linear\","
     "\"factor\":8.0}}}",
     "rms_norm_eps", "absent"},
    /* computed where absent or null */
    {"{\"model_type\":\"llama\",\"hidden_size\":2048}", "head_dim", "64"},
    {"{\"model_type\":\"llama\",\"head_dim\":null,\"hidden_size\":100,\"num_attention_heads\":3}", "head_dim", "33"},
    {"{\"model_type\":\"llama\",\"head_dim\":80}", "head_dim", "80"},
    {"{\"model_type\":\"llama\",\"num_attention_heads\":8}", "num_key_value_heads", "8"},
    {"{\"model_type\":\"mistral\"}", "head_dim", "null"},
    {"{\"model_type\":\"mistral\"}", "num_key_value_heads", "8"},
    {"{\"model_type\":\"mistral\",\"num_key_value_heads\":null}", "num_key_value_heads", "32"},
    {"{\"model_type\":\"qwen2\"}", "head_dim", "absent"},
    {"{\"model_type\":\"git\"}", "layer_norm_eps", "1e-12"},
    {"{\"model_type\":\"git\",\"num_hidden_layers\":null}", "num_hidden_layers", "null"},
    {"{\"model_type\":\"qwen3\",\"hidden_size\":256}", "head_dim", "128"},
    {"{\"model_type\":\"ernie4_5\"}", "head_dim", "128"},
    {"{\"model_type\":\"ernie4_5\",\"head_dim\":null}", "head_dim", "64"},
    {"{\"model_type\":\"ernie4_5\",\"num_key_value_heads\":null}", "num_key_value_heads", "16"},
    {"{\"model_type\":\"seed_oss\",\"head_dim\":null}", "head_dim", "51"},
    {"{\"model_type\":\"llama4_text\",\"head_dim\":null,\"hidden_size\":100}", "head_dim", "2"},
    {"{\"model_type\":\"phimoe\",\"num_key_value_heads\":null}", "num_key_value_heads", "32"},
    {"{\"model_type\":\"glm4v_text\",\"num_key_value_heads\":null}", "num_key_value_heads", "32"},
    {"{\"model_type\":\"qwen3_vl_moe_text\",\"hidden_size\":100,\"num_attention_heads\":8}", "head_dim", "12"},
    {"{\"model_type\":\"falcon\",\"multi_query\":true}", "num_kv_heads", "71"},
    {"{\"model_type\":\"deepseek_v3\",\"qk_rope_head_dim\":32}", "head_dim", "32"},
    {"{\"model_type\":\"t5\",\"num_layers\":3}", "num_decoder_layers", "3"},
    {"{\"model_type\":\"t5\",\"num_layers\":3,\"num_decoder_layers\":2}", "num_decoder_layers", "2"},
    /* attribute_map: one spelling is left */
    {"{\"model_type\":\"gpt2\",\"num_hidden_layers\":5}", "n_layer", "5"},
    {"{\"model_type\":\"gpt2\",\"num_hidden_layers\":5,\"n_layer\":6}", "n_layer", "5"},
    {"{\"model_type\":\"gpt2\",\"num_hidden_layers\":5}", "num_hidden_layers", "absent"},
    {"{\"model_type\":\"bloom\",\"n_embed\":96}", "hidden_size", "96"},
    /* paths */
    {"{\"model_type\":\"mpt\"}", "attn_config.alibi_bias_max", "8"},
    {"{\"model_type\":\"mpt\",\"attn_config\":{\"clip_qkv\":6}}", "attn_config.clip_qkv", "6"},
    {"{\"model_type\":\"mpt\",\"attn_config\":{\"clip_qkv\":6}}", "attn_config.alibi", "true"},
    {"{\"model_type\":\"dbrx\",\"attn_config\":{\"clip_qkv\":6}}", "attn_config.rope_theta", "10000.0"},
    {"{\"model_type\":\"dbrx\",\"num_hidden_layers\":3}", "n_layers", "3"},
    {"{\"model_type\":\"bitnet\"}", "hidden_act", "relu2"},
    {"{\"model_type\":\"chameleon\"}", "swin_norm", "false"},
    /* text_config lies on top of the whole */
    {"{\"model_type\":\"gemma3\",\"hidden_size\":1,\"text_config\":{\"hidden_size\":2}}", "hidden_size", "2"},
    {"{\"model_type\":\"gemma3\",\"text_config\":{}}", "head_dim", "256"},
    {"{\"model_type\":\"llava\",\"text_config\":{\"model_type\":\"mistral\"}}", "max_position_embeddings", "131072"},
    {"{\"model_type\":\"llava\",\"pad_token_id\":7,\"text_config\":{}}", "pad_token_id", "null"},
    {"{\"model_type\":\"smolvlm\",\"text_config\":{\"hidden_size\":960,\"num_attention_heads\":15}}", "head_dim", "64"},
    {"{\"model_type\":\"voxtral\",\"text_config\":{\"num_attention_heads\":4}}", "hidden_size", "3072"},
    {"{\"model_type\":\"voxtral\",\"text_config\":{\"hidden_size\":64}}", "head_dim", "128"},
    {"{\"model_type\":\"qwen2_audio\",\"text_config\":{}}", "num_key_value_heads", "32"},
    {"{\"model_type\":\"mistral3\",\"text_config\":{}}", "tie_word_embeddings", "false"},
    {"{\"model_type\":\"mistral3\",\"text_config\":{\"model_type\":\"mistral4\"}}", "tie_word_embeddings", "absent"},
    {"{\"model_type\":\"qwen2_5_vl\"}", "rms_norm_eps", "1e-05"},
    {"{\"model_type\":\"qwen3_vl\",\"text_config\":{}}", "head_dim", "128"},
    {"{\"model_type\":\"glm4_moe\"}", "partial_rotary_factor", "0.5"},
    {"{\"model_type\":\"glm4_moe\"}", "num_nextn_predict_layers", "absent"},
    {"{\"model_type\":\"glm4_moe\"}", "head_dim", "absent"},
    {"{\"model_type\":\"qwen3_next\"}", "linear_num_value_heads", "32"},
    {"{\"model_type\":\"hunyuan_v1_dense\",\"eod_token_id\":7}", "eod_token_id", "absent"},
    /* which the converter reads without their classes */
    {"{\"model_type\":\"granitemoehybrid\"}", "embedding_multiplier", "absent"},
    {"{\"model_type\":\"bamba\"}", "partial_rotary_factor", "absent"},
    {"{\"model_type\":\"falcon_h1\",\"num_attention_heads\":4}", "num_key_value_heads", "absent"},
    /* labels without names, of a known class */
    {"{\"model_type\":\"bert\",\"num_labels\":2}", "id2label.1", "LABEL_1"},
    {"{\"model_type\":\"unheard_of\",\"num_labels\":2}", "id2label", "absent"},
    {"{\"model_type\":\"unheard_of\",\"text_config\":{\"model_type\":\"llama\"}}", "head_dim", "absent"},
};

static const struct {
    const char *config, *key, *expected, *expected_sliding;
} ropes[] = {
    {"{\"model_type\":\"llama\",\"rope_theta\":5e5}", "rope_theta", "5e5", "absent"},
    {"{\"model_type\":\"llama\",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2.0}}", "rope_type", "linear",
     "absent"},
    {"{\"model_type\":\"llama\",\"rope_scaling\":{\"rope_theta\":7.0}}", "rope_theta", "7.0", "absent"},
    {"{\"model_type\":\"llama\",\"rope_parameters\":null,\"rope_scaling\":{\"factor\":2}}", "factor", "absent",
     "absent"},
    {"{\"model_type\":\"gemma3_text\"}", "rope_theta", "1000000.0", "10000.0"},
    {"{\"rope_theta\":1,\"rope_parameters\":{\"full_attention\":{\"rope_theta\":2},\"sliding_attention\":{\"rope_"
     "theta\":3}}}",
     "rope_theta", "2", "3"},
    {"{\"model_type\":\"gpt_neox\"}", "rope_theta", "10000", "absent"},
    {"{\"model_type\":\"phi\"}", "partial_rotary_factor", "0.5", "absent"},
    {"{\"model_type\":\"phi3\"}", "original_max_position_embeddings", "4096", "absent"},
};

static const struct {
    const char *config, *expected;
} architectures[] = {
    {"{\"architectures\":[\"A\",\"B\"]}", "A"},
    {"{\"architectures\":[\"A\"],\"text_config\":{\"architectures\":[\"C\"]}}", "C"},
    {"{\"architectures\":[\"A\"],\"text_config\":{}}", "A"},
    {"{\"architectures\":[\"Sarashina2VisionForCausalLM\"],\"text_config\":{\"architectures\":[\"C\"]}}",
     "Sarashina2VisionForCausalLM"},
    {"{\"ssm_cfg\":{}}", "MambaForCausalLM"},
    {"{\"ssm_cfg\":{\"layer\":\"Mamba2\"}}", "Mamba2ForCausalLM"},
};

static struct hparams *parse(const char *config)
{
    struct error error;
    struct hparams *hparams = hparams_parse(config, strlen(config), &error);
    if (!CHECK_NAMED(hparams != NULL, config))
        fprintf(stderr, "  %s\n", error.message);
    return hparams;
}

static void check_counts(void)
{
    struct hparams *hparams = parse("{\"a\":3,\"b\":-1,\"c\":2.5,\"d\":null,\"e\":\"x\"}");
    struct error error;
    uint64_t count = 0;
    CHECK(hparams_count(hparams, "z|a", 1, 3, &count, &error) && count == 3);
    CHECK(!hparams_count(hparams, "a", 1, 2, &count, &error));
    CHECK_TEXT(error.message, "config.json: a is 3, outside 1 to 2");
    CHECK(!hparams_count(hparams, "b", 0, 9, &count, &error));
    CHECK(!hparams_count(hparams, "c", 0, 9, &count, &error));
    CHECK(!hparams_count(hparams, "d|a", 0, 9, &count, &error));
    CHECK(!hparams_count(hparams, "e", 0, 9, &count, &error));
    CHECK(!hparams_count(hparams, "z", 0, 9, &count, &error));
    CHECK_TEXT(error.message, "config.json: z is missing");
    hparams_free(hparams);
}

int main(void)
{
    for (size_t i = 0; i < sizeof lookups / sizeof *lookups; i++) {
        struct hparams *hparams = parse(lookups[i].config);
        CHECK_TEXT(text_of(hparams_get(hparams, lookups[i].key)), lookups[i].expected);
        hparams_free(hparams);
    }
    for (size_t i = 0; i < sizeof ropes / sizeof *ropes; i++) {
        struct hparams *hparams = parse(ropes[i].config);
        CHECK_TEXT(text_of(hparams_rope(hparams, ropes[i].key)), ropes[i].expected);
        CHECK_TEXT(text_of(hparams_rope_sliding(hparams, ropes[i].key)), ropes[i].expected_sliding);
        hparams_free(hparams);
    }
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++) {
        struct hparams *hparams = parse(architectures[i].config);
        CHECK_TEXT(hparams_class(hparams), architectures[i].expected);
        hparams_free(hparams);
    }
    check_counts();
    struct error error;
    CHECK(hparams_parse("[]", 2, &error) == NULL);
    CHECK_TEXT(error.message, "config.json: not a JSON object");
    return check_done();
}
