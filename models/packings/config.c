/* The packing that a checkpoint declares. */
#include "base/text.h"
#include "formats/documents.h"
#include "models/packings/packings.h"

#include <ctype.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool is_text(const struct json *value, const char *const *texts, size_t n_texts)
{
    for (size_t i = 0; i < n_texts; i++)
        if (json_string_is(value, texts[i]))
            return true;
    return false;
}

/* Reports whether the converter treats the checkpoint as NVFP4. */
static bool is_nvfp4(const struct json *quantization)
{
    static const char *const algorithms[] = {"NVFP4", "W4A16_NVFP4"};
    static const char packed[] = "nvfp4-pack-quantized";
    const struct json *layers = json_get(quantization, "quantized_layers"),
                      *groups = json_get(quantization, "config_groups");
    if (is_text(json_get(quantization, "quant_algo"), algorithms, COUNT(algorithms)))
        return true;
    for (struct json_member layer = {0}; json_next_member(layers, &layer);) {
        const char *algorithm = json_string(json_get(layer.value, "quant_algo"), NULL);
        if (algorithm != NULL && text_ends_with(algorithm, "NVFP4"))
            return true;
    }
    if (!json_string_is(json_get(quantization, "quant_method"), "compressed-tensors"))
        return false;
    if (json_string_is(json_get(quantization, "format"), packed))
        return true;
    bool is_mixed = json_string_is(json_get(quantization, "format"), "mixed-precision");
    for (struct json_member group = {0}; is_mixed && json_next_member(groups, &group);)
        if (json_string_is(json_get(group.value, "format"), packed))
            return true;
    return false;
}

static const struct dtype *model_dtype(const struct json *root)
{
    static const struct {
        const char *name, *dtype;
    } names[] = {{"bfloat16", "BF16"}, {"float16", "F16"}, {"float32", "F32"}};
    const struct json *text = json_get(root, "text_config"),
                      *values[] = {json_get(root, "torch_dtype"), json_get(root, "dtype"),
                                   json_get(text, "torch_dtype"), json_get(text, "dtype")};
    for (size_t i = 0; i < COUNT(values); i++)
        for (size_t j = 0; j < COUNT(names); j++)
            if (json_string_is(values[i], names[j].name))
                return dtype_by_name(names[j].dtype);
    return &f16_dtype;
}

/* Fills in values that config.json lacks from hf_quant_config.json; the producer's name is the method. */
static void read_producer(struct packing_config *config, const struct json *root, struct arena *arena)
{
    const struct json *quantization = json_get(root, "quantization");
    const char *producer = json_string(json_get(json_get(root, "producer"), "name"), NULL);
    config->is_nvfp4 |= is_nvfp4(quantization);
    if (config->quantization == NULL && json_is(quantization, JSON_OBJECT))
        config->quantization = quantization;
    if (*config->method != '\0' || producer == NULL)
        return;
    char *method = arena_strdup(arena, producer);
    for (char *at = method; *at != '\0'; at++)
        *at = (char)tolower((unsigned char)*at);
    config->method = method;
}

/* Reads ComfyUI's description of layers in the header. */
static bool read_comfy(const struct checkpoint *checkpoint, struct packing_config *config, struct error *error)
{
    static const char key[] = "_quantization_metadata";
    struct arena *arena = arena_new();
    const char *text = gguf_get_text(&checkpoint->metadata, key, arena);
    bool good = true;
    if (gguf_kvs_find(&checkpoint->differing, key) != NULL)
        good = error_set(error, "%s in the headers of several files differs, which is not supported", key);
    else if (text != NULL && (config->comfy = json_parse(text, strlen(text), error)) == NULL)
        good = error_prefix(error, "%s in the header of the file", key);
    config->comfy_layers = config->comfy != NULL ? json_get(json_root(config->comfy), "layers") : NULL;
    if (good && text != NULL && !json_is(config->comfy_layers, JSON_OBJECT))
        good = error_set(error, "%s in the header of the file has no object 'layers'", key);
    arena_free(arena);
    return good;
}

bool packing_config_open(const struct checkpoint *checkpoint, struct arena *arena, struct packing_config *ret_config,
                         struct error *error)
{
    struct packing_config config = {.method = ""};
    bool is_mistral = strcmp(checkpoint->format, "mistral") == 0;
    if (!document_open(checkpoint, is_mistral ? "params.json" : "config.json", &config.documents[0], error) ||
        !document_open(checkpoint, "hf_quant_config.json", &config.documents[1], error)) {
        packing_config_close(&config);
        return false;
    }
    const struct json *root = document_root(config.documents[0]),
                      *values[] = {
                          json_get(json_get(root, "text_config"), "quantization_config"),
                          json_get(root, "quantization_config"),
                          json_get(root, "quantization"),
                      };
    for (size_t i = 0; i < COUNT(values) && config.quantization == NULL; i++)
        if (json_count_members(values[i]) > 0)
            config.quantization = values[i];
    const char *method = json_string(json_get(config.quantization, "quant_method"), NULL);
    if (method != NULL)
        config.method = arena_strdup(arena, method);
    else if (json_is(values[2], JSON_OBJECT)) /* `quantization` names no method */
        config.method = json_string_is(json_get(values[2], "qformat_weight"), "fp8_e4m3") ? "fp8" : "mlx";
    config.is_nvfp4 = is_nvfp4(config.quantization);
    config.model = root;
    config.dtype = model_dtype(root);
    if (config.documents[1] != NULL)
        read_producer(&config, document_root(config.documents[1]), arena);
    bool good = read_comfy(checkpoint, &config, error);
    if (good)
        *ret_config = config;
    else
        packing_config_close(&config);
    return good;
}

void packing_config_close(struct packing_config *config)
{
    document_close(config->documents[0]);
    document_close(config->documents[1]);
    json_free(config->comfy);
}
