#include "models/families/families.h"

const struct family *family_find(const struct hparams *hparams, const struct family_name **ret_name)
{
    return family_among(families, hparams_class(hparams), hparams, ret_name);
}
