/* Chooses output types as convert_hf_to_gguf.py does. */
#include "models/convert/model.h"

#include "base/text.h"
#include "models/family/family.h"
#include "models/relation/pattern.h"
#include "quant/views/convert.h"

#include <string.h>

static const struct outtype {
    const char *name, *dtype;
    uint32_t file_type;
    bool is_ternary, is_plain; /* plain: F32, F16 or BF16 */
} outtypes[] = {
    {"f32", "F32", 0, false, true},    {"f16", "F16", 1, false, true},      {"bf16", "BF16", 32, false, true},
    {"q8_0", "Q8_0", 7, false, false}, {"tq1_0", "TQ1_0", 36, true, false}, {"tq2_0", "TQ2_0", 37, true, false},
};

/* Matrices that stay F32 in every output: by their whole name, or by the rest of it after "blk.{}". */
static const char *const f32_names[] = {
    "position_embd.weight",
    "v.position_embd.weight",
    "a.position_embd.weight",
    "token_types.weight",
};
static const char *const f32_names_in_layers[] = {
    ".ffn_gate_inp.weight",        ".ffn_gate_inp_shexp.weight", ".ssm_conv1d.weight",
    ".shortconv.conv.weight",      ".time_mix_first.weight",     ".time_mix_w1.weight",
    ".time_mix_w2.weight",         ".time_mix_decay_w1.weight",  ".time_mix_decay_w2.weight",
    ".time_mix_lerp_fused.weight", ".altup_correct_coef.weight", ".altup_predict_coef.weight",
    ".ssm_conv1d_q.weight",        ".ssm_conv1d_k.weight",       ".ssm_conv1d_v.weight",
    ".indexer.proj.weight",
};

/* Matrices that are F32 in all outputs except F16, like the matrices that a projector lists. */
static const char *const patch_names[] = {"v.patch_embd.weight", "v.patch_embd.weight.1", "v.sam.patch_embd.weight",
                                          "mm.patch_merger.weight"};

/* Matrices that ternary outputs keep as F16. */
static const char *const f16_names[] = {"token_embd.weight", "per_layer_token_embd.weight", "output.weight"};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool stays_f32(const struct gguf_model *model, const struct tensor *tensor)
{
    uint64_t numbers[PATTERN_NUMBERS], renumbered_from = model->renumbered_from;
    if (model->family != NULL && model->family->matrices_alike)
        return false;
    if (!pattern_match("blk.{}.*", tensor->name, tensor->name_length, numbers))
        return text_is_one_of(tensor->name, f32_names, COUNT(f32_names)) ||
               pattern_match("posnet.{}.norm1.weight", tensor->name, tensor->name_length, numbers) ||
               pattern_match("posnet.{}.norm2.weight", tensor->name, tensor->name_length, numbers);
    const char *rest = strchr(tensor->name + strlen("blk."), '.');
    return (renumbered_from == 0 || numbers[0] < renumbered_from) &&
           text_is_one_of(rest, f32_names_in_layers, COUNT(f32_names_in_layers));
}

static bool is_f16_or_f32(const struct family *family, const struct tensor *tensor)
{
    const char *const *own = family != NULL && family->tower != NULL ? family->tower->f16_or_f32_names : NULL;
    uint64_t numbers[PATTERN_NUMBERS];
    for (; own != NULL && *own != NULL; own++)
        if (pattern_match(*own, tensor->name, tensor->name_length, numbers))
            return true;
    return text_is_one_of(tensor->name, patch_names, COUNT(patch_names));
}

const struct dtype *gguf_stored_type(const struct gguf_model *model, const struct tensor *tensor)
{
    const struct dtype *own = tensor->view->dtype;
    uint64_t numbers[PATTERN_NUMBERS];
    bool is_float = own == &f32_dtype || own == &f16_dtype || own == &bf16_dtype;
    if (model->is_gguf)
        return tensor->dtype;
    if (own->block_elements > 1 || (model->family == NULL && !is_float))
        return own;
    if (tensor->view->rank <= 1 && own->kind == DTYPE_FLOAT)
        return NULL;
    for (const struct stored_type *type = model->stored_types; type != NULL && type->name != NULL; type++)
        if ((type->of == NULL || type->of == own) && follows(&model->references, type->since) &&
            pattern_match(type->name, tensor->name, tensor->name_length, numbers))
            return type->dtype;
    return NULL;
}

/* `of_weights` is the outtype's dtype. */
static const struct dtype *tensor_type(const struct tensor *tensor, const struct outtype *outtype,
                                       const struct dtype *of_weights, const struct gguf_model *model)
{
    const char *name = tensor->name, *reason;
    const struct dtype *stored = gguf_stored_type(model, tensor);
    bool is_weight =
        text_ends_with(name, ".weight") || text_ends_with(name, ".lora_a") || text_ends_with(name, ".lora_b");
    if (stored != NULL)
        return stored;
    if (tensor->view->rank <= 1 || text_ends_with(name, "_norm.weight"))
        return &f32_dtype;
    if (model->references.converter.fp8_as_q8 && tensor->was_fp8)
        return convert_possible(tensor->view, encoding_of(dtype_by_name("Q8_0")), &reason) ? dtype_by_name("Q8_0")
                                                                                           : &f16_dtype;
    if (stays_f32(model, tensor))
        return &f32_dtype;
    if (is_f16_or_f32(model->family, tensor))
        return strcmp(outtype->name, "f16") == 0 ? &f16_dtype : &f32_dtype;
    if (!is_weight)
        return &f32_dtype;
    if (outtype->is_ternary && text_is_one_of(name, f16_names, COUNT(f16_names)))
        return &f16_dtype;
    return convert_possible(tensor->view, encoding_of(of_weights), &reason) ? of_weights : &f16_dtype;
}

static const struct outtype *find_outtype(const struct gguf_model *model, const char *name)
{
    bool is_auto = strcmp(name, "auto") == 0;
    for (size_t i = 0; i < COUNT(outtypes); i++)
        if (is_auto ? strcmp(outtypes[i].dtype, model->auto_type->name) == 0 : strcmp(outtypes[i].name, name) == 0)
            return &outtypes[i];
    return NULL;
}

bool converter_artifact(const struct gguf_edition *edition, const char *outtype_name, struct artifact *ret_artifact,
                        struct error *error)
{
    const struct gguf_model *model = edition->model;
    const struct outtype *outtype = find_outtype(model, outtype_name);
    if (outtype == NULL)
        return error_set(error, "the converter has no output type '%s'", outtype_name);
    const struct tensor_set *set = model->tensors;
    const struct dtype *of_weights = dtype_by_name(outtype->dtype);
    struct artifact artifact = {.container = &gguf_container, .metadata = gguf_kvs_copy(&model->kvs)};
    artifact_reserve(&artifact, set->n_tensors);
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        const struct dtype *type = tensor_type(tensor, outtype, of_weights, model);
        artifact.tensors[i] = (struct artifact_tensor){tensor, encoding_of(type)};
    }
    bool packed = model->packed_file_type != 0 && outtype->is_plain;
    if (gguf_kvs_find(&artifact.metadata, "general.file_type") != NULL)
        gguf_set_u32(&artifact.metadata, "general.file_type", packed ? model->packed_file_type : outtype->file_type);
    gguf_edit(&artifact.metadata, edition->edits, model->chat_template_place);
    *ret_artifact = artifact;
    return true;
}
