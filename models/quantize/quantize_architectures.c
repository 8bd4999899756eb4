/* The architectures (general.architecture) that llama-quantize accepts. Source: src/llama-arch.cpp of llama.cpp. */
#include "models/quantize/quantize.h"

#include <string.h>

/* clang-format off */
static const char *const architectures[] = {
    "afmoe", "apertus", "arcee", "arctic", "arwkv7", "baichuan", "bailingmoe", "bailingmoe2", "bert", "bitnet",
    "bloom", "chameleon", "chatglm", "clip", "codeshell", "cogvlm", "cohere2", "cohere2moe", "command-r", "dbrx",
    "deci", "deepseek", "deepseek2", "deepseek2-ocr", "deepseek32", "deepseek4", "dflash", "dots1", "dream", "eagle3",
    "ernie4_5", "ernie4_5-moe", "eurobert", "exaone", "exaone-moe", "exaone4", "falcon", "falcon-h1", "gemma",
    "gemma-embedding", "gemma2", "gemma3", "gemma3n", "gemma4", "gemma4-assistant", "glm-dsa", "glm4", "glm4moe",
    "gpt-oss", "gpt2", "gptj", "gptneox", "granite", "granitehybrid", "granitemoe", "grok", "grovemoe",
    "hunyuan-dense", "hunyuan-moe", "hunyuan_vl", "hy_v3", "internlm2", "jais", "jais2", "jamba", "jina-bert-v2",
    "jina-bert-v3", "kimi-linear", "laguna", "lfm2", "lfm2moe", "llada", "llada-moe", "llama", "llama-embed",
    "llama4", "maincoder", "mamba", "mamba2", "mellum", "mimo2", "minicpm", "minicpm3", "minimax-m2", "minimax-m3",
    "mistral3", "mistral4", "modern-bert", "mpt", "nanbeige", "nemotron", "nemotron_h", "nemotron_h_moe", "neo-bert",
    "nomic-bert", "nomic-bert-moe", "olmo", "olmo2", "olmoe", "openelm", "orion", "paddleocr", "pangu-embedded",
    "phi2", "phi3", "phimoe", "plamo", "plamo2", "plamo3", "plm", "qwen", "qwen2", "qwen2moe", "qwen2vl", "qwen3",
    "qwen35", "qwen35moe", "qwen3moe", "qwen3next", "qwen3vl", "qwen3vlmoe", "refact", "rnd1", "rwkv6", "rwkv6qwen2",
    "rwkv7", "seed_oss", "smallthinker", "smollm3", "stablelm", "starcoder", "starcoder2", "step35", "t5",
    "t5encoder", "talkie", "wavtokenizer-dec", "xverse", NULL,
};
/* clang-format on */

bool quantize_takes(const struct gguf_model *model, struct error *error)
{
    struct arena *arena = arena_new();
    struct gguf_kvs kvs = gguf_kvs_copy(&model->kvs);
    gguf_edit(&kvs, model->edits, 0);
    const char *name = gguf_get_text(&kvs, "general.architecture", arena);
    const char *const *known = architectures;
    while (name != NULL && *known != NULL && strcmp(*known, name) != 0)
        known++;
    if (name == NULL)
        error_set(error, "the source does not say its architecture");
    else if (*known == NULL)
        error_set(error, "llama-quantize does not know the architecture '%.64s'", name);
    gguf_kvs_free(&kvs);
    arena_free(arena);
    return name != NULL && *known != NULL;
}
