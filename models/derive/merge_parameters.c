#include "base/arena.h"
#include "base/text.h"
#include "formats/shape.h"
#include "models/derive/merging.h"
#include "quant/views/convert.h"
#include "quant/views/norms.h"
#include "quant/views/product.h"

#include <inttypes.h>
#include <string.h>

struct parameter {
    const char *name; /* the adapter's name for it; NULL: the base lacks it */
    const struct tensor *tensor;
    const struct layers *layers; /* if the base has a matrix for each expert instead of the tensor */
    unsigned rank, n_parts;
    uint64_t shape[3];
    enum parameter_fit fit;
};

/* Layers in files that transformers 5 stacks into one parameter per module, with the rows of parts[0] first. */
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
    return json_first(json_get(merging->adapter->config, "target_parameters"));
}

static const struct tensor *find_layer(const struct merging *merging, const char *parameter, uint64_t expert,
                                       const char *part)
{
    int module = (int)(strrchr(parameter, '.') - parameter);
    return merging_tensor(
        merging, arena_printf(merging->adapter->arena, "%.*s.%" PRIu64 ".%s.weight", module, parameter, expert, part));
}

/* Finds the layers in the base that make up a parameter, by the first expert's. */
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

/* Collects the names that target_parameters give the parameters of a pair's module, each once; returns their number. */
static size_t names_of_module(const struct merging *merging, const struct adapter_pair *pair,
                              const char *names[MODULE_MAX_PARAMETERS])
{
    size_t n_names = 0, i;
    const struct json *target = pair->left->rank == 2 ? first_target(merging) : NULL;
    for (; target != NULL && n_names < MODULE_MAX_PARAMETERS; target = json_next(target)) {
        const char *text = json_string(target, NULL);
        const char *name = text != NULL ? parameter_name(merging->adapter->arena, pair, text) : NULL;
        if (name == NULL)
            continue;
        for (i = 0; i < n_names && strcmp(names[i], name) != 0; i++)
            ;
        names[i] = name;
        n_names += i == n_names;
    }
    return n_names;
}

/* Returns the parameter of that name, and how the pair fits it; its name is NULL if the base lacks it. */
static struct parameter named_parameter(const struct merging *merging, const struct adapter_pair *pair,
                                        const char *name)
{
    struct parameter parameter = {0};
    const struct tensor *tensor = merging_tensor(merging, name);
    if (tensor != NULL && tensor->rank <= 3) {
        parameter = (struct parameter){.name = name, .tensor = tensor, .rank = tensor->rank};
        memcpy(parameter.shape, tensor->shape, tensor->rank * sizeof *tensor->shape);
    } else {
        find_layers(merging, name, &parameter);
    }
    if (parameter.name != NULL)
        parameter.fit = parameter_fit(pair, parameter.rank, parameter.shape);
    return parameter;
}

bool merge_find_usual_fit(struct merging *merging)
{
    enum { MOST_SEARCHES = 1 << 20 };
    const struct adapter *adapter = merging->adapter;
    size_t n_targets = json_count(json_get(adapter->config, "target_parameters"));
    size_t most = MOST_SEARCHES / (adapter->n_pairs + 1);
    if (n_targets > most)
        return error_set(merging->error, "adapter_config.json: target_parameters has %zu names, more than %zu",
                         n_targets, most);
    merging->usual_fit = 0;
    for (size_t i = 0; i < adapter->n_pairs && merging->usual_fit == 0; i++) {
        const char *names[MODULE_MAX_PARAMETERS];
        size_t n_names = names_of_module(merging, &adapter->pairs[i], names);
        for (size_t j = 0; j < n_names && merging->usual_fit == 0; j++) {
            struct parameter parameter = named_parameter(merging, &adapter->pairs[i], names[j]);
            if (parameter.rank == 3 && parameter.fit != (FITS | FITS_TURNED))
                merging->usual_fit = parameter.fit;
        }
    }
    return true;
}

/* Finds the only parameter of its module that a pair fits; none if the base has no parameter of the module's names. */
static bool find_parameter(const struct merging *merging, const struct adapter_pair *pair, struct parameter *ret_found)
{
    char a[64], b[64];
    const char *named = NULL, *names[MODULE_MAX_PARAMETERS];
    size_t n_found = 0, n_names = names_of_module(merging, pair, names);
    *ret_found = (struct parameter){0};
    for (size_t i = 0; i < n_names; i++) {
        struct parameter parameter = named_parameter(merging, pair, names[i]);
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
                     shape_text(pair->a->shape, 2, a, sizeof a), shape_text(pair->b->shape, 2, b, sizeof b),
                     n_found == 0 ? "none" : "several");
}

/* Adds a parameter's product to the matrices that make up the parameter, to each its own rows. */
static bool merge_layers(const struct merging *merging, const struct parameter *parameter, float scale,
                         const struct view *left, const struct view *right)
{
    struct arena *arena = merging->merged->arena;
    uint64_t n_rows = parameter->shape[1] / parameter->n_parts, n_terms = left->shape[2];
    for (uint64_t expert = 0; expert < parameter->shape[0]; expert++) {
        const struct view *own = view_slice(arena, right, 0, expert, 1, 1);
        own = view_reshape(arena, own, 2, (const uint64_t[]){n_terms, parameter->shape[2]});
        for (unsigned i = 0; i < parameter->n_parts; i++) {
            const struct view *rows =
                view_slice(arena, view_slice(arena, left, 0, expert, 1, 1), 1, i * n_rows, n_rows, 1);
            rows = view_reshape(arena, rows, 2, (const uint64_t[]){n_rows, n_terms});
            const struct tensor *tensor = find_layer(merging, parameter->name, expert, parameter->layers->parts[i]);
            if (!merging_add_once(merging, tensor, tensor != NULL ? tensor->name : parameter->name, scale, rows, own))
                return false;
        }
    }
    return true;
}

static bool add_to_parameter(const struct merging *merging, const struct adapter_pair *pair,
                             const struct parameter *parameter)
{
    const struct view *left, *right;
    float scale;
    parameter_factors(merging->merged->arena, pair, parameter->rank, parameter->shape, parameter->fit, &left, &right);
    const char *weight = arena_printf(merging->adapter->arena, "%s.weight", parameter->name);
    if (!merging_scale(merging, weight, left->shape[left->rank - 1], &scale))
        return false;
    if (parameter->layers != NULL)
        return merge_layers(merging, parameter, scale, left, right);
    return merging_add_once(merging, parameter->tensor, parameter->name, scale, left, right);
}

bool merge_parameter(const struct merging *merging, const struct adapter_pair *pair, bool *ret_merged)
{
    struct parameter parameter;
    if (!find_parameter(merging, pair, &parameter))
        return false;
    *ret_merged = parameter.name != NULL;
    return !*ret_merged || add_to_parameter(merging, pair, &parameter);
}

const char *parameter_name(struct arena *arena, const struct adapter_pair *pair, const char *target)
{
    static const char weight[] = ".weight", wrapped[] = ".base_layer";
    const char *dot = strrchr(target, '.'), *parameter = dot != NULL ? dot + 1 : target;
    size_t length = strlen(pair->name) - strlen(weight), wanted = dot != NULL ? (size_t)(dot - target) : 0;
    for (int i = 0; i < MODULE_MAX_PARAMETERS && length > strlen(wrapped); i++)
        if (strncmp(pair->name + length - strlen(wrapped), wrapped, strlen(wrapped)) == 0)
            length -= strlen(wrapped);
    if (wanted > length || strncmp(pair->name + length - wanted, target, wanted) != 0)
        return NULL;
    bool is_whole = dot == NULL || wanted == length || pair->name[length - wanted - 1] == '.';
    return is_whole ? arena_printf(arena, "%.*s.%s", (int)length, pair->name, parameter) : NULL;
}

unsigned parameter_fit(const struct adapter_pair *pair, unsigned rank, const uint64_t *shape)
{
    uint64_t n_rows = pair->left->shape[0], n_columns = pair->right->shape[1];
    if (rank == 2)
        return n_rows == shape[0] && n_columns == shape[1] ? FITS : 0;
    if (rank != 3 || shape[0] == 0 || pair->right->shape[0] % shape[0] != 0)
        return 0;
    unsigned fits = n_rows == shape[1] && n_columns == shape[2] ? FITS : 0;
    return fits | (n_rows == shape[2] && n_columns == shape[1] ? FITS_TURNED : 0);
}

void parameter_factors(struct arena *arena, const struct adapter_pair *pair, unsigned rank, const uint64_t *shape,
                       enum parameter_fit fit, const struct view **ret_left, const struct view **ret_right)
{
    *ret_left = pair->left;
    *ret_right = pair->right;
    if (rank == 2)
        return;
    uint64_t n_experts = shape[0], n_terms = pair->right->shape[0] / n_experts;
    const uint64_t a[] = {n_experts, n_terms, pair->right->shape[1]}, b[] = {pair->left->shape[0], n_terms, n_experts};
    static const unsigned expert_first[] = {2, 0, 1};
    *ret_left = view_permute(arena, view_reshape(arena, pair->left, 3, b), expert_first);
    *ret_right = view_reshape(arena, pair->right, 3, a);
    if (fit == FITS_TURNED) {
        const struct view *turned = view_transpose(arena, *ret_left);
        *ret_left = view_transpose(arena, *ret_right);
        *ret_right = turned;
    }
}

/* mlx-lm's pairs for stacks of experts, and for halves of what is one tensor in the base. */

static const char each[] = "{}", merge_stack_weight[] = ".weight";

/* Returns the base's tensor of a module: "MODULE.weight", or "MODULE", as stacks may be named. */
static const struct tensor *find_stack(const struct merging *merging, const char *name)
{
    const struct tensor *found = merging_tensor(merging, name);
    if (found != NULL)
        return found;
    return merging_tensor(merging,
                          arena_strndup(merging->adapter->arena, name, strlen(name) - strlen(merge_stack_weight)));
}

const char *adapter_expert_name(struct arena *arena, const struct adapter_pair *pair, uint64_t expert)
{
    const char *at = strstr(pair->name, each);
    return arena_printf(arena, "%.*s%" PRIu64 "%s", (int)(at - pair->name), pair->name, expert, at + strlen(each));
}

const struct view *adapter_expert_matrix(struct arena *arena, const struct view *stack, uint64_t expert)
{
    return view_reshape(arena, view_slice(arena, stack, 0, expert, 1, 1), 2, stack->shape + 1);
}

/* Adds a stack's products to the matrices of the experts. */
static bool merge_experts(const struct merging *merging, const struct adapter_pair *pair, float scale)
{
    struct arena *arena = merging->merged->arena;
    for (uint64_t i = 0; i < pair->left->shape[0]; i++) {
        const char *name = adapter_expert_name(merging->adapter->arena, pair, i);
        if (!merging_add_once(merging, merging_tensor(merging, name), name, scale,
                              adapter_expert_matrix(arena, pair->left, i),
                              adapter_expert_matrix(arena, pair->right, i)))
            return false;
    }
    return true;
}

/* Adds a product to one half of a tensor's rows or, if it is stored transposed, columns. */
static bool merge_half(const struct merging *merging, const struct tensor *tensor, const struct adapter_pair *pair,
                       enum mlx_half half, float scale)
{
    struct arena *arena = merging->merged->arena;
    const struct view *left = pair->left, *right = pair->right, *halves[2];
    unsigned rank = left->rank, axis = pair->is_stored_turned ? rank - 1 : rank - 2, other = rank - 1 + rank - 2 - axis;
    uint64_t n = left->shape[rank - 2];
    if (merging->gguf != NULL)
        return error_set(merging->error, "tensor '%.200s' is half of a tensor, which cannot be merged into a GGUF",
                         pair->name);
    if (!merging_check(merging, tensor, pair->name))
        return false;
    if (tensor->rank != rank || tensor->shape[axis] % 2 != 0 || tensor->shape[axis] / 2 != n ||
        tensor->shape[other] != right->shape[rank - 1] || (rank == 3 && tensor->shape[0] != left->shape[0]))
        return merging_misfit(merging, tensor, pair->name, n, right->shape[rank - 1]);
    if (!merging_change(merging, tensor, half == MLX_FIRST_HALF ? FIRST_HALF_ADDED : SECOND_HALF_ADDED, pair->name))
        return false;
    const struct view **view = merging_view(merging, tensor);
    for (unsigned i = 0; i < 2; i++)
        halves[i] = view_convert(arena, view_slice(arena, *view, axis, i * n, n, 1), &f32_dtype);
    const struct view **changed = &halves[half == MLX_FIRST_HALF ? 0 : 1];
    if (pair->is_stored_turned) {
        left = view_transpose(arena, pair->right);
        right = view_transpose(arena, pair->left);
    }
    *changed = view_add_product(arena, *changed, scale, left, right);
    *view = view_concatenate(arena, halves, 2, axis);
    return true;
}

/* Parts of an expert's name, and where a stack that has both matrices of all experts, or one, holds them. */
static const struct {
    const char *part, *stack;
    enum mlx_half half;
} fused[] = {
    {"gate_proj", "gate_up_proj", MLX_FIRST_HALF}, {"w1", "gate_up_proj", MLX_FIRST_HALF},
    {"up_proj", "gate_up_proj", MLX_SECOND_HALF},  {"w3", "gate_up_proj", MLX_SECOND_HALF},
    {"down_proj", "down_proj", MLX_WHOLE},         {"w2", "down_proj", MLX_WHOLE},
};

/* Finds the stack of a base that holds all experts in one tensor; false: the base has a matrix for each. */
static bool find_fused(const struct merging *merging, const struct adapter_pair *pair, const struct tensor **ret_tensor,
                       enum mlx_half *ret_half)
{
    const char *at = strstr(pair->name, each), *part = at + strlen(each) + 1;
    for (size_t i = 0; i < sizeof fused / sizeof *fused; i++) {
        size_t length = strlen(fused[i].part);
        if (strncmp(part, fused[i].part, length) != 0 || strcmp(part + length, merge_stack_weight) != 0)
            continue;
        *ret_tensor = find_stack(merging, arena_printf(merging->adapter->arena, "%.*s%s%s", (int)(at - pair->name),
                                                       pair->name, fused[i].stack, merge_stack_weight));
        *ret_half = fused[i].half;
        return *ret_tensor != NULL;
    }
    return false;
}

static bool merge_whole_stack(const struct merging *merging, const struct tensor *tensor,
                              const struct adapter_pair *pair, float scale)
{
    struct arena *arena = merging->merged->arena;
    const struct view *left = pair->left, *right = pair->right;
    if (pair->is_stored_turned) {
        left = view_transpose(arena, pair->right);
        right = view_transpose(arena, pair->left);
    }
    return merging_add_once(merging, tensor, pair->name, scale, left, right);
}

bool merge_stack(const struct merging *merging, const struct adapter_pair *pair, bool *ret_merged)
{
    const struct tensor *tensor = NULL;
    enum mlx_half half = pair->half;
    float scale;
    *ret_merged = pair->left->rank == 3 || half != MLX_WHOLE;
    if (!*ret_merged)
        return true;
    if (merging_is_dora(merging))
        return error_set(merging->error, "tensor '%.200s' is a part of a tensor, which DoRA cannot be merged into",
                         pair->name);
    if (!merging_scale(merging, pair->name, pair->left->shape[pair->left->rank - 1], &scale))
        return false;
    bool is_each = pair->left->rank == 3 && strstr(pair->name, each) != NULL;
    if (is_each && !find_fused(merging, pair, &tensor, &half))
        return merge_experts(merging, pair, scale);
    if (!is_each)
        tensor = find_stack(merging, pair->name);
    return half == MLX_WHOLE ? merge_whole_stack(merging, tensor, pair, scale)
                             : merge_half(merging, tensor, pair, half, scale);
}

/* DoRA: W becomes m (W + scale B A) / |W + scale B A|, with a norm m for each output of the layer. Outputs are rows of
 * a weight, but columns of one that is stored transposed, and of embeddings; mlx-lm has a norm for each token instead.
 *
 * Sources: peft, tuners/lora/dora.py and variants.py; mlx-lm, tuner/dora.py. */

static const char norms_name[] = ".lora_magnitude_vector", mlx_norms_name[] = ".m";

bool merging_is_dora(const struct merging *merging)
{
    const struct json *config = merging->adapter->config;
    return json_bool(json_get(config, "use_dora"), false) || json_string_is(json_get(config, "fine_tune_type"), "dora");
}

bool merging_is_norms(const char *name)
{
    return strstr(name, norms_name) != NULL || text_ends_with(name, mlx_norms_name);
}

/* Returns the norms of a pair's layer; NULL: none. "lora_B.default.weight" has the adapter's name, and so have its
 * norms. */
static const struct tensor *find_norms(const struct merging *merging, const struct adapter_pair *pair)
{
    static const char *const ends[] = {"", ".weight"};
    const struct tensor_set *set = merging->adapter->checkpoint->tensors;
    struct arena *arena = merging->adapter->arena;
    const char *b = pair->is_turned ? ".lora_b" : pair->is_embedding ? ".lora_embedding_B" : ".lora_B";
    const char *name = pair->b->name, *at = strstr(name, b), *after = at + strlen(b);
    const struct tensor *found = NULL;
    if (pair->is_turned)
        return tensor_set_find_text(set, arena_printf(arena, "%.*s%s", (int)(at - name), name, mlx_norms_name));
    size_t of_adapter = strcmp(after, ".weight") == 0 || *after == '\0' ? 0 : 1 + strcspn(after + 1, ".");
    for (size_t i = 0; i < sizeof ends / sizeof *ends && found == NULL; i++)
        found = tensor_set_find_text(set, arena_printf(arena, "%.*s%s%.*s%s", (int)(at - name), name, norms_name,
                                                       (int)of_adapter, after, ends[i]));
    return found;
}

bool merge_norms(const struct merging *merging, const struct adapter_pair *pair, bool is_turned)
{
    struct checkpoint *merged = merging->merged;
    const struct tensor *norms = find_norms(merging, pair), *tensor = merging_tensor(merging, pair->name);
    bool is_of_rows = pair->is_turned ? !pair->is_stored_turned : !is_turned;
    if (norms == NULL)
        return error_set(merging->error, "tensor '%.200s' has no %s, which DoRA needs", pair->name,
                         pair->is_turned ? mlx_norms_name + 1 : norms_name + 1);
    if (tensor == NULL)
        return error_set(merging->error, "tensor '%.200s': DoRA cannot be merged into an output that is the embedding",
                         pair->name);
    if (norms->refusal != NULL || dtype_kernels(norms->dtype).decode == NULL || norms->rank != 1 ||
        norms->shape[0] != tensor->shape[is_of_rows ? 0 : 1])
        return error_set(merging->error, "tensor '%.200s' is no list of a norm for each %s of '%.200s'", norms->name,
                         is_of_rows ? "row" : "column", pair->name);
    if (merging->gguf != NULL && gguf_merging_is_changed(merging->gguf))
        return error_set(merging->error, "tensor '%.200s': DoRA cannot be merged into a GGUF after another adapter",
                         pair->name);
    const struct view **view = merging_view(merging, tensor), *values = tensor_view(norms, merged->arena);
    *view = is_of_rows ? view_with_row_norms(merged->arena, *view, values)
                       : view_with_column_norms(merged->arena, *view, values, merged->findings);
    if (merging->gguf != NULL)
        gguf_merging_replace(merging->gguf, tensor->name, *view);
    return true;
}
