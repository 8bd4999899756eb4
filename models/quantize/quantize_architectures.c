/* The architectures (general.architecture) that llama-quantize accepts. Source: src/llama-arch.cpp of llama.cpp. */
#include "models/quantize/quantize.h"

#include <string.h>

/* scripts/tables writes the rows from llama.cpp b11549. */
static const struct {
    const char *name;
    unsigned since; /* the first build that knows it; 0: all */
} architectures[] = {
    {"afmoe"},
    {"apertus"},
    {"arcee"},
    {"arctic"},
    {"arwkv7"},
    {"baichuan"},
    {"bailingmoe"},
    {"bailingmoe2"},
    {"bailingmoe3"},
    {"bert"},
    {"bitnet"},
    {"bloom"},
    {"chameleon"},
    {"chatglm"},
    {"clef", 11382},
    {"clip"},
    {"codeshell"},
    {"cogvlm"},
    {"cohere2"},
    {"cohere2moe"},
    {"command-r"},
    {"dbrx"},
    {"deci"},
    {"deepseek"},
    {"deepseek2"},
    {"deepseek2-ocr"},
    {"deepseek32"},
    {"deepseek4"},
    {"dflash"},
    {"dots1"},
    {"dots3note", 10593},
    {"dream"},
    {"eagle3"},
    {"ernie4_5"},
    {"ernie4_5-moe"},
    {"eurobert"},
    {"exaone"},
    {"exaone-moe"},
    {"exaone4"},
    {"falcon"},
    {"falcon-h1"},
    {"gemma"},
    {"gemma-embedding"},
    {"gemma-embedding2", 11549},
    {"gemma2"},
    {"gemma3"},
    {"gemma3n"},
    {"gemma4"},
    {"gemma4-assistant"},
    {"glm-dsa"},
    {"glm4"},
    {"glm4moe"},
    {"glm5-next", 11292},
    {"gpt-oss"},
    {"gpt2"},
    {"gptj"},
    {"gptneox"},
    {"granite"},
    {"granite_swa", 10531},
    {"granitehybrid"},
    {"granitemoe"},
    {"graniteswitch"},
    {"grok"},
    {"grovemoe"},
    {"hrm_text", 11028},
    {"hunyuan-dense"},
    {"hunyuan-moe"},
    {"hunyuan_vl"},
    {"hy_v3"},
    {"hy_v4", 10816},
    {"internlm2"},
    {"jais"},
    {"jais2"},
    {"jamba"},
    {"jina-bert-v2"},
    {"jina-bert-v3"},
    {"k2-horizon", 11549},
    {"kimi-k3"},
    {"kimi-linear"},
    {"laguna"},
    {"lfm2"},
    {"lfm2moe"},
    {"llada"},
    {"llada-moe"},
    {"llama"},
    {"llama-embed"},
    {"llama4"},
    {"maincoder"},
    {"mamba"},
    {"mamba2"},
    {"maple", 11028},
    {"mellum"},
    {"mimo2"},
    {"minicpm"},
    {"minicpm3"},
    {"minimax-01"},
    {"minimax-m2"},
    {"minimax-m3"},
    {"mistral3"},
    {"mistral4"},
    {"modern-bert"},
    {"mpt"},
    {"muse-glimmer"},
    {"nanbeige"},
    {"nemotron"},
    {"nemotron_h"},
    {"nemotron_h_moe"},
    {"neo-bert"},
    {"nomic-bert"},
    {"nomic-bert-moe"},
    {"olmo"},
    {"olmo2"},
    {"olmoe"},
    {"openelm"},
    {"orion"},
    {"paddleocr"},
    {"pangu-embedded"},
    {"phi2"},
    {"phi3"},
    {"phimoe"},
    {"plamo"},
    {"plamo2"},
    {"plamo3"},
    {"plm"},
    {"pockettts"},
    {"qwen"},
    {"qwen2"},
    {"qwen2moe"},
    {"qwen2vl"},
    {"qwen3"},
    {"qwen35"},
    {"qwen35moe"},
    {"qwen3moe"},
    {"qwen3next"},
    {"qwen3tts"},
    {"qwen3vl"},
    {"qwen3vlmoe"},
    {"qwen4exp", 10662},
    {"refact"},
    {"rnd1"},
    {"rwkv6"},
    {"rwkv6qwen2"},
    {"rwkv7"},
    {"seed_oss"},
    {"smallthinker"},
    {"smollm3"},
    {"spark2_5", 10830},
    {"stablelm"},
    {"starcoder"},
    {"starcoder2"},
    {"step35"},
    {"t5"},
    {"t5encoder"},
    {"talkie"},
    {"wavtokenizer-dec"},
    {"xverse"},
    {NULL},
};

/* Reports whether the chosen build knows an architecture. */
static bool is_known(const char *name, const struct references *references)
{
    for (size_t i = 0; architectures[i].name != NULL; i++)
        if (strcmp(architectures[i].name, name) == 0)
            return reference_build(references) >= architectures[i].since;
    return false;
}

bool quantize_takes(const struct gguf_edition *edition, struct error *error)
{
    const struct gguf_model *model = edition->model;
    struct arena *arena = arena_new();
    struct gguf_kvs edited = {0};
    if (!gguf_edits_are_none(edition->edits)) {
        edited = gguf_kvs_copy(&model->kvs);
        gguf_edit(&edited, edition->edits, 0);
    }
    const char *name = gguf_get_text(edited.n_kvs > 0 ? &edited : &model->kvs, "general.architecture", arena);
    bool known = name != NULL && is_known(name, &model->references);
    if (name == NULL)
        error_set(error, "the source has no general.architecture");
    else if (!known)
        error_set(error, "llama-quantize of llama.cpp b%u does not know the architecture '%.64s'",
                  reference_build(&model->references), name);
    gguf_kvs_free(&edited);
    arena_free(arena);
    return known;
}
