#include "formats/gguf/arch/arch.h"

#include <string.h>

extern const struct arch arcee_arch;
extern const struct arch bert_arch;
extern const struct arch bloom_arch;
extern const struct arch command_r_arch;
extern const struct arch deepseek2_arch;
extern const struct arch falcon_arch;
extern const struct arch gemma_arch;
extern const struct arch gemma2_arch;
extern const struct arch gemma3_arch;
extern const struct arch gpt2_arch;
extern const struct arch gpt_oss_arch;
extern const struct arch gptneox_arch;
extern const struct arch granite_arch;
extern const struct arch granitemoe_arch;
extern const struct arch llama_arch;
extern const struct arch mamba_arch;
extern const struct arch mpt_arch;
extern const struct arch nomic_bert_arch;
extern const struct arch nomic_bert_moe_arch;
extern const struct arch olmo_arch;
extern const struct arch olmo2_arch;
extern const struct arch olmoe_arch;
extern const struct arch phi2_arch;
extern const struct arch phi3_arch;
extern const struct arch qwen2_arch;
extern const struct arch qwen2moe_arch;
extern const struct arch qwen3_arch;
extern const struct arch qwen3moe_arch;
extern const struct arch roberta_arch;
extern const struct arch smollm3_arch;
extern const struct arch stablelm_arch;
extern const struct arch starcoder_arch;
extern const struct arch starcoder2_arch;
extern const struct arch t5_arch;
extern const struct arch t5encoder_arch;
extern const struct arch xlm_roberta_arch;

/* clang-format off: one row a line */
const struct arch *const archs[] = {
    &arcee_arch,       &bert_arch,    &bloom_arch,    &command_r_arch,  &deepseek2_arch,      &falcon_arch,  &gemma_arch,
    &gemma2_arch,      &gemma3_arch,  &gpt2_arch,     &gpt_oss_arch,    &gptneox_arch,        &granite_arch, &granitemoe_arch,
    &llama_arch,       &mamba_arch,   &mpt_arch,      &nomic_bert_arch, &nomic_bert_moe_arch, &olmo_arch,    &olmo2_arch,
    &olmoe_arch,       &phi2_arch,    &phi3_arch,     &qwen2_arch,      &qwen2moe_arch,       &qwen3_arch,   &qwen3moe_arch,
    &roberta_arch,     &smollm3_arch, &stablelm_arch, &starcoder_arch,  &starcoder2_arch,     &t5_arch,      &t5encoder_arch,
    &xlm_roberta_arch, NULL,
};
/* clang-format on */

const struct arch *arch_find(const struct hparams *hparams, const struct arch_name **ret_name)
{
    const char *architecture = hparams_architecture(hparams);
    if (architecture == NULL)
        return NULL;
    for (const struct arch *const *arch = archs; *arch != NULL; arch++)
        for (const struct arch_name *hf = (*arch)->hf; hf->name != NULL; hf++)
            if (strcmp(hf->name, architecture) == 0 && ((*arch)->applies == NULL || (*arch)->applies(hparams))) {
                *ret_name = hf;
                return *arch;
            }
    return NULL;
}

const char *arch_architecture(const struct arch *arch)
{
    return arch->architecture != NULL ? arch->architecture : arch->name;
}
