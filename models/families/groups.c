#include "models/families/families.h"

#include "base/text.h"

#include <string.h>

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
