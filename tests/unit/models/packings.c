/* Packings against numpy: tests/data/packed/NAME holds one packed weight each (make_packed.py), and the values that it
 * has. Then what does not fit: one line each, and no weight, whatever a part is. */
#include "formats/checkpoint.h"
#include "models/packings/packing.h"
#include "quant/convert.h"

#include "tests/unit/check.h"
#include "tests/unit/files.h"

#include <dirent.h>

static uint64_t state = 3;

static uint64_t below(uint64_t limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % limit;
}

/* A checkpoint's packed weights. */
struct found {
    struct checkpoint *checkpoint;
    struct arena *arena;
    struct packing_config config;
    struct unpacked_weights weights;
};

static bool find(const char *path, struct found *found)
{
    static const struct open_options options = {0};
    struct error error;
    *found = (struct found){.checkpoint = checkpoint_open(path, &options, &error), .arena = arena_new()};
    if (found->checkpoint == NULL || !packing_config_open(found->checkpoint, found->arena, &found->config, &error)) {
        fprintf(stderr, "  %s\n", error.message);
        return false;
    }
    const struct packing_config *config = &found->config;
    const struct packing_input input = {found->arena,  found->checkpoint->tensors, config->quantization, config->method,
                                        config->dtype, .model = config->model};
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
        good = convert_read(view, encoding_of(&f32_dtype), first, n, part, &error) &&
               memcmp(part, expected + first, n * sizeof *part) == 0;
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
    bool good = CHECK_NAMED(view->n_elements == count, name) &&
                convert_read(view, encoding_of(&f32_dtype), 0, count, values, &error);
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
    bool is_read = convert_read(view, encoding_of(&f32_dtype), 0, view_units(view), values, &error);
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
    const struct packing_input input = {arena,          set,           config->quantization,
                                        config->method, config->dtype, .model = config->model};
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

static const struct {
    const char *config, *tensors; /* "NAME DTYPE SHAPE BYTES;..." */
    const char *refusal;          /* a part of it; NULL: fits */
} misfits[] = {
    {FP8_CONFIG("[4,4]"), FP8("[2,4]"), NULL},
    {FP8_CONFIG("[4,4]"), FP8("[4,2]"), "'a.weight_scale_inv' is F32 [4, 2], which does not fit 8 rows of 16"},
    {FP8_CONFIG("[0,8]"), FP8("[4,2]"), "does not fit 8 rows of 16"},
    {FP8_CONFIG("[-1,true]"), FP8("[4,2]"), "does not fit 8 rows of 16"},
    {FP8_CONFIG("[4.0,8]"), FP8("[4,2]"), "does not fit 8 rows of 16"},
    {FP8_CONFIG("[4,8]"), FP8("[4,2,1]"), "does not fit 8 rows of 16"},
    {FP8_CONFIG("[4,8]"), "a.weight F8_E4M3 [0,16] 0;a.weight_scale_inv F32 [1] 4", "it has no rows"},
    {FP8_CONFIG("[4,8]"), "a.weight F8_E4M3 [8,16] 128;a.weight_scale_inv I64 [4] 32", "'a.weight_scale_inv' is I64"},
    {GPTQ_CONFIG, GPTQ("[2,1]", "[2,8]"), NULL},
    {GPTQ_CONFIG, GPTQ("[1,2]", "[2,8]"), "'a.qzeros' is I32 [1, 2], where there are 2 groups"},
    {GPTQ_CONFIG, GPTQ("[2,1]", "[1,16]"), "where scales have 16 columns"},
    {GPTQ_CONFIG, GPTQ("[2,1]", "[16]"), "where scales have 16 columns"},
    {GPTQ_CONFIG, GPTQ("[2,1]", "[2,8]") ";a.g_idx I32 [1] 4", "does not fit 8 rows and 2 words"},
    {GPTQ_CONFIG, GPTQ("[2,1]", "[2,8]") ";a.g_idx I32 [4,4] 64", "'a.g_idx' is I32 [4, 4], not a vector"},
    {GPTQ_CONFIG, GPTQ("[2,1]", "[2,8]") ";a.g_idx F32 [16] 64", "'a.g_idx' is F32"},
    {GPTQ_CONFIG, "a.qweight I32 [2,8] 64", "there is no 'a.qzeros'"},
    {"{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":0}", GPTQ("[2,1]", "[2,8]"),
     "group_size of quantization_config"},
    {"{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":-1}", GPTQ("[2,1]", "[2,8]"),
     "'a.scales' is F16 [2, 8], which does not fit 16 columns in groups of 16"},
    {"{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":-1,\"dynamic\":{}}", GPTQ("[2,1]", "[2,8]"), NULL},
    {"{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":0}", GPTQ("[2,1]", "[2,8]") ";a.g_idx I32 [16] 64", NULL},
    {"{\"quant_method\":\"gptq\",\"bits\":5}", GPTQ("[2,1]", "[2,8]"), "GPTQ of 5 bits is not known"},
    {"{\"quant_method\":\"gptq\",\"bits\":\"4\"}", GPTQ("[2,1]", "[2,8]"), "bits of quantization_config"},
    {"{\"quant_method\":\"awq\",\"bits\":\"4\"}", AWQ, "bits of quantization_config"},
    {"{\"quant_method\":\"awq\",\"group_size\":8}", AWQ, NULL},
    {"{\"quant_method\":\"awq\",\"group_size\":-1}", AWQ, "'a.scales' is F16 [2, 8], which does not fit 16 columns"},
    {"{\"quant_method\":\"awq\",\"group_size\":0}", AWQ, "group_size of quantization_config"},
    {FP8_CONFIG("[4,4]"), "a.weight F8_E4M3 [8,16] 128;a.weight_scale_inv F32 [1,2] 8", "does not fit 8 rows of 16"},
    {FP8_CONFIG("[4,4]"), FP8("[8,1]"), NULL},
    {"{\"quant_method\":\"gptq\",\"checkpoint_format\":\"marlin\"}", GPTQ("[2,1]", "[2,8]"),
     "order of this format's words"},
    {PACK_CONFIG, "a.weight_packed I32 [8,2] 64;a.weight_scale F16 [8,2] 32", "there is no 'a.weight_shape'"},
    {PACK_CONFIG, "a.weight_packed I32 [8,2] 64;a.weight_scale F16 [8,2] 32;a.weight_shape I64 [2] 16",
     "where weight_shape is ["},
    {PACK_CONFIG, "a.weight_packed I32 [8,2] 64;a.weight_scale F16 [8,2] 32;a.weight_shape I64 [3] 24",
     "not 2 numbers"},
    {"{\"quant_method\":\"bitnet\"}", "a.weight U8 [2,8] 16;a.weight_scale F32 [2] 8", "not one number"},
    {"{\"quant_method\":\"modelopt\",\"quant_algo\":\"NVFP4_AWQ\"}",
     "a.weight U8 [2,8] 16;a.weight_scale F8_E4M3 [2,1] 2", "what else it is multiplied with is not known"},
    {"{\"quant_method\":\"modelopt\"}", "a.weight U8 [2,8] 16;a.weight_scale F8_E4M3 [1,2] 2",
     "is F8_E4M3 [1, 2], not [2, 1]"},
    {"{\"quant_method\":\"awq\"}", "a.qweight I32 [16,1] 64;a.scales F16 [3,8] 48;a.qzeros I32 [3,1] 12",
     "does not fit 16 columns"},
    {"{\"quant_method\":\"bitsandbytes\"}",
     "a.weight U8 [32,1] 32;a.weight.absmax F32 [1] 4;a.weight.quant_state.bitsandbytes__nf4 U8 [40] 40",
     "not the state of a weight of bitsandbytes"},
    {"{\"quant_method\":\"hqq\"}", "a.W_q U8 [4,4] 16;a.scale F16 [4,1] 8;a.zero F16 [4,1] 8", "there is no 'a.shape'"},
    {"{\"quant_method\":\"quanto\"}",
     "a.weight._data._data U8 [4,4] 16;a.weight._scale F32 [4,1] 16;a.weight._shift F32 [4,1] 16",
     "neither qint4 nor qint2"},
    {"{\"group_size\":0}", "a.weight U32 [2,2] 16;a.scales F16 [2,1] 4;a.biases F16 [2,1] 4",
     "the configuration has no group_size"},
    {"{\"group_size\":24}", "a.weight U32 [2,2] 16;a.scales F16 [2,1] 4;a.biases F16 [2,1] 4",
     "not of whole bits for 24 columns"},
    {"{\"quant_method\":\"mxfp4\"}", "a_blocks U8 [2,1,16] 32;a_scales U8 [1,2] 2", "not those of one MXFP4 tensor"},
    {FP8_CONFIG("[4,8]"), "a.weight F8_E4M3 [8,16] 128;a.scale F8_E8M0 [2,2] 4", NULL},
    {FP8_CONFIG("[4,8]"), "a.weight F8_E4M3 [8,16] 128;a.scale F8_E8M0 [3,1] 3", "'a.scale' is F8_E8M0 [3, 1]"},
    {FP8_CONFIG("[4,8]"), "a.weight I8 [2,16] 32;a.scale F8_E8M0 [2,1] 2", NULL},
    {FP8_CONFIG("[4,8]"), "a.weight I8 [2,16] 32;a.scale F8_E8M0 [1,2] 2", "is F8_E8M0 [1, 2], not [2, 1]"},
};

/* A safetensors file of what `tensors` lists, one after the other. */
static void write_tensors(const char *tensors)
{
    char header[4096] = "{", name[128], dtype[16], shape[32];
    size_t length = 1, n_data = 0;
    unsigned n_bytes;
    for (const char *at = tensors; at != NULL; at = strchr(at, ';')) {
        at += *at == ';';
        files_must(sscanf(at, "%127s %15s %31s %u", name, dtype, shape, &n_bytes) == 4, at);
        length += (size_t)snprintf(header + length, sizeof header - length,
                                   "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}",
                                   length > 1 ? "," : "", name, dtype, shape, n_data, n_data + n_bytes);
        n_data += n_bytes;
    }
    header[length++] = '}';
    files_write_safetensors("model/model.safetensors", header, length, n_data);
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
