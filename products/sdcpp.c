/* sdcpp/model-TYPE.gguf: a checkpoint as `sd-cli -M convert` of stable-diffusion.cpp writes it: a GGUF without keys,
 * with all tensors under their own names, by name.
 *
 * Every tensor gets the wanted type, vectors too, unless its rows are not whole blocks or its name is among those that
 * the tool leaves alone. Blocks are quantized with an importance of one for every column. Source: src/model_loader.cpp,
 * src/convert.cpp and src/model_io/safetensors_io.cpp of stable-diffusion.cpp. */
#include "products/product.h"

#include "base/text.h"
#include "formats/gguf/write.h"
#include "models/diffusion/architecture.h"
#include "models/diffusion/state_dict.h"
#include "models/facts.h"
#include "models/packings/packings.h"
#include "quant/views/convert.h"
#include "quant/views/unpack.h"

#include <string.h>

enum { MOST_DIMENSIONS = 5, WRITTEN_DIMENSIONS = 4 };

/* The offered types, as the tool spells them. */
static const struct type {
    const char *path, *dtype;
} types[] = {
    {"model-f32.gguf", "F32"},   {"model-f16.gguf", "F16"},   {"model-bf16.gguf", "BF16"}, {"model-q8_0.gguf", "Q8_0"},
    {"model-q5_1.gguf", "Q5_1"}, {"model-q5_0.gguf", "Q5_0"}, {"model-q4_1.gguf", "Q4_1"}, {"model-q4_0.gguf", "Q4_0"},
    {"model-q6_K.gguf", "Q6_K"}, {"model-q5_K.gguf", "Q5_K"}, {"model-q4_K.gguf", "Q4_K"}, {"model-q3_K.gguf", "Q3_K"},
    {"model-q2_K.gguf", "Q2_K"},
};

/* Beginnings of the names of tensors that are left out. */
static const char *const unused[] = {
    "betas",
    "alphas_cumprod_prev",
    "sqrt_alphas_cumprod",
    "sqrt_one_minus_alphas_cumprod",
    "log_one_minus_alphas_cumprod",
    "sqrt_recip_alphas_cumprod",
    "sqrt_recipm1_alphas_cumprod",
    "posterior_variance",
    "posterior_log_variance_clipped",
    "posterior_mean_coef1",
    "posterior_mean_coef2",
    "cond_stage_model.transformer.text_model.embeddings.position_ids",
    "cond_stage_model.1.model.text_model.embeddings.position_ids",
    "cond_stage_model.transformer.vision_model.embeddings.position_ids",
    "cond_stage_model.model.logit_scale",
    "conditioner.embedders.0.transformer.text_model.embeddings.position_ids",
    "conditioner.embedders.0.model.logit_scale",
    "conditioner.embedders.1.model.logit_scale",
    "model.diffusion_model.time_embedding.cond_proj.weight",
    "unet.time_embedding.cond_proj.weight",
    "model_ema.decay",
    "model_ema.num_updates",
    "model_ema.diffusion_model",
    "embedding_manager",
    "denoiser.sigmas",
    "text_encoders.t5xxl.transformer.encoder.embed_tokens.weight",
    "ztsnr",
    "edm_vpred.sigma_min",
    "text_encoders.llm.output.weight",
    "text_encoders.llm.lm_head.",
};

/* Parts and endings of the names of tensors that keep their types. */
static const char *const kept_parts[] = {
    "img_in.",           "txt_in.",     "time_in.",    "vector_in.",  "guidance_in.",
    "final_layer.",      "x_embedder.", "t_embedder.", "y_embedder.", "pos_embed",
    "context_embedder.", "time_embed.", "label_emb.",  "embedding",   NULL,
};
static const char *const kept_endings[] = {".bias", ".scale", ".weight_scale"};

/* The types that the tool reads, and those that it reads them as. */
static const struct {
    const char *stored, *read;
} read_types[] = {
    {"F32", "F32"},     {"F16", "F16"}, {"BF16", "BF16"}, {"F64", "F32"}, {"F8_E4M3", "F16"},
    {"F8_E5M2", "F16"}, {"I32", "I32"}, {"I64", "I32"},   {"I8", "I8"},
};

static bool is_unused(const char *name)
{
    for (size_t i = 0; i < sizeof unused / sizeof *unused; i++)
        if (text_starts_with(name, unused[i]))
            return true;
    return false;
}

static bool is_kept(const char *name)
{
    for (size_t i = 0; i < sizeof kept_endings / sizeof *kept_endings; i++)
        if (text_ends_with(name, kept_endings[i]))
            return true;
    return diffusion_name_matches(kept_parts, name);
}

static const struct dtype *read_type(const struct dtype *stored)
{
    for (size_t i = 0; i < sizeof read_types / sizeof *read_types; i++)
        if (strcmp(read_types[i].stored, stored->name) == 0)
            return dtype_by_name(read_types[i].read);
    return NULL;
}

/* Returns the lower halves of I64. */
static const struct view *lower_halves(struct arena *arena, const struct view *view)
{
    const struct view *halves = view_reinterpret(arena, view, &i32_dtype);
    return view_slice(arena, halves, halves->rank - 1, 0, view_row_elements(view), 2);
}

/* Returns the values as rows in the type that the tool reads them as; NULL, with the reason, if it does not. */
static const struct view *read_rows(const struct tensor *tensor, struct arena *arena, struct error *error)
{
    const struct dtype *type = read_type(tensor->dtype);
    if (tensor->refusal != NULL || type == NULL || tensor->rank > MOST_DIMENSIONS) {
        error_set(error, "tensor '%.200s' (%s, %u dimensions): stable-diffusion.cpp does not read it", tensor->name,
                  tensor->dtype->name, tensor->rank);
        return NULL;
    }
    const struct view *view = tensor_view(tensor, arena);
    uint64_t row = view_row_elements(view);
    view = strcmp(tensor->dtype->name, "I64") == 0 ? lower_halves(arena, view) : view_convert(arena, view, type);
    return view_reshape(arena, view, 2, (const uint64_t[]){row != 0 ? view->n_elements / row : 0, row});
}

/* Sets the shape of the file: a fifth dimension is folded into the fourth, and a scalar is a vector. */
static void set_shape(struct tensor *written, const struct tensor *tensor, struct arena *arena)
{
    uint64_t *shape = arena_array(arena, tensor->rank + 1u, sizeof *shape);
    memcpy(shape, tensor->shape, tensor->rank * sizeof *shape);
    written->rank = tensor->rank;
    if (tensor->rank == 0)
        shape[written->rank++] = 1;
    if (tensor->rank == MOST_DIMENSIONS) {
        shape[1] *= shape[0];
        memmove(shape, shape + 1, WRITTEN_DIMENSIONS * sizeof *shape);
        written->rank = WRITTEN_DIMENSIONS;
    }
    written->shape = shape;
}

/* Makes a tensor of the file. `ones` has an element for each column. */
static bool write_tensor(const struct tensor *tensor, const struct dtype *wanted, const float *ones,
                         struct arena *arena, struct artifact_tensor *ret_written, struct error *error)
{
    const struct view *rows = read_rows(tensor, arena, error);
    if (rows == NULL)
        return false;
    struct tensor *written = arena_alloc(arena, sizeof *written);
    const struct dtype *type =
        rows->shape[1] % wanted->block_elements != 0 || is_kept(tensor->name) ? rows->dtype : wanted;
    if (type != rows->dtype && rows->dtype->kind == DTYPE_INTEGER)
        return error_set(error, "tensor '%.200s' is %s, which stable-diffusion.cpp does not convert", tensor->name,
                         tensor->dtype->name);
    *written = tensor_of_view(tensor->name, rows);
    set_shape(written, tensor, arena);
    *ret_written = (struct artifact_tensor){written, encoding_of(type)};
    if (type->kind == DTYPE_BLOCK)
        ret_written->encoding.importance = ones;
    return true;
}

static const float *ones_for(const struct tensor_set *set, struct arena *arena)
{
    uint64_t most = 1;
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        if (tensor_elements(tensor) > 0 && tensor->rank > 0 && tensor->shape[tensor->rank - 1] > most)
            most = tensor->shape[tensor->rank - 1];
    }
    float *ones = arena_array(arena, most, sizeof *ones);
    for (uint64_t i = 0; i < most; i++)
        ones[i] = 1;
    return ones;
}

static enum outcome make(const struct product_input *input, const void *made, const void *what, struct arena *arena,
                         struct artifact *ret_artifact, struct error *error)
{
    const struct type *type = what;
    const struct plain_tensors *plain = packings_plain(input->checkpoint);
    if (plain->set == NULL) {
        error_set(error, "%s", plain->refusal);
        return REPORTED;
    }
    const struct tensor_set *set = plain->set;
    const float *ones = ones_for(set, arena);
    struct artifact artifact = {.container = &ggml_container};
    artifact_reserve(&artifact, set->n_tensors);
    artifact.n_tensors = 0;
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[set->by_name[i]];
        if (is_unused(tensor->name) || tensor->dtype == &u8_dtype)
            continue;
        if (!write_tensor(tensor, dtype_by_name(type->dtype), ones, arena, &artifact.tensors[artifact.n_tensors++],
                          error)) {
            artifact_free(&artifact);
            return REPORTED;
        }
    }
    *ret_artifact = artifact;
    return OK;
}

/* Reports whether the tool reads the checkpoint's files in a way that is followed here: safetensors. */
static bool is_read(const struct checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->n_sources; i++)
        if (!text_ends_with(source_name(checkpoint->sources[i]), ".safetensors"))
            return false;
    return facts_of(checkpoint).has_class_names && checkpoint->n_sources > 0;
}

static bool is_offered(const struct product_input *input, struct product_list *hints)
{
    return is_read(input->checkpoint) && state_dict_of(input->checkpoint) != NULL;
}

static bool list_files(const struct product_input *input, const void *made, const void *variant,
                       struct product_list *list, struct error *error)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        product_add(list, (struct product_file){.path = types[i].path, .make = make, .what = &types[i]});
    return true;
}

const struct product sdcpp_product = {
    .name = "sdcpp",
    .summary = "sdcpp/: a diffusion model in the GGUF files of stable-diffusion.cpp",
    .root = "sdcpp",
    .is_offered = is_offered,
    .files = list_files,
};
