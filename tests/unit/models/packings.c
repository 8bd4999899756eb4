/* Packings against numpy: tests/data/packed/NAME holds one packed weight each (make_packed.py), and the values that it
 * has. Then what does not fit: one line each, and no weight, whatever a part is. */
#include "models/packings/packings.h"
#include "base/little_endian.h"
#include "formats/checkpoint.h"
#include "models/formats.h"
#include "quant/views/convert.h"

#include "tests/unit/check.h"
#include "tests/unit/write_safetensors.h"

#include <dirent.h>

static uint64_t state = 3;

static uint64_t below(uint64_t limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % limit;
}

/* A checkpoint's packed weights. */
struct found {
    const struct checkpoint *checkpoint;
    struct arena *arena;
    struct packing_config config;
    struct unpacked_weights weights;
};

static bool find(const char *path, struct found *found)
{
    static const struct open_options options = {0};
    struct error error;
    *found = (struct found){.checkpoint = checkpoint_open(path, formats, &options, &error), .arena = arena_new()};
    if (found->checkpoint == NULL || !packing_config_open(found->checkpoint, found->arena, &found->config, &error)) {
        fprintf(stderr, "  %s\n", error.message);
        return false;
    }
    const struct packing_config *config = &found->config;
    const struct packing_input input = {found->arena,
                                        found->checkpoint->tensors,
                                        config->quantization,
                                        config->method,
                                        config->dtype,
                                        .model = config->model,
                                        .comfy_layers = config->comfy_layers,
                                        .metadata = &found->checkpoint->metadata};
    found->weights = packings_find(&input);
    return true;
}

static void forget(struct found *found)
{
    packing_config_close(&found->config);
    checkpoint_close(found->checkpoint);
    arena_free(found->arena);
}

static float *read_expected(const char *folder, size_t *ret_count)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/expected.f32", folder);
    FILE *file = fopen(path, "rb");
    files_must(file != NULL, path);
    float *values = malloc(1 << 20);
    *ret_count = fread(values, sizeof *values, (1 << 20) / sizeof *values, file);
    little_endian(values, *ret_count, sizeof *values);
    fclose(file);
    return values;
}

static bool ranges_agree(const struct view *view, const float *expected, size_t count)
{
    float *part = malloc(count * sizeof *part);
    struct error error;
    bool good = true;
    for (int i = 0; i < 200 && good; i++) {
        uint64_t first = below(count), n = i < 100 ? 1 + below(count - first) : 1;
        good = convert_values(view, first, n, part, &error) && memcmp(part, expected + first, n * sizeof *part) == 0;
    }
    free(part);
    return good;
}

static void check_values(const char *name, const struct unpacked *weight, const float *expected, size_t count)
{
    const struct view *view = weight->view;
    if (!CHECK_NAMED(weight->refusal == NULL, name)) {
        fprintf(stderr, "  %s: %s\n", weight->name, weight->refusal);
        return;
    }
    float *values = malloc(view->n_elements * sizeof *values + 1);
    struct error error;
    bool good = CHECK_NAMED(view->n_elements == count, name) && convert_values(view, 0, count, values, &error);
    for (size_t i = 0; good && i < count; i++)
        if (memcmp(&values[i], &expected[i], sizeof *values) != 0) {
            fprintf(stderr, "  %s: element %zu is %.9g, not %.9g\n", name, i, (double)values[i], (double)expected[i]);
            good = false;
        }
    CHECK_NAMED(good && ranges_agree(view, expected, count), name);
    free(values);
}

static void check_folder(const char *folder, const char *name)
{
    struct found found;
    size_t count;
    float *expected = read_expected(folder, &count);
    if (CHECK_NAMED(find(folder, &found) && found.weights.n_weights == 1, name))
        check_values(name, &found.weights.weights[0], expected, count);
    forget(&found);
    free(expected);
}

/* Parts of other shapes and types: every weight has values that can be read, or is refused with a reason. */

static const struct odd_shape {
    unsigned rank;
    uint64_t sizes[5];
} odd_shapes[] = {{0, {0}},          {1, {0}},
                  {1, {1}},          {1, {2}},
                  {1, {16}},         {1, {33}},
                  {2, {0, 0}},       {2, {0, 16}},
                  {2, {16, 0}},      {2, {1, 1}},
                  {2, {1, 16}},      {2, {16, 1}},
                  {2, {3, 5}},       {2, {64, 32}},
                  {3, {1, 1, 1}},    {3, {2, 0, 8}},
                  {3, {2, 8, 16}},   {3, {8, 16, 2}},
                  {4, {1, 1, 1, 1}}, {4, {2, 2, 2, 16}},
                  {1, {4096}},       {5, {1, 2, 1, 2, 16}}};
static const char *const odd_dtypes[] = {NULL, "U8", "I8", "I16", "I32", "I64", "F16", "F32", "F8_E4M3", "F8_E8M0"};

/* Bytes 0, 85, 170, 255, 84 ... */
static const struct view *counted(struct arena *arena, const struct dtype *dtype, const struct odd_shape *shape)
{
    uint64_t n_bytes = dtype->block_bytes;
    for (unsigned i = 0; i < shape->rank; i++)
        n_bytes *= shape->sizes[i];
    unsigned char *bytes = arena_alloc(arena, n_bytes + 1);
    for (size_t i = 0; i < n_bytes; i++)
        bytes[i] = (unsigned char)(85 * i);
    return view_literal(arena, dtype, shape->rank, shape->sizes, bytes);
}

static bool is_read_or_refused(const struct unpacked *weight)
{
    struct error error;
    if (weight->refusal != NULL)
        return weight->view == NULL && *weight->refusal != '\0' && weight->name != NULL;
    if (weight->view == NULL)
        return false;
    const struct view *view = weight->view;
    float *values = malloc((view->n_elements + 1) * sizeof *values);
    bool is_read = convert_values(view, 0, view_units(view), values, &error);
    free(values);
    return is_read || error.message[0] != '\0';
}

/* The checkpoint with one tensor replaced. */
static bool try_part(const struct found *found, size_t which, const struct odd_shape *shape, const char *dtype_name)
{
    struct arena *arena = arena_new();
    struct tensor_set *set = tensor_set_new(arena);
    struct error error;
    bool good = true;
    for (size_t i = 0; i < found->checkpoint->tensors->n_tensors; i++) {
        const struct tensor *tensor = &found->checkpoint->tensors->tensors[i];
        if (i == which)
            tensor_set_add_view(set, tensor->name,
                                counted(arena, dtype_name != NULL ? dtype_by_name(dtype_name) : tensor->dtype, shape));
        else
            tensor_set_add(set, tensor);
    }
    tensor_set_seal(set, &error);
    const struct packing_config *config = &found->config;
    const struct packing_input input = {arena,
                                        set,
                                        config->quantization,
                                        config->method,
                                        config->dtype,
                                        .model = config->model,
                                        .comfy_layers = config->comfy_layers,
                                        .metadata = &found->checkpoint->metadata};
    struct unpacked_weights weights = packings_find(&input);
    for (size_t i = 0; i < weights.n_weights; i++)
        good = is_read_or_refused(&weights.weights[i]) && good;
    arena_free(arena);
    return good;
}

static void try_parts(const char *folder, const char *name)
{
    struct found found;
    bool good = find(folder, &found);
    for (size_t i = 0; good && i < found.checkpoint->tensors->n_tensors; i++)
        for (size_t j = 0; j < sizeof odd_shapes / sizeof *odd_shapes; j++)
            for (size_t k = 0; k < sizeof odd_dtypes / sizeof *odd_dtypes; k++)
                good = try_part(&found, i, &odd_shapes[j], odd_dtypes[k]) && good;
    CHECK_NAMED(good, name);
    forget(&found);
}

static void test_values(const char *data)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/packed", data);
    struct dirent **entries;
    int n_entries = scandir(path, &entries, NULL, alphasort);
    files_must(n_entries > 0, path);
    for (int i = 0; i < n_entries; i++) {
        char folder[2048];
        snprintf(folder, sizeof folder, "%s/packed/%s", data, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.') {
            check_folder(folder, entries[i]->d_name);
            try_parts(folder, entries[i]->d_name);
        }
        free(entries[i]);
    }
    free(entries);
}

/* What does not fit. */

#define FP8_CONFIG(block)   "{\"quant_method\":\"fp8\",\"weight_block_size\":" block "}"
#define FP8(shape)          "a.weight F8_E4M3 [8,16] 128;a.weight_scale_inv F32 " shape " 32"
#define GPTQ_CONFIG         "{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":8}"
#define GPTQ(zeros, scales) "a.qweight I32 [2,8] 64;a.qzeros I32 " zeros " 8;a.scales F16 " scales " 32"
#define AWQ                 "a.qweight I32 [16,1] 64;a.scales F16 [2,8] 32;a.qzeros I32 [2,1] 8"
#define PACK_CONFIG                                                                                                    \
    "{\"quant_method\":\"compressed-tensors\",\"format\":\"pack-quantized\",\"config_groups\":"                        \
    "{\"g\":{\"weights\":{\"num_bits\":4,\"group_size\":8}}}}"

#define PACK           "a.weight_packed I32 [8,2] 64;a.weight_scale F16 [8,2] 32;a.weight_shape I64 [2] 16"
#define NVFP4          "a.weight U8 [2,8] 16;a.weight_scale F8_E4M3 [2,1] 2"
#define BITNET         "a.weight U8 [2,8] 16;a.weight_scale F32 [1] 4"
#define MLX            "a.weight U32 [2,2] 16;a.scales F16 [2,1] 4;a.biases F16 [2,1] 4"
#define MLX_MODE(m)    "{\"group_size\":32,\"bits\":4,\"mode\":" m "}"
#define MLX_LAYER(l)   "{\"group_size\":64,\"bits\":8,\"mode\":\"affine\",\"a\":" l "}"
#define INT4           "{\"quant_method\":\"modelopt\",\"quant_algo\":\"W4A16_AWQ\""
#define INT4_WEIGHT    "a.weight U8 [2,16] 32;a.weight_scale F16 [4,2] 16"
#define AQLM           "a.codes I8 [2,4,1] 8;a.codebooks F16 [1,256,1,2] 1024;a.scales F16 [2,1,1,1] 4"
#define GROUP(weights) "{\"quant_method\":\"compressed-tensors\",\"config_groups\":{\"g\":{\"weights\":{" weights "}}}}"

static const struct {
    const char *config, *tensors; /* "NAME DTYPE SHAPE BYTES;..." */
    const char *refusal;          /* a part of it; NULL: fits */
} misfits[] = {
    {FP8_CONFIG("[4,4]"), FP8("[2,4]"), NULL},
    {FP8_CONFIG("[4,4]"), FP8("[4,2]"), "'a.weight_scale_inv' is F32 [4, 2], but the weight has 8 rows of 16 columns"},
    {FP8_CONFIG("[0,8]"), FP8("[4,2]"), "but the weight has 8 rows of 16 columns"},
    {FP8_CONFIG("[-1,true]"), FP8("[4,2]"), "but the weight has 8 rows of 16 columns"},
    {FP8_CONFIG("[4.5,8]"), FP8("[4,2]"), "but the weight has 8 rows of 16 columns"},
    {FP8_CONFIG("[4,8]"), FP8("[4,2,1]"), "but the weight has 8 rows of 16 columns"},
    {FP8_CONFIG("[4,8]"), "a.weight F8_E4M3 [0,16] 0;a.weight_scale_inv F32 [1] 4", "the weight has no elements"},
    {FP8_CONFIG("[4,8]"), "a.weight F8_E4M3 [8,16] 128;a.weight_scale_inv I64 [4] 32", "'a.weight_scale_inv' is I64"},
    {GPTQ_CONFIG, GPTQ("[2,1]", "[2,8]"), NULL},
    {GPTQ_CONFIG, GPTQ("[1,2]", "[2,8]"), "'a.qzeros' is I32 [1, 2], but there are 2 groups of scales"},
    {GPTQ_CONFIG, GPTQ("[2,1]", "[1,16]"), "but the scales have 16 columns"},
    {GPTQ_CONFIG, GPTQ("[2,1]", "[16]"), "but the scales have 16 columns"},
    {GPTQ_CONFIG, GPTQ("[2,1]", "[2,8]") ";a.g_idx I32 [1] 4", "but the weight has 8 rows and 2 words of columns"},
    {GPTQ_CONFIG, GPTQ("[2,1]", "[2,8]") ";a.g_idx I32 [4,4] 64", "'a.g_idx' is I32 [4, 4], but must be a vector"},
    {GPTQ_CONFIG, GPTQ("[2,1]", "[2,8]") ";a.g_idx F32 [16] 64", "'a.g_idx' is F32"},
    {GPTQ_CONFIG, "a.qweight I32 [2,8] 64", "'a.qzeros' is missing"},
    {"{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":0}", GPTQ("[2,1]", "[2,8]"),
     "group_size of quantization_config"},
    {"{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":-1}", GPTQ("[2,1]", "[2,8]"),
     "'a.scales' is F16 [2, 8], but the weight has 16 columns in groups of 16"},
    {"{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":-1,\"dynamic\":{}}", GPTQ("[2,1]", "[2,8]"), NULL},
    {"{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":0}", GPTQ("[2,1]", "[2,8]") ";a.g_idx I32 [16] 64", NULL},
    {"{\"quant_method\":\"gptq\",\"bits\":5}", GPTQ("[2,1]", "[2,8]"), "GPTQ with 5 bits is not supported"},
    {"{\"quant_method\":\"gptq\",\"bits\":\"4\"}", GPTQ("[2,1]", "[2,8]"), "bits of quantization_config"},
    {"{\"quant_method\":\"awq\",\"bits\":\"4\"}", AWQ, "bits of quantization_config"},
    {"{\"quant_method\":\"awq\",\"group_size\":8}", AWQ, NULL},
    {"{\"quant_method\":\"awq\",\"group_size\":-1}", AWQ, "'a.scales' is F16 [2, 8], but the weight has 16 columns"},
    {"{\"quant_method\":\"awq\",\"group_size\":0}", AWQ, "group_size of quantization_config"},
    {FP8_CONFIG("[4,4]"), "a.weight F8_E4M3 [8,16] 128;a.weight_scale_inv F32 [1,2] 8",
     "but the weight has 8 rows of 16 columns"},
    {FP8_CONFIG("[4,4]"), FP8("[8,1]"), NULL},
    {"{\"quant_method\":\"gptq\",\"checkpoint_format\":\"marlin\"}", GPTQ("[2,1]", "[2,8]"),
     "checkpoint_format 'marlin' of quantization_config is not supported"},
    {PACK_CONFIG, "a.weight_packed I32 [8,2] 64;a.weight_scale F16 [8,2] 32", "'a.weight_shape' is missing"},
    {PACK_CONFIG, "a.weight_packed I32 [8,2] 64;a.weight_scale F16 [8,2] 32;a.weight_shape I64 [2] 16",
     "but weight_shape is ["},
    {PACK_CONFIG, "a.weight_packed I32 [8,2] 64;a.weight_scale F16 [8,2] 32;a.weight_shape I64 [3] 24",
     "but must hold 2 numbers"},
    {"{\"quant_method\":\"bitnet\"}", "a.weight U8 [2,8] 16;a.weight_scale F32 [2] 8", "but must hold one number"},
    {"{\"quant_method\":\"modelopt\",\"quant_algo\":\"NVFP4_SVD\"}",
     "a.weight U8 [2,8] 16;a.weight_scale F8_E4M3 [2,1] 2", "quant_algo 'NVFP4_SVD' of quantization_config"},
    {"{\"quant_method\":\"modelopt\"}", "a.weight U8 [2,8] 16;a.weight_scale F8_E4M3 [1,2] 2",
     "is F8_E4M3 [1, 2], but must be [2, 1]"},
    {"{\"quant_method\":\"awq\"}", "a.qweight I32 [16,1] 64;a.scales F16 [3,8] 48;a.qzeros I32 [3,1] 12",
     "but the weight has 16 columns"},
    {"{\"quant_method\":\"bitsandbytes\"}",
     "a.weight U8 [32,1] 32;a.weight.absmax F32 [1] 4;a.weight.quant_state.bitsandbytes__nf4 U8 [40] 40",
     "but must hold the state of a bitsandbytes weight"},
    {"{\"quant_method\":\"hqq\"}", "a.W_q U8 [4,4] 16;a.scale F16 [4,1] 8;a.zero F16 [4,1] 8", "'a.shape' is missing"},
    {"{\"quant_method\":\"quanto\"}",
     "a.weight._data._data U8 [4,4] 16;a.weight._scale F32 [4,1] 16;a.weight._shift F32 [4,1] 16",
     "neither qint4 nor qint2"},
    {"{\"group_size\":0}", MLX, "quantization.group_size is not a number from 1 to 1048576"},
    {"{\"bits\":4}", MLX, "config.json has no quantization.group_size"},
    {"{\"group_size\":24}", MLX, "must hold 24 columns (a multiple of 8) of 1 to 6 or 8 bits"},
    {"{\"quant_method\":\"mxfp4\"}", "a_blocks U8 [2,1,16] 32;a_scales U8 [1,2] 2",
     "the shapes of blocks and scales disagree"},
    {FP8_CONFIG("[4,8]"), "a.weight F8_E4M3 [8,16] 128;a.scale F8_E8M0 [2,2] 4", NULL},
    {FP8_CONFIG("[4,8]"), "a.weight F8_E4M3 [8,16] 128;a.scale F8_E8M0 [3,1] 3", "'a.scale' is F8_E8M0 [3, 1]"},
    {FP8_CONFIG("[4,8]"), "a.weight I8 [2,16] 32;a.scale F8_E8M0 [2,1] 2", NULL},
    {FP8_CONFIG("[4,8]"), "a.weight I8 [2,16] 32;a.scale F8_E8M0 [1,2] 2", "is F8_E8M0 [1, 2], but must be [2, 1]"},
    /* words of the configuration that are not known, each by its name */
    {MLX_MODE("\"mxfp4\""), "a.weight U32 [2,4] 32;a.scales U8 [2,1] 2", NULL},
    {MLX_MODE("\"mxfp5\""), "a.weight U32 [2,4] 32;a.scales U8 [2,1] 2",
     "the quantization mode 'mxfp5' is not supported"},
    {MLX_MODE("4"), "a.weight U32 [2,4] 32;a.scales U8 [2,1] 2", "quantization.mode is not a string"},
    {MLX_MODE("null"), "a.weight U32 [2,4] 32;a.scales U8 [2,1] 2", "'a.scales' is U8"},
    {MLX_MODE("\"mxfp8\""), "a.weight U32 [2,8] 64;a.scales U8 [2,1] 2",
     "quantization.bits is 4, but its mode needs 8"},
    {MLX_MODE("\"nvfp4\""), "a.weight U32 [2,4] 32;a.scales U8 [2,2] 4",
     "quantization.group_size is 32, but its mode needs 16"},
    {MLX_MODE("\"mxfp4\""), "a.weight U32 [2,4] 32;a.scales U8 [2,2] 4",
     "the shapes make 2 bits, and config.json says 4"},
    {MLX_MODE("\"mxfp4\""), "a.weight U32 [2,4] 32;a.scales U8 [1,1] 1", "must have the rows of the weight"},
    {MLX_MODE("\"mxfp4\""), "a.weight U32 [2,4] 32;a.scales U8 [2,1] 2;a.biases F16 [2,1] 4", "'mxfp4' has no biases"},
    {MLX_MODE("\"affine\""), "a.weight U32 [2,4] 32;a.scales F16 [2,1] 4", "'affine' needs biases"},
    {MLX_LAYER("{\"mode\":\"mxfp4\"}"), "a.weight U32 [2,4] 32;a.scales U8 [2,1] 2", NULL},
    {MLX_LAYER("{\"mode\":\"none\"}"), "a.weight U32 [2,4] 32;a.scales U8 [2,1] 2", "mode 'none' is not supported"},
    {MLX_LAYER("{\"bits\":2}"), "a.weight U32 [2,4] 32;a.scales F16 [2,1] 4;a.biases F16 [2,1] 4", NULL},
    {MLX_LAYER("{\"bits\":3}"), "a.weight U32 [2,4] 32;a.scales F16 [2,1] 4;a.biases F16 [2,1] 4",
     "the shapes make 2 bits, and config.json says 3"},
    {MLX_LAYER("{\"bits\":\"2\"}"), "a.weight U32 [2,4] 32;a.scales F16 [2,1] 4;a.biases F16 [2,1] 4",
     "quantization.bits is not a number"},
    {MLX_LAYER("false"), "a.weight U32 [2,4] 32;a.scales F16 [2,1] 4;a.biases F16 [2,1] 4",
     "declares this layer unquantized, but it is packed"},
    {"{\"quant_method\":\"eetq\"}", "a.weight I8 [8,16] 128;a.weight_scales F16 [16] 32",
     "quantization method 'eetq' is not supported"},
    {"{\"quant_method\":\"unheard-of\"}", "a.weight F8_E4M3 [8,16] 128;a.weight_scale F32 [1] 4",
     "quantization method 'unheard-of' is not supported"},
    {"{\"quant_method\":\"quark\"}", "a.weight F8_E4M3 [8,16] 128;a.weight_scale F32 [1] 4",
     "quantization_config has no global_quant_config"},
    {"{\"quant_method\":\"quark\",\"global_quant_config\":{\"weight\":{\"dtype\":\"fp8_e5m2\"}}}",
     "a.weight F8_E4M3 [8,16] 128;a.weight_scale F32 [1] 4",
     "quantization_config says 'fp8_e5m2', which is not read so"},
    {"{\"quant_method\":\"quark\",\"global_quant_config\":{\"weight\":[{\"dtype\":\"fp8_e4m3\"},{\"dtype\":\"int4\"}]}"
     "}",
     "a.weight F8_E4M3 [8,16] 128;a.weight_scale F32 [1] 4", "weights in 2 stages are not supported"},
    {"{\"quant_method\":\"quark\",\"global_quant_config\":{\"weight\":{\"dtype\":\"fp8_e4m3\"}},\"layer_quant_config\":"
     "[1]}",
     "a.weight F8_E4M3 [8,16] 128;a.weight_scale F32 [1] 4", "layer_quant_config is not an object"},
    {"{\"quant_method\":\"quark\",\"global_quant_config\":{\"weight\":{\"dtype\":\"fp8_e4m3\"}},\"export\":{\"pack_"
     "method\":\"other\"}}",
     "a.weight F8_E4M3 [8,16] 128;a.weight_scale F32 [1] 4",
     "pack_method of Quark's export is neither reorder nor order"},
    {"{\"quant_method\":\"quark\",\"global_quant_config\":{\"weight\":{\"dtype\":\"fp8_e4m3\"}},\"layer_type_quant_"
     "config\":{\"Linear\":{}}}",
     "a.weight F8_E4M3 [8,16] 128;a.weight_scale F32 [1] 4",
     "the key 'layer_type_quant_config' of quantization_config is not supported"},
    {"{\"quant_method\":\"quark\",\"global_quant_config\":{\"weight\":{\"dtype\":\"fp8_e4m3\"}},\"algo_config\":[{"
     "\"name\":\"rotation\"}]}",
     "a.weight F8_E4M3 [8,16] 128;a.weight_scale F32 [1] 4",
     "the algorithm 'rotation' of algo_config is not supported"},
    {"{\"quant_method\":\"gemma\"}", "a.weight I8 [8,16] 128;a.weight_scale F32 [8,1] 32",
     "quantization_config says 4 bits"},
    {"{\"quant_method\":\"gemma\",\"module_quant_configs\":{\"(\":{\"num_bits\":8}}}",
     "a.weight I8 [8,16] 128;a.weight_scale F32 [8,1] 32", "the expression '(' of module_quant_configs"},
    {"{\"quant_method\":7}", "a.weight F8_E4M3 [8,16] 128;a.weight_scale F32 [1] 4",
     "quant_method of quantization_config is not a string"},
    {"{\"quant_method\":\"gptq\"}", "a.weight I8 [8,16] 128", "stored as I8, which no known packing of 'gptq' uses"},
    {"{\"load_in_8bit\":true}", "a.weight I8 [8,16] 128", "quantization_config describes no known packing"},
    {"{\"quant_method\":\"gptq\",\"checkpoint_format\":\"gptq_v3\"}", GPTQ("[2,1]", "[2,8]"),
     "checkpoint_format 'gptq_v3'"},
    /* layouts that are refused by name */
    {"{\"quant_method\":\"gptq\"}", "a.B I32 [1,32] 128;a.s F16 [1,16] 32;a.workspace I32 [4] 16",
     "the weight is packed as GPTQ in Marlin's layout"},
    {"{\"quant_method\":\"gptq\"}", "a.qweight I32 [1,32] 128;a.scales F16 [1,16] 32", "as GPTQ in Marlin's layout"},
    {"{}", "a.qweight I8 [16,8] 128;a.wscales BF16 [1,16] 32;a.smooth_factor BF16 [16] 32",
     "packed as SVDQuant (nunchaku)"},
    /* what is said beside the codes */
    {"{\"quant_method\":\"gptq\",\"rotation\":\"hadamard\"}", GPTQ("[2,1]", "[2,8]"),
     "the key 'rotation' of quantization_config is not supported"},
    {"{\"quant_method\":\"gptq\",\"rotation\":null,\"adapter\":{},\"iters\":200,\"meta\":{\"quantizer\":[\"x\"]}}",
     GPTQ("[2,1]", "[2,8]"), NULL},
    {"{\"quant_method\":\"gptq\"}", GPTQ("[2,1]", "[2,8]") ";a.bias F16 [8] 16;a.input_scale F32 [1] 4;ab.x F32 [1] 4",
     NULL},
    {"{\"quant_method\":\"gptq\"}", GPTQ("[2,1]", "[2,8]") ";a.smooth F16 [16] 32",
     "'a.smooth' is left over: the packing 'gptq' does not use it"},
    {"{\"quant_method\":\"gptq\"}", GPTQ("[2,1]", "[2,8]") ";a.lora.down F16 [16] 32", "'a.lora.down' is left over"},
    {"{\"quant_method\":\"fp8\",\"fmt\":\"e4m3\",\"smooth\":1}", FP8("[8,1]"),
     "the key 'smooth' of quantization_config"},
    {"{\"quant_method\":\"compressed-tensors\",\"format\":\"float-quantized\",\"transform_config\":{\"config_groups\":"
     "{\"R4\":{\"type\":\"hadamard\",\"apply\":[{\"location\":\"input\"}]}}}}",
     "a.weight F8_E4M3 [8,16] 128;a.weight_scale F32 [8,1] 32", "transforms activations ('input')"},
    {"{\"quant_method\":\"compressed-tensors\",\"format\":\"float-quantized\",\"transform_config\":{\"config_groups\":"
     "{\"R1\":{\"type\":\"hadamard\",\"apply\":[{\"location\":\"weight_input\"},{\"location\":\"weight_output\"}]}}}}",
     "a.weight F8_E4M3 [8,16] 128;a.weight_scale F32 [8,1] 32", NULL},
    {GROUP("\"num_bits\":8,\"clip\":2"), "a.weight F8_E4M3 [8,16] 128;a.weight_scale F32 [8,1] 32",
     "the key 'clip' of weights in quantization_config"},
    {"{\"quant_method\":\"auto-round\",\"rotation_config\":{\"hadamard_type\":\"hadamard\"}}", GPTQ("[2,1]", "[2,8]"),
     "is supported for MXFP4, MXFP8 and NVFP4"},
    {"{\"quant_method\":\"auto-round\",\"rotation_config\":{\"hadamard_type\":\"quarot\"}}", GPTQ("[2,1]", "[2,8]"),
     "'hadamard_type' of rotation_config"},
    {"{\"quant_method\":\"auto-round\",\"rotation_config\":{\"angle\":1}}", GPTQ("[2,1]", "[2,8]"),
     "the key 'angle' of rotation_config"},
    {"{\"quant_method\":\"auto-round\",\"rotation_config\":{\"backend\":\"inplace\"}}", GPTQ("[2,1]", "[2,8]"),
     "'backend' of rotation_config"},
    {"{\"quant_method\":\"auto-round\",\"rotation_config\":{\"block_size\":12}}",
     "a.weight_packed U8 [2,16] 32;a.weight_scale U8 [2,1] 2", "rotates groups of 12 columns, and the weight has 32"},
    {"{\"quant_method\":\"torchao\"}", "a._weight_qdata I8 [8,16] 128;a._weight_scale F32 [8,1] 32",
     "does not describe the TorchAO tensor 'a.weight'"},
    /* ComfyUI's marks */
    {"{}", "a.weight I8 [2,16] 32;a.weight_scale F32 [2,1] 8;a.comfy_quant U8 [3] 3",
     "'a.comfy_quant' is U8 [3], but must hold JSON"},
    {"{}", "a.weight I8 [2,16] 32;b.comfy_quant U8 [3] 3", "no mark of ComfyUI's describes it"},
    {"{}", "a.weight F16 [2,16] 64;a.scale_weight F32 [1] 4", NULL},
    {"{}", "a.weight F8_E4M3 [2,16] 32;a.scale_weight F32 [3] 12", "but the weight has 2 rows"},
    {"{\"quant_method\":\"gptq\",\"checkpoint_format\":2}", GPTQ("[2,1]", "[2,8]"),
     "checkpoint_format of quantization_config is not a string"},
    {"{\"quant_method\":\"gptq\",\"is_marlin_format\":true}", GPTQ("[2,1]", "[2,8]"),
     "word order of GPTQ's fp8 and Marlin formats is not supported"},
    {"{\"quant_method\":\"auto-round\",\"packing_format\":\"auto_round:zip\"}", GPTQ("[2,1]", "[2,8]"),
     "packing_format 'auto_round:zip'"},
    {"{\"quant_method\":\"auto-round\",\"packing_format\":\"auto_round:fp8\"}", GPTQ("[2,1]", "[2,8]"),
     "word order of GPTQ's fp8 and Marlin formats is not supported"},
    {"{\"quant_method\":\"auto-round\",\"data_type\":\"nv_fp\"}", GPTQ("[2,1]", "[2,8]"), "data_type 'nv_fp'"},
    {"{\"quant_method\":\"auto-round\",\"data_type\":\"int\"}", GPTQ("[2,1]", "[2,8]"), NULL},
    {"{\"quant_method\":\"awq\",\"version\":\"GEMM\"}", AWQ, NULL},
    {"{\"quant_method\":\"awq\",\"version\":\"marlin\"}", AWQ, "version 'marlin'"},
    {"{\"quant_method\":\"awq\",\"version\":\"gemm2\"}", AWQ, "version 'gemm2'"},
    {"{\"quant_method\":\"awq\",\"backend\":\"llm-awq\"}", AWQ, "the word order of llm-awq is not supported"},
    {"{\"quant_method\":\"awq\",\"w_bit\":3}", AWQ, "AWQ with 3 bits"},
    {"{\"quant_method\":\"modelopt\",\"quant_algo\":\"W4A8_NVFP4_FP8\"}", NVFP4, "quant_algo 'W4A8_NVFP4_FP8'"},
    {"{\"quant_method\":\"modelopt\",\"quant_algo\":\"MIXED_PRECISION\",\"quantized_layers\":{\"a\":{\"quant_algo\":"
     "\"NVFP4\"}}}",
     NVFP4, NULL},
    {"{\"quant_method\":\"modelopt\",\"quant_algo\":\"MIXED_PRECISION\",\"quantized_layers\":{\"a\":{\"quant_algo\":"
     "\"NVFP4_SVD\"}}}",
     NVFP4, "quant_algo 'NVFP4_SVD'"},
    {INT4 "}", INT4_WEIGHT, NULL},
    {INT4 ",\"group_size\":4}", INT4_WEIGHT,
     "group_size of quantization_config does not match the tensors, which have 8"},
    {INT4 "}", INT4_WEIGHT ";a.weight_scale_2 F32 [1] 4", "with a second scale (weight_scale_2) are not supported"},
    {"{\"quant_method\":\"bitnet\",\"linear_class\":\"trilinear\"}", BITNET, "linear_class 'trilinear'"},
    {"{\"quant_method\":\"bitnet\",\"quantization_mode\":\"later\"}", BITNET, "quantization_mode 'later'"},
    {"{\"quant_method\":\"quanto\",\"weights\":\"qint3\"}", "a.weight._data I8 [4,4] 16;a.weight._scale F32 [4,1] 16",
     "weights 'qint3'"},
    {"{\"quant_method\":\"compressed-tensors\",\"format\":\"marlin-24\"}", PACK, "format 'marlin-24'"},
    {GROUP("\"num_bits\":4,\"strategy\":\"spiral\""), PACK, "strategy 'spiral'"},
    {GROUP("\"num_bits\":4,\"type\":\"posit\""), PACK, "type 'posit'"},
    {GROUP("\"num_bits\":\"4\""), PACK, "num_bits of quantization_config is not a number of bits"},
    {"{\"quant_method\":\"aqlm\",\"nbits_per_codebook\":8,\"in_group_size\":2}", AQLM, NULL},
    {"{\"quant_method\":\"aqlm\",\"nbits_per_codebook\":4}", AQLM,
     "nbits_per_codebook of quantization_config does not match the tensors, which have 8"},
    {"{\"quant_method\":\"aqlm\",\"in_group_size\":8}", AQLM,
     "in_group_size of quantization_config does not match the tensors, which have 2"},
};

/* A safetensors file of what `tensors` lists, one after the other. */
static void write_tensors(const char *tensors)
{
    char name[128], dtype[16], shape[32];
    struct safetensors file = {0};
    unsigned n_bytes;
    for (const char *at = tensors; at != NULL; at = strchr(at, ';')) {
        at += *at == ';';
        files_must(sscanf(at, "%127s %15s [%31[0-9,]] %u", name, dtype, shape, &n_bytes) == 4, at);
        safetensors_add(&file, name, dtype, shape, NULL, n_bytes);
    }
    safetensors_write(&file, "model/model.safetensors");
}

static void check_misfit(size_t i)
{
    char config[1024];
    struct found found;
    snprintf(config, sizeof config, "{\"quantization_config\":%s}", misfits[i].config);
    files_write_text("model/config.json", config);
    write_tensors(misfits[i].tensors);
    if (CHECK_NAMED(find("model", &found) && found.weights.n_weights == 1, misfits[i].tensors)) {
        const char *refusal = found.weights.weights[0].refusal, *wanted = misfits[i].refusal;
        bool good = wanted == NULL ? refusal == NULL : refusal != NULL && strstr(refusal, wanted) != NULL;
        if (!CHECK_NAMED(good, wanted != NULL ? wanted : "fits"))
            fprintf(stderr, "  %s\n", refusal != NULL ? refusal : "(fits)");
    }
    forget(&found);
}

int main(void)
{
    test_values(getenv("WFS_TEST_DATA"));
    files_begin();
    for (size_t i = 0; i < sizeof misfits / sizeof *misfits; i++)
        check_misfit(i);
    files_remove();
    return check_done();
}
