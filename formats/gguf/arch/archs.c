#include "formats/gguf/arch/arch.h"

#include <string.h>

extern const struct arch llama_arch;

/* clang-format off: one row a line */
const struct arch *const archs[] = {
    &llama_arch,
    NULL,
};
/* clang-format on */

const struct arch *arch_find(const char *hf_architecture, const struct arch_name **ret_name)
{
    for (const struct arch *const *arch = archs; *arch != NULL; arch++)
        for (const struct arch_name *hf = (*arch)->hf; hf->name != NULL; hf++)
            if (strcmp(hf->name, hf_architecture) == 0) {
                *ret_name = hf;
                return *arch;
            }
    return NULL;
}

const char *arch_architecture(const struct arch *arch)
{
    return arch->architecture != NULL ? arch->architecture : arch->name;
}
