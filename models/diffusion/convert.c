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
