#include "models/derive/adapter.h"

#include "base/text.h"
#include "formats/documents.h"
#include "formats/huggingface/hub_cache.h"
#include "formats/shape.h"
#include "models/derive/foreign_names.h"
#include "models/facts.h"
#include "quant/views/convert.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char config_name[] = "adapter_config.json", model_prefix[] = "base_model.model.";

/* The ends of the names of A and B: the two halves of a pair. */
static const struct half {
    const char *suffix;
    bool is_b, is_embedding;
    bool is_turned; /* mlx-lm's: A is [in, rank], B [rank, out] */
} halves[] = {
    {".lora_A.weight", false, false},  {".lora_B.weight", true, false}, {".lora_embedding_A", false, true},
    {".lora_embedding_B", true, true}, {".lora_a", false, false, true}, {".lora_b", true, false, true},
};

void adapter_close(struct adapter *adapter)
{
    if (adapter == NULL)
        return;
    document_close(adapter->document);
    arena_free(adapter->arena);
    free(adapter);
}

/* Pairs. */

static const struct half *half_of(const char *name)
{
    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++)
        if (text_ends_with(name, halves[i].suffix))
            return &halves[i];
    return NULL;
}

/* Returns a name without that of the adapter, which peft leaves out when it saves and a module's state dict has:
 * "lora_A.default.weight". */
static const char *without_adapter(struct arena *arena, const char *name)
{
    static const char *const parts[] = {".lora_A.",
                                        ".lora_B.",
                                        ".lora_embedding_A.",
                                        ".lora_embedding_B.",
                                        ".lora_magnitude_vector.",
                                        ".trainable_tokens_delta."};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *found = strstr(name, parts[i]);
        if (found == NULL)
            continue;
        const char *adapter = found + strlen(parts[i]), *end = adapter + strcspn(adapter, ".");
        bool is_bare = strcmp(adapter, "weight") == 0 || strcmp(adapter, "bias") == 0;
        bool has_more = strcmp(end, ".weight") == 0 || strcmp(end, ".bias") == 0;
        if (!is_bare && (has_more || *end == '\0'))
            return arena_printf(arena, "%.*s%s", (int)(adapter - 1 - name), name, end);
    }
    return name;
}

static const char *without_prefix(const char *name)
{
    while (text_starts_with(name, model_prefix))
        name += strlen(model_prefix);
    return name;
}

static int compare_places(const void *a, const void *b)
{
    const struct tensor *x = *(const struct tensor *const *)a, *y = *(const struct tensor *const *)b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x > y) - (x < y);
}

/* Returns the tensors in the order that Python loads them in: by place in a safetensors file, else as pickled. */
static const struct tensor **in_order(const struct adapter *adapter)
{
    const struct checkpoint *checkpoint = adapter->checkpoint;
    const struct tensor_set *set = checkpoint->tensors;
    const struct tensor **ordered = arena_array(adapter->arena, set->n_tensors + 1, sizeof *ordered);
    for (size_t i = 0; i < set->n_tensors; i++)
        ordered[i] = &set->tensors[i];
    if (checkpoint->n_sources == 1 && text_ends_with(source_name(checkpoint->sources[0]), ".safetensors"))
        qsort(ordered, set->n_tensors, sizeof *ordered, compare_places);
    return ordered;
}

/* Orders pairs by name, then by place. */
static int compare_pairs(const void *a, const void *b)
{
    const struct adapter_pair *x = *(struct adapter_pair *const *)a, *y = *(struct adapter_pair *const *)b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x > y) - (x < y);
}

/* Joins the halves of each pair, in the place of the first one. */
static bool join_halves(struct adapter *adapter, struct error *error)
{
    struct adapter_pair **sorted = memory_alloc((adapter->n_pairs + 1) * sizeof *sorted);
    for (size_t i = 0; i < adapter->n_pairs; i++)
        sorted[i] = &adapter->pairs[i];
    qsort(sorted, adapter->n_pairs, sizeof *sorted, compare_pairs);
    bool good = true;
    for (size_t i = 0, end; i < adapter->n_pairs && good; i = end) {
        struct adapter_pair *first = sorted[i];
        for (end = i + 1; end < adapter->n_pairs && strcmp(sorted[end]->name, first->name) == 0; end++) {
            struct adapter_pair *other = sorted[end];
            bool twice = (first->a != NULL && other->a != NULL) || (first->b != NULL && other->b != NULL);
            if (twice || other->is_embedding != first->is_embedding)
                good = error_set(error, "'%.200s' is adapted twice", first->name);
            first->a = first->a != NULL ? first->a : other->a;
            first->b = first->b != NULL ? first->b : other->b;
            other->name = NULL;
        }
        if (good && (first->a == NULL || first->b == NULL))
            good = error_set(error, "tensor '%.200s' is unpaired: its lora_%s is missing",
                             first->a != NULL ? first->a->name : first->b->name, first->a != NULL ? "B" : "A");
    }
    free(sorted);
    size_t n_pairs = 0;
    for (size_t i = 0; i < adapter->n_pairs; i++)
        if (adapter->pairs[i].name != NULL)
            adapter->pairs[n_pairs++] = adapter->pairs[i];
    adapter->n_pairs = n_pairs;
    return good;
}

static const struct view *half_view(const struct adapter *adapter, const struct tensor *tensor, bool is_turned,
                                    struct error *error)
{
    char shape[SHAPE_MAX_RANK * 22];
    if (tensor->refusal != NULL)
        error_set(error, "tensor '%.200s': %s", tensor->name, tensor->refusal);
    else if (tensor->dtype->block_elements != 1 || dtype_kernels(tensor->dtype).decode == NULL)
        error_set(error, "tensor '%.200s' has the type %s, which adapters cannot have", tensor->name,
                  tensor->dtype->name);
    else if (tensor->rank != 2 && !(tensor->rank == 3 && is_turned))
        error_set(error, "tensor '%.200s' has the shape %s; it must be a matrix", tensor->name,
                  shape_text(tensor->shape, tensor->rank, shape, sizeof shape));
    else
        return is_turned && tensor->rank == 2 ? view_transpose(adapter->arena, tensor_view(tensor, adapter->arena))
                                              : tensor_view(tensor, adapter->arena);
    return NULL;
}

static bool check_pair(const struct adapter *adapter, struct adapter_pair *pair, struct error *error)
{
    char a[SHAPE_MAX_RANK * 22], b[SHAPE_MAX_RANK * 22];
    pair->right = half_view(adapter, pair->a, pair->is_turned, error);
    pair->left = pair->right != NULL ? half_view(adapter, pair->b, pair->is_turned, error) : NULL;
    if (pair->left == NULL)
        return false;
    unsigned rank = pair->right->rank;
    if (pair->left->rank != rank || pair->right->shape[rank - 2] != pair->left->shape[rank - 1] ||
        (rank == 3 && pair->right->shape[0] != pair->left->shape[0]))
        return error_set(error, "tensor '%.200s': the ranks of A %s and B %s differ", pair->name,
                         shape_text(pair->a->shape, pair->a->rank, a, sizeof a),
                         shape_text(pair->b->shape, pair->b->rank, b, sizeof b));
    return pair->right->shape[rank - 2] > 0 || error_set(error, "tensor '%.200s' has a rank of 0", pair->name);
}

/* Reports whether a module, the first `length` bytes of a name, is an embedding. */
static bool is_embedding(const char *name, size_t length)
{
    static const char *const ends[] = {"embed_tokens", "wte", "word_embeddings"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (length >= strlen(ends[i]) && memcmp(name + length - strlen(ends[i]), ends[i], strlen(ends[i])) == 0)
            return true;
    return false;
}

static bool find_pairs(struct adapter *adapter, struct error *error)
{
    size_t n_tensors = adapter->checkpoint->tensors->n_tensors;
    const struct tensor **ordered = in_order(adapter);
    adapter->pairs = arena_array(adapter->arena, n_tensors + 1, sizeof *adapter->pairs);
    adapter->others = arena_array(adapter->arena, n_tensors + 1, sizeof *adapter->others);
    adapter->other_names = arena_array(adapter->arena, n_tensors + 1, sizeof *adapter->other_names);
    for (size_t i = 0; i < n_tensors; i++) {
        const struct tensor *tensor = ordered[i];
        const char *name = without_adapter(adapter->arena, without_prefix(tensor->name));
        const struct half *half = half_of(name);
        if (half == NULL) {
            adapter->others[adapter->n_others] = tensor;
            adapter->other_names[adapter->n_others++] = name;
            continue;
        }
        int stem = (int)(strlen(name) - strlen(half->suffix));
        adapter->pairs[adapter->n_pairs++] = (struct adapter_pair){
            .name = arena_printf(adapter->arena, "%.*s.weight", stem, name),
            .a = half->is_b ? NULL : tensor,
            .b = half->is_b ? tensor : NULL,
            .is_embedding = half->is_embedding || (half->is_turned && is_embedding(name, (size_t)stem)),
            .is_turned = half->is_turned,
        };
    }
    if (!join_halves(adapter, error))
        return false;
    for (size_t i = 0; i < adapter->n_pairs; i++)
        if (!check_pair(adapter, &adapter->pairs[i], error))
            return false;
    return true;
}

/* adapter_config.json. */

static bool read_config(struct adapter *adapter, struct error *error)
{
    if (!document_open(adapter->checkpoint, config_name, &adapter->document, error))
        return false;
    adapter->config = document_root(adapter->document);
    if (adapter->config == NULL)
        return error_set(error, "%s is missing", config_name);
    const char *kind = json_string(json_get(adapter->config, "peft_type"), NULL);
    return kind == NULL || strcmp(kind, "LORA") == 0 ||
           error_set(error, "%s: unsupported peft_type %.64s: only LORA is supported", config_name, kind);
}

struct adapter *adapter_open(const struct checkpoint *checkpoint, struct error *error)
{
    struct adapter *adapter = memory_alloc(sizeof *adapter);
    *adapter = (struct adapter){.checkpoint = checkpoint, .arena = arena_new()};
    if (read_config(adapter, error) && find_pairs(adapter, error))
        return adapter;
    adapter_close(adapter);
    return NULL;
}

/* Gets the scale of mlx-lm's adapters, lora_parameters.scale; false: it is no such adapter. */
static bool mlx_scale(const struct json *config, double *ret_scale)
{
    return json_double(json_get(json_get(config, "lora_parameters"), "scale"), ret_scale);
}

bool adapter_is_mlx(const struct json *config)
{
    double unused;
    return mlx_scale(config, &unused);
}

bool adapter_scale(const struct json *config, const struct module_patterns *ranks, const struct module_patterns *alphas,
                   const char *name, uint64_t rank, double *ret_scale, struct error *error)
{
    size_t length = strlen(name) - strlen(".weight");
    const struct json *own_rank, *own_alpha;
    uint64_t said;
    double alpha;
    if (mlx_scale(config, ret_scale))
        return true;
    if (!module_patterns_find(ranks, name, length, &own_rank, error) ||
        !module_patterns_find(alphas, name, length, &own_alpha, error))
        return false;
    if (!json_u64(own_rank != NULL ? own_rank : json_get(config, "r"), &said))
        return error_set(error, "adapter_config.json has no rank for '%.200s'", name);
    if (said != rank)
        return error_set(error, "tensor '%.200s' has rank %" PRIu64 ", but adapter_config.json says %" PRIu64, name,
                         rank, said);
    if (!json_double(own_alpha != NULL ? own_alpha : json_get(config, "lora_alpha"), &alpha))
        return error_set(error, "adapter_config.json: lora_alpha of '%.200s' is not a number", name);
    bool is_rs = json_bool(json_get(config, "use_rslora"), false);
    *ret_scale = alpha / (is_rs ? sqrt((double)rank) : (double)rank);
    return true;
}

const char *adapter_summary(const struct checkpoint *checkpoint, struct arena *arena)
{
    struct document *document;
    struct error unused;
    size_t n_pairs = 0;
    if (!document_open(checkpoint, config_name, &document, &unused))
        return "of unknown type";
    const struct json *config = document_root(document);
    for (size_t i = 0; i < checkpoint->tensors->n_tensors; i++) {
        const struct half *half = half_of(without_adapter(arena, checkpoint->tensors->tensors[i].name));
        n_pairs += half != NULL && half->is_b;
    }
    const char *kind = json_string(json_get(config, "peft_type"), NULL),
               *base = json_string(json_get(config, "base_model_name_or_path"), NULL),
               *rank = json_number_text(json_get(config, "r")),
               *alpha = json_number_text(json_get(config, "lora_alpha"));
    bool is_lora = kind == NULL || strcmp(kind, "LORA") == 0, is_rs = json_bool(json_get(config, "use_rslora"), false);
    const char *name = is_lora ? "LoRA" : kind;
    if (is_rs)
        name = "rsLoRA";
    if (json_bool(json_get(config, "use_dora"), false))
        name = "DoRA";
    const char *summary =
        arena_printf(arena, "%s of %zu weights of %s%s%s%s%s", name, n_pairs, base != NULL ? base : "an unnamed model",
                     rank != NULL ? ", rank " : "", rank != NULL ? rank : "", alpha != NULL ? ", alpha " : "",
                     alpha != NULL ? alpha : "");
    document_close(document);
    return summary;
}

const char *adapter_find_base(const struct checkpoint *checkpoint, struct arena *arena, struct error *error)
{
    struct document *document;
    if (!document_open(checkpoint, config_name, &document, error))
        return NULL;
    const struct json *config = document_root(document);
    const char *name = json_string(json_get(config, "base_model_name_or_path"), NULL),
               *revision = json_string(json_get(config, "revision"), NULL), *base = NULL;
    if (name == NULL || *name == '\0')
        error_set(error, "%s does not name its base model; use -o base=DIR", config_name);
    else if ((base = hub_cache_find(arena, name, revision,
                                    checkpoint->follows_links ? LOCATION_FOLLOW : LOCATION_INSIDE, error)) == NULL)
        error_prefix(error, "cannot find the base model, use -o base=DIR");
    document_close(document);
    return base;
}

/* Adapters of mlx-lm under the names that transformers has for the modules. */

static void rename_pair(struct arena *arena, struct adapter_pair *pair, const char *model_type)
{
    const char *module = arena_strndup(arena, pair->name, strlen(pair->name) - strlen(".weight"));
    struct mlx_place place = mlx_place_of(arena, model_type, module);
    pair->name = arena_printf(arena, "%s.weight", place.path);
    pair->half = place.half;
    pair->is_stored_turned = place.is_transposed;
}

bool adapter_use_base_names(struct adapter *adapter, const struct checkpoint *base, struct error *error)
{
    bool is_mlx = false;
    for (size_t i = 0; i < adapter->n_pairs; i++)
        is_mlx |= adapter->pairs[i].is_turned;
    if (!is_mlx)
        return true;
    if (!adapter_is_mlx(adapter->config))
        return error_set(error, "adapter_config.json has no lora_parameters.scale, which mlx-lm's matrices need");
    struct error unused;
    const struct config_facts *config = config_facts_of(base, &unused);
    const char *type = config != NULL ? config->model_type : NULL;
    for (size_t i = 0; i < adapter->n_pairs && type != NULL; i++)
        if (adapter->pairs[i].is_turned)
            rename_pair(adapter->arena, &adapter->pairs[i], type);
    return true;
}
