/* model.gguf and gguf/ of a diffusion model: the files that ComfyUI-GGUF's converter and llama-quantize would write. */
#include "models/diffusion/gguf.h"
#include "models/diffusion/state_dict.h"
#include "products/gguf/target_list.h"

static const void *make_model(const struct product_input *input, struct arena *arena, struct error *error)
{
    return gguf_edition_new(arena, diffusion_model_new(input->checkpoint, error), &input->request->edits, NULL);
}

/* Reports whether an option asks for something that ComfyUI-GGUF's llama-quantize is never asked for. */
static bool asks_llama_quantize(const struct request *request)
{
    const struct quantize_options *options = &request->quantize;
    return options->imatrix != NULL || options->pure || options->leave_output_tensor || options->tensor_types != NULL ||
           options->token_embedding_type != NULL || options->output_tensor_type != NULL || options->keep_split ||
           options->pruned.n_layers > 0 || options->q4_0_rule != NULL || request->split.max_bytes != 0 ||
           request->split.max_tensors != 0;
}

static bool is_offered(const struct product_input *input, struct product_list *hints)
{
    return state_dict_of(input->checkpoint) != NULL;
}

static bool list_files(const struct product_input *input, const void *made, const void *variant,
                       struct product_list *list, struct error *error)
{
    target_list_add_all(list, OF_DIFFUSION_MODEL, NULL);
    if (asks_llama_quantize(input->request))
        checkpoint_note(input->checkpoint, SUBJECT_QUANTIZED,
                        "the options of llama-quantize and split= have no effect on a diffusion model");
    product_hint(list, "gguf/model-*.gguf", "ComfyUI-GGUF's llama-quantize does not write this type");
    return true;
}

static const char *left_out(const struct product_input *input)
{
    return "model.gguf and gguf/ are left out";
}

const struct product diffusion_gguf_product = {
    .name = "diffusion-gguf",
    .summary = "for a diffusion model: model.gguf and gguf/ as ComfyUI-GGUF's tools write them",
    .is_offered = is_offered,
    .make = make_model,
    .files = list_files,
    .left_out = left_out,
};
