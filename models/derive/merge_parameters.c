#include "base/text.h"
#include "models/derive/merging.h"

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
