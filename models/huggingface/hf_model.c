#include "models/huggingface/hf_model.h"

#include "base/text.h"
#include "formats/checkpoint_builder.h"
#include "formats/documents.h"
#include "formats/format.h"
#include "formats/safetensors/safetensors.h"
#include "models/config/hparams.h"
#include "models/convert/left_out.h"
#include "models/facts.h"
#include "models/huggingface/hf_of_gguf.h"
#include "models/packings/packings.h"
#include "quant/views/convert.h"
#include "quant/views/sub_byte.h"

#include <stdlib.h>
#include <string.h>

/* Ends of the names that classes of transformers 4.57 tie to another parameter: their _tied_weights_keys. */
static const char *const tied_names[] = {
    "lm_head.weight",
    "lm_head.decoder.weight",
    "lm_head.decoder.bias",
    "embed_out.weight",
    "cls.predictions.decoder.weight",
    "predictions.decoder.bias",
    "encoder.embed_tokens.weight",
    "decoder.embed_tokens.weight",
};

/* Ends of the names of parameters that checkpoints keep in F32, whatever type the others have. */
static const char *const f32_names[] = {".e_score_correction_bias", ".mixer.A_log", ".mixer.D"};

static bool is_tied_name(const struct tensor *tensor)
{
    for (size_t i = 0; i < sizeof tied_names / sizeof *tied_names; i++)
        if (text_ends_with(tensor->name, tied_names[i]))
            return true;
    return false;
}

/* Reads model_type, and returns whether weights may be tied: unless config.json says that they are not. */
static bool read_config(struct hf_model *model)
{
    struct error unused;
    struct hparams *hparams = hparams_of(model->checkpoint, &unused);
    bool ties = hparams == NULL || json_bool(hparams_get(hparams, "tie_word_embeddings"), true);
    const char *model_type = hparams != NULL ? json_string(json_get(hparams_raw(hparams), "model_type"), NULL) : NULL;
    if (model_type != NULL)
        model->model_type = arena_strdup(model->arena, model_type);
    hparams_free(hparams);
    return ties;
}

/* Fails if config.json exists but cannot be read, because it might say that no weights are tied. */
static bool config_is_readable(const struct checkpoint *checkpoint, struct error *error)
{
    bool absent;
    size_t length;
    char *text = document_text(checkpoint, "config.json", &length, &absent, error);
    bool is_readable = text != NULL || absent;
    free(text);
    return is_readable;
}

/* Orders tensors by place, then by name. */
static int compare_places(const void *a, const void *b)
{
    const struct tensor *x = *(const struct tensor *const *)a, *y = *(const struct tensor *const *)b;
    if (x->source != y->source)
        return (uintptr_t)x->source < (uintptr_t)y->source ? -1 : 1;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    if (x->length != y->length)
        return x->length < y->length ? -1 : 1;
    return text_compare(x->name, x->name_length, y->name, y->name_length);
}

/* Reports whether two tensors have the same stored elements in the same order. */
static bool is_same(const struct tensor *a, const struct tensor *b)
{
    size_t bytes = a->rank * sizeof *a->shape;
    if (a->source != b->source || a->offset != b->offset || a->length != b->length || a->length == 0 ||
        a->dtype != b->dtype || a->rank != b->rank || memcmp(a->shape, b->shape, bytes) != 0 ||
        (a->strides == NULL) != (b->strides == NULL))
        return false;
    return a->strides == NULL || memcmp(a->strides, b->strides, bytes) == 0;
}

/* Leaves out the tied names among equal tensors, sorted by name; at least one name stays. */
static void leave_out_tied(const struct tensor *const *same, size_t n_same, const struct tensor_set *set,
                           bool *left_out)
{
    size_t n_left_out = 0;
    for (size_t i = 0; i < n_same && n_left_out + 1 < n_same; i++)
        if (is_tied_name(same[i])) {
            left_out[same[i] - set->tensors] = true;
            n_left_out++;
        }
}

/* Marks the tensors of the checkpoint that save_pretrained() would not write. */
static void find_tied(const struct tensor_set *set, bool *left_out)
{
    const struct tensor **sorted = memory_alloc((set->n_tensors + 1) * sizeof *sorted);
    size_t n_sorted = 0, n_tied = 0;
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        if (tensor->source != NULL && tensor->view == NULL && tensor->refusal == NULL)
            sorted[n_sorted++] = tensor;
        n_tied += is_tied_name(tensor);
    }
    if (n_tied > 0) {
        qsort(sorted, n_sorted, sizeof *sorted, compare_places);
        for (size_t first = 0, end; first < n_sorted; first = end) {
            for (end = first + 1; end < n_sorted && is_same(sorted[first], sorted[end]); end++)
                ;
            leave_out_tied(sorted + first, end - first, set, left_out);
        }
    }
    free(sorted);
}

static bool stays_f32(const struct tensor *tensor)
{
    for (size_t i = 0; i < sizeof f32_names / sizeof *f32_names; i++)
        if (text_ends_with(tensor->name, f32_names[i]))
            return true;
    return tensor->rank < 2;
}

/* Unquantized tensors keep their type, so that nothing is lost; an F32 matrix from a quantized source counts as one
 * that was dequantized. */
const struct dtype *hf_written(const struct hf_model *model, const struct tensor *tensor)
{
    const struct dtype *own = tensor->dtype;
    if (own->kind != DTYPE_FLOAT && own->kind != DTYPE_BLOCK)
        return own;
    if (model->keeps_codes)
        return own->kind == DTYPE_BLOCK ? &f32_dtype : own;
    if (model->type != NULL)
        return model->type;
    bool is_of_blocks = own->kind == DTYPE_BLOCK || (own == &f32_dtype && !stays_f32(tensor));
    return is_of_blocks && model->of_blocks != NULL ? model->of_blocks : own;
}

const char *hf_refusal(const struct hf_model *model, const struct tensor *tensor)
{
    const struct dtype *type = hf_written(model, tensor);
    if (tensor->refusal != NULL)
        return tensor->refusal;
    if (type != tensor->dtype && dtype_kernels(tensor->dtype).decode == NULL)
        return "its blocks cannot be dequantized";
    return safetensors_refusal(tensor->name, tensor->name_length, type);
}

struct source *hf_only_file(const struct checkpoint *checkpoint)
{
    const struct format *format = checkpoint->file_format;
    bool is_alone =
        checkpoint->n_sources == 1 && checkpoint->plan == NULL; /* a merge takes some tensors of its models */
    return is_alone && format != NULL && strcmp(format->name, "safetensors") == 0 ? checkpoint->sources[0] : NULL;
}

/* Returns the only source if it is a safetensors file with no bytes after its tensors; else NULL. */
static struct source *whole_source(const struct checkpoint *checkpoint)
{
    struct source *source = hf_only_file(checkpoint);
    uint64_t end = 0;
    if (source == NULL)
        return NULL;
    for (size_t i = 0; i < checkpoint->tensors->n_tensors; i++) {
        const struct tensor *tensor = &checkpoint->tensors->tensors[i];
        end = tensor->offset + tensor->length > end ? tensor->offset + tensor->length : end;
    }
    return end == source_size(source) ? source : NULL;
}

/* Marks the tensors that are left out, and counts the reasons; returns the number of marked tensors. */
static size_t find_left_out(const struct hf_model *model, const struct tensor_set *set, bool *is_out,
                            struct left_out *left_out)
{
    size_t n_out = 0;
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        const char *reason = is_out[i] ? NULL : hf_refusal(model, tensor);
        if (reason != NULL)
            left_out_add(left_out, reason, tensor->name);
        is_out[i] |= reason != NULL;
        n_out += is_out[i];
    }
    return n_out;
}

/* Reports whether every tensor is written as its stored bytes. */
static bool is_as_stored(const struct hf_model *model)
{
    const struct tensor_set *set = model->tensors;
    for (size_t i = 0; i < set->n_tensors; i++)
        if (hf_written(model, &set->tensors[i]) != set->tensors[i].dtype || set->tensors[i].view != NULL)
            return false;
    return set == model->checkpoint->tensors;
}

static bool take_kept(struct hf_model *model, const struct tensor_set *set, const bool *is_out, struct error *error)
{
    struct tensor_set *kept = tensor_set_new(model->arena);
    tensor_set_reserve(kept, set->n_tensors);
    for (size_t i = 0; i < set->n_tensors; i++)
        if (!is_out[i])
            tensor_set_add(kept, &set->tensors[i]);
    model->tensors = kept;
    return tensor_set_seal(kept, error);
}

/* Reports whether the tensors are those of a safetensors file as it is: no two of these share bytes, and its format can
 * hold them. */
static bool is_file_itself(const struct hf_model *model, const struct tensor_set *set)
{
    if (set != model->checkpoint->tensors || hf_only_file(model->checkpoint) == NULL)
        return false;
    for (size_t i = 0; i < set->n_tensors; i++)
        if (set->tensors[i].refusal != NULL || hf_written(model, &set->tensors[i]) != set->tensors[i].dtype)
            return false;
    return true;
}

/* Takes the tensors that save_pretrained() would write, and notes the others. */
static bool take_written(struct hf_model *model, const struct tensor_set *set, bool may_tie, struct error *error)
{
    struct left_out left_out[LEFT_OUT_MAX + 1] = {{0}};
    bool *is_out = memory_alloc(set->n_tensors + 1), taken = true;
    memset(is_out, 0, set->n_tensors + 1);
    if (may_tie)
        find_tied(set, is_out);
    bool any_tied = memchr(is_out, true, set->n_tensors) != NULL;
    size_t n_out = find_left_out(model, set, is_out, left_out);
    if (any_tied && !config_is_readable(model->checkpoint, error))
        taken = false;
    else if (n_out == set->n_tensors && n_out > 0)
        taken = error_set(error, "no tensor can be stored: '%.200s': %s", left_out->first, left_out->reason);
    else if (n_out == 0 && set == model->checkpoint->tensors)
        model->tensors = set;
    else
        taken = take_kept(model, set, is_out, error);
    free(is_out);
    if (taken)
        left_out_note(left_out, model->checkpoint, SUBJECT_WEIGHTS);
    return taken;
}

static bool take_plain(struct hf_model *model, const struct tensor_set *set, struct error *error)
{
    bool may_tie = read_config(model);
    if (is_file_itself(model, set))
        model->tensors = set;
    else if (!take_written(model, set, may_tie, error))
        return false;
    model->whole = is_as_stored(model) ? whole_source(model->checkpoint) : NULL;
    return true;
}

/* Returns the set with packed integers in a byte each: safetensors has no dtype for them. */
static const struct tensor_set *expand_sub_bytes(struct arena *arena, const struct tensor_set *set)
{
    bool has_any = false;
    const struct view **views = memory_alloc(set->n_tensors * sizeof *views + 1);
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        bool expands = tensor->refusal == NULL && dtype_is_sub_byte(tensor->dtype);
        views[i] = expands ? view_expand(arena, tensor_view(tensor, arena)) : NULL;
        has_any |= expands;
    }
    set = has_any ? tensor_set_with_views(arena, set, views) : set;
    free(views);
    return set;
}

static bool take_stored(struct hf_model *model, struct error *error)
{
    struct arena *scratch = arena_new();
    const struct plain_wish wish = {
        .arena = model->arena, .is_saved_again = true, .saved_as = model->type, .keeps_groups = model->keeps_codes};
    struct plain_set plain;
    bool taken = packings_unpack(packings_of(model->checkpoint), &wish, scratch, &plain, error) &&
                 take_plain(model, expand_sub_bytes(model->arena, plain.set), error);
    arena_free(scratch);
    return taken;
}

static const struct hf_model *make(struct arena *arena, const struct hf_model *described, struct error *error)
{
    struct hf_model *model = arena_copy(arena, described, sizeof *described);
    const struct checkpoint *checkpoint = model->checkpoint;
    bool taken = facts_of(checkpoint).keys != NULL ? hf_take_gguf(model, error) : take_stored(model, error);
    return taken ? model : NULL;
}

const struct hf_model *hf_model_new(struct arena *arena, const struct checkpoint *checkpoint, const struct dtype *type,
                                    struct error *error)
{
    return make(arena, &(struct hf_model){.arena = arena, .checkpoint = checkpoint, .type = type}, error);
}

const struct hf_model *hf_model_with_codes(struct arena *arena, const struct checkpoint *checkpoint,
                                           struct error *error)
{
    return make(arena, &(struct hf_model){.arena = arena, .checkpoint = checkpoint, .keeps_codes = true}, error);
}

static const void *make_model(const struct checkpoint *checkpoint, struct arena *arena, struct error *error)
{
    return hf_model_new(arena, checkpoint, NULL, error);
}

const struct hf_model *hf_model_of(const struct checkpoint *checkpoint, struct error *error)
{
    return checkpoint_try(checkpoint, make_model, error);
}

const struct dtype *hf_type(const struct checkpoint *checkpoint, const struct dtype *type, const char **ret_reason)
{
    *ret_reason = type != NULL ? "-o dtype= asks for it" : "each tensor has its stored type";
    if (type == NULL && facts_of(checkpoint).keys != NULL)
        return hf_gguf_type(checkpoint, ret_reason);
    return type;
}

bool hf_generates(const struct hf_model *model)
{
    static const char *const heads[] = {"ForCausalLM", "LMHeadModel", "ForConditionalGeneration"};
    for (size_t i = 0; model->class_name != NULL && i < sizeof heads / sizeof *heads; i++)
        if (text_ends_with(model->class_name, heads[i]))
            return true;
    return false;
}

struct checkpoint *hf_checkpoint_new(const struct checkpoint *gguf, struct error *error)
{
    static const char config[] = "config.json";
    const struct hf_model *model = hf_model_of(gguf, error);
    if (model == NULL)
        return NULL;
    if (model->kept_names != NULL) {
        error_set(error, "the tensors' Hugging Face names are unknown: %s", model->kept_names);
        return NULL;
    }
    struct checkpoint *checkpoint = checkpoint_new(gguf->path);
    checkpoint->formats = gguf->formats;
    checkpoint->format = "canonical";
    checkpoint->model_name = gguf->model_name;
    checkpoint->tensors = model->tensors;
    checkpoint_add_side_file(checkpoint, config,
                             source_of_text(gguf->sources[0], config, model->config, model->config_length));
    return checkpoint;
}
