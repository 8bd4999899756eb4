#include "models/derive/derive.h"

#include "base/text.h"
#include "formats/components.h"
#include "formats/shape.h"
#include "models/derive/merging.h"
#include "models/facts.h"
#include "quant/views/convert.h"
#include "quant/views/unpack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Returns the colon that may begin a scale; NULL if there is none. The colon of a URL's port begins none. */
static const char *scale_colon(const char *text)
{
    const char *host = strstr(text, "://"), *colon = strrchr(text, ':');
    if (host == NULL)
        return colon;
    const char *path = strchr(host + strlen("://"), '/');
    return path != NULL && colon > path ? colon : NULL;
}

bool lora_request_parse(const char *text, struct arena *arena, struct lora_request *ret_request, struct error *error)
{
    const char *colon = scale_colon(text);
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

/* adapter_config.json. */

/* Kinds of initialization that change the base before training begins: such an adapter does not belong to the published
 * base. */
static const char *const changing_inits[] = {"pissa", "olora", "corda", "loftq", "lora_ga"};

/* Members of the configuration that change an adapter beyond its two matrices, if they are set. */
static const struct {
    const char *key, *what;
} variants[] = {
    {"use_qalora", "it is QALoRA"},
    {"use_bdlora", "it is BD-LoRA"},
    {"kasa_config", "it is KaSA"},
    {"arrow_config", "it is Arrow"},
    {"alora_invocation_tokens", "it is aLoRA (active only after certain tokens)"},
    {"layer_replication", "it replicates layers (layer_replication)"},
};

static bool says_something(const struct json *value)
{
    return json_count(value) > 0 || json_count_members(value) > 0 || json_bool(value, false);
}

static bool check_config(const struct json *config, struct error *error)
{
    const char *init = json_string(json_get(config, "init_lora_weights"), NULL);
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        if (says_something(json_get(config, variants[i].key)))
            return error_set(error, "%s, which cannot be merged", variants[i].what);
    for (size_t i = 0; init != NULL && i < sizeof changing_inits / sizeof *changing_inits; i++)
        if (strncasecmp(init, changing_inits[i], strlen(changing_inits[i])) == 0)
            return error_set(
                error, "it was trained on a modified base (init_lora_weights '%.40s'), which cannot be merged", init);
    return true;
}

/* Adds a pair's product to its weight; *ret_is_turned: the base stores the weight with rows and columns swapped. */
static bool merge_layer(const struct merging *merging, const struct adapter_pair *pair, bool *ret_is_turned)
{
    struct arena *arena = merging->merged->arena;
    const struct view *left = pair->left, *right = pair->right;
    uint64_t n_rows = left->shape[0], n_columns = right->shape[1];
    const struct tensor *tensor = merging_tensor(merging, pair->name);
    enum change change = PRODUCT_ADDED;
    float scale;
    if (tensor == NULL && (tensor = merging_tied(merging, pair->name)) != NULL)
        change = TIED_PRODUCT_ADDED;
    if (!merging_check(merging, tensor, pair->name) || !merging_scale(merging, pair->name, right->shape[0], &scale))
        return false;
    bool fits = tensor->rank == 2 && tensor->shape[0] == n_rows && tensor->shape[1] == n_columns;
    bool fits_turned = tensor->rank == 2 && tensor->shape[0] == n_columns && tensor->shape[1] == n_rows;
    bool may_turn = pair->is_embedding || pair->is_stored_turned ||
                    json_bool(json_get(merging->adapter->config, "fan_in_fan_out"), false);
    bool must_turn = pair->is_embedding || pair->is_stored_turned;
    if (!(fits && !must_turn) && !(fits_turned && may_turn))
        return merging_misfit(merging, tensor, pair->name, must_turn ? n_columns : n_rows,
                              must_turn ? n_rows : n_columns);
    if (!merging_change(merging, tensor, change, pair->name))
        return false;
    *ret_is_turned = fits_turned && may_turn;
    if (*ret_is_turned) {
        left = view_transpose(arena, pair->right);
        right = view_transpose(arena, pair->left);
    }
    merging_add(merging, tensor, scale, left, right);
    return true;
}

static bool merge_pair(const struct merging *merging, const struct adapter_pair *pair)
{
    bool is_merged = merging_stays_tied(merging, pair->name), is_dora = merging_is_dora(merging), is_turned = false;
    if (is_merged)
        return true;
    if (!merge_stack(merging, pair, &is_merged))
        return false;
    if (is_merged)
        return true;
    if (!merge_parameter(merging, pair, &is_merged))
        return false;
    if (is_merged)
        return !is_dora || error_set(merging->error, "tensor '%.200s' is a parameter, which DoRA cannot be merged into",
                                     pair->name);
    return merge_layer(merging, pair, &is_turned) && (!is_dora || merge_norms(merging, pair, is_turned));
}

/* Adds the bias of a matrix B to the bias of its weight. */
static bool merge_bias(const struct merging *merging, const struct tensor *bias, const char *name)
{
    struct arena *arena = merging->merged->arena, *scratch = merging->adapter->arena;
    int stem = (int)(strlen(name) - strlen(".lora_B.bias")), whole = (int)(strlen(bias->name) - strlen("bias"));
    const char *bias_name = arena_printf(scratch, "%.*s.bias", stem, name);
    const struct tensor *tensor = merging_tensor(merging, bias_name);
    const struct tensor *b = tensor_set_find_text(merging->adapter->checkpoint->tensors,
                                                  arena_printf(scratch, "%.*sweight", whole, bias->name));
    float scale;
    if (b == NULL)
        return error_set(merging->error, "tensor '%.200s' has no LoRA matrices", bias->name);
    if (merging->gguf != NULL)
        return error_set(merging->error, "tensor '%.200s' is a bias, which cannot be merged into a GGUF", bias->name);
    if (!merging_check_whole(merging, bias, tensor, bias_name) ||
        !merging_scale(merging, arena_printf(scratch, "%.*s.weight", stem, name), b->shape[1], &scale) ||
        !merging_change(merging, tensor, BIAS_ADDED, bias_name))
        return false;
    const struct view *scaled = view_combine_number(arena, tensor_view(bias, arena), MULTIPLY, scale);
    const struct view **view = merging_view(merging, tensor);
    *view = view_combine(arena, *view, ADD, scaled, &(struct sharing){1, 1, NULL});
    return true;
}

/* Merges the tensors outside pairs; before the pairs, because a replaced tensor loses what was added to it before. */
static bool merge_others(struct merging *merging)
{
    const struct adapter *adapter = merging->adapter;
    for (size_t i = 0; i < adapter->n_others; i++) {
        const struct tensor *tensor = adapter->others[i];
        const char *name = adapter->other_names[i];
        if (merging_is_dora(merging) && merging_is_norms(name))
            continue; /* of a pair */
        if (strstr(name, "lora_") != NULL && !text_ends_with(name, ".lora_B.bias"))
            return error_set(merging->error, "tensor '%.200s' is not a LoRA tensor", tensor->name);
        if (!text_ends_with(name, ".lora_B.bias") && !merge_whole(merging, tensor, name))
            return false;
    }
    for (size_t i = 0; i < adapter->n_others; i++)
        if (text_ends_with(adapter->other_names[i], ".lora_B.bias") &&
            !merge_bias(merging, adapter->others[i], adapter->other_names[i]))
            return false;
    return true;
}

static bool merge_tensors(struct merging *merging)
{
    if (says_something(json_get(merging->adapter->config, "trainable_token_indices")) && !merging_has_rows(merging))
        return error_set(merging->error,
                         "adapter_config.json: trainable_token_indices names tokens, but the adapter has no rows for "
                         "them (trainable_tokens_delta)");
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
    bool merged =
        merging->ranks != NULL && merging->alphas != NULL && merge_find_usual_fit(merging) && merge_tensors(merging);
    module_patterns_free(merging->ranks);
    module_patterns_free(merging->alphas);
    return merged;
}

static void release_adapter(void *adapter)
{
    adapter_close(adapter);
}

/* Opens an adapter, which the merged checkpoint keeps from then on, and merges it. */
static bool merge_request(struct merging *merging, const struct lora_request *request)
{
    const struct checkpoint *checkpoint = derive_open(request->path, merging->base, merging->error);
    if (checkpoint == NULL)
        return false;
    struct adapter *adapter = adapter_open(checkpoint, merging->error);
    checkpoint_use(merging->merged, BASE_ADAPTER, checkpoint);
    if (adapter == NULL)
        return error_prefix(merging->error, "%s", request->path);
    arena_on_free(merging->merged->arena, release_adapter, adapter);
    const struct checkpoint *base = merging->gguf != NULL ? gguf_merging_base(merging->gguf) : merging->base;
    if (!adapter_use_base_names(adapter, base, merging->error))
        return error_prefix(merging->error, "%s", request->path);
    merging->adapter = adapter;
    merging->scale = request->scale;
    memset(merging->changes, 0, merging->named->n_tensors);
    if (!merge_adapter(merging) || (merging->gguf != NULL && !gguf_merging_apply(merging->gguf, merging->error)))
        return error_prefix(merging->error, "%s", request->path);
    checkpoint_note(merging->merged, SUBJECT_SOURCE, "merged with %s: %zu weights%s", request->path, adapter->n_pairs,
                    adapter->n_others > 0 ? ", and whole tensors" : "");
    return true;
}

/* Gives the merged checkpoint its tensors, in the dtypes of the base. */
static bool finish(struct merging *merging)
{
    const struct tensor_set *set = merging->base->tensors;
    struct checkpoint *merged = merging->merged;
    for (size_t i = 0; i < set->n_tensors; i++)
        if (merging->views[i] != NULL)
            merging->views[i] = view_convert(merged->arena, merging->views[i], set->tensors[i].dtype);
    if (!merging->has_new_shapes) {
        merged->tensors = tensor_set_with_views(merged->arena, set, merging->views);
        return true;
    }
    struct tensor_set *reshaped = tensor_set_new(merged->arena);
    for (size_t i = 0; i < set->n_tensors; i++)
        if (merging_drops(merging, &set->tensors[i]))
            continue;
        else if (merging->views[i] != NULL)
            tensor_set_add_view(reshaped, set->tensors[i].name, merging->views[i]);
        else
            tensor_set_add(reshaped, &set->tensors[i]);
    for (size_t i = 0; i < merging->n_added; i++)
        tensor_set_add(reshaped, &merging->added[i]);
    merged->tensors = reshaped;
    return tensor_set_seal(reshaped, merging->error) && merge_vocabulary(merging) && merge_classifier(merging);
}

/* Merges all adapters, in the order of the requests; merging->named must be set. */
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
        merged = finish(merging);
    free(merging->added);
    free(merging->views);
    free(merging->changes);
    return merged;
}

bool lora_adapts(const struct checkpoint *checkpoint, const struct lora_requests *requests)
{
    return requests->count > 0 && checkpoint->n_sources > 0 && facts_of(checkpoint).has_class_names;
}

static bool apply(const struct checkpoint *from, const struct derive_options *options, struct checkpoint **ret_derived,
                  struct error *error)
{
    if (options->loras.count == 0)
        return true;
    if (from->n_sources == 0)
        return components_ask_for_one(from->components, error);
    if (facts_of(from).is_adapter)
        return error_set(error, "%s: an adapter cannot be merged into another adapter", from->path);
    *ret_derived = checkpoint_derive(from);
    struct merging merging = {.base = from, .merged = *ret_derived, .named = from->tensors, .error = error};
    if (facts_of(from).keys != NULL) {
        merging.gguf = gguf_merging_new(*ret_derived, from, error);
        if (merging.gguf == NULL)
            return error_prefix(error, "%s", from->path);
        merging.named = gguf_merging_names(merging.gguf);
    }
    return merge_all(&merging, &options->loras);
}

const struct derivation merge_derivation = {.option = "lora", .apply = apply};
