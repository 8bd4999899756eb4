/* Gives the experts of a model that was saved as transformers 5 holds it in memory (save_original_format=False, or the
 * state dict of a live model) the names and shapes that were published: a matrix for each expert, instead of one tensor
 * for all of a layer. Qwen's families are not here: the converter takes both forms of theirs. Tensors are then in the
 * order of their names, as in a single model.safetensors.
 *
 * Source: conversion_mapping.py of transformers 5.24. */
#include "base/text.h"
#include "models/derive/derive.h"
#include "models/facts.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_RENAMES = 4 };

/* How the model types, separated by bars, name experts as published. */
struct naming {
    const char *model_types;
    const char *gate, *up, *down; /* NULL: experts have no gate; all NULL: stacks are published, under other names */
    struct {
        const char *from, *to; /* parts of names in transformers 5 and as published */
    } renames[MAX_RENAMES];
};

static const struct naming namings[] = {
    {"afmoe|cohere2_moe|deepseek_v2|deepseek_v3|deepseek_v32|dots1|glm4_moe|glm4_moe_lite|glm4v_moe|"
     "glm4v_moe_text|glm_moe_dsa|hunyuan_v1_moe|jamba|mellum|olmoe|sarvam_mla|sarvam_moe|solar_open",
     "gate_proj",
     "up_proj",
     "down_proj",
     {{0}}},
    {"ernie4_5_moe",
     "gate_proj",
     "up_proj",
     "down_proj",
     {{".mlp.gate.moe_statics.e_score_correction_bias", ".mlp.moe_statics.e_score_correction_bias"}}},
    {"exaone_moe",
     "gate_proj",
     "up_proj",
     "down_proj",
     {{".mlp.gate.e_score_correction_bias", ".mlp.e_score_correction_bias"}}},
    {"hy_v3",
     "gate_proj",
     "up_proj",
     "down_proj",
     {{".mlp.gate.weight", ".mlp.router.gate.weight"},
      {".mlp.e_score_correction_bias", ".mlp.expert_bias"},
      {".mlp.shared_experts.", ".mlp.shared_mlp."}}},
    {"laguna",
     "gate_proj",
     "up_proj",
     "down_proj",
     {{".mlp.gate.e_score_correction_bias", ".mlp.experts.e_score_correction_bias"},
      {".mlp.shared_experts.", ".mlp.shared_expert."}}},
    {"mimo_v2_flash", "gate_proj", "up_proj", "down_proj", {{".self_attn.sinks", ".self_attn.attention_sink_bias"}}},
    {"lfm2_moe", "w1", "w3", "w2", {{0}}},
    {"mixtral|minimax|minimax_m2", "w1", "w3", "w2", {{".mlp.", ".block_sparse_moe."}}},
    {"phimoe", "w1", "w3", "w2", {{".mlp.router.", ".block_sparse_moe.gate."}, {".mlp.", ".block_sparse_moe."}}},
    {"granitemoe|granitemoehybrid|granitemoeshared",
     NULL,
     NULL,
     NULL,
     {{".block_sparse_moe.experts.gate_up_proj", ".block_sparse_moe.input_linear.weight"},
      {".block_sparse_moe.experts.down_proj", ".block_sparse_moe.output_linear.weight"},
      {".block_sparse_moe.router.weight", ".block_sparse_moe.router.layer.weight"}}},
    {"nemotron_h", NULL, "up_proj", "down_proj", {{"model.", "backbone."}}},
};

/* The stacks of transformers 5, and which of an expert's matrices each has. */
static const char gate_up[] = ".experts.gate_up_proj", up[] = ".experts.up_proj", down[] = ".experts.down_proj";

#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool has_type(const struct naming *naming, const char *model_type)
{
    size_t length = strlen(model_type);
    for (const char *at = naming->model_types; at != NULL; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
        if (strncmp(at, model_type, length) == 0 && (at[length] == '|' || at[length] == '\0'))
            return true;
    return false;
}

static bool is_marked(const char *name)
{
    return text_ends_with(name, gate_up) || text_ends_with(name, up);
}

/* Returns the naming of a checkpoint with stacked experts; NULL: its names stay. */
static const struct naming *find_naming(const struct checkpoint *checkpoint)
{
    struct error unused;
    const struct tensor_set *set = checkpoint->tensors;
    const struct config_facts *config = config_facts_of(checkpoint, &unused);
    const char *model_type = config != NULL ? config->model_type : NULL;
    const struct naming *naming = NULL;
    for (size_t i = 0; i < COUNT(namings) && model_type != NULL && naming == NULL; i++)
        naming = has_type(&namings[i], model_type) ? &namings[i] : NULL;
    bool found = false;
    for (size_t i = 0; naming != NULL && i < set->n_tensors && !found; i++)
        found = is_marked(set->tensors[i].name);
    return found ? naming : NULL;
}

struct splitting {
    const struct naming *naming;
    struct arena *arena;
    struct tensor_set *set;
};

/* A stack of experts: its path, up to the last '.', and its matrices' names in the order of rows. */
struct experts_stack {
    const char *path;
    const char *parts[2]; /* the second is NULL: one matrix an expert */
    const char *suffix;
};

/* Reports whether a tensor is a stack of experts: of weights, or of their scales for blocks in FP8. */
static bool experts_is_stack(const struct splitting *splitting, const struct tensor *tensor,
                             struct experts_stack *ret_stack)
{
    static const char scale[] = "_scale_inv";
    const struct naming *naming = splitting->naming;
    const char *ends[] = {gate_up, up, down};
    bool is_scale = text_ends_with(tensor->name, scale);
    const char *name =
        is_scale ? arena_strndup(splitting->arena, tensor->name, strlen(tensor->name) - strlen(scale)) : tensor->name;
    for (size_t i = 0; i < COUNT(ends) && naming->down != NULL; i++) {
        if (!text_ends_with(name, ends[i]))
            continue;
        size_t length = strlen(name) - strlen(ends[i]) + strlen(".experts.");
        *ret_stack = (struct experts_stack){.path = arena_strndup(splitting->arena, name, length),
                                            .parts = {ends[i] == down ? naming->down : naming->up},
                                            .suffix = is_scale ? ".weight_scale_inv" : ".weight"};
        if (ends[i] == gate_up) {
            ret_stack->parts[0] = naming->gate;
            ret_stack->parts[1] = naming->up;
        }
        return (ends[i] == gate_up) == (naming->gate != NULL) || ends[i] == down;
    }
    return false;
}

/* Returns the published form of a name. */
static const char *renamed(const struct splitting *splitting, const char *name)
{
    for (size_t i = 0; i < MAX_RENAMES && splitting->naming->renames[i].from != NULL; i++) {
        const char *from = splitting->naming->renames[i].from, *at = strstr(name, from);
        if (at != NULL)
            name = arena_printf(splitting->arena, "%.*s%s%s", (int)(at - name), name, splitting->naming->renames[i].to,
                                at + strlen(from));
    }
    return name;
}

static unsigned count_parts(const struct experts_stack *experts_stack)
{
    return experts_stack->parts[1] != NULL ? 2 : 1;
}

/* Reports whether every stack has the form of transformers 5. */
static bool can_split(const struct splitting *splitting, const struct tensor_set *from)
{
    struct experts_stack experts_stack;
    uint64_t n_made = 0;
    for (size_t i = 0; i < from->n_tensors; i++) {
        const struct tensor *tensor = &from->tensors[i];
        if (!experts_is_stack(splitting, tensor, &experts_stack))
            continue;
        if (tensor->rank != 3 || tensor->refusal != NULL || tensor->dtype->block_elements != 1 ||
            tensor->shape[1] % count_parts(&experts_stack) != 0 || tensor->shape[0] > TENSOR_SET_MAX)
            return false;
        n_made += tensor->shape[0] * count_parts(&experts_stack);
        if (n_made > TENSOR_SET_MAX - from->n_tensors)
            return false;
    }
    return true;
}

static void split(const struct splitting *splitting, const struct tensor *tensor,
                  const struct experts_stack *experts_stack)
{
    struct arena *arena = splitting->arena;
    const struct view *whole = tensor_view(tensor, arena);
    const uint64_t n_rows = tensor->shape[1] / count_parts(experts_stack), shape[] = {n_rows, tensor->shape[2]};
    for (uint64_t expert = 0; expert < tensor->shape[0]; expert++) {
        const struct view *both = view_slice(arena, whole, 0, expert, 1, 1);
        for (unsigned i = 0; i < count_parts(experts_stack); i++) {
            const char *name = arena_printf(arena, "%s%" PRIu64 ".%s%s", experts_stack->path, expert,
                                            experts_stack->parts[i], experts_stack->suffix);
            const struct view *one = view_slice(arena, both, 1, i * n_rows, n_rows, 1);
            tensor_set_add_view(splitting->set, renamed(splitting, name), view_reshape(arena, one, 2, shape));
        }
    }
}

static void add(const struct splitting *splitting, const struct tensor *tensor)
{
    struct experts_stack experts_stack;
    struct tensor added = *tensor;
    if (experts_is_stack(splitting, tensor, &experts_stack)) {
        split(splitting, tensor, &experts_stack);
        return;
    }
    if (strlen(tensor->name) == tensor->name_length) {
        added.name = renamed(splitting, tensor->name);
        added.name_length = (uint32_t)strlen(added.name);
    }
    tensor_set_add(splitting->set, &added);
}

static bool experts_apply(const struct checkpoint *from, const struct derive_options *options,
                          struct checkpoint **ret_derived, struct error *error)
{
    (void)options;
    const struct naming *naming = facts_of(from).has_class_names ? find_naming(from) : NULL;
    struct arena *scratch = arena_new();
    bool fits = naming != NULL && can_split(&(struct splitting){naming, scratch, NULL}, from->tensors);
    arena_free(scratch);
    if (!fits)
        return true;
    struct checkpoint *derived = *ret_derived = checkpoint_derive(from);
    const struct splitting splitting = {naming, derived->arena, tensor_set_new(derived->arena)};
    for (size_t i = 0; i < from->tensors->n_tensors; i++)
        add(&splitting, &from->tensors->tensors[i]);
    checkpoint_note(derived, SUBJECT_SOURCE,
                    "the experts of each layer are one tensor, as transformers 5 holds them; wfs shows %s",
                    naming->down != NULL ? "each expert's matrices under the names that were published"
                                         : "the tensor under the name that was published");
    struct tensor_set *ordered = tensor_set_ordered(splitting.set, derived->arena);
    derived->tensors = ordered;
    return tensor_set_seal(ordered, error);
}

const struct derivation experts_derivation = {.apply = experts_apply};

/* Gives the experts of a model in Ollama's store, which has a blob for the experts of a layer, the names that were
 * published: a matrix for each expert, instead of a stack for each projection. Quantized stacks are cut like others.
 *
 * Source: sources/location_ollama.h. */

static const char experts[] = ".experts.";

/* Returns the part of a name after ".experts." if the name is that of a stack: "gate_proj.weight.scale"; else NULL. */
static const char *rest_of_stack(const struct tensor *tensor)
{
    const char *at = strlen(tensor->name) == tensor->name_length ? strstr(tensor->name, experts) : NULL;
    const char *rest = at != NULL ? at + strlen(experts) : NULL;
    bool is_stack = rest != NULL && strchr("0123456789", *rest) == NULL && tensor->refusal == NULL;
    return is_stack && (tensor->rank == 3 || text_ends_with(rest, ".global_scale")) ? rest : NULL;
}

/* Returns the number of experts of the stack whose part a factor is; 0: there is none. */
static uint64_t count_of_factor(const struct tensor_set *set, const struct tensor *factor, struct arena *arena)
{
    size_t length = strlen(factor->name) - strlen(".global_scale");
    const struct tensor *stack = tensor_set_find_text(set, arena_strndup(arena, factor->name, length));
    return stack != NULL && stack->rank == 3 ? stack->shape[0] : 0;
}

static bool add_experts(const struct tensor_set *from, const struct tensor *tensor, const char *rest,
                        struct tensor_set *to, struct arena *arena, struct error *error)
{
    const struct view *stack = tensor_view(tensor, arena);
    uint64_t n = tensor->rank == 3 ? tensor->shape[0] : count_of_factor(from, tensor, arena);
    bool is_common = tensor->rank != 3 && stack->n_elements == 1, is_own = tensor->rank != 3 && stack->n_elements == n;
    if (n == 0 || n > TENSOR_SET_MAX - to->n_tensors || (tensor->rank != 3 && !is_common && !is_own))
        return error_set(error, "tensor '%.200s' is not a stack of experts", tensor->name);
    for (uint64_t i = 0; i < n; i++) {
        const struct view *one = stack;
        if (!is_common) {
            one = tensor->rank == 3 ? stack : view_reshape(arena, stack, 1, &n);
            one = view_slice(arena, one, 0, i, 1, 1);
        }
        if (tensor->rank == 3)
            one = view_reshape(arena, one, 2, tensor->shape + 1);
        tensor_set_add_view(
            to, arena_printf(arena, "%.*s%" PRIu64 ".%s", (int)(rest - tensor->name), tensor->name, i, rest), one);
    }
    return true;
}

static bool ollama_experts_apply(const struct checkpoint *from, const struct derive_options *options,
                                 struct checkpoint **ret_derived, struct error *error)
{
    bool has_stack = false;
    (void)options;
    for (size_t i = 0; text_starts_with(from->path, "ollama://") && i < from->tensors->n_tensors && !has_stack; i++)
        has_stack = rest_of_stack(&from->tensors->tensors[i]) != NULL;
    if (!has_stack)
        return true;
    struct checkpoint *derived = *ret_derived = checkpoint_derive(from);
    struct tensor_set *set = tensor_set_new(derived->arena);
    for (size_t i = 0; i < from->tensors->n_tensors; i++) {
        const struct tensor *tensor = &from->tensors->tensors[i];
        const char *rest = rest_of_stack(tensor);
        if (rest == NULL)
            tensor_set_add(set, tensor);
        else if (!add_experts(from->tensors, tensor, rest, set, derived->arena, error))
            return false;
    }
    derived->tensors = set;
    return tensor_set_seal(set, error);
}

const struct derivation ollama_experts_derivation = {.apply = ollama_experts_apply};
