#include "models/family/tensors.h"

#include "base/text.h"
#include "models/relation/pattern.h"

#include <string.h>

/* Tensors that the layers share with the model. */
static const char *const shared[] = {
    "model.embed_tokens.weight",
    "model.norm.weight",
    "lm_head.weight",
    "model.word_embeddings.weight",
    "backbone.embeddings.weight",
    "backbone.norm_f.weight",
    "embed.weight",
    "norm.weight",
    "head.weight",
    "hc_head_fn",
    "hc_head_base",
    "hc_head_scale",
};

uint64_t part_layer_of(const char *name)
{
    static const char layers[] = "layers.";
    uint64_t numbers[PATTERN_NUMBERS];
    const char *at = strstr(name, layers);
    const char *number = at != NULL ? at + strlen(layers) : "";
    size_t digits = strspn(number, "0123456789");
    return number[digits] == '.' && pattern_match("{}", number, digits, numbers) ? numbers[0] : UINT64_MAX;
}

static bool is_shared(const char *name)
{
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        if (strcmp(shared[i], name) == 0)
            return true;
    return false;
}

bool part_has(const struct model_builder *builder, const char *name)
{
    const struct dimensions *dimensions = &builder->dimensions;
    uint64_t layer = part_layer_of(name), first = dimensions->n_layers - dimensions_get(dimensions, "nextn");
    bool predicts = text_starts_with(name, "mtp.") || text_starts_with(name, "model.mtp.") ||
                    (layer >= first && layer != UINT64_MAX);
    switch (builder->model->part) {
    case PART_WITHOUT_MTP:
        return !predicts;
    case PART_MTP:
        return predicts || is_shared(name);
    default:
        return true;
    }
}

bool part_is_offered(const struct family *family, const struct family_name *hf, const struct references *references)
{
    return family->exports_mtp && !hf->without_mtp && follows(references, family->mtp_since);
}
