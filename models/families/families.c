#include "models/families/families.h"

#include "base/text.h"
#include "text/json.h"

#include <string.h>

/* One row a line. */
/* clang-format off */
#define FAMILIES(ROW) \
    ROW(afmoe) \
    ROW(apertus) \
    ROW(arcee) \
    ROW(arctic) \
    ROW(arwkv7) \
    ROW(baichuan) \
    ROW(bailingmoe) \
    ROW(bailingmoe2) \
    ROW(bailingmoe3) \
    ROW(bert) \
    ROW(bitnet) \
    ROW(bloom) \
    ROW(chameleon) \
    ROW(chatglm) \
    ROW(codeshell) \
    ROW(cogvlm) \
    ROW(cohere2) \
    ROW(cohere2moe) \
    ROW(command_r) \
    ROW(dbrx) \
    ROW(deci) \
    ROW(deepseek) \
    ROW(deepseek2) \
    ROW(deepseek2_ocr) \
    ROW(deepseek32) \
    ROW(deepseek4) \
    ROW(deepseek4_dspark) \
    ROW(dflash) \
    ROW(distilbert) \
    ROW(dots1) \
    ROW(dots3note) \
    ROW(dream) \
    ROW(eagle3) \
    ROW(ernie4_5) \
    ROW(ernie4_5_moe) \
    ROW(eurobert) \
    ROW(exaone) \
    ROW(exaone4) \
    ROW(exaone_moe) \
    ROW(falcon) \
    ROW(falcon_h1) \
    ROW(gemma) \
    ROW(gemma2) \
    ROW(gemma3) \
    ROW(gemma3n) \
    ROW(gemma4) \
    ROW(gemma4_assistant) \
    ROW(gemma4_dspark) \
    ROW(gemma_embedding) \
    ROW(gemma_embedding2) \
    ROW(glm4) \
    ROW(glm4moe) \
    ROW(glm4moelite) \
    ROW(glm5_next) \
    ROW(glm_dsa) \
    ROW(gpt2) \
    ROW(gpt_oss) \
    ROW(gptneox) \
    ROW(granite) \
    ROW(granite_switch) \
    ROW(granite4) \
    ROW(granite4moe) \
    ROW(granitehybrid) \
    ROW(granitemoe) \
    ROW(granite_swa) \
    ROW(granite_moe_swa) \
    ROW(grok) \
    ROW(grovemoe) \
    ROW(hrm_text) \
    ROW(hunyuan_dense) \
    ROW(hunyuan_moe) \
    ROW(hunyuan_vl) \
    ROW(hy_v3) \
    ROW(hy_v4) \
    ROW(internlm2) \
    ROW(internlm3) \
    ROW(jais2) \
    ROW(jais) \
    ROW(jamba) \
    ROW(jina_bert_v2) \
    ROW(jina_bert_v3) \
    ROW(k2_horizon) \
    ROW(kimi_k3) \
    ROW(kimi_linear) \
    ROW(laguna) \
    ROW(lfm2) \
    ROW(lfm2_embed) \
    ROW(lfm2_audio) \
    ROW(lfm2moe) \
    ROW(llada) \
    ROW(llada_moe) \
    ROW(llama) \
    ROW(llama4) \
    ROW(llama_embed) \
    ROW(maincoder) \
    ROW(maple) \
    ROW(mamba) \
    ROW(mamba2) \
    ROW(mellum) \
    ROW(mimo2) \
    ROW(minicpm) \
    ROW(minicpm3) \
    ROW(minimax_01) \
    ROW(minimax_m2) \
    ROW(minimax_m3) \
    ROW(mistral3) \
    ROW(mistral4) \
    ROW(mistral_llama) \
    ROW(mistral_scaled) \
    ROW(mistral_moe) \
    ROW(modern_bert) \
    ROW(mpt) \
    ROW(muse_glimmer) \
    ROW(muse_glimmer_assistant) \
    ROW(nanbeige) \
    ROW(nemotron) \
    ROW(nemotron_h) \
    ROW(nemotron_h_moe) \
    ROW(nemotron_h_puzzle) \
    ROW(neo_bert) \
    ROW(nomic_bert) \
    ROW(nomic_bert_moe) \
    ROW(olmo) \
    ROW(olmo2) \
    ROW(olmoe) \
    ROW(openelm) \
    ROW(orion) \
    ROW(paddleocr) \
    ROW(pangu_embedded) \
    ROW(phi2) \
    ROW(phi3) \
    ROW(phimoe) \
    ROW(plamo2) \
    ROW(plamo3) \
    ROW(plamo) \
    ROW(plm) \
    ROW(pockettts) \
    ROW(qwen) \
    ROW(qwen2) \
    ROW(qwen2moe) \
    ROW(qwen2vl) \
    ROW(fast_dvlm) \
    ROW(qwen3) \
    ROW(qwen35) \
    ROW(qwen35moe) \
    ROW(qwen3moe) \
    ROW(qwen3next) \
    ROW(qwen3tts) \
    ROW(qwen3vl) \
    ROW(qwen3vlmoe) \
    ROW(qwen4exp) \
    ROW(refact) \
    ROW(rnd1) \
    ROW(roberta) \
    ROW(sarvam) \
    ROW(rugpt3xl) \
    ROW(rwkv6) \
    ROW(rwkv6qwen2) \
    ROW(rwkv7) \
    ROW(seed_oss) \
    ROW(smallthinker) \
    ROW(smollm3) \
    ROW(solar_open) \
    ROW(spark2_5) \
    ROW(stablelm) \
    ROW(starcoder) \
    ROW(starcoder2) \
    ROW(step35) \
    ROW(t5) \
    ROW(t5encoder) \
    ROW(talkie) \
    ROW(wavtokenizer_dec) \
    ROW(xlm_roberta) \
    ROW(xverse)
/* clang-format on */

#define DECLARE(name) extern const struct family name##_family;
FAMILIES(DECLARE)

#define ADDRESS(name) &name##_family,
const struct family *const families[] = {FAMILIES(ADDRESS) NULL};

/* Returns the class that reads a model type as a text model, or NULL. */
static const char *class_of_type(const char *model_type)
{
    for (const struct family *const *family = families; *family != NULL; family++)
        for (const struct config_form *form = (*family)->forms; form != NULL && form->architecture != NULL; form++)
            if (strcmp(form->model_type, model_type) == 0 && text_ends_with(form->architecture, "ForCausalLM"))
                return form->architecture;
    return NULL;
}

/* Returns the class of the text model in a multimodal model, where its text_config has a model type instead of
 * `architectures`, as one has that transformers 5 made; else NULL. PaliGemma's text model does not read text from left
 * to right. */
static const char *find_inner_class(const struct hparams *hparams)
{
    const struct json *whole = hparams_raw(hparams), *text = json_get(whole, "text_config");
    const char *model_type = json_string(json_get(text, "model_type"), NULL);
    const char *class_name = hparams_class(hparams);
    if (class_name == NULL || !text_ends_with(class_name, "ForConditionalGeneration") || model_type == NULL ||
        json_first(json_get(text, "architectures")) != NULL ||
        json_string_is(json_get(whole, "model_type"), "paligemma"))
        return NULL;
    return class_of_type(model_type);
}

const struct family *family_find(const struct hparams *hparams, const struct family_name **ret_name)
{
    const struct family *family = family_among(families, hparams_class(hparams), hparams, ret_name);
    return family != NULL ? family : family_among(families, find_inner_class(hparams), hparams, ret_name);
}

const struct family_group family_groups[] = {
    {"Qwen (Alibaba)", {"qwen"}},
    {"Llama (Meta) and derivatives",
     {"llama", "arcee", "afmoe", "apertus", "muse-glimmer", "nanbeige", "smollm", "stablelm"}},
    {"Gemma and T5 (Google)", {"gemma", "t5"}},
    {"Mistral", {"mistral"}},
    {"DeepSeek", {"deepseek"}},
    {"GLM (Zhipu)", {"glm", "chatglm"}},
    {"GPT and its successors", {"gpt", "bloom", "codeshell", "mpt", "refact", "starcoder", "rugpt"}},
    {"Phi (Microsoft)", {"phi"}},
    {"MiniMax, MiniCPM, InternLM, Baichuan", {"minimax", "minicpm", "internlm", "baichuan"}},
    {"Kimi, Step, MiMo", {"kimi", "step35", "mimo2"}},
    {"Hunyuan, ERNIE, Ling, Seed, dots",
     {"hunyuan", "hy_", "ernie", "paddleocr", "bailing", "sarvam", "seed_oss", "dots", "smallthinker"}},
    {"EXAONE, Solar", {"exaone", "solar"}},
    {"Granite (IBM)", {"granite"}},
    {"Nemotron (NVIDIA)", {"nemotron", "deci"}},
    {"Command, Aya (Cohere)", {"command", "cohere"}},
    {"OLMo (Ai2)", {"olmo"}},
    {"Mamba, RWKV, Jamba, LFM, Falcon", {"mamba", "rwkv", "arwkv", "jamba", "lfm", "falcon"}},
    {"Diffusion models", {"dream", "llada", "rnd1"}},
    {"Draft models (need -o base=DIR)", {"eagle3", "dflash"}},
    {"Encoders",
     {"bert", "roberta", "xlm-roberta", "distilbert", "modern-bert", "neo-bert", "nomic-bert", "eurobert",
      "jina-bert"}},
    {"Others", {NULL}},
    {0},
};

/* Families whose checkpoints are compared: those that `make` and `make-families2` of the golden set write. DeepSeek V4
 * is missing: its chat template is part of the converter, not of wfs. */
static const char *const golden[] = {
    "bert",   "deepseek2",  "gemma-embedding", "gemma2",    "gemma3",         "gemma3n",       "gemma4", "glm-dsa",
    "glm4",   "glm4moe",    "glm4moelite",     "gpt2",      "granitehybrid",  "hunyuan-dense", "lfm2",   "llama",
    "llama4", "minimax-m2", "mistral-llama",   "mistral3",  "nemotron_h_moe", "phi3",          "qwen2",  "qwen2vl",
    "qwen3",  "qwen35",     "qwen3moe",        "qwen3next", "qwen3vl",
};

static const char *const golden_projectors[] = {"gemma3", "pixtral", "qwen2.5vl_merger", "qwen3vl_merger"};

const struct family_group *family_group_of(const struct family *family)
{
    for (const struct family_group *group = family_groups;; group++) {
        if (group->beginnings[0] == NULL)
            return group;
        for (size_t i = 0; i < GROUP_MAX_BEGINNINGS && group->beginnings[i] != NULL; i++)
            if (text_starts_with(family->name, group->beginnings[i]))
                return group;
    }
}

bool family_is_golden(const struct family *family)
{
    const char *const *names = family->tower != NULL ? golden_projectors : golden;
    size_t n_names = family->tower != NULL ? sizeof golden_projectors / sizeof *names : sizeof golden / sizeof *names;
    for (size_t i = 0; i < n_names; i++)
        if (strcmp(names[i], family->name) == 0)
            return true;
    return false;
}
