#include "models/diffusion/gguf.h"

#include "base/text.h"
#include "models/convert/edits.h"

#include <inttypes.h>
#include <string.h>

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Parts of the names of tensors that no model has quantized. */
static const char *const never_quantized[] = {
    "_norm.weight",
    "ffn_gate_inp.weight",
    "ssm_conv1d.weight",
    "time_mix_first.weight",
    "time_mix_w1.weight",
    "time_mix_w2.weight",
    "time_mix_decay_w1.weight",
    "time_mix_decay_w2.weight",
    "attn_rel_b.weight",
    NULL,
};

/* Names of language models, whose layers the tool would count. */
static const char *const counted[] = {"attn_v.weight", "attn_qkv.weight", "attn_kv_b.weight", NULL};

/* Names of other files, at which the tool stops when it is to quantize such a tensor to blocks. */
static const char *const foreign[] = {"model.diffusion_model.", "first_stage_model.", "single_transformer_blocks.",
                                      "joint_transformer_blocks.", NULL};

/* The mixes of the tool, and the types of tensors with a role; NULL: the mix's own type. The values of the first
 * `n_first` tensors of attention get `first_values`. */
struct roles {
    const char *mix;
    const char *values, *queries_keys_values, *down;
    const char *first_values;
    unsigned n_first;
    const char *ends; /* in the first and the last block, for architectures that spare both ends */
};

/* clang-format off */
static const struct roles roles_of_mixes[] = {
    {"F32"}, {"F16"}, {"BF16"}, {"Q8_0"}, {"Q4_1"}, {"Q5_1"}, {"Q6_K"}, {"Q5_K_S"},
    {"Q2_K",   .values = "Q3_K", .ends = "Q4_K"},
    {"Q3_K_S", .ends = "Q4_K"},
    {"Q3_K_M", .values = "Q4_K", .queries_keys_values = "Q4_K", .down = "Q4_K", .first_values = "Q5_K", .n_first = 2,
               .ends = "Q4_K"},
    {"Q3_K_L", .values = "Q5_K", .queries_keys_values = "Q4_K", .down = "Q5_K", .ends = "Q4_K"},
    {"Q4_K_S", .down = "Q5_K", .first_values = "Q5_K", .n_first = 4},
    {"Q4_K_M", .values = "Q6_K", .queries_keys_values = "Q5_K", .down = "Q6_K", .ends = "Q5_K"},
    {"Q5_K_M", .values = "Q6_K", .queries_keys_values = "Q6_K", .down = "Q6_K", .ends = "Q6_K"},
    {"Q4_0",   .down = "Q4_1"},
    {"Q5_0",   .down = "Q5_1"},
};
/* clang-format on */

static const char *const value_names[] = {
    "attn_v.weight",    ".to_v.weight",       ".v.weight",           ".attn.w1v.weight",
    ".attn.w2v.weight", ".add_v_proj.weight", "_attn.v_proj.weight", NULL,
};
static const char *const joined_names[] = {"attn_qkv.weight", "attn.qkv.weight", "attention.qkv.weight", NULL};
static const char *const down_names[] = {
    "ffn_down",
    ".ffn.2.weight",
    ".ff.net.2.weight",
    ".mlp.layer2.weight",
    ".adaln_modulation_mlp.2.weight",
    ".feed_forward.w2.weight",
    ".img_mlp.net.2.weight",
    ".txt_mlp.net.2.weight",
    NULL,
};
static const char *const end_blocks[] = {"transformer_blocks.0.", "transformer_blocks.59.", NULL};

static const struct roles *roles_of(const char *mix)
{
    for (size_t i = 0; i < sizeof roles_of_mixes / sizeof *roles_of_mixes; i++)
        if (strcmp(roles_of_mixes[i].mix, mix) == 0)
            return &roles_of_mixes[i];
    return NULL;
}

bool diffusion_has_mix(const char *name)
{
    return roles_of(name) != NULL;
}

/* Returns the number of leading dimensions of 1, but at least one dimension stays. */
static unsigned leading_ones(const struct tensor *tensor)
{
    unsigned n = 0;
    while (n + 1 < tensor->rank && tensor->shape[n] == 1)
        n++;
    return n;
}

/* Reports whether a name ends in "weight", as the tool finds out: for names of five letters its difference of unsigned
 * numbers equals the value for "not found". */
static bool is_weight(const struct tensor *tensor)
{
    return text_ends_with(tensor->name, "weight") || tensor->name_length == strlen("weight") - 1;
}

static bool is_quantized(const struct diffusion_architecture *architecture, const struct tensor *tensor)
{
    return tensor->rank < DIFFUSION_VIDEO_RANK && tensor->rank - leading_ones(tensor) == 2 && is_weight(tensor) &&
           !diffusion_name_matches(never_quantized, tensor->name) &&
           !diffusion_name_matches(architecture->kept, tensor->name);
}

static bool is_down(const char *name)
{
    return diffusion_name_matches(down_names, name) ||
           (strstr(name, "experts.") != NULL && strstr(name, ".w2.weight") != NULL);
}

/* Returns the type that the rules give to a quantized tensor; *n_values counts the values of attention before it. */
static const char *type_by_role(const struct roles *roles, const struct diffusion_architecture *architecture,
                                const char *name, unsigned *n_values)
{
    const char *type = NULL;
    if (diffusion_name_matches(value_names, name))
        type = (*n_values)++ < roles->n_first ? roles->first_values : roles->values;
    else if (diffusion_name_matches(joined_names, name))
        type = roles->queries_keys_values;
    else if (is_down(name))
        type = roles->down;
    if (architecture->spares_both_ends && roles->ends != NULL && diffusion_name_matches(end_blocks, name))
        type = roles->ends;
    return type;
}

/* Chooses the type of a quantized tensor. */
static bool choose_type(const struct tensor *tensor, const struct dtype *type, const struct dtype **ret_type,
                        struct error *error)
{
    bool is_float = tensor->dtype == &f32_dtype || tensor->dtype == &f16_dtype || tensor->dtype == &bf16_dtype;
    uint64_t row = tensor->shape[tensor->rank - 1];
    if (type->block_elements == 256 && row % 256 != 0)
        type = &f16_dtype;
    if (row % type->block_elements != 0)
        return error_set(error,
                         "tensor '%.200s': a row of %" PRIu64 " elements is not a multiple of %u, as %s needs it",
                         tensor->name, row, type->block_elements, type->name);
    if (type != tensor->dtype && !is_float)
        return error_set(error,
                         "tensor '%.200s' is already %s, and ComfyUI-GGUF's llama-quantize takes F32, F16 and "
                         "BF16 only; make this file from the original model",
                         tensor->name, tensor->dtype->name);
    *ret_type = type;
    return true;
}

/* Returns the tensor with the dimensions that the tool writes, in the arena. */
static const struct tensor *with_written_rank(const struct diffusion_architecture *architecture,
                                              const struct tensor *tensor, struct arena *arena)
{
    unsigned n_ones = leading_ones(tensor), rank = tensor->rank - n_ones;
    if (tensor->rank >= DIFFUSION_VIDEO_RANK)
        return tensor;
    for (const struct diffusion_rank *row = architecture->ranks; row != NULL && row->part != NULL; row++)
        if (diffusion_name_matches(LIST(row->part), tensor->name) && rank < row->rank)
            rank = row->rank;
    if (rank == tensor->rank)
        return tensor;
    struct tensor *written = arena_copy(arena, tensor, sizeof *tensor);
    uint64_t *shape = arena_array(arena, rank, sizeof *shape);
    for (unsigned i = 0; i < rank; i++)
        shape[i] = i + tensor->rank < rank ? 1 : tensor->shape[i + tensor->rank - rank];
    written->rank = (uint8_t)rank;
    written->shape = shape;
    return written;
}

/* Checks what stops the tool before it writes anything. */
static bool tool_accepts(const struct gguf_model *model, const struct diffusion_architecture *architecture,
                         struct error *error)
{
    for (size_t i = 0; i < model->tensors->n_tensors; i++) {
        const struct tensor *tensor = &model->tensors->tensors[i];
        if (tensor->rank == 0)
            return error_set(error, "tensor '%.200s' has no dimensions, at which ComfyUI-GGUF's llama-quantize stops",
                             tensor->name);
        if (!architecture->names_attention_v && diffusion_name_matches(counted, tensor->name))
            return error_set(error,
                             "tensor '%.200s' has a name of language models, at which ComfyUI-GGUF's "
                             "llama-quantize stops",
                             tensor->name);
    }
    return true;
}

static bool fill_tensors(const struct gguf_model *model, const struct diffusion_architecture *architecture,
                         const struct roles *roles, const struct mix *mix, struct artifact *artifact,
                         struct error *error)
{
    const struct tensor_set *set = model->tensors;
    unsigned n_values = 0;
    artifact_reserve(artifact, set->n_tensors);
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        const struct dtype *type = tensor->dtype;
        if (is_quantized(architecture, tensor)) {
            const char *special = type_by_role(roles, architecture, tensor->name, &n_values);
            const struct dtype *wanted = dtype_by_name(special != NULL ? special : mix->default_type);
            if (wanted->kind == DTYPE_BLOCK && diffusion_name_matches(foreign, tensor->name))
                return error_set(error, "tensor '%.200s' has a name that ComfyUI-GGUF's llama-quantize refuses",
                                 tensor->name);
            if (!choose_type(tensor, wanted, &type, error))
                return false;
        }
        artifact->tensors[i] =
            (struct artifact_tensor){with_written_rank(architecture, tensor, artifact->arena), encoding_of(type)};
    }
    return true;
}

bool diffusion_quantize(const struct gguf_edition *edition, const struct mix *mix, struct artifact *ret_artifact,
                        struct error *error)
{
    const struct gguf_model *model = edition->model;
    const struct diffusion_architecture *architecture = diffusion_architecture_of_model(model);
    const struct roles *roles = roles_of(mix->name);
    if (!tool_accepts(model, architecture, error))
        return false;
    struct artifact artifact = {.container = &gguf_container, .arena = arena_new()};
    artifact.metadata = gguf_kvs_copy(&model->kvs);
    gguf_set_u32(&artifact.metadata, "general.quantization_version", 2);
    gguf_set_u32(&artifact.metadata, "general.file_type", mix->file_type);
    gguf_edit(&artifact.metadata, edition->edits, 0);
    bool made = fill_tensors(model, architecture, roles, mix, &artifact, error);
    if (made)
        *ret_artifact = artifact;
    else
        artifact_free(&artifact);
    return made;
}
