#include "models/families/family.h"

#include <string.h>

extern const struct family afmoe_family;
extern const struct family apertus_family;
extern const struct family arcee_family;
extern const struct family arctic_family;
extern const struct family arwkv7_family;
extern const struct family baichuan_family;
extern const struct family bailingmoe_family;
extern const struct family bailingmoe2_family;
extern const struct family bailingmoe3_family;
extern const struct family bert_family;
extern const struct family bitnet_family;
extern const struct family bloom_family;
extern const struct family chameleon_family;
extern const struct family chatglm_family;
extern const struct family codeshell_family;
extern const struct family cogvlm_family;
extern const struct family cohere2_family;
extern const struct family cohere2moe_family;
extern const struct family command_r_family;
extern const struct family dbrx_family;
extern const struct family deci_family;
extern const struct family deepseek_family;
extern const struct family deepseek2_family;
extern const struct family deepseek2_ocr_family;
extern const struct family deepseek32_family;
extern const struct family deepseek4_family;
extern const struct family dflash_family;
extern const struct family distilbert_family;
extern const struct family dots1_family;
extern const struct family dream_family;
extern const struct family eagle3_family;
extern const struct family ernie4_5_family;
extern const struct family ernie4_5_moe_family;
extern const struct family eurobert_family;
extern const struct family exaone_family;
extern const struct family exaone4_family;
extern const struct family exaone_moe_family;
extern const struct family falcon_family;
extern const struct family falcon_h1_family;
extern const struct family gemma_family;
extern const struct family gemma2_family;
extern const struct family gemma3_family;
extern const struct family gemma3n_family;
extern const struct family gemma4_family;
extern const struct family gemma4_assistant_family;
extern const struct family gemma_embedding_family;
extern const struct family glm4_family;
extern const struct family glm4moe_family;
extern const struct family glm4moelite_family;
extern const struct family glm_dsa_family;
extern const struct family gpt2_family;
extern const struct family gpt_oss_family;
extern const struct family gptneox_family;
extern const struct family granite_family;
extern const struct family granite_switch_family;
extern const struct family granite4_family;
extern const struct family granite4moe_family;
extern const struct family granitehybrid_family;
extern const struct family granitemoe_family;
extern const struct family grok_family;
extern const struct family grovemoe_family;
extern const struct family hunyuan_dense_family;
extern const struct family hunyuan_moe_family;
extern const struct family hunyuan_vl_family;
extern const struct family hy_v3_family;
extern const struct family internlm2_family;
extern const struct family internlm3_family;
extern const struct family jais2_family;
extern const struct family jais_family;
extern const struct family jamba_family;
extern const struct family jina_bert_v2_family;
extern const struct family jina_bert_v3_family;
extern const struct family kimi_k3_family;
extern const struct family kimi_linear_family;
extern const struct family laguna_family;
extern const struct family lfm2_family;
extern const struct family lfm2_embed_family;
extern const struct family lfm2_audio_family;
extern const struct family lfm2moe_family;
extern const struct family llada_family;
extern const struct family llada_moe_family;
extern const struct family llama_family;
extern const struct family llama4_family;
extern const struct family llama_embed_family;
extern const struct family maincoder_family;
extern const struct family mamba_family;
extern const struct family mamba2_family;
extern const struct family mellum_family;
extern const struct family mimo2_family;
extern const struct family minicpm_family;
extern const struct family minicpm3_family;
extern const struct family minimax_m2_family;
extern const struct family minimax_m3_family;
extern const struct family mistral3_family;
extern const struct family mistral4_family;
extern const struct family mistral_llama_family;
extern const struct family mistral_scaled_family;
extern const struct family mistral_moe_family;
extern const struct family modern_bert_family;
extern const struct family mpt_family;
extern const struct family muse_glimmer_family;
extern const struct family nanbeige_family;
extern const struct family nemotron_family;
extern const struct family nemotron_h_family;
extern const struct family nemotron_h_moe_family;
extern const struct family neo_bert_family;
extern const struct family nomic_bert_family;
extern const struct family nomic_bert_moe_family;
extern const struct family olmo_family;
extern const struct family olmo2_family;
extern const struct family olmoe_family;
extern const struct family openelm_family;
extern const struct family orion_family;
extern const struct family paddleocr_family;
extern const struct family pangu_embedded_family;
extern const struct family phi2_family;
extern const struct family phi3_family;
extern const struct family phimoe_family;
extern const struct family plamo2_family;
extern const struct family plamo3_family;
extern const struct family plamo_family;
extern const struct family plm_family;
extern const struct family qwen_family;
extern const struct family qwen2_family;
extern const struct family qwen2moe_family;
extern const struct family qwen2vl_family;
extern const struct family fast_dvlm_family;
extern const struct family qwen3_family;
extern const struct family qwen35_family;
extern const struct family qwen35moe_family;
extern const struct family qwen3moe_family;
extern const struct family qwen3next_family;
extern const struct family qwen3vl_family;
extern const struct family qwen3vlmoe_family;
extern const struct family refact_family;
extern const struct family rnd1_family;
extern const struct family roberta_family;
extern const struct family sarvam_family;
extern const struct family rugpt3xl_family;
extern const struct family rwkv6_family;
extern const struct family rwkv6qwen2_family;
extern const struct family rwkv7_family;
extern const struct family seed_oss_family;
extern const struct family smallthinker_family;
extern const struct family smollm3_family;
extern const struct family solar_open_family;
extern const struct family stablelm_family;
extern const struct family starcoder_family;
extern const struct family starcoder2_family;
extern const struct family step35_family;
extern const struct family t5_family;
extern const struct family t5encoder_family;
extern const struct family talkie_family;
extern const struct family wavtokenizer_dec_family;
extern const struct family xlm_roberta_family;
extern const struct family xverse_family;

/* One row a line. */
/* clang-format off */
const struct family *const families[] = {
    &afmoe_family,
    &apertus_family,
    &arcee_family,
    &arctic_family,
    &arwkv7_family,
    &baichuan_family,
    &bailingmoe_family,
    &bailingmoe2_family,
    &bailingmoe3_family,
    &bert_family,
    &bitnet_family,
    &bloom_family,
    &chameleon_family,
    &chatglm_family,
    &codeshell_family,
    &cogvlm_family,
    &cohere2_family,
    &cohere2moe_family,
    &command_r_family,
    &dbrx_family,
    &deci_family,
    &deepseek_family,
    &deepseek2_family,
    &deepseek2_ocr_family,
    &deepseek32_family,
    &deepseek4_family,
    &dflash_family,
    &distilbert_family,
    &dots1_family,
    &dream_family,
    &eagle3_family,
    &ernie4_5_family,
    &ernie4_5_moe_family,
    &eurobert_family,
    &exaone_family,
    &exaone4_family,
    &exaone_moe_family,
    &falcon_family,
    &falcon_h1_family,
    &gemma_family,
    &gemma2_family,
    &gemma3_family,
    &gemma3n_family,
    &gemma4_family,
    &gemma4_assistant_family,
    &gemma_embedding_family,
    &glm4_family,
    &glm4moe_family,
    &glm4moelite_family,
    &glm_dsa_family,
    &gpt2_family,
    &gpt_oss_family,
    &gptneox_family,
    &granite_family,
    &granite_switch_family,
    &granite4_family,
    &granite4moe_family,
    &granitehybrid_family,
    &granitemoe_family,
    &grok_family,
    &grovemoe_family,
    &hunyuan_dense_family,
    &hunyuan_moe_family,
    &hunyuan_vl_family,
    &hy_v3_family,
    &internlm2_family,
    &internlm3_family,
    &jais2_family,
    &jais_family,
    &jamba_family,
    &jina_bert_v2_family,
    &jina_bert_v3_family,
    &kimi_k3_family,
    &kimi_linear_family,
    &laguna_family,
    &lfm2_family,
    &lfm2_embed_family,
    &lfm2_audio_family,
    &lfm2moe_family,
    &llada_family,
    &llada_moe_family,
    &llama_family,
    &llama4_family,
    &llama_embed_family,
    &maincoder_family,
    &mamba_family,
    &mamba2_family,
    &mellum_family,
    &mimo2_family,
    &minicpm_family,
    &minicpm3_family,
    &minimax_m2_family,
    &minimax_m3_family,
    &mistral3_family,
    &mistral4_family,
    &mistral_llama_family,
    &mistral_scaled_family,
    &mistral_moe_family,
    &modern_bert_family,
    &mpt_family,
    &muse_glimmer_family,
    &nanbeige_family,
    &nemotron_family,
    &nemotron_h_family,
    &nemotron_h_moe_family,
    &neo_bert_family,
    &nomic_bert_family,
    &nomic_bert_moe_family,
    &olmo_family,
    &olmo2_family,
    &olmoe_family,
    &openelm_family,
    &orion_family,
    &paddleocr_family,
    &pangu_embedded_family,
    &phi2_family,
    &phi3_family,
    &phimoe_family,
    &plamo2_family,
    &plamo3_family,
    &plamo_family,
    &plm_family,
    &qwen_family,
    &qwen2_family,
    &qwen2moe_family,
    &qwen2vl_family,
    &fast_dvlm_family,
    &qwen3_family,
    &qwen35_family,
    &qwen35moe_family,
    &qwen3moe_family,
    &qwen3next_family,
    &qwen3vl_family,
    &qwen3vlmoe_family,
    &refact_family,
    &rnd1_family,
    &roberta_family,
    &sarvam_family,
    &rugpt3xl_family,
    &rwkv6_family,
    &rwkv6qwen2_family,
    &rwkv7_family,
    &seed_oss_family,
    &smallthinker_family,
    &smollm3_family,
    &solar_open_family,
    &stablelm_family,
    &starcoder_family,
    &starcoder2_family,
    &step35_family,
    &t5_family,
    &t5encoder_family,
    &talkie_family,
    &wavtokenizer_dec_family,
    &xlm_roberta_family,
    &xverse_family,
    NULL,
};
/* clang-format on */

const struct family *family_find(const struct hparams *hparams, const struct family_name **ret_name)
{
    const char *architecture = hparams_architecture(hparams);
    if (architecture == NULL)
        return NULL;
    for (const struct family *const *family = families; *family != NULL; family++)
        for (const struct family_name *hf = (*family)->hf; hf->name != NULL; hf++)
            if (strcmp(hf->name, architecture) == 0 && ((*family)->applies == NULL || (*family)->applies(hparams))) {
                *ret_name = hf;
                return *family;
            }
    return NULL;
}

const char *family_architecture(const struct family *family)
{
    return family->architecture != NULL ? family->architecture : family->name;
}
