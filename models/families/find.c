#include "models/families/families.h"

#include <string.h>

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
