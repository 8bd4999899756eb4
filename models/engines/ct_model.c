#include "models/engines/ct_model.h"

#include "base/text.h"
#include "formats/documents.h"
#include "models/derive/plain_config.h"
#include "models/engines/ct_ignored.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char weight[] = ".weight";

/* Files. */

bool ct_keeps_files(const struct checkpoint *checkpoint, bool is_packed)
{
    for (size_t i = 0; i < checkpoint->n_sources; i++)
        if (!text_ends_with(source_name(checkpoint->sources[i]), ".safetensors"))
            return false;
    for (size_t i = 0; i < checkpoint->tensors->n_tensors; i++)
        if (checkpoint->tensors->tensors[i].view != NULL || checkpoint->tensors->tensors[i].source == NULL)
            return false;
    return !is_packed;
}

/* Sets the file of each tensor. Those of a file most often follow each other. */
static void find_files(struct ct_model *made)
{
    const struct checkpoint *checkpoint = made->model->checkpoint;
    for (size_t i = 0, file = 0; i < made->tensors->n_tensors; i++) {
        for (size_t k = 0; k < made->n_files && checkpoint->sources[file] != made->tensors->tensors[i].source; k++)
            file = (file + 1) % made->n_files;
        made->file_of[i] = (uint32_t)file;
    }
}

/* Experts in one tensor are taken apart: [experts, rows, columns]. */
static const struct stacked {
    const char *name;     /* part of the tensor's name */
    const char *parts[2]; /* the names of an expert's matrices, below each other */
} stacked[] = {
    {"gate_up_proj", {"gate_proj", "up_proj"}},
    {"down_proj", {"down_proj"}},
};

static const struct stacked *find_stacked(const struct tensor *tensor)
{
    for (size_t i = 0; i < sizeof stacked / sizeof *stacked && tensor->rank == 3 && tensor->refusal == NULL; i++)
        if (strstr(tensor->name, stacked[i].name) != NULL)
            return &stacked[i];
    return NULL;
}

/* Returns the first tensor of several experts if its class has inputs before outputs: [experts, inputs, outputs]. */
static const struct tensor *find_turned(const struct hf_model *model, const struct tensor_set *set)
{
    static const char *const types[] = {"llama4", "llama4_text", "gpt_oss", "qwen3_vl_moe", "qwen3_vl_moe_text"};
    bool is_turned = false;
    for (size_t i = 0; i < sizeof types / sizeof *types && model->model_type != NULL; i++)
        is_turned = is_turned || strcmp(model->model_type, types[i]) == 0;
    for (size_t i = 0; i < set->n_tensors && is_turned; i++)
        if (find_stacked(&set->tensors[i]) != NULL)
            return &set->tensors[i];
    return NULL;
}

static size_t n_parts(const struct stacked *kind)
{
    return kind->parts[1] != NULL ? 2 : 1;
}

/* Counts the tensors after experts are taken apart; 0 if there are none in one tensor. */
static bool count_taken_apart(const struct tensor_set *set, size_t *ret_n, struct error *error)
{
    uint64_t n = 0;
    bool any = false;
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        const struct stacked *kind = find_stacked(tensor);
        if (kind != NULL && tensor->shape[1] % n_parts(kind) != 0)
            return error_set(error, "'%.200s': its %" PRIu64 " rows cannot be split into two matrices", tensor->name,
                             tensor->shape[1]);
        if (kind != NULL && tensor->shape[0] > TENSOR_SET_MAX)
            return error_set(error, "'%.200s': %" PRIu64 " experts are too many", tensor->name, tensor->shape[0]);
        any = any || kind != NULL;
        n += kind != NULL ? tensor->shape[0] * n_parts(kind) : 1;
        if (n > TENSOR_SET_MAX)
            return error_set(error, "taking the experts apart makes more than %d tensors", TENSOR_SET_MAX);
    }
    *ret_n = any ? n : 0;
    return true;
}

static void take_apart(struct tensor_set *to, struct arena *arena, const struct tensor *tensor,
                       const struct stacked *kind)
{
    const struct view *view = tensor_view(tensor, arena);
    const char *at = strstr(tensor->name, kind->name), *rest = at + strlen(kind->name);
    uint64_t rows = tensor->shape[1] / n_parts(kind), shape[2] = {rows, tensor->shape[2]};
    for (uint64_t expert = 0; expert < tensor->shape[0]; expert++)
        for (size_t part = 0; part < n_parts(kind); part++) {
            const struct view *matrix =
                view_slice(arena, view_slice(arena, view, 0, expert, 1, 1), 1, part * rows, rows, 1);
            const char *name =
                arena_printf(arena, "%.*s%" PRIu64 ".%s%s%s", (int)(at - tensor->name), tensor->name, expert,
                             kind->parts[part], rest, text_ends_with(rest, weight) ? "" : weight);
            tensor_set_add_view(to, name, view_reshape(arena, matrix, 2, shape));
        }
}

/* Replaces tensors of several experts by those of each. */
static bool take_experts_apart(struct ct_model *made, struct arena *arena, struct error *error)
{
    const struct tensor_set *from = made->tensors;
    struct tensor_set *to = tensor_set_new(arena);
    size_t n = 0;
    if (!count_taken_apart(from, &n, error))
        return false;
    if (n == 0)
        return true;
    uint32_t *file_of = arena_array(arena, n, sizeof *file_of);
    for (size_t i = 0; i < from->n_tensors; i++) {
        const struct stacked *kind = find_stacked(&from->tensors[i]);
        size_t first = to->n_tensors;
        if (kind != NULL)
            take_apart(to, arena, &from->tensors[i], kind);
        else
            tensor_set_add(to, &from->tensors[i]);
        for (size_t k = first; k < to->n_tensors; k++)
            file_of[k] = made->file_of[i];
    }
    made->tensors = to;
    made->file_of = file_of;
    return tensor_set_seal(to, error);
}

/* Reads config.json without the packing that it describes; *ret_config is NULL if there is none. */
bool ct_read_config(const struct hf_model *model, struct json_document **ret_config, struct error *error)
{
    struct buffer text = {0};
    struct document *document = NULL;
    if (model->config != NULL)
        buffer_append(&text, model->config, model->config_length);
    else if (!document_open(model->checkpoint, "config.json", &document, error))
        return false;
    else if (document != NULL)
        plain_config(document_root(document), &text);
    document_close(document);
    *ret_config = text.length > 0 ? json_parse_python((const char *)text.bytes, text.length, error) : NULL;
    bool good = *ret_config != NULL || text.length == 0;
    buffer_free(&text);
    return good;
}

/* Which tensors are quantized. */

static const struct fused_set fused_tensors[] = {
    {{"attn", "attention"}, {".q_proj", ".k_proj", ".v_proj"}},
    {{"attn", "attention"}, {".wq_a", ".wkv_a_with_mqa"}},
    {{"mlp"}, {".gate_proj", ".up_proj"}},
    {{NULL}, {".w1", ".w3"}},
    {{NULL}, {NULL}},
};

const struct fused_set ct_fused_modules[] = {
    {{NULL}, {".gate_proj", ".up_proj"}},
    {{NULL}, {".q_proj", ".k_proj", ".v_proj"}},
    {{NULL}, {".q_a_proj", ".kv_a_proj_with_mqa"}},
    {{NULL}, {".w1", ".w3"}},
    {{NULL}, {NULL}},
};

static bool ends_with(const char *text, size_t length, const char *ending)
{
    size_t n = strlen(ending);
    return length >= n && memcmp(text + length - n, ending, n) == 0;
}

static bool is_within(const struct fused_set *set, const char *name, size_t stem)
{
    for (size_t i = 0; i < sizeof set->within / sizeof *set->within && set->within[i] != NULL; i++)
        if (ends_with(name, stem, set->within[i]))
            return true;
    return set->within[0] == NULL;
}

/* Returns the set of a module, and the length of the name's start that its members share; NULL: none. */
static const struct fused_set *set_of(const struct ct_model *model, const char *module, size_t length, size_t *ret_stem)
{
    for (const struct fused_set *set = model->fused_sets; set->ends[0] != NULL; set++)
        for (size_t k = 0; k < FUSED_MOST && set->ends[k] != NULL; k++) {
            const char *end = set->ends[k];
            if (ends_with(module, length, end) && is_within(set, module, length - strlen(end))) {
                *ret_stem = length - strlen(end);
                return set;
            }
        }
    return NULL;
}

size_t ct_find_fused(const struct ct_model *model, const struct tensor *tensor, const struct tensor *fused[FUSED_MOST])
{
    size_t n = 0, stem;
    const struct fused_set *set = set_of(model, tensor->name, loaded_module(tensor->name), &stem);
    struct arena *scratch = arena_new();
    for (size_t k = 0; set != NULL && k < FUSED_MOST && set->ends[k] != NULL; k++) {
        const char *name = arena_printf(scratch, "%.*s%s%s", (int)stem, tensor->name, set->ends[k], weight);
        const struct tensor *member = tensor_set_find_text(model->tensors, name);
        if (member != NULL && member->rank == 2 && model->is_target[member - model->tensors->tensors])
            fused[n++] = member;
    }
    arena_free(scratch);
    if (n == 0)
        fused[n++] = tensor;
    return n;
}

/* Making the model. */

bool ct_names_experts(const struct json *config)
{
    for (struct json_member member = {0}; json_next_member(config, &member);)
        if (strstr(member.key, "experts") != NULL)
            return true;
    return false;
}

/* Finds the weights that model_free_ptq quantizes. */
static void find_targets(struct ct_model *made, const struct ct_ignored *ignored)
{
    for (size_t i = 0; i < made->tensors->n_tensors; i++) {
        const struct tensor *tensor = &made->tensors->tensors[i];
        const char *name = tensor->name;
        size_t length =
            made->turned != NULL && find_stacked(tensor) != NULL ? tensor->name_length : loaded_module(name);
        made->is_target[i] = length > 0 && !ends_with(name, length, "norm") && !ct_is_ignored(ignored, name, length);
    }
}

/* Fails if nothing is quantized: the directory would hold another kind of model than it says. */
static bool quantizes_any(const struct ct_model *model, struct error *error)
{
    for (size_t i = 0; i < model->tensors->n_tensors; i++)
        if (model->is_target[i] && model->tensors->tensors[i].rank >= 2)
            return true;
    return error_set(error, "there is no linear module to quantize among %zu tensors", model->tensors->n_tensors);
}

/* Notes that model_free_ptq takes experts with inputs before outputs apart like others. */
static void note_turned(const struct checkpoint *checkpoint, const struct tensor *turned)
{
    if (turned != NULL)
        checkpoint_note(checkpoint, SUBJECT_FREE_PTQ,
                        "'%.200s' has inputs before outputs, and model_free_ptq takes experts apart as if outputs came "
                        "first: gate_proj and up_proj are not the model's gate and up matrices, which modelopt/ has",
                        turned->name);
}

struct ct_model *ct_model_new(struct arena *arena, const struct hf_model *model, bool keeps_files, bool keeps_turned,
                              const char *const *patterns, struct error *error)
{
    static const char *const usual[] = {"lm_head", "model.embed_tokens", NULL}, *const with_experts[] = {
                                                                                    "re:.*gate$", "lm_head",
                                                                                    "model.embed_tokens", NULL};
    const struct checkpoint *checkpoint = model->checkpoint;
    struct ct_model *made = arena_alloc(arena, sizeof *made);
    struct json_document *config;
    *made = (struct ct_model){.model = model, .keeps_files = keeps_files, .fused_sets = fused_tensors};
    made->tensors = keeps_files ? checkpoint->tensors : model->tensors;
    made->n_files = keeps_files ? checkpoint->n_sources : 1;
    made->names = arena_array(arena, made->n_files, sizeof *made->names);
    made->file_of = arena_array(arena, made->tensors->n_tensors, sizeof *made->file_of);
    for (size_t i = 0; i < made->n_files; i++)
        made->names[i] = keeps_files ? source_name(checkpoint->sources[i]) : "model.safetensors";
    if (keeps_files)
        find_files(made);
    const struct tensor *turned = find_turned(model, made->tensors);
    made->turned = keeps_turned ? turned : NULL;
    if ((made->turned == NULL && !take_experts_apart(made, arena, error)) || !ct_read_config(model, &config, error))
        return NULL;
    bool has_experts = config != NULL && ct_names_experts(json_root(config));
    json_free(config);
    made->patterns = patterns != NULL ? patterns : has_experts ? with_experts : usual;
    made->ignored = made->patterns;
    made->is_target = arena_array(arena, made->tensors->n_tensors, sizeof *made->is_target);
    const struct ct_ignored *ignored = ct_ignored_new(arena, made->patterns, error);
    if (ignored == NULL)
        return NULL;
    find_targets(made, ignored);
    if (!keeps_turned)
        note_turned(checkpoint, turned);
    return quantizes_any(made, error) ? made : NULL;
}
