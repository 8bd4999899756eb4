#include "models/families/families.h"

const struct family *family_find(const struct hparams *hparams, const struct references *references,
                                 const struct family_name **ret_name)
{
    const struct family *family = family_among(families, hparams_class(hparams), hparams, ret_name);
    return family != NULL && family_is_known(family, *ret_name, references) ? family : NULL;
}
