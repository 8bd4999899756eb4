/* The GGUF of a diffusion model: what ComfyUI-GGUF's converter makes, and what its llama-quantize makes of that. */
#include "models/diffusion/gguf.h"

#include "base/text.h"
#include "models/convert/edits.h"
#include "models/diffusion/state_dict.h"
#include "quant/views/convert.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    QUANTIZATION_VERSION = 2,
    FILE_TYPE_F16 = 1,
    FILE_TYPE_BF16 = 32,
    MAX_NAME = 127,      /* characters */
    MOST_PRECISE = 1024, /* elements of a tensor that is F32 for its size */
    BLOCK = 256,         /* elements of a row after rearranging */
    FEWEST_REARRANGED = 512,
    MAX_TYPES = 64, /* that a state dict has */
};

static size_t characters_of(const char *text)
{
    size_t n = 0;
    for (; *text != '\0'; text++)
        n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

/* Reports whether the converter reads a dtype: those that numpy has, BF16, and two of 8 bits. */
static bool is_read(const struct dtype *type)
{
    static const char *const others[] = {"BF16", "F8_E4M3", "F8_E5M2"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(type->name, others[i]) == 0)
            return true;
    return type->numpy != NULL && (type->kind == DTYPE_FLOAT || type->kind == DTYPE_INTEGER);
}

/* Checks what the converter checks of every tensor, also of those that it leaves out. */
static bool check_tensor(const struct tensor *tensor, const struct diffusion_architecture *architecture,
                         struct error *error)
{
    if (tensor->refusal != NULL)
        return error_set(error, "tensor '%.200s': %s", tensor->name, tensor->refusal);
    if (characters_of(tensor->name) > MAX_NAME)
        return error_set(error, "tensor '%.200s': its name has %zu characters, and ComfyUI-GGUF takes at most %d",
                         tensor->name, characters_of(tensor->name), MAX_NAME);
    if (tensor->rank >= DIFFUSION_VIDEO_RANK && !architecture->holds_videos)
        return error_set(error,
                         "tensor '%.200s' has %u dimensions, and ComfyUI-GGUF takes at most 4 in models of the kind "
                         "of %s",
                         tensor->name, tensor->rank, architecture->summary);
    return true;
}

static const struct dtype *type_of(const struct tensor *tensor, const struct diffusion_architecture *architecture)
{
    bool is_wide = tensor->dtype == &f32_dtype || tensor->dtype == &bf16_dtype;
    if (tensor->rank >= DIFFUSION_VIDEO_RANK)
        return &f32_dtype;
    if (is_wide && (tensor->rank <= 1 || tensor_elements(tensor) <= MOST_PRECISE ||
                    diffusion_name_matches(architecture->precise, tensor->name)))
        return &f32_dtype;
    return tensor->dtype == &bf16_dtype ? &bf16_dtype : &f16_dtype;
}

/* Keeps the shape of a tensor that is rearranged, outermost dimension first. */
static void set_original_shape(struct gguf_model *model, const struct tensor *tensor)
{
    struct buffer dimensions = {0};
    for (unsigned i = 0; i < tensor->rank; i++)
        buffer_append_le(&dimensions, tensor->shape[i], 4);
    gguf_set_array(&model->kvs, arena_printf(model->arena, "comfy.gguf.orig_shape.%s", tensor->name), GGUF_I32,
                   tensor->rank, &dimensions);
}

static bool is_rearranged(const struct tensor *tensor)
{
    uint64_t n_elements = tensor_elements(tensor);
    return tensor->rank > 1 && n_elements >= FEWEST_REARRANGED && n_elements % BLOCK == 0 &&
           tensor->shape[tensor->rank - 1] % BLOCK != 0;
}

/* Makes the tensor of the file from a tensor of the state dict. */
static bool convert_tensor(struct gguf_model *model, const struct diffusion_architecture *architecture,
                           const struct tensor *tensor, struct tensor *ret_tensor, struct error *error)
{
    const struct dtype *type = type_of(tensor, architecture);
    const struct view *view = tensor_view(tensor, model->arena);
    if (!is_read(tensor->dtype))
        return error_set(error, "tensor '%.200s' is %s, which ComfyUI-GGUF does not read", tensor->name,
                         tensor->dtype->name);
    view = type == &f16_dtype ? view_half(model->arena, view) : view_convert(model->arena, view, type);
    if (architecture->rearranges && is_rearranged(tensor)) {
        set_original_shape(model, tensor);
        view = view_reshape(model->arena, view, 2, (const uint64_t[]){view->n_elements / BLOCK, BLOCK});
    }
    *ret_tensor = tensor_of_view(tensor->name, view);
    return true;
}

/* Sets the keys that every model has: the file type is that of the most frequent dtype in the state dict. */
static void set_keys(struct gguf_model *model, const struct state_dict *dict)
{
    size_t counts[MAX_TYPES] = {0}, n_most = 0, n_bf16 = 0;
    const struct dtype *types[MAX_TYPES] = {NULL};
    for (size_t i = 0; i < dict->tensors->n_tensors; i++) {
        const struct dtype *type = dict->tensors->tensors[i].dtype;
        size_t at = 0;
        while (at + 1 < MAX_TYPES && types[at] != NULL && types[at] != type)
            at++;
        types[at] = type;
        n_most = ++counts[at] > n_most ? counts[at] : n_most;
        n_bf16 += type == &bf16_dtype;
    }
    gguf_set_text(&model->kvs, "general.architecture", dict->architecture->name);
    gguf_set_u32(&model->kvs, "general.quantization_version", QUANTIZATION_VERSION);
    gguf_set_u32(&model->kvs, "general.file_type", n_bf16 == n_most ? FILE_TYPE_BF16 : FILE_TYPE_F16);
}

/* Returns the name of the bias of K.weight; NULL: the name is another. */
static const char *bias_of(struct arena *arena, const char *name)
{
    return text_ends_with(name, ".weight")
               ? arena_printf(arena, "%.*s.bias", (int)(strlen(name) - strlen(".weight")), name)
               : NULL;
}

/* Adds the tensors of five dimensions, each after its bias; tensors without a bias come last, by name. */
static void add_with_videos(struct gguf_model *model, struct tensor *converted, size_t n)
{
    struct text_index biases = {0};
    uint32_t *by_name = tensors_by_name(converted, n);
    bool *is_added = arena_array(model->arena, n + 1, sizeof *is_added);
    for (size_t i = 0; i < n; i++) {
        const char *bias = converted[i].rank >= DIFFUSION_VIDEO_RANK ? bias_of(model->arena, converted[i].name) : NULL;
        if (bias != NULL)
            text_index_add(&biases, bias, strlen(bias), i);
    }
    for (size_t i = 0; i < n; i++) {
        size_t video;
        if (converted[i].rank >= DIFFUSION_VIDEO_RANK)
            continue;
        tensor_set_add(model->tensors, &converted[i]);
        if (text_index_find(&biases, converted[i].name, converted[i].name_length, &video)) {
            tensor_set_add(model->tensors, &converted[video]);
            is_added[video] = true;
        }
    }
    for (size_t i = 0; i < n; i++)
        if (converted[by_name[i]].rank >= DIFFUSION_VIDEO_RANK && !is_added[by_name[i]])
            tensor_set_add(model->tensors, &converted[by_name[i]]);
    text_index_free(&biases);
    free(by_name);
}

static bool fill_in(struct gguf_model *model, const struct state_dict *dict, struct error *error)
{
    const struct tensor_set *set = dict->tensors;
    struct tensor *converted = arena_array(model->arena, set->n_tensors + 1, sizeof *converted);
    size_t n = 0;
    set_keys(model, dict);
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        if (!check_tensor(tensor, dict->architecture, error))
            return false;
        if (diffusion_name_matches(dict->architecture->ignored, tensor->name))
            continue;
        if (!convert_tensor(model, dict->architecture, tensor, &converted[n++], error))
            return false;
    }
    add_with_videos(model, converted, n);
    return tensor_set_seal(model->tensors, error);
}

struct gguf_model *diffusion_model_new(const struct checkpoint *checkpoint, struct error *error)
{
    const struct state_dict *dict = state_dict_of(checkpoint);
    if (dict == NULL || dict->refusal != NULL) {
        error_set(error, "%s", dict != NULL ? dict->refusal : "this is no diffusion model that wfs knows");
        return NULL;
    }
    struct gguf_model *model = gguf_model_empty(checkpoint, NULL);
    if (fill_in(model, dict, error))
        return model;
    gguf_model_free(model);
    return NULL;
}

const struct diffusion_architecture *diffusion_architecture_of_model(const struct gguf_model *model)
{
    struct arena *arena = arena_new(); /* plans that run at once share the model's */
    const struct diffusion_architecture *architecture =
        diffusion_architecture_named(gguf_get_text(&model->kvs, "general.architecture", arena));
    arena_free(arena);
    return architecture;
}

void diffusion_artifact(const struct gguf_edition *edition, struct artifact *ret_artifact)
{
    const struct gguf_model *model = edition->model;
    struct artifact artifact = {.container = &gguf_container, .metadata = gguf_kvs_copy(&model->kvs)};
    artifact_reserve(&artifact, model->tensors->n_tensors);
    for (size_t i = 0; i < model->tensors->n_tensors; i++) {
        const struct tensor *tensor = &model->tensors->tensors[i];
        artifact.tensors[i] = (struct artifact_tensor){tensor, encoding_of(tensor->dtype)};
    }
    gguf_edit(&artifact.metadata, edition->edits, 0);
    *ret_artifact = artifact;
}

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
