/* mtp-model.gguf and gguf/mtp-model-*.gguf: the converter's --mtp output for a model with layers of multi-token
 * prediction, which llama.cpp takes as a draft model, and what llama-quantize makes of it. */
#include "products/gguf/target_list.h"

#include "models/convert/model.h"
#include "models/quantize/mix.h"

static const void *make_model(const struct product_input *input, struct arena *arena, struct error *error)
{
    const struct request *request = input->request;
    struct gguf_model *model = gguf_model_new_mtp(input->checkpoint, &request->references, error);
    const struct quantize_outline *outline = model != NULL ? quantize_outline_of(model, arena) : NULL;
    return gguf_edition_new(arena, model, &request->edits, outline);
}

static bool is_offered(const struct product_input *input, struct product_list *hints)
{
    if (gguf_has_mtp(input->checkpoint, &input->request->references))
        return true;
    product_hint(hints, "mtp-model.gguf",
                 "the model has no layers of multi-token prediction (MTP) that the converter writes alone");
    return false;
}

static void add_mixes(struct product_list *list)
{
    for (const struct mix *mix = mixes; mix->name != NULL; mix++) {
        struct target *target = arena_alloc(list->arena, sizeof *target);
        *target = (struct target){arena_printf(list->arena, "gguf/mtp-model-%s.gguf", mix->name), OF_MTP,
                                  target_quantize, mix->name};
        target_list_add(list, target);
    }
}

static bool list_files(const struct product_input *input, const void *made, const void *variant,
                       struct product_list *list, struct error *error)
{
    target_list_add_all(list, OF_MTP, NULL);
    add_mixes(list);
    return true;
}

static const char *left_out(const struct product_input *input)
{
    return "mtp-model.gguf and gguf/mtp-model-* are left out";
}

const struct product mtp_product = {
    .name = "mtp",
    .summary = "for models with multi-token prediction: mtp-model.gguf, gguf/mtp-model-*.gguf",
    .is_offered = is_offered,
    .make = make_model,
    .files = list_files,
    .left_out = left_out,
};
