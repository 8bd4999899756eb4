/* mlx/VARIANT/: directories for MLX: a model as mlx_lm.convert writes it on a CPU, quantized or not.
 *
 * The tensors are those of mlx-lm's class for the model (mlx_families.h), in shards; an index; config.json with the
 * parameters of the quantization; a card. A variant is what the options of mlx_lm.convert choose. The first look into
 * one finds the number of its shards.
 *
 * Source: mlx-lm, mlx_lm/convert.py and mlx_lm/utils.py: load_config(), quantize_model(), save_model(), save_config(),
 * create_model_card(); mlx, python/mlx/nn/layers/quantized.py. */
#include "products/product.h"

#include "formats/documents.h"
#include "formats/safetensors/safetensors.h"
#include "models/derive/plain_config.h"
#include "models/engines/mlx_families.h"
#include "models/engines/mlx_tensors.h"
#include "models/huggingface/hf_model.h"
#include "models/huggingface/shards.h"
#include "quant/pack/grouped.h"
#include "quant/views/convert.h"
#include "text/json_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char affine[] = "affine", mxfp4[] = "mxfp4", mxfp8[] = "mxfp8", nvfp4[] = "nvfp4";

/* Variants. */

/* A way to quantize, or not: --q-mode with --q-bits, or --quant-predicate. */
struct mlx_mode {
    const char *name;  /* "4bit" */
    const char *mode;  /* "affine", as config.json names it; NULL: nothing is quantized */
    uint8_t bits;      /* the fewer ones of a recipe */
    uint8_t high_bits; /* those of modules that a recipe spares; 0: no recipe */
    uint8_t columns;   /* of a group, unless the variant names others */
    const char *dtype; /* the type of all tensors, for a mode that is named by it; NULL: see the variant */
    bool is_common;    /* listed, without further options; the others are found by name */
    bool keeps_codes;  /* those of a quantized source: not a mode of the tool */
};

struct mlx_variant {
    const struct mlx_mode *mode;
    uint8_t columns;   /* --q-group-size; 0: not given */
    const char *dtype; /* --dtype, as mlx names it: "float16"; NULL: not given */
};

#define BITS(n, is_common)                                                                                             \
    {                                                                                                                  \
#n "bit", affine, n, 0, 64, NULL, is_common                                                                    \
    }
static const struct mlx_mode mlx_modes[] = {
    {"plain", NULL, 0, 0, 0, NULL, true},
    {"f16", NULL, 0, 0, 0, "float16", false},
    {"bf16", NULL, 0, 0, 0, "bfloat16", true},
    {"f32", NULL, 0, 0, 0, "float32", false},
    BITS(2, false),
    BITS(3, false),
    BITS(4, true),
    BITS(5, false),
    BITS(6, true),
    BITS(8, true),
    {mxfp4, mxfp4, 4, 0, 32, NULL, true},
    {mxfp8, mxfp8, 8, 0, 32, NULL, false},
    {nvfp4, nvfp4, 4, 0, 16, NULL, true},
    {"mixed_2_6", affine, 2, 6, 64, NULL, false},
    {"mixed_3_4", affine, 3, 4, 64, NULL, false},
    {"mixed_3_6", affine, 3, 6, 64, NULL, false},
    {"mixed_4_6", affine, 4, 6, 64, NULL, false},
    {.name = "repacked", .keeps_codes = true},
    {.name = NULL},
};

static const struct suffix_of_dtype {
    const char *suffix, *dtype, *name; /* mlx's name of a type, and ours */
} dtypes_of_mlx[] = {
    {"", NULL, NULL},
    {"-f16", "float16", "F16"},
    {"-bf16", "bfloat16", "BF16"},
    {"-f32", "float32", "F32"},
};
enum { N_DTYPES = sizeof dtypes_of_mlx / sizeof *dtypes_of_mlx };

static void find_variants(const struct product_input *input, struct arena *arena, product_found *found, void *context)
{
    static const uint8_t columns[] = {0, 32, 64, 128};
    enum { NAME = 64 };
    char name[NAME], group[NAME];
    for (const struct mlx_mode *mode = mlx_modes; mode->name != NULL; mode++)
        for (size_t i = 0; i < (mode->mode == affine ? sizeof columns : 1); i++)
            for (size_t k = 0; k < (mode->mode != NULL ? (size_t)N_DTYPES : 1); k++) {
                const struct mlx_variant variant = {mode, columns[i],
                                                    mode->dtype != NULL ? mode->dtype : dtypes_of_mlx[k].dtype};
                snprintf(group, sizeof group, "-g%u", (unsigned)columns[i]);
                snprintf(name, sizeof name, "%s%s%s", mode->name, columns[i] != 0 ? group : "",
                         dtypes_of_mlx[k].suffix);
                bool is_listed = mode->keeps_codes ? mlx_is_repackable(input->checkpoint)
                                                   : mode->is_common && columns[i] == 0 && variant.dtype == mode->dtype;
                found(context, name, arena_copy(arena, &variant, sizeof variant), is_listed);
            }
}

/* The model. */

/* A model's tensors as the class of mlx-lm has them, before they are quantized: the same for all variants. */
struct mlx_model {
    const struct hf_model *model;
    const struct mlx_family *family;
    struct mlx_tensors tensors;
    const char *dtype;  /* that config.json asks for; NULL: none */
    const char *to_end; /* JSON text of the tokens that end a text, instead of config.json's; NULL: none */
    const struct mlx_groups *groups, *usual; /* of mlx/repacked/ (mlx_tensors.h); NULL: of another variant */
};

/* Appends the text of config.json as the class reads it, without a packing that the class does not know. */
static void append_config(const struct json *config, struct buffer *text)
{
    const struct mlx_family *family = mlx_family_of(config);
    const char *method = json_string(json_get(json_get(config, "quantization_config"), "quant_method"), NULL);
    if (family != NULL && family->reads_fp8 && method != NULL && strcmp(method, "fp8") == 0)
        json_put_edited(&(struct json_writer){.out = text, .letters = JSON_ASCII}, config, NULL, NULL);
    else
        plain_config(config, text);
}

static struct json_document *read_config(const struct hf_model *model, struct error *error)
{
    struct buffer text = {0};
    struct document *document = NULL;
    if (model->config != NULL)
        buffer_append(&text, model->config, model->config_length);
    else if (!document_open(model->checkpoint, "config.json", &document, error))
        return NULL;
    else if (document != NULL)
        append_config(document_root(document), &text);
    document_close(document);
    struct json_document *config = NULL;
    if (text.length == 0)
        error_set(error, "there is no config.json");
    else
        config = json_parse_python((const char *)text.bytes, text.length, error);
    buffer_free(&text);
    return config;
}

/* Returns eos_token_id of generation_config.json as JSON text; NULL if it has none, or one that counts as nothing. */
static const char *read_end(struct arena *arena, const struct hf_model *model)
{
    struct document *document = NULL;
    struct error error;
    struct buffer text = {0};
    const char *made = NULL;
    if (!document_open_if_valid(model->checkpoint, "generation_config.json", &document, &error) || document == NULL)
        return NULL;
    const struct json *end = json_get(document_root(document), "eos_token_id");
    double number;
    bool counts = json_double(end, &number) ? number != 0 : json_is(end, JSON_TRUE) || json_count(end) > 0;
    if (counts) {
        json_put_edited(&(struct json_writer){.out = &text, .letters = JSON_ASCII, .compact = true}, end, NULL, NULL);
        made = arena_printf(arena, "%.*s", (int)text.length, (const char *)text.bytes);
    }
    buffer_free(&text);
    document_close(document);
    return made;
}

static const struct suffix_of_dtype *find_dtype(const char *name)
{
    for (size_t i = 1; i < N_DTYPES && name != NULL; i++)
        if (strcmp(dtypes_of_mlx[i].dtype, name) == 0)
            return &dtypes_of_mlx[i];
    return NULL;
}

/* Returns the type that the tool casts to without --dtype; a text that names none of the three is none. */
static const char *dtype_of(const struct json *config)
{
    const char *name = json_string(json_get(config, "torch_dtype"), NULL);
    if (json_type(json_get(config, "torch_dtype")) == JSON_NULL)
        name = json_string(json_get(json_get(config, "text_config"), "dtype"), NULL);
    const struct suffix_of_dtype *found = find_dtype(name);
    return found != NULL ? found->dtype : NULL;
}

/* Sets why a configuration has no family. */
static bool set_unknown(const struct json *config, struct error *error)
{
    const char *type = json_string(json_get(config, "model_type"), NULL);
    const char *module = mlx_module_of(type, json_string(json_first(json_get(config, "architectures")), NULL));
    if (module == NULL)
        return error_set(error, "mlx-lm has no class for the model type '%.100s'", type != NULL ? type : "");
    return error_set(error, "mlx-lm's class for the model type '%.100s' %s", type, mlx_refusal_of(config));
}

static bool take_codes(struct arena *arena, const struct json *config, struct mlx_model *made, struct error *error)
{
    struct mlx_repacked repacked;
    if (!mlx_repack(arena, made->family, made->model, config, &repacked, error))
        return false;
    made->tensors = repacked.tensors;
    made->groups = repacked.groups;
    made->usual = repacked.usual;
    return true;
}

static const struct mlx_model *make_of(const struct hf_model *model, struct arena *arena, struct error *error)
{
    struct mlx_model *made = arena_alloc(arena, sizeof *made);
    struct json_document *document = model != NULL ? read_config(model, error) : NULL;
    if (document == NULL)
        return NULL;
    const struct json *config = json_root(document);
    *made = (struct mlx_model){.model = model, .family = mlx_family_of(config), .dtype = dtype_of(config)};
    made->to_end = read_end(arena, model);
    bool good = made->family != NULL || set_unknown(config, error);
    if (good && made->family->refused != NULL && json_bool(json_get(config, made->family->refused), false))
        good = error_set(error, "what mlx-lm's class does for \"%s\" is not supported", made->family->refused);
    if (good && model->keeps_codes)
        good = take_codes(arena, config, made, error);
    else if (good)
        good = mlx_tensors_make(arena, made->family, model, config, NULL, &made->tensors, error);
    json_free(document);
    return good ? made : NULL;
}

static const void *make_model(const struct product_input *input, struct arena *arena, struct error *error)
{
    return make_of(hf_model_of(input->checkpoint, error), arena, error);
}

static const void *make_repacked(const struct checkpoint *checkpoint, struct arena *arena, struct error *error)
{
    return make_of(hf_model_with_codes(arena, checkpoint, error), arena, error);
}

/* Returns the model of a variant; NULL, with the reason, if it cannot be made. `made` is that of most variants. */
static const struct mlx_model *model_of(const struct product_input *input, const void *made,
                                        const struct mlx_variant *variant, struct error *error)
{
    return variant->mode->keeps_codes ? checkpoint_try(input->checkpoint, make_repacked, error) : made;
}

/* Quantization. */

/* How a module is quantized. */
struct parameters {
    const char *mode; /* NULL: not at all */
    unsigned bits, columns;
    bool is_own;        /* listed in config.json */
    bool has_factors;   /* a global scale for each expert */
    bool lacks_columns; /* in config.json */
};

/* Returns the parameters of a module whose codes are kept. */
static struct parameters kept_parameters(const struct mlx_model *model, const struct mlx_tensor *tensor)
{
    const struct mlx_groups *groups = &model->groups[tensor - model->tensors.tensors], *usual = model->usual;
    return (struct parameters){groups->mode, groups->bits, groups->columns,
                               groups->mode != NULL && (groups->mode != usual->mode || groups->bits != usual->bits ||
                                                        groups->columns != usual->columns),
                               groups->parts[MLX_FACTORS] != NULL};
}

/* A recipe gives more bits to what matters more, in the first and last eighth of the layers and in every third between.
 */
static bool has_high_bits(const struct mlx_model *model, const struct mlx_tensor *tensor)
{
    static const char values[] = "v_proj v_a_proj v_b_proj down_proj";
    uint64_t n = model->tensors.n_layers, eighth = n / 8, i = tensor->layer;
    bool is_favoured = i < eighth || i >= 7 * n / 8 || (i - eighth) % 3 == 2;
    return mlx_list_within("lm_head", tensor->module) || (is_favoured && mlx_list_within(values, tensor->module));
}

static struct parameters parameters_of(const struct mlx_model *model, const struct mlx_variant *variant,
                                       const struct mlx_tensor *tensor)
{
    enum { FINE_BITS = 8, FINE_COLUMNS = 64 };
    const struct mlx_mode *mode = variant->mode;
    unsigned columns = variant->columns != 0 ? variant->columns : mode->columns;
    struct parameters parameters = {mode->mode, mode->bits, columns, false};
    if (model->groups != NULL)
        return kept_parameters(model, tensor);
    if (mode->mode == NULL || !tensor->is_matrix || view_row_elements(tensor->view) % columns != 0)
        return (struct parameters){.mode = NULL};
    if (mode->high_bits != 0) {
        parameters.bits = has_high_bits(model, tensor) ? mode->high_bits : mode->bits;
        parameters.is_own = true;
    } else if (mlx_list_ends(model->family->in_8_bits, tensor->module)) {
        parameters = (struct parameters){affine, FINE_BITS, FINE_COLUMNS, true,
                                         .lacks_columns = model->family->names_bits_alone};
    } else if (tensor->is_plain) {
        parameters = (struct parameters){.mode = NULL};
    }
    return parameters;
}

static const struct grouping *grouping_of(struct arena *arena, const struct parameters *parameters)
{
    struct grouping *grouping = arena_alloc(arena, sizeof *grouping);
    *grouping = (struct grouping){.rows = 1,
                                  .columns = parameters->columns,
                                  .scale = SCALE_CEILED,
                                  .code = CODE_E2M1_DOWN,
                                  .bits = (uint8_t)parameters->bits,
                                  .width = (uint8_t)parameters->bits};
    if (strcmp(parameters->mode, affine) == 0) {
        grouping->scale = SCALE_AFFINE;
        grouping->code = CODE_NATURAL;
    } else if (strcmp(parameters->mode, mxfp8) == 0)
        grouping->code = CODE_E4M3;
    else if (strcmp(parameters->mode, nvfp4) == 0)
        grouping->scale = SCALE_E4M3;
    return grouping;
}

/* The tensors of a variant, in the order of the tool. */
struct output {
    const struct mlx_model *model;
    const struct mlx_variant *variant;
    struct arena *arena;
    struct tensor *tensors;
    struct shards shards;
    size_t n_tensors;
};

/* Returns the shard of the next tensor. */
static uint32_t add_to_shard(struct output *output, uint64_t size)
{
    static const uint64_t most = (uint64_t)5 << 30; /* bytes of a shard; a larger tensor has its own */
    return shards_append(&output->shards, size, most);
}

static void put(struct output *output, const struct mlx_tensor *tensor, const char *suffix, const struct view *view)
{
    const char *name = arena_printf(output->arena, "%s%s", tensor->module, suffix);
    output->shards.shard_of[output->n_tensors] = add_to_shard(output, view_bytes(view));
    output->tensors[output->n_tensors++] = tensor_of_view(name, view);
}

/* Gives the rows of a matrix back to the matrices of a stack. */
static const struct view *restack(struct arena *arena, const struct view *view, const struct view *like)
{
    uint64_t shape[VIEW_MAX_RANK];
    memcpy(shape, like->shape, like->rank * sizeof *shape);
    shape[like->rank - 1] = view->shape[1];
    return view_reshape(arena, view, like->rank, shape);
}

static bool put_quantized(struct output *output, const struct mlx_tensor *tensor, const struct view *view,
                          const struct parameters *parameters, struct error *error)
{
    enum { WORD_BITS = 32 };
    struct arena *arena = output->arena;
    const struct grouping *grouping = grouping_of(arena, parameters);
    const uint64_t shape[2] = {view->n_elements / view_row_elements(view), view_row_elements(view)};
    const struct view *matrix = view_reshape(arena, view, 2, shape);
    if (!grouped_possible(matrix, grouping, error))
        return error_prefix(error, "'%.200s'", tensor->module);
    const struct view *codes = view_group_codes(arena, matrix, grouping, NULL, dtype_by_name("U32"));
    put(output, tensor, ".weight", restack(arena, codes, view));
    put(output, tensor, ".scales", restack(arena, view_group_scales(arena, matrix, grouping, NULL), view));
    if (grouping->scale == SCALE_AFFINE)
        put(output, tensor, ".biases", restack(arena, view_group_edges(arena, matrix, grouping), view));
    output->shards.total_parameters += codes->n_elements * WORD_BITS / parameters->bits;
    return true;
}

static void put_kept(struct output *output, const struct mlx_tensor *tensor, const struct mlx_groups *groups)
{
    static const char *const suffixes[MLX_PARTS] = {".weight", ".scales", ".biases", ".global_scale"};
    for (unsigned part = 0; part < MLX_PARTS; part++)
        if (groups->parts[part] != NULL)
            put(output, tensor, suffixes[part], groups->parts[part]);
    output->shards.total_parameters += tensor->view->n_elements;
}

/* Returns the dtype that a variant casts tensors to; NULL: none. */
static const struct dtype *cast_of(const struct mlx_model *model, const struct mlx_variant *variant)
{
    if (model->groups != NULL)
        return NULL;
    const struct suffix_of_dtype *found = find_dtype(variant->dtype != NULL ? variant->dtype : model->dtype);
    return found != NULL ? dtype_by_name(found->name) : NULL;
}

static bool put_tensor(struct output *output, const struct mlx_tensor *tensor, struct error *error)
{
    const struct mlx_variant *variant = output->variant;
    const struct dtype *cast = cast_of(output->model, variant);
    struct parameters parameters = parameters_of(output->model, variant, tensor);
    const struct view *view = tensor->view;
    if (cast != NULL && !tensor->keeps_type)
        view = view_convert(output->arena, view, cast);
    if (parameters.mode != NULL && output->model->groups != NULL) {
        put_kept(output, tensor, &output->model->groups[tensor - output->model->tensors.tensors]);
        return true;
    }
    if (parameters.mode != NULL)
        return put_quantized(output, tensor, view, &parameters, error);
    put(output, tensor, tensor->suffix, view);
    output->shards.total_parameters += tensor->is_of_branch ? 0 : view->n_elements;
    return true;
}

/* Adds the sizes of the tensors that put_tensor() puts, without their views. */
static void add_sizes(struct output *output, const struct dtype *cast, const struct mlx_tensor *tensor)
{
    struct parameters parameters = parameters_of(output->model, output->variant, tensor);
    const struct dtype *dtype = cast != NULL && !tensor->keeps_type ? cast : tensor->view->dtype;
    uint64_t n_elements = tensor->view->n_elements;
    if (parameters.mode == NULL) {
        add_to_shard(output, n_elements / dtype->block_elements * dtype->block_bytes);
        return;
    }
    if (output->model->groups != NULL) {
        const struct mlx_groups *groups = &output->model->groups[tensor - output->model->tensors.tensors];
        for (unsigned part = 0; part < MLX_PARTS; part++)
            if (groups->parts[part] != NULL)
                add_to_shard(output, view_bytes(groups->parts[part]));
        return;
    }
    bool is_affine = strcmp(parameters.mode, affine) == 0;
    uint64_t scales = n_elements / parameters.columns * (is_affine ? dtype->block_bytes : 1);
    add_to_shard(output, n_elements / 8 * parameters.bits); /* a whole number of words: columns are multiples of 8 */
    add_to_shard(output, scales);
    if (is_affine)
        add_to_shard(output, scales);
}

/* A recipe looks for these modules. */
static bool fits_recipe(const struct mlx_model *model, const struct mlx_variant *variant, struct error *error)
{
    bool fits = variant->mode->high_bits == 0;
    for (size_t i = 0; i < model->tensors.n_tensors && !fits; i++)
        fits = strstr(model->tensors.tensors[i].module, "down_proj") != NULL;
    return fits || error_set(error, "the model has no modules named down_proj, which a mixed recipe needs");
}

static bool make_output(const struct mlx_model *model, const struct mlx_variant *variant, struct arena *arena,
                        struct output *output, struct error *error)
{
    enum { MOST_PARTS = MLX_PARTS };
    size_t n = model->tensors.n_tensors;
    *output = (struct output){.model = model,
                              .variant = variant,
                              .arena = arena,
                              .tensors = arena_array(arena, MOST_PARTS * n + 1, sizeof *output->tensors),
                              .shards.shard_of = arena_array(arena, MOST_PARTS * n + 1, sizeof(uint32_t))};
    bool good = fits_recipe(model, variant, error);
    for (size_t i = 0; i < n && good; i++)
        good = put_tensor(output, &model->tensors.tensors[i], error);
    return good;
}

/* Returns the number of shards; one if the model cannot be quantized so, for the reason that its plan gives. */
static size_t count_shards(const struct mlx_model *model, const struct mlx_variant *variant)
{
    struct output output = {.model = model, .variant = variant};
    struct error unsaid;
    if (!fits_recipe(model, variant, &unsaid))
        return 1;
    const struct dtype *cast = cast_of(model, variant);
    for (size_t i = 0; i < model->tensors.n_tensors; i++)
        add_sizes(&output, cast, &model->tensors.tensors[i]);
    return output.shards.n_shards > 0 ? output.shards.n_shards : 1;
}

static enum outcome make_shard(const struct product_input *input, const void *made, const void *what,
                               struct arena *arena, struct artifact *ret_artifact, struct error *error)
{
    const struct product_shard *shard = what;
    const struct mlx_model *model = model_of(input, made, shard->of, error);
    struct output output;
    if (model == NULL || !make_output(model, shard->of, arena, &output, error))
        return REPORTED;
    *ret_artifact = (struct artifact){.container = &mlx_container};
    artifact_reserve(ret_artifact, output.n_tensors);
    ret_artifact->n_tensors = 0;
    for (size_t i = 0; i < output.n_tensors; i++)
        if (output.shards.shard_of[i] == shard->number)
            ret_artifact->tensors[ret_artifact->n_tensors++] =
                (struct artifact_tensor){&output.tensors[i], encoding_of(output.tensors[i].dtype)};
    return OK;
}

/* Documents. */

enum { INDENT = 4 };

static enum outcome write_index(const struct product_input *input, const void *made, const void *variant,
                                struct buffer *out, struct error *error)
{
    struct json_writer writer = {.out = out, .letters = JSON_ASCII, .width = INDENT};
    struct arena *arena = arena_new();
    const struct mlx_model *model = model_of(input, made, variant, error);
    struct output output;
    bool good = model != NULL && make_output(model, variant, arena, &output, error);
    if (good) {
        uint32_t *by_name = tensors_by_name(output.tensors, output.n_tensors);
        struct shards_entry *entries = arena_array(arena, output.n_tensors, sizeof *entries);
        json_put_template(&writer, "{'metadata': {'total_size': %u, 'total_parameters': %u}, 'weight_map': {",
                          output.shards.total_size, output.shards.total_parameters);
        for (size_t i = 0; i < output.n_tensors; i++) {
            const struct tensor *tensor = &output.tensors[by_name[i]];
            entries[i] = (struct shards_entry){tensor->name, tensor->name_length, output.shards.shard_of[by_name[i]]};
        }
        shards_put_map(&writer, &output.shards, entries, output.n_tensors);
        json_end(&writer);
        json_end(&writer);
        free(by_name);
    }
    arena_free(arena);
    return good ? OK : REPORTED;
}

static void put_columns(struct json_writer *writer, unsigned columns)
{
    if (columns != 0)
        json_put_number(writer, "group_size", columns);
    else
        json_put_null(writer, "group_size");
}

/* Puts what config.json says of a module. A recipe names the group size that was given, the mode's own if none was; the
 * class's own choices name no mode. */
static void put_module(struct json_writer *writer, const struct mlx_variant *variant, const char *module,
                       const struct parameters *parameters)
{
    bool has_recipe = variant->mode->high_bits != 0;
    json_begin_object(writer, module);
    if (!parameters->lacks_columns)
        put_columns(writer, has_recipe ? variant->columns : parameters->columns);
    json_put_number(writer, "bits", parameters->bits);
    if (has_recipe || variant->mode->keeps_codes)
        json_put_text(writer, "mode", parameters->mode);
    if (parameters->has_factors)
        json_put_bool(writer, "global_scale", true);
    json_end(writer);
}

/* A recipe has no bits for the whole: the tool names its default there. */
enum { DEFAULT_BITS = 4 };

static void put_quantization(struct json_writer *writer, const char *key, const struct mlx_model *model,
                             const struct mlx_variant *variant)
{
    const struct mlx_mode *mode = variant->mode;
    const struct mlx_groups *usual = model->usual;
    unsigned columns = variant->columns != 0 ? variant->columns : mode->columns;
    json_begin_object(writer, key);
    put_columns(writer, usual != NULL ? usual->columns : columns);
    json_put_number(writer, "bits", usual != NULL ? usual->bits : mode->high_bits != 0 ? DEFAULT_BITS : mode->bits);
    json_put_text(writer, "mode", usual != NULL ? usual->mode : mode->mode);
    for (size_t i = 0; i < model->tensors.n_tensors; i++) {
        struct parameters parameters = parameters_of(model, variant, &model->tensors.tensors[i]);
        if (parameters.is_own)
            put_module(writer, variant, model->tensors.tensors[i].module, &parameters);
    }
    json_end(writer);
}

/* Returns an object with what the tool adds to config.json. */
static struct json_document *describe(const struct mlx_model *model, const struct mlx_variant *variant,
                                      struct error *error)
{
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .letters = JSON_ASCII};
    json_begin_object(&writer, NULL);
    if (model->to_end != NULL)
        json_put_raw(&writer, "eos_token_id", model->to_end);
    if (variant->mode->mode != NULL || model->usual != NULL) {
        put_quantization(&writer, "quantization", model, variant);
        put_quantization(&writer, "quantization_config", model, variant);
    }
    json_end(&writer);
    struct json_document *more = json_parse((const char *)text.bytes, text.length, error);
    buffer_free(&text);
    return more;
}

/* Returns config.json as the class leaves it. */
static struct json_document *changed_config(const struct mlx_model *model, struct error *error)
{
    struct json_document *config = read_config(model->model, error);
    struct buffer text = {0};
    if (config == NULL)
        return NULL;
    mlx_class_config(model->family, json_root(config), &text);
    json_free(config);
    config = json_parse_python((const char *)text.bytes, text.length, error);
    buffer_free(&text);
    return config;
}

static enum outcome write_config(const struct product_input *input, const void *made, const void *variant,
                                 struct buffer *out, struct error *error)
{
    static const char *const removed[] = {"_name_or_path", "vision_config", NULL};
    const struct mlx_model *model = model_of(input, made, variant, error);
    struct json_document *config = model != NULL ? changed_config(model, error) : NULL;
    struct json_document *more = config != NULL ? describe(model, variant, error) : NULL;
    if (more != NULL)
        json_put_by_key(&(struct json_writer){.out = out, .letters = JSON_ASCII, .width = INDENT}, json_root(config),
                        json_root(more), removed);
    bool is_written = more != NULL;
    json_free(config);
    json_free(more);
    return is_written ? OK : REPORTED;
}

static enum outcome write_card(const struct product_input *input, const void *made, const void *variant,
                               struct buffer *out, struct error *error)
{
    buffer_append_text(out, "---\nlanguage: en\nlibrary_name: mlx\npipeline_tag: text-generation\ntags:\n- mlx\n---\n");
    return OK;
}

static bool list_files(const struct product_input *input, const void *made, const void *variant,
                       struct product_list *list, struct error *error)
{
    struct error unsaid;
    const struct mlx_model *model = made != NULL ? model_of(input, made, variant, &unsaid) : NULL;
    const struct shards all = {.n_shards = model != NULL ? count_shards(model, variant) : 1};
    product_add_shards(list, "", &all, variant, make_shard);
    product_add(list,
                (struct product_file){.path = "model.safetensors.index.json", .write = write_index, .what = variant});
    product_add(list, (struct product_file){.path = "config.json", .write = write_config, .what = variant});
    product_add(list, (struct product_file){.path = "README.md", .write = write_card});
    hf_add_template(input, list);
    hf_add_beside(input, "", list);
    return true;
}

const struct product mlx_product = {
    .name = "mlx",
    .summary = "mlx/VARIANT/: the model as mlx_lm.convert writes it, quantized or not",
    .root = "mlx",
    .ending = "-MLX-",
    .command = "mlx_lm.server --model",
    .opened = OPENED_AT_VARIANT,
    .is_offered = product_is_for_loaders,
    .variants = find_variants,
    .make = make_model,
    .needs_object = product_needs_object,
    .files = list_files,
};
