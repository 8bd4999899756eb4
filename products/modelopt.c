/* modelopt/W4A16_NVFP4/: a model in NVFP4, weights only, as ModelOpt's export_hf_checkpoint() writes it for SGLang,
 * TensorRT-LLM and vLLM after quantizing with W4A16_NVFP4_CFG on a CPU.
 *
 * A weight is codes of E2M1, two in a byte, a scale in F8_E4M3 for 16 columns, and a factor in F32, which modules that
 * engines fuse share. The files are the source's, while ModelOpt saves the model that transformers loads anew.
 *
 * Source: ModelOpt 0.47.0, torch/quantization/qtensor/nvfp4_tensor.py; torch/export/unified_export_hf.py,
 * quant_utils.py and convert_hf_config.py. */
#include "products/product.h"
#include "products/quantized_weights.h"

#include "quant/views/convert.h"
#include "text/json_write.h"

#include <stdlib.h>
#include <string.h>

enum { GROUP = 16 };

static const struct grouping grouping = {1, GROUP, SCALE_BY_FACTOR, CODE_E2M1, 4, 4, false, true};

/* The modules that W4A16_NVFP4_CFG leaves as they are (default_disabled_quantizers.yaml), embeddings, and routers that
 * are no Linear. */
static const char *const kept[] = {
    "re:.*(lm_head|output_layer|router|block_sparse_moe\\.gate|\\.gate$|[^.]*embed[^.]*$|\\.w[tp]e$)",
    "re:.*(conv1d|linear_attn\\.in_proj_[ab])",
    "re:.*(embed_vision|vision_tower|visual|vision_model|multi_modal_projector)",
    "re:.*(mlp\\.gate|mlp\\.shared_expert_gate|proj_out)(\\.|$)",
    "re:(mtp|output)(\\.|$)",
    NULL,
};

/* The modules that read the same input. */
static const struct fused_set with_one_input[] = {
    {{NULL}, {".gate_proj", ".up_proj"}},
    {{NULL}, {".w1", ".w3"}},
    {{NULL}, {".q_proj", ".k_proj", ".v_proj", ".q_a_proj", ".kv_a_proj_with_mqa"}},
    {{NULL}, {".in_proj_qkv", ".in_proj_z"}},
    {{NULL}, {NULL}},
};

static const struct view *values_of(const struct weights_maker *maker, const struct tensor *tensor)
{
    return view_convert(maker->arena, weights_matrix(maker, tensor), &f32_dtype);
}

/* Puts the parts of a weight, made by `shaped` from those of its matrix. */
static bool put_parts(struct weights_maker *maker, const struct tensor *tensor, const struct view *matrix,
                      struct fused *fused, const char *const suffixes[3],
                      const struct view *shaped(struct arena *, const struct view *, const struct tensor *))
{
    struct arena *arena = maker->arena;
    if (!grouped_possible(matrix, &grouping, maker->error))
        return error_prefix(maker->error, "'%.200s'", tensor->name);
    const struct view *codes = view_group_codes(arena, matrix, &grouping, fused, &u8_dtype),
                      *scales = view_group_scales(arena, matrix, &grouping, fused);
    weights_put_part(maker, tensor, suffixes[0], shaped(arena, codes, tensor));
    weights_put_part(maker, tensor, suffixes[1], shaped(arena, scales, tensor));
    weights_put_part(maker, tensor, suffixes[2], view_reshape(arena, view_fused_scale(arena, fused), 0, NULL));
    return true;
}

static const struct view *as_matrix(struct arena *arena, const struct view *part, const struct tensor *tensor)
{
    return part;
}

static bool put_matrix(struct weights_maker *maker, const struct tensor *tensor)
{
    static const char *const suffixes[3] = {".weight", ".weight_scale", ".weight_scale_2"};
    const struct tensor *members[FUSED_MOST];
    const struct view *matrices[FUSED_MOST];
    size_t n = ct_find_fused(maker->way->model, tensor, members);
    for (size_t i = 0; i < n; i++)
        matrices[i] = values_of(maker, members[i]);
    struct fused *fused = fused_new(maker->arena, SCALE_BY_FACTOR, matrices, n);
    return put_parts(maker, tensor, values_of(maker, tensor), fused, suffixes, as_matrix);
}

/* Returns the part of a matrix of all experts' outputs in the order in which the experts are stored. */
static const struct view *as_turned(struct arena *arena, const struct view *part, const struct tensor *tensor)
{
    uint64_t shape[3] = {tensor->shape[0], tensor->shape[2], part->shape[1]};
    return view_transpose(arena, view_reshape(arena, part, 3, shape));
}

/* The experts of Llama 4 and gpt-oss are one weight, [experts, inputs, outputs], with one factor. */
static bool put_turned(struct weights_maker *maker, const struct tensor *tensor)
{
    static const char *const suffixes[3] = {"", "_weight_scale", "_weight_scale_2"};
    struct arena *arena = maker->arena;
    uint64_t shape[2] = {tensor->shape[0] * tensor->shape[2], tensor->shape[1]};
    const struct view *matrix = view_reshape(arena, view_transpose(arena, values_of(maker, tensor)), 2, shape);
    return put_parts(maker, tensor, matrix, fused_new(arena, SCALE_BY_FACTOR, &matrix, 1), suffixes, as_turned);
}

static bool put_nvfp4(struct weights_maker *maker, const struct tensor *tensor)
{
    return tensor->rank == 3 ? put_turned(maker, tensor) : put_matrix(maker, tensor);
}

/* The object. */

/* Fails for other models with inputs before outputs, whose weights ModelOpt turns. */
static bool is_usual(const struct ct_model *model, struct error *error)
{
    static const char *const others[] = {"gpt2", "imagegpt", "openai-gpt", "qwen3_vl_moe", "qwen3_vl_moe_text"};
    for (size_t i = 0; i < sizeof others / sizeof *others && model->model->model_type != NULL; i++)
        if (strcmp(model->model->model_type, others[i]) == 0)
            return error_set(error,
                             "weights of '%s' have inputs before outputs, which is not supported in ModelOpt's NVFP4;"
                             " use compressed-tensors/",
                             others[i]);
    return true;
}

/* Reads how many layers the model has, without those of multi-token prediction that follow them; UINT64_MAX: unknown.
 */
static bool read_n_layers(const struct ct_model *model, uint64_t *ret_n, struct error *error)
{
    struct json_document *config;
    if (!ct_read_config(model->model, &config, error))
        return false;
    const struct json *root = config != NULL ? json_root(config) : NULL, *text = json_get(root, "text_config");
    if (!json_u64(json_get(text != NULL ? text : root, "num_hidden_layers"), ret_n))
        *ret_n = UINT64_MAX;
    json_free(config);
    return true;
}

/* Leaves layers of multi-token prediction as they are: transformers does not load them, and ModelOpt copies them. */
static void leave_prediction(struct ct_model *model, uint64_t n_layers)
{
    static const char layers[] = "model.layers.";
    for (size_t i = 0; i < model->tensors->n_tensors; i++) {
        const char *at = strstr(model->tensors->tensors[i].name, layers);
        if (at != NULL && strtoull(at + strlen(layers), NULL, 10) >= n_layers)
            model->is_target[i] = false;
    }
}

static const void *make_model(const struct product_input *input, struct arena *arena, struct error *error)
{
    struct ct_model *model = weights_model_new(input, kept, arena, error);
    uint64_t n_layers;
    if (model == NULL || !is_usual(model, error) || !read_n_layers(model, &n_layers, error))
        return NULL;
    if (input->request->ignored_modules == NULL)
        leave_prediction(model, n_layers);
    model->fused_sets = with_one_input;
    const struct weights_way way = {.model = model, .most_parts = 3, .format = "pt", .put = put_nvfp4};
    return arena_copy(arena, &way, sizeof way);
}

/* Documents. */

/* Names of modules. */
struct names {
    const char **texts;
    size_t n;
};

static int compare(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Reports whether one of the sorted names begins with the first `length` characters of a text. */
static bool begins_any(const struct names *names, const char *text, size_t length)
{
    size_t low = 0, high = names->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strncmp(names->texts[middle], text, length) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < names->n && strncmp(names->texts[low], text, length) == 0;
}

/* Returns the shortest start of a name that no quantized module has, up to a dot, with an asterisk; else the name. */
static const char *shortened(struct arena *arena, const char *name, const struct names *quantized)
{
    for (const char *dot = strchr(name, '.'); dot != NULL; dot = strchr(dot + 1, '.')) {
        int length = (int)(dot - name);
        if (!begins_any(quantized, name, (size_t)length))
            return arena_printf(arena, "%.*s*", length, name);
        if (!begins_any(quantized, name, (size_t)length + 1))
            return arena_printf(arena, "%.*s.*", length, name);
    }
    return name;
}

/* Returns the length of the name of the module that holds a tensor of at least two dimensions; 0: none. */
static size_t module_of(const struct ct_model *model, const struct tensor *tensor)
{
    const char *dot = strrchr(tensor->name, '.');
    if (tensor->rank < 2 || loaded_module(tensor->name) > 0)
        return tensor->rank < 2 ? 0 : loaded_module(tensor->name);
    return model->turned != NULL && tensor->rank == 3 && dot != NULL ? (size_t)(dot - tensor->name) : 0;
}

/* Sorts the modules with matrices: those that are quantized, and those that stay as they are. */
static void split_modules(const struct ct_model *model, struct arena *arena, struct names *quantized,
                          struct names *plain)
{
    const struct tensor_set *set = model->tensors;
    quantized->texts = arena_array(arena, set->n_tensors, sizeof *quantized->texts);
    plain->texts = arena_array(arena, set->n_tensors + 1, sizeof *plain->texts);
    for (size_t i = 0; i < set->n_tensors; i++) {
        size_t module = module_of(model, &set->tensors[i]);
        if (model->is_target[i])
            quantized->texts[quantized->n++] = set->tensors[i].name;
        else if (module > 0)
            plain->texts[plain->n++] = arena_strndup(arena, set->tensors[i].name, module);
    }
    if (tensor_set_find_text(set, "model.embed_tokens.weight") != NULL &&
        tensor_set_find_text(set, "lm_head.weight") == NULL)
        plain->texts[plain->n++] = "lm_head"; /* which shares the embedding */
    qsort(quantized->texts, quantized->n, sizeof *quantized->texts, compare);
}

/* Writes the modules that stay as they are, as ModelOpt shortens the list. */
static void put_kept(const struct ct_model *model, const char *key, struct json_writer *writer)
{
    struct arena *arena = arena_new();
    struct names quantized = {0}, plain = {0};
    split_modules(model, arena, &quantized, &plain);
    for (size_t i = 0; i < plain.n; i++)
        plain.texts[i] = shortened(arena, plain.texts[i], &quantized);
    qsort(plain.texts, plain.n, sizeof *plain.texts, compare);
    json_begin_array(writer, key);
    for (size_t i = 0; i < plain.n; i++)
        if (i == 0 || strcmp(plain.texts[i], plain.texts[i - 1]) != 0)
            json_put_text(writer, NULL, plain.texts[i]);
    json_end(writer);
    arena_free(arena);
}

static const char producer[] = "'producer': {'name': 'modelopt', 'version': '0.47.0'}";

static enum outcome write_config(const struct product_input *input, const void *made, const void *what,
                                 struct buffer *out, struct error *error)
{
    const struct weights_way *way = made;
    struct buffer description = {0};
    struct json_writer writer = {.out = &description, .letters = JSON_ASCII};
    json_put_template(&writer, "{'quantization_config': {'config_groups': {'group_0': {'weights': {'dynamic': false,"
                               " 'num_bits': 4, 'type': 'float', 'group_size': 16}, 'targets': ['Linear']}},"
                               " 'quant_algo': 'W4A16_NVFP4', 'quant_method': 'modelopt'");
    put_kept(way->model, "ignore", &writer);
    json_put_template(&writer, producer);
    json_end(&writer);
    json_end(&writer);
    bool good = weights_write_config(way, &description, out, error);
    buffer_free(&description);
    return good ? OK : REPORTED;
}

static enum outcome write_own_config(const struct product_input *input, const void *made, const void *what,
                                     struct buffer *out, struct error *error)
{
    struct json_writer writer = {.out = out, .letters = JSON_ASCII, .width = 4};
    json_begin_object(&writer, NULL);
    json_put_template(&writer, producer);
    json_put_template(&writer, "'quantization': {'quant_algo': 'W4A16_NVFP4', 'kv_cache_quant_algo': null,"
                               " 'group_size': 16");
    put_kept(((const struct weights_way *)made)->model, "exclude_modules", &writer);
    json_end(&writer);
    json_end(&writer);
    return OK;
}

/* The files. */

static bool list_files(const struct product_input *input, const void *made, const void *variant,
                       struct product_list *list, struct error *error)
{
    weights_add_files(input->checkpoint, list);
    product_add(list, (struct product_file){.path = "config.json", .write = write_config});
    product_add(list, (struct product_file){.path = "hf_quant_config.json", .write = write_own_config});
    hf_add_beside(input, "", list);
    return true;
}

static void find_variants(const struct product_input *input, struct arena *arena, product_found *found, void *context)
{
    static const char nvfp4;
    found(context, "W4A16_NVFP4", &nvfp4, true);
}

const struct product modelopt_product = {
    .name = "modelopt",
    .summary = "modelopt/W4A16_NVFP4/: the model in NVFP4 for SGLang and TensorRT-LLM",
    .root = "modelopt",
    .ending = "-modelopt-",
    .command = "sglang serve",
    .opened = OPENED_AT_ROOT,
    .is_offered = product_is_for_loaders,
    .variants = find_variants,
    .make = make_model,
    .files = list_files,
};
