#include "models/merge.h"

#include "base/text.h"
#include "formats/components.h"
#include "formats/documents.h"
#include "formats/layout.h"
#include "models/adapted_parameter.h"
#include "models/adapter.h"
#include "models/from_gguf.h"
#include "models/merge_gguf.h"
#include "models/module_patterns.h"
#include "models/plain_checkpoint.h"
#include "models/untie.h"
#include "quant/convert.h"
#include "quant/product.h"
#include "quant/unpack.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool lora_request_parse(const char *text, struct arena *arena, struct lora_request *ret_request, struct error *error)
{
    const char *colon = strrchr(text, ':');
    char *end = NULL;
    double scale = colon != NULL && colon[1] != '\0' ? strtod(colon + 1, &end) : 1;
    bool has_scale = end != NULL && *end == '\0';
    *ret_request = (struct lora_request){text, has_scale ? scale : 1};
    if (has_scale)
        ret_request->path = arena_strndup(arena, text, (size_t)(colon - text));
    if (!isfinite(ret_request->scale))
        return error_set(error, "'%s' is not a scale", colon + 1);
    return *ret_request->path != '\0' || error_set(error, "'%s' names no adapter", text);
}

/* What an adapter does to a tensor, each once. */
enum change { REPLACED = 1, PRODUCT_ADDED = 2, BIAS_ADDED = 4 };

/* What is being made of the base. */
struct merging {
    struct checkpoint *base;
    const struct tensor_set *named; /* what adapters name: the base's tensors, or as Hugging Face calls them */
    struct gguf_merging *gguf;      /* where the base is one; else NULL */
    const struct adapter *adapter;
    double scale;
    struct module_patterns *ranks, *alphas;
    unsigned usual_fit;               /* of target_parameters: that of those that are not square */
    const struct unpacked **unpacked; /* of each tensor of the base; NULL: it was plain. NULL: all were */
    const struct view **views;        /* of each tensor of the base: in F32; NULL: as it is */
    unsigned char *changes;           /* what the adapter has done to each */
    struct error *error;
};

/* adapter_config.json. */

/* Kinds of initialization that change the base before training begins, so that the base as it is published is not
 * what the adapter belongs to. */
static const char *const changing_inits[] = {"pissa", "olora", "corda", "loftq", "lora_ga"};

/* What makes more of an adapter than its two matrices say, or less: members that are there and say something. */
static const struct {
    const char *key, *what;
} variants[] = {
    {"use_dora", "it is of DoRA"},
    {"use_qalora", "it is of QALoRA"},
    {"use_bdlora", "it is of BD-LoRA"},
    {"kasa_config", "it is of KaSA"},
    {"arrow_config", "it is of Arrow"},
    {"alora_invocation_tokens", "it is of aLoRA, which counts from certain tokens on"},
    {"layer_replication", "it replicates layers (layer_replication)"},
};

static bool says_something(const struct json *value)
{
    return json_count(value) > 0 || json_bool(value, false);
}

static bool check_config(const struct json *config, struct error *error)
{
    const char *init = json_string(json_get(config, "init_lora_weights"), NULL);
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        if (says_something(json_get(config, variants[i].key)))
            return error_set(error, "%s, which is not merged", variants[i].what);
    for (size_t i = 0; init != NULL && i < sizeof changing_inits / sizeof *changing_inits; i++)
        if (strncasecmp(init, changing_inits[i], strlen(changing_inits[i])) == 0)
            return error_set(error,
                             "it was trained on a base that was changed first (init_lora_weights '%.40s'), "
                             "which is not merged",
                             init);
    return true;
}

/* What the product of a weight's matrices is multiplied with. */
static bool find_scale(const struct merging *merging, const char *name, uint64_t rank, float *ret_scale)
{
    const struct json *config = merging->adapter->config;
    size_t length = strlen(name) - strlen(".weight");
    const struct json *own_rank, *own_alpha;
    uint64_t said;
    double alpha;
    if (!module_patterns_find(merging->ranks, name, length, &own_rank, merging->error) ||
        !module_patterns_find(merging->alphas, name, length, &own_alpha, merging->error))
        return false;
    if (!json_u64(own_rank != NULL ? own_rank : json_get(config, "r"), &said))
        return error_set(merging->error, "adapter_config.json does not say the rank of '%.200s'", name);
    if (said != rank)
        return error_set(merging->error,
                         "tensor '%.200s' is of rank %" PRIu64 ", and adapter_config.json says %" PRIu64, name, rank,
                         said);
    if (!json_double(own_alpha != NULL ? own_alpha : json_get(config, "lora_alpha"), &alpha))
        return error_set(merging->error, "adapter_config.json: lora_alpha of '%.200s' is not a number", name);
    bool is_rs = json_bool(json_get(config, "use_rslora"), false);
    double scale = merging->scale * (alpha / (is_rs ? sqrt((double)rank) : (double)rank));
    *ret_scale = (float)scale;
    return isfinite(*ret_scale) || error_set(merging->error, "tensor '%.200s': its scale is not finite", name);
}

/* Tensors of the base. */

/* What models are called in memory and in their files. */
static const struct {
    const char *in_memory, *stored;
} prefixes[] = {
    {"", ""},
    {"model.language_model.", "language_model.model."},
    {"model.language_model.", "model."},
    {"language_model.model.", "model."},
    {"language_model.", "language_model.model."},
    {"language_model.", "model."},
    {"model.", "model.language_model."},
    {"model.", ""},
    {"transformer.", ""},
    {"", "model."},
    {"", "transformer."},
    {"", "gpt_neox."},
    {"", "language_model."},
};

static struct tensor *find_prefixed(const struct merging *merging, const char *name)
{
    const struct tensor_set *set = merging->named;
    struct arena *arena = merging->adapter->arena;
    const struct tensor *found = NULL;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes && found == NULL; i++) {
        size_t length = strlen(prefixes[i].in_memory);
        if (strncmp(name, prefixes[i].in_memory, length) == 0)
            found = tensor_set_find_text(set, arena_printf(arena, "%s%s", prefixes[i].stored, name + length));
    }
    return found != NULL ? &set->tensors[found - set->tensors] : NULL;
}

/* What an adapter calls a tensor of the base; NULL: it has none. Transformers 5 has Mixtral's experts as mlp. */
static struct tensor *find_tensor(const struct merging *merging, const char *name)
{
    static const char in_memory[] = ".mlp.", stored[] = ".block_sparse_moe.";
    struct tensor *found = find_prefixed(merging, name);
    const char *part = found == NULL ? strstr(name, in_memory) : NULL;
    if (part == NULL)
        return found;
    return find_prefixed(merging, arena_printf(merging->adapter->arena, "%.*s%s%s", (int)(part - name), name, stored,
                                               part + strlen(in_memory)));
}

/* Whether what an adapter calls so is the embedding once more, which both were trained to remain. */
static bool is_tied(const struct merging *merging, const char *name)
{
    return json_bool(json_get(merging->adapter->config, "ensure_weight_tying"), false) &&
           text_ends_with(name, "lm_head.weight") && find_tensor(merging, name) == NULL;
}

/* Whether the tensor can take what is added to it; `name` is what the adapter calls it. */
static bool check_tensor(const struct merging *merging, const struct tensor *tensor, const char *name)
{
    static const char *const dtypes[] = {"F32", "F16", "BF16"};
    if (tensor == NULL)
        return error_set(merging->error, "tensor '%.200s' is not in the base", name);
    if (tensor->refusal != NULL)
        return error_set(merging->error, "tensor '%.200s' of the base: %s", name, tensor->refusal);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(tensor->dtype->name, dtypes[i]) == 0)
            return true;
    if (merging->gguf != NULL && tensor->dtype->kind == DTYPE_BLOCK && dtype_kernels(tensor->dtype).decode != NULL)
        return true;
    return error_set(merging->error, "tensor '%.200s' of the base is %s, into which nothing is merged", name,
                     tensor->dtype->name);
}

/* The values of a tensor so far; of one that was packed not yet rounded to its dtype. */
static const struct view **view_of(const struct merging *merging, const struct tensor *tensor)
{
    size_t index = (size_t)(tensor - merging->named->tensors);
    const struct view **view = &merging->views[index];
    const struct unpacked *unpacked = merging->unpacked != NULL ? merging->unpacked[index] : NULL;
    if (*view == NULL)
        *view = unpacked != NULL ? unpacked->view : tensor_view(tensor, merging->base->arena);
    return view;
}

/* Notes what is done to a tensor; `name` is what the adapter calls it. Two names may be those of one tensor. */
static bool change_once(const struct merging *merging, const struct tensor *tensor, enum change change,
                        const char *name)
{
    unsigned char *changes = &merging->changes[tensor - merging->named->tensors];
    if (*changes & change)
        return error_set(merging->error, "tensor '%.200s' is adapted twice, under another name of the base's", name);
    *changes |= (unsigned char)change;
    return true;
}

static bool misfit(const struct merging *merging, const struct tensor *tensor, const char *name, uint64_t n_rows,
                   uint64_t n_columns)
{
    char shape[LAYOUT_MAX_RANK * 22];
    return error_set(merging->error, "tensor '%.200s' is %s in the base, and [%" PRIu64 ", %" PRIu64 "] in the adapter",
                     name, layout_shape_text(tensor->shape, tensor->rank, shape, sizeof shape), n_rows, n_columns);
}

static void add_product(const struct merging *merging, const struct tensor *tensor, float scale,
                        const struct view *left, const struct view *right)
{
    if (merging->gguf != NULL) {
        gguf_merging_add(merging->gguf, tensor->name, scale, left, right);
        return;
    }
    const struct view **view = view_of(merging, tensor);
    *view = view_add_product(merging->base->arena, *view, scale, left, right);
}

static bool merge_layer(const struct merging *merging, const struct adapter_pair *pair)
{
    struct arena *arena = merging->base->arena;
    const struct view *left = pair->left, *right = pair->right;
    uint64_t n_rows = left->shape[0], n_columns = right->shape[1];
    const struct tensor *tensor = find_tensor(merging, pair->name);
    float scale;
    if (!check_tensor(merging, tensor, pair->name) || !find_scale(merging, pair->name, right->shape[0], &scale))
        return false;
    bool fits = tensor->rank == 2 && tensor->shape[0] == n_rows && tensor->shape[1] == n_columns;
    bool fits_turned = tensor->rank == 2 && tensor->shape[0] == n_columns && tensor->shape[1] == n_rows;
    bool may_turn = pair->is_embedding || json_bool(json_get(merging->adapter->config, "fan_in_fan_out"), false);
    bool must_turn = pair->is_embedding;
    if (!(fits && !must_turn) && !(fits_turned && may_turn))
        return misfit(merging, tensor, pair->name, must_turn ? n_columns : n_rows, must_turn ? n_rows : n_columns);
    if (!change_once(merging, tensor, PRODUCT_ADDED, pair->name))
        return false;
    if (fits_turned && may_turn) {
        left = view_transpose(arena, pair->right);
        right = view_transpose(arena, pair->left);
    }
    add_product(merging, tensor, scale, left, right);
    return true;
}

/* Parameters of modules. */

struct parameter {
    const char *name; /* what the adapter calls it; NULL: it is not in the base */
    const struct tensor *tensor;
    const struct layers *layers; /* where the base has a matrix of each expert and not the tensor */
    unsigned rank, n_parts;
    uint64_t shape[3];
    enum parameter_fit fit;
};

/* What layers files have where transformers 5 has stacked experts: their rows one after the other. */
static const struct layers {
    const char *parameter, *parts[2];
} layers[] = {
    {"gate_up_proj", {"gate_proj", "up_proj"}},
    {"gate_up_proj", {"w1", "w3"}},
    {"down_proj", {"down_proj"}},
    {"down_proj", {"w2"}},
};

static const struct json *first_target(const struct merging *merging)
{
    const struct json *targets = json_get(merging->adapter->config, "target_parameters");
    return json_count(targets) > 0 ? json_first(targets) : NULL;
}

static struct tensor *find_layer(const struct merging *merging, const char *parameter, uint64_t expert,
                                 const char *part)
{
    int module = (int)(strrchr(parameter, '.') - parameter);
    return find_tensor(
        merging, arena_printf(merging->adapter->arena, "%.*s.%" PRIu64 ".%s.weight", module, parameter, expert, part));
}

/* Finds the layers that a parameter is in the base, by the first of them. */
static void find_layers(const struct merging *merging, const char *name, struct parameter *parameter)
{
    enum { MOST_ROWS = 1 << 30 };
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        const struct tensor *first = NULL;
        if (strcmp(strrchr(name, '.') + 1, layers[i].parameter) == 0)
            first = find_layer(merging, name, 0, layers[i].parts[0]);
        if (first == NULL || first->rank != 2 || first->shape[0] > MOST_ROWS)
            continue;
        uint64_t n_experts = 1;
        while (find_layer(merging, name, n_experts, layers[i].parts[0]) != NULL)
            n_experts++;
        parameter->name = name;
        parameter->layers = &layers[i];
        parameter->n_parts = layers[i].parts[1] != NULL ? 2 : 1;
        parameter->rank = 3;
        parameter->shape[0] = n_experts;
        parameter->shape[1] = first->shape[0] * parameter->n_parts;
        parameter->shape[2] = first->shape[1];
        return;
    }
}

/* What a pair and a name of target_parameters are about, where it is in the base. */
static struct parameter named_parameter(const struct merging *merging, const struct adapter_pair *pair,
                                        const struct json *target)
{
    struct parameter parameter = {0};
    const char *text = json_string(target, NULL);
    const char *name = text != NULL ? parameter_name(merging->adapter->arena, pair, text) : NULL;
    const struct tensor *tensor = name != NULL ? find_tensor(merging, name) : NULL;
    if (tensor != NULL && tensor->rank <= 3) {
        parameter = (struct parameter){.name = name, .tensor = tensor, .rank = tensor->rank};
        memcpy(parameter.shape, tensor->shape, tensor->rank * sizeof *tensor->shape);
    } else if (name != NULL) {
        find_layers(merging, name, &parameter);
    }
    if (parameter.name != NULL)
        parameter.fit = parameter_fit(pair, parameter.rank, parameter.shape);
    return parameter;
}

static unsigned find_usual_fit(const struct merging *merging)
{
    for (size_t i = 0; i < merging->adapter->n_pairs; i++)
        for (const struct json *target = first_target(merging); target != NULL; target = json_next(target)) {
            struct parameter parameter = named_parameter(merging, &merging->adapter->pairs[i], target);
            if (parameter.fit != 0 && parameter.rank == 3 && parameter.fit != (FITS | FITS_TURNED))
                return parameter.fit;
        }
    return 0;
}

/* Finds the only parameter of a pair's module that it fits; none where the base has none of such a name. */
static bool find_parameter(const struct merging *merging, const struct adapter_pair *pair, struct parameter *ret_found)
{
    char a[64], b[64];
    const char *named = NULL;
    size_t n_found = 0;
    *ret_found = (struct parameter){0};
    for (const struct json *target = first_target(merging); target != NULL; target = json_next(target)) {
        struct parameter parameter = named_parameter(merging, pair, target);
        if (parameter.name != NULL)
            named = parameter.name;
        if (parameter.fit == (FITS | FITS_TURNED))
            parameter.fit = merging->usual_fit;
        if (parameter.fit == 0)
            continue;
        *ret_found = parameter;
        n_found++;
    }
    return named == NULL || n_found == 1 ||
           error_set(merging->error, "parameter '%.200s': A is %s and B %s, which fit %s of the base", named,
                     layout_shape_text(pair->a->shape, 2, a, sizeof a),
                     layout_shape_text(pair->b->shape, 2, b, sizeof b), n_found == 0 ? "none" : "several");
}

/* Adds a product to a tensor, once for each adapter. */
static bool merge_product(const struct merging *merging, const struct tensor *tensor, const char *name, float scale,
                          const struct view *left, const struct view *right)
{
    uint64_t n_rows = left->shape[left->rank - 2], n_columns = right->shape[right->rank - 1];
    if (!check_tensor(merging, tensor, name))
        return false;
    if (tensor->rank != left->rank || tensor->shape[tensor->rank - 2] != n_rows ||
        tensor->shape[tensor->rank - 1] != n_columns)
        return misfit(merging, tensor, name, n_rows, n_columns);
    if (!change_once(merging, tensor, PRODUCT_ADDED, name))
        return false;
    add_product(merging, tensor, scale, left, right);
    return true;
}

/* Adds to each expert's matrices their rows of what is added to the parameter that they make. */
static bool merge_layers(const struct merging *merging, const struct parameter *parameter, float scale,
                         const struct view *left, const struct view *right)
{
    struct arena *arena = merging->base->arena;
    uint64_t n_rows = parameter->shape[1] / parameter->n_parts, n_terms = left->shape[2];
    for (uint64_t expert = 0; expert < parameter->shape[0]; expert++) {
        const struct view *own = view_slice(arena, right, 0, expert, 1, 1);
        own = view_reshape(arena, own, 2, (const uint64_t[]){n_terms, parameter->shape[2]});
        for (unsigned i = 0; i < parameter->n_parts; i++) {
            const struct view *rows =
                view_slice(arena, view_slice(arena, left, 0, expert, 1, 1), 1, i * n_rows, n_rows, 1);
            rows = view_reshape(arena, rows, 2, (const uint64_t[]){n_rows, n_terms});
            const struct tensor *tensor = find_layer(merging, parameter->name, expert, parameter->layers->parts[i]);
            if (!merge_product(merging, tensor, tensor != NULL ? tensor->name : parameter->name, scale, rows, own))
                return false;
        }
    }
    return true;
}

static bool merge_parameter(const struct merging *merging, const struct adapter_pair *pair,
                            const struct parameter *parameter)
{
    const struct view *left, *right;
    float scale;
    parameter_factors(merging->base->arena, pair, parameter->rank, parameter->shape, parameter->fit, &left, &right);
    const char *weight = arena_printf(merging->adapter->arena, "%s.weight", parameter->name);
    if (!find_scale(merging, weight, left->shape[left->rank - 1], &scale))
        return false;
    if (parameter->layers != NULL)
        return merge_layers(merging, parameter, scale, left, right);
    return merge_product(merging, parameter->tensor, parameter->name, scale, left, right);
}

static bool merge_pair(const struct merging *merging, const struct adapter_pair *pair)
{
    struct parameter parameter;
    if (is_tied(merging, pair->name))
        return true;
    if (!find_parameter(merging, pair, &parameter))
        return false;
    return parameter.name != NULL ? merge_parameter(merging, pair, &parameter) : merge_layer(merging, pair);
}

/* Whole tensors. */

static bool same_shape(const struct tensor *a, const struct tensor *b)
{
    return a->rank == b->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0;
}

static bool check_whole(const struct merging *merging, const struct tensor *whole, const struct tensor *tensor,
                        const char *name)
{
    char of_base[LAYOUT_MAX_RANK * 22], of_adapter[LAYOUT_MAX_RANK * 22];
    if (!check_tensor(merging, tensor, name))
        return false;
    if (whole->refusal != NULL || dtype_kernels(whole->dtype).decode == NULL)
        return error_set(merging->error, "tensor '%.200s' is %s, which is not a dtype of adapters", whole->name,
                         whole->dtype->name);
    return same_shape(whole, tensor) ||
           error_set(merging->error, "tensor '%.200s' is %s in the base, and %s in the adapter", name,
                     layout_shape_text(tensor->shape, tensor->rank, of_base, sizeof of_base),
                     layout_shape_text(whole->shape, whole->rank, of_adapter, sizeof of_adapter));
}

/* The name of what a whole tensor takes the place of: without what peft puts into it. */
static const char *replaced_name(const struct merging *merging, const char *name)
{
    static const char *const parts[] = {"modules_to_save.default.", "modules_to_save.", "base_layer.",
                                        "original_module."};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *found = strstr(name, parts[i]);
        if (found != NULL)
            return arena_printf(merging->adapter->arena, "%.*s%s", (int)(found - name), name, found + strlen(parts[i]));
    }
    return name;
}

static bool replace_tensor(const struct merging *merging, const struct tensor *whole, const char *name)
{
    name = replaced_name(merging, name);
    if (is_tied(merging, name))
        return true;
    const struct tensor *tensor = find_tensor(merging, name);
    if (!check_whole(merging, whole, tensor, name) || !change_once(merging, tensor, REPLACED, name))
        return false;
    struct arena *arena = merging->base->arena;
    const struct view *view = view_convert(arena, tensor_view(whole, arena), &f32_dtype);
    if (merging->gguf != NULL)
        gguf_merging_replace(merging->gguf, tensor->name, view);
    else
        *view_of(merging, tensor) = view;
    return true;
}

/* The bias of a B, which is added to that of the weight. */
static bool merge_bias(const struct merging *merging, const struct tensor *bias, const char *name)
{
    struct arena *arena = merging->base->arena, *scratch = merging->adapter->arena;
    int stem = (int)(strlen(name) - strlen(".lora_B.bias")), whole = (int)(strlen(bias->name) - strlen("bias"));
    const char *bias_name = arena_printf(scratch, "%.*s.bias", stem, name);
    const struct tensor *tensor = find_tensor(merging, bias_name);
    const struct tensor *b = tensor_set_find_text(merging->adapter->checkpoint->tensors,
                                                  arena_printf(scratch, "%.*sweight", whole, bias->name));
    float scale;
    if (b == NULL)
        return error_set(merging->error, "tensor '%.200s' has no matrices beside it", bias->name);
    if (merging->gguf != NULL)
        return error_set(merging->error, "tensor '%.200s' is a bias, which is not merged into a GGUF", bias->name);
    if (!check_whole(merging, bias, tensor, bias_name) ||
        !find_scale(merging, arena_printf(scratch, "%.*s.weight", stem, name), b->shape[1], &scale) ||
        !change_once(merging, tensor, BIAS_ADDED, bias_name))
        return false;
    const struct view *scaled = view_combine_number(arena, tensor_view(bias, arena), MULTIPLY, scale);
    const struct view **view = view_of(merging, tensor);
    *view = view_combine(arena, *view, ADD, scaled, &(struct sharing){1, 1, NULL});
    return true;
}

/* Those that take a weight's place come before the products that are added to it. */
static bool merge_others(const struct merging *merging)
{
    const struct adapter *adapter = merging->adapter;
    for (size_t i = 0; i < adapter->n_others; i++) {
        const struct tensor *tensor = adapter->others[i];
        const char *name = adapter->other_names[i];
        if (strstr(name, "lora_magnitude_vector") != NULL)
            return error_set(merging->error, "tensor '%.200s' is of DoRA, which is not merged", tensor->name);
        if (strstr(name, "lora_") != NULL && !text_ends_with(name, ".lora_B.bias"))
            return error_set(merging->error, "tensor '%.200s' is not known of LoRA", tensor->name);
        if (!text_ends_with(name, ".lora_B.bias") && !replace_tensor(merging, tensor, name))
            return false;
    }
    for (size_t i = 0; i < adapter->n_others; i++)
        if (text_ends_with(adapter->other_names[i], ".lora_B.bias") &&
            !merge_bias(merging, adapter->others[i], adapter->other_names[i]))
            return false;
    return true;
}

static bool merge_tensors(const struct merging *merging)
{
    if (!merge_others(merging))
        return false;
    for (size_t i = 0; i < merging->adapter->n_pairs; i++)
        if (!merge_pair(merging, &merging->adapter->pairs[i]))
            return false;
    return merging->adapter->n_pairs + merging->adapter->n_others > 0 || error_set(merging->error, "it has no tensors");
}

static bool merge_adapter(struct merging *merging)
{
    if (!check_config(merging->adapter->config, merging->error))
        return false;
    const struct json *config = merging->adapter->config;
    size_t n_weights = merging->adapter->n_pairs;
    merging->ranks = module_patterns_read(config, "rank_pattern", n_weights, merging->error);
    merging->alphas = module_patterns_read(config, "alpha_pattern", n_weights, merging->error);
    merging->usual_fit = find_usual_fit(merging);
    bool merged = merging->ranks != NULL && merging->alphas != NULL && merge_tensors(merging);
    module_patterns_free(merging->ranks);
    module_patterns_free(merging->alphas);
    return merged;
}

static void release_adapter(void *adapter)
{
    adapter_close(adapter);
}

/* Opens an adapter, which the base keeps from then on, and merges it. */
static bool merge_request(struct merging *merging, const struct lora_request *request)
{
    struct checkpoint *checkpoint = checkpoint_open(request->path, &(struct open_options){0}, merging->error);
    if (checkpoint == NULL)
        return false;
    struct adapter *adapter = adapter_open(checkpoint, merging->error);
    checkpoint_keep(merging->base, checkpoint);
    if (adapter == NULL)
        return error_prefix(merging->error, "%s", request->path);
    arena_on_free(merging->base->arena, release_adapter, adapter);
    merging->adapter = adapter;
    merging->scale = request->scale;
    memset(merging->changes, 0, merging->named->n_tensors);
    if (!merge_adapter(merging) || (merging->gguf != NULL && !gguf_merging_apply(merging->gguf, merging->error)))
        return error_prefix(merging->error, "%s", request->path);
    checkpoint_note(merging->base, "merged with %s: %zu weights%s", request->path, adapter->n_pairs,
                    adapter->n_others > 0 ? ", and whole tensors" : "");
    return true;
}

/* Puts what was made into the base's tensors, in the dtypes that they had. */
static void finish(const struct merging *merging)
{
    const struct tensor_set *set = merging->base->tensors;
    for (size_t i = 0; i < set->n_tensors; i++) {
        struct tensor *tensor = &set->tensors[i];
        if (merging->views[i] == NULL)
            continue;
        tensor->view = view_convert(merging->base->arena, merging->views[i], tensor->dtype);
        tensor->strides = NULL;
    }
}

/* Merges all of them, once it is known what they name. */
static bool merge_all(struct merging *merging, const struct lora_requests *requests)
{
    size_t n_tensors = merging->named->n_tensors;
    merging->views = memory_alloc((n_tensors + 1) * sizeof *merging->views);
    memset(merging->views, 0, (n_tensors + 1) * sizeof *merging->views);
    merging->changes = memory_alloc(n_tensors + 1);
    bool merged = true;
    for (size_t i = 0; i < requests->count && merged; i++)
        merged = merge_request(merging, &requests->items[i]);
    if (merged && merging->gguf != NULL)
        gguf_merging_finish(merging->gguf);
    else if (merged)
        finish(merging);
    free(merging->views);
    free(merging->changes);
    return merged;
}

/* Parts output and embedding where one of the adapters does. What is wrong with an adapter is said when it is merged.
 */
static bool untie_for(struct checkpoint *checkpoint, const struct lora_requests *requests, struct error *error)
{
    bool is_wanted = false;
    for (size_t i = 0; i < requests->count && !is_wanted; i++) {
        struct error unused;
        struct document *document = NULL;
        struct checkpoint *adapter = checkpoint_open_side_files(requests->items[i].path, &unused);
        if (adapter != NULL && document_open(adapter, "adapter_config.json", &document, &unused))
            is_wanted = untie_is_wanted(document_root(document));
        document_close(document);
        checkpoint_close(adapter);
    }
    return !is_wanted || untie(checkpoint, error);
}

bool lora_merge(struct checkpoint *checkpoint, const struct lora_requests *requests, struct error *error)
{
    struct merging merging = {.base = checkpoint, .error = error};
    struct plain_set plain;
    if (requests->count == 0)
        return true;
    if (checkpoint->n_sources == 0)
        return components_ask_for_one(checkpoint->components, error);
    if (adapter_is_source(checkpoint))
        return error_set(error, "%s: an adapter is not merged into another", checkpoint->path);
    if (gguf_is_source(checkpoint)) {
        merging.gguf = gguf_merging_new(checkpoint, error);
        if (merging.gguf == NULL)
            return error_prefix(error, "%s", checkpoint->path);
        merging.named = gguf_merging_names(merging.gguf);
        return merge_all(&merging, requests);
    }
    if (!untie_for(checkpoint, requests, error) || !plain_checkpoint_make(checkpoint, &plain, error))
        return false;
    merging.named = checkpoint->tensors;
    merging.unpacked = plain.unpacked;
    return merge_all(&merging, requests);
}
