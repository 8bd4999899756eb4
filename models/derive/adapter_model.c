/* The GGUF of an adapter, as convert_lora_to_gguf.py writes it: the base's family relates the adapted weights, which
 * are products of two matrices, and the GGUF has both matrices. */
#include "models/derive/adapter.h"

#include "base/text.h"
#include "formats/documents.h"
#include "models/card/general.h"
#include "models/facts.h"
#include "models/family/tensors.h"
#include "models/relation/rearrangement.h"
#include "quant/views/product.h"
#include "quant/views/unpack.h"

#include <math.h>
#include <string.h>

enum { QUANTIZATION_VERSION = 2 };

/* Reports whether a whole tensor of an adapter is a norm; mergekit extracts those. */
static bool is_norm(const char *name)
{
    return strstr(name, "_layernorm") != NULL || strstr(name, ".norm") != NULL;
}

/* Returns the reason why the converter refuses adapters with that tensor. */
static const char *why_refused(const char *name)
{
    if (strstr(name, "lora_magnitude_vector") != NULL || text_ends_with(name, ".m"))
        return "GGUF adapters do not support DoRA";
    if (strstr(name, ".embed_tokens.weight") != NULL || strstr(name, "lm_head.weight") != NULL)
        return "GGUF adapters do not support whole embeddings (new tokens?)";
    return "the tensor is neither lora_A nor lora_B";
}

/* The inputs of peft's scales. */
struct scales {
    const struct json *config;
    struct module_patterns *ranks, *alphas;
};

/* The base family's names for an adapter's tensors. */
struct naming {
    const struct model_builder *builder;
    const struct relation *relation;
    struct arena *arena;
    const struct scales *scales; /* to fold into lora_b; NULL: none */
};

/* Returns the base's name of a tensor, and in *ret_entry its row; NULL: it belongs to another part of a multimodal
 * model. Adapters of a model without its head (AutoModel) lack the prefix that the model has inside the one with a
 * head. An unknown tensor keeps its name, and has no row. */
static const char *name_in_base(const struct naming *naming, const char *name, const struct relation_entry **ret_entry)
{
    static const char *const prefixes[] = {"", "model.", "transformer.", "gpt_neox."};
    const struct model_builder *builder = naming->builder;
    struct relation_match match;
    *ret_entry = NULL;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        const char *longer = arena_printf(naming->arena, "%s%s", prefixes[i], name);
        const char *known =
            family_tensor_name(builder->family, builder->hf, &builder->dimensions, longer, naming->arena);
        if (known == NULL)
            return NULL;
        if (!relation_find(naming->relation, FORWARD, &builder->dimensions, NULL, known, &match))
            continue;
        *ret_entry = match.entry;
        return longer;
    }
    return name;
}

static bool add_norms(const struct adapter *adapter, const struct naming *naming, struct tensor_set *set,
                      struct error *error)
{
    for (size_t i = 0; i < adapter->n_others; i++) {
        const struct relation_entry *entry;
        const struct tensor *tensor = adapter->others[i];
        const char *name = name_in_base(naming, adapter->other_names[i], &entry);
        if (name == NULL || strstr(name, ".base_layer.weight") != NULL)
            continue;
        if (!is_norm(name))
            return error_set(error, "tensor '%.200s': %s", tensor->name, why_refused(name));
        struct tensor norm = *tensor;
        norm.name = name;
        norm.name_length = (uint32_t)strlen(name);
        tensor_set_add(set, &norm);
    }
    return true;
}

/* Returns the matrix B of a pair, multiplied by the quotient of peft's scale and alpha / rank. NULL: failure. */
static const struct view *fold_scale(const struct naming *naming, const struct adapter_pair *pair, struct error *error)
{
    const struct scales *scales = naming->scales;
    uint64_t rank = pair->right->shape[0];
    double wanted, alpha;
    if (scales == NULL || adapter_is_mlx(scales->config))
        return pair->left;
    if (!adapter_scale(scales->config, scales->ranks, scales->alphas, pair->name, rank, &wanted, error))
        return NULL;
    if (!json_double(json_get(scales->config, "lora_alpha"), &alpha) || alpha == 0) {
        error_set(error, "adapter_config.json: -o fold-scale needs a lora_alpha other than 0");
        return NULL;
    }
    float factor = (float)(wanted / (alpha / (double)rank));
    return factor == 1 ? pair->left : view_combine_number(naming->arena, pair->left, MULTIPLY, factor);
}

/* Reports whether a base stores a matrix transposed (Conv1D). An adapter's matrices for such a layer are as for any
 * other: llama.cpp reads their product, and the base stores its transpose. */
static bool is_stored_turned(const struct relation_entry *entry)
{
    return entry != NULL && entry->axes[FORWARD] != NULL && low_rank_is_transpose(entry->axes[FORWARD], FORWARD);
}

/* Adds a pair as a product, under the name of the base's checkpoint; *ret_is_turned: the base stores its transpose. */
static bool add_product(const struct naming *naming, const struct adapter_pair *pair, struct tensor_set *set,
                        bool *ret_is_turned, struct error *error)
{
    struct arena *arena = naming->arena;
    const struct relation_entry *entry;
    const char *name = name_in_base(naming, pair->name, &entry);
    *ret_is_turned = false;
    if (name == NULL)
        return true;
    const struct view *left = fold_scale(naming, pair, error), *right = pair->right;
    if (left == NULL)
        return false;
    *ret_is_turned = is_stored_turned(entry);
    if (*ret_is_turned) {
        const struct view *turned = view_transpose(arena, left);
        left = view_transpose(arena, right);
        right = turned;
    }
    tensor_set_add_view(set, name, view_product(arena, left, right));
    return true;
}

/* Adds mlx-lm's pair for a stack of experts: a product for each. */
static bool add_experts(const struct naming *naming, const struct adapter_pair *stack, struct tensor_set *set,
                        struct error *error)
{
    struct arena *arena = naming->arena;
    if (stack->half != MLX_WHOLE || strstr(stack->name, "{}") == NULL)
        return error_set(error,
                         "'%.200s' adapts a part of stacked weights, which wfs does not write as a GGUF adapter; "
                         "-o lora= merges it",
                         stack->name);
    for (uint64_t i = 0; i < stack->left->shape[0]; i++) {
        struct adapter_pair pair = *stack;
        bool unused;
        pair.name = adapter_expert_name(arena, stack, i);
        pair.left = adapter_expert_matrix(arena, stack->left, i);
        pair.right = adapter_expert_matrix(arena, stack->right, i);
        if (!add_product(naming, &pair, set, &unused, error))
            return false;
    }
    return true;
}

/* Adds the adapted weights as products, under the names of the base's checkpoint. */
static bool add_products(const struct adapter *adapter, const struct naming *naming, struct tensor_set *set,
                         struct error *error)
{
    size_t n_turned = 0;
    if (!add_norms(adapter, naming, set, error))
        return false;
    for (size_t i = 0; i < adapter->n_pairs; i++) {
        const struct adapter_pair *pair = &adapter->pairs[i];
        bool is_turned = false;
        if (!(pair->left->rank == 3 || pair->half != MLX_WHOLE ? add_experts(naming, pair, set, error)
                                                               : add_product(naming, pair, set, &is_turned, error)))
            return false;
        n_turned += is_turned && !pair->is_turned;
    }
    if (n_turned > 0)
        checkpoint_note(
            adapter->checkpoint, SUBJECT_ADAPTER,
            "the converter transposes matrices that the base stores transposed, which llama.cpp cannot use; "
            "wfs does not");
    return tensor_set_seal(set, error);
}

/* Adds both matrices of a related product, or a related norm. */
static bool add_factors(struct gguf_model *model, struct tensor_set *factors, const struct tensor *tensor,
                        struct parameter_count *count, struct error *error)
{
    const struct view *left, *right;
    struct arena *arena = model->arena;
    if (!view_factors(tensor->view, &left, &right)) {
        count->total += tensor->view->n_elements;
        tensor_set_add_view(factors, tensor->name, tensor->view);
        return strstr(tensor->name, "_norm") != NULL ||
               error_set(error, "tensor '%.200s': the conversion of this weight cannot be applied to two LoRA matrices",
                         tensor->name);
    }
    if (strstr(tensor->name, "token_embd.weight") != NULL)
        right = view_transpose(arena, right);
    count->total += left->n_elements / left->shape[left->rank - 1] * right->shape[right->rank - 1];
    tensor_set_add_view(factors, arena_printf(arena, "%s.lora_a", tensor->name), right);
    tensor_set_add_view(factors, arena_printf(arena, "%s.lora_b", tensor->name), left);
    return true;
}

static bool take_factors(struct gguf_model *model, struct parameter_count *count, struct error *error)
{
    const struct tensor_set *weights = model->tensors;
    struct tensor_set *factors = tensor_set_new(model->arena);
    for (size_t i = 0; i < weights->n_tensors; i++)
        if (!add_factors(model, factors, &weights->tensors[i], count, error))
            return false;
    model->tensors = factors;
    for (size_t i = 0; i < factors->n_tensors; i++) {
        const struct tensor *tensor = &factors->tensors[i];
        const char *reason = gguf_tensor_refusal(tensor->name, tensor->name_length, tensor->view);
        if (reason != NULL)
            return error_set(error, "tensor '%.200s': %s", tensor->name, reason);
    }
    return tensor_set_seal(factors, error);
}

/* Adds adapter.alora.invocation_tokens: the adapter applies from these tokens on. */
static bool add_invocation(struct gguf_kvs *kvs, const struct json *config, struct error *error)
{
    const struct json *tokens = json_get(config, "alora_invocation_tokens");
    const char *text = json_string(json_get(config, "invocation_string"), NULL);
    struct buffer elements = {0};
    for (const struct json *token = json_first(tokens); token != NULL; token = json_next(token)) {
        uint64_t number;
        if (!json_u64(token, &number) || number > UINT32_MAX) {
            buffer_free(&elements);
            return error_set(error, "adapter_config.json: alora_invocation_tokens has an invalid token");
        }
        buffer_append_le(&elements, number, 4);
    }
    if (elements.length > 0)
        gguf_set_array(kvs, "adapter.alora.invocation_tokens", GGUF_U32, elements.length / 4, &elements);
    else if (text != NULL && *text != '\0')
        return error_set(error, "adapter_config.json: invocation_string needs alora_invocation_tokens");
    return true;
}

/* Reports whether each pair has the rank in adapter_config.json. A pair for stacked experts has not: its matrices hold
 * those of all experts, which a GGUF adapter cannot have. */
static bool check_parameters(const struct adapter *adapter, const struct module_patterns *ranks, struct error *error)
{
    for (size_t i = 0; i < adapter->n_pairs; i++) {
        const struct adapter_pair *pair = &adapter->pairs[i];
        const struct json *own;
        uint64_t rank;
        if (!module_patterns_find(ranks, pair->name, strlen(pair->name) - strlen(".weight"), &own, error))
            return false;
        if (json_u64(own != NULL ? own : json_get(adapter->config, "r"), &rank) && rank != pair->right->shape[0])
            return error_set(error,
                             "'%.200s' adapts stacked experts (target_parameters), which GGUF adapters do not support",
                             pair->name);
    }
    return true;
}

static bool refuse_parameters(const struct adapter *adapter, struct error *error)
{
    if (json_count(json_get(adapter->config, "target_parameters")) == 0)
        return true;
    struct module_patterns *ranks = module_patterns_read(adapter->config, "rank_pattern", adapter->n_pairs, error);
    bool good = ranks != NULL && check_parameters(adapter, ranks, error);
    module_patterns_free(ranks);
    return good;
}

/* Computes alpha, which llama.cpp divides by the rank: of mlx-lm's adapters, which have the quotient, for their rank.
 */
static bool find_alpha(const struct adapter *adapter, double *ret_alpha, struct error *error)
{
    double scale;
    if (!adapter_is_mlx(adapter->config))
        return json_double(json_get(adapter->config, "lora_alpha"), ret_alpha) ||
               error_set(error, "adapter_config.json: lora_alpha is not a number");
    for (size_t i = 0; i < adapter->n_pairs; i++) {
        const struct view *first = adapter->pairs[0].left, *left = adapter->pairs[i].left;
        if (!adapter_scale(adapter->config, NULL, NULL, adapter->pairs[i].name, 0, &scale, error))
            return false;
        if (left->shape[left->rank - 1] != first->shape[first->rank - 1])
            return error_set(error, "'%.200s' has another rank than '%.200s', but a GGUF adapter has one alpha",
                             adapter->pairs[i].name, adapter->pairs[0].name);
        *ret_alpha = scale * (double)left->shape[left->rank - 1];
    }
    return adapter->n_pairs > 0 || error_set(error, "the adapter has no matrices");
}

static bool add_keys(struct gguf_model *model, const struct adapter *adapter, const struct parameter_count *count,
                     struct error *error)
{
    struct document *own;
    double alpha;
    if (!find_alpha(adapter, &alpha, error))
        return false;
    if (!isfinite((float)alpha))
        return error_set(error, "adapter_config.json: lora_alpha is not a number");
    gguf_set_text(&model->kvs, "general.type", "adapter");
    gguf_set_text(&model->kvs, "adapter.type", "lora");
    if (!document_open_if_valid(adapter->checkpoint, "config.json", &own, error))
        return false;
    bool added = general_add(&model->kvs, adapter->checkpoint, document_root(own), count, &model->references, error);
    document_close(own);
    if (!added)
        return false;
    gguf_set_f32(&model->kvs, "adapter.lora.alpha", (float)alpha);
    if (!add_invocation(&model->kvs, adapter->config, error))
        return false;
    gguf_set_u32(&model->kvs, "general.quantization_version", QUANTIZATION_VERSION);
    return true;
}

/* Finds the family of the base, and lets its hooks look at the base. */
static bool begin(struct model_builder *builder, const struct checkpoint *base, struct error *error)
{
    struct gguf_model *model = builder->model;
    const struct config_facts *config = config_facts_of(base, error);
    model->checkpoint = base;
    model->hparams = config != NULL ? hparams_of(base, error) : NULL;
    if (model->hparams == NULL)
        return error_prefix(error, "the base");
    const struct family *family = builder->family = model->family = config_family(config, &model->references);
    builder->hf = config->family_class;
    if (config->class_name == NULL)
        return error_set(error, "the base's config.json names no architecture");
    if (family == NULL && config->family != NULL)
        return error_set(error, "llama.cpp b%u does not know the base's architecture %s",
                         reference_build(&model->references), config->class_name);
    if (family == NULL)
        return error_set(error, "the base's architecture %s is unknown", config->class_name);
    dimensions_read(&builder->dimensions, model->hparams);
    family_add_dimensions(family, &builder->dimensions, model->hparams);
    return builder_adjust(builder, error) || error_prefix(error, "the base");
}

struct gguf_model *gguf_related_new(const struct tensor_set *set, const struct checkpoint *base, struct error *error)
{
    struct gguf_model *model = gguf_model_empty(base, NULL);
    bool is_partial;
    struct model_builder builder = {.model = model, .is_partial = &is_partial};
    if (begin(&builder, base, error) && tensors_relate(&builder, set, error) && tensor_set_seal(model->tensors, error))
        return model;
    gguf_model_free(model);
    return NULL;
}

/* Refuses what older converters refuse: linear attention whose value heads the GGUF orders otherwise. */
static bool check_linear_attention(const struct model_builder *builder, struct error *error)
{
    static const char *const names[] = {"blk.{}.ssm_out.weight", "blk.{}.ssm_alpha.weight", "blk.{}.ssm_beta.weight"};
    const struct tensor_set *set = builder->model->tensors;
    uint64_t numbers[PATTERN_NUMBERS];
    for (size_t i = 0; dimensions_get(&builder->dimensions, "share") > 1 && i < set->n_tensors; i++)
        for (size_t j = 0; j < sizeof names / sizeof *names; j++)
            if (pattern_match(names[j], set->tensors[i].name, set->tensors[i].name_length, numbers))
                return follows_or_refuse(&builder->model->references, LORA_OF_DELTA_NET, error);
    return true;
}

/* Reports whether the base's GGUF has no output, because the base shares it with the embedding. */
static bool is_tied(const struct gguf_model *model, const struct checkpoint *base)
{
    if (base->tensors != NULL && base->tensors->n_tensors > 0)
        return tensor_set_find_text(base->tensors, "lm_head.weight") == NULL;
    return json_bool(hparams_get(model->hparams, "tie_word_embeddings"), false);
}

/* Fills in everything except most keys. */
static bool relate(struct gguf_model *model, struct adapter *adapter, const struct checkpoint *base,
                   const struct scales *scales, struct parameter_count *count, struct error *error)
{
    bool is_partial = false;
    struct model_builder builder = {.model = model, .is_partial = &is_partial};
    struct naming naming = {&builder, NULL, model->arena, scales};
    struct tensor_set *products = tensor_set_new(model->arena);
    if (!begin(&builder, base, error) || !adapter_use_base_names(adapter, base, error))
        return false;
    naming.relation = family_relation(builder.family, error);
    if (naming.relation == NULL)
        return false;
    gguf_kvs_free(&model->kvs);
    model->kvs = (struct gguf_kvs){0};
    gguf_set_text(&model->kvs, "general.architecture", family_architecture(model->family));
    if (!add_products(adapter, &naming, products, error) || !tensors_relate(&builder, products, error) ||
        !check_linear_attention(&builder, error) || !take_factors(model, count, error))
        return false;
    if (is_partial)
        checkpoint_note(adapter->checkpoint, SUBJECT_ADAPTER,
                        "the converter refuses adapters for only some of the experts' matrices; wfs writes those that "
                        "the adapter has");
    bool adapts_head = tensor_set_find_text(products, "lm_head.weight") != NULL;
    if (adapts_head && is_tied(model, base))
        checkpoint_note(adapter->checkpoint, SUBJECT_ADAPTER,
                        "llama.cpp refuses this adapter: it adapts the output, and the base has no output beside its "
                        "embedding; -o lora= merges it");
    return !adapts_head || tensor_set_find_text(model->tensors, "output.weight.lora_a") != NULL ||
           error_set(error, "tensor 'lm_head.weight' is adapted, but the base shares it with its embedding");
}

static bool fill_in(struct gguf_model *model, struct adapter *adapter, const struct checkpoint *base, bool folds_scale,
                    struct error *error)
{
    struct parameter_count count = {.is_adapter = true};
    struct scales scales = {.config = adapter->config};
    bool good = refuse_parameters(adapter, error);
    if (good && folds_scale) {
        scales.ranks = module_patterns_read(adapter->config, "rank_pattern", adapter->n_pairs, error);
        if (scales.ranks != NULL)
            scales.alphas = module_patterns_read(adapter->config, "alpha_pattern", adapter->n_pairs, error);
        good = scales.alphas != NULL;
    }
    bool related = good && relate(model, adapter, base, folds_scale ? &scales : NULL, &count, error);
    module_patterns_free(scales.ranks);
    module_patterns_free(scales.alphas);
    model->checkpoint = adapter->checkpoint;
    return related && add_keys(model, adapter, &count, error);
}

static void release_adapter(void *adapter)
{
    adapter_close(adapter);
}

struct gguf_model *gguf_adapter_new(const struct checkpoint *checkpoint, const struct checkpoint *base,
                                    const struct references *references, bool folds_scale, struct error *error)
{
    struct adapter *adapter = adapter_open(checkpoint, error);
    if (adapter == NULL)
        return NULL;
    struct gguf_model *model = gguf_model_empty(checkpoint, references);
    model->references.converter = (struct converter_options){0}; /* convert_lora_to_gguf.py has none of them */
    arena_on_free(model->arena, release_adapter, adapter);       /* the model uses the adapter's views */
    if (fill_in(model, adapter, base, folds_scale, error))
        return model;
    gguf_model_free(model);
    return NULL;
}

void gguf_adapter_note_scale(const struct checkpoint *checkpoint, bool folds_scale)
{
    struct document *document;
    struct error unused;
    if (!document_open(checkpoint, "adapter_config.json", &document, &unused))
        return;
    const struct json *config = document_root(document);
    bool is_rs = json_bool(json_get(config, "use_rslora"), false);
    bool has_alphas = json_count_members(json_get(config, "alpha_pattern")) > 0;
    if (folds_scale && (is_rs || has_alphas))
        checkpoint_note(checkpoint, SUBJECT_ADAPTER, "wfs folds the scale of %s into lora_b; the converter does not",
                        is_rs ? "rsLoRA" : "alpha_pattern");
    else if (is_rs)
        checkpoint_note(checkpoint, SUBJECT_ADAPTER,
                        "llama.cpp applies rsLoRA too weakly, with alpha / rank instead of "
                        "alpha / sqrt(rank); -o fold-scale folds the difference into lora_b");
    else if (has_alphas)
        checkpoint_note(checkpoint, SUBJECT_ADAPTER,
                        "a GGUF adapter has only one alpha, so alpha_pattern is left out; "
                        "-o fold-scale folds it into lora_b");
    document_close(document);
}
