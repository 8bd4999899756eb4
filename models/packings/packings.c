#include "models/packings/packing.h"

#include "formats/documents.h"
#include "models/packings/repack.h"
#include "quant/convert.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

extern const struct packing aqlm_packing, awq_packing, bitnet_packing, bitsandbytes_packing, gptq_packing, hqq_packing,
    mlx_packing, modelopt_int4_packing, mxfp4_packed_packing, mxfp4_packing, nvfp4_packing, pack_quantized_packing,
    quanto_packing, scaled_packing, torchao_packing;

/* clang-format off: one row a line */
const struct packing *const packings[] = {
    &scaled_packing, &pack_quantized_packing, &gptq_packing,         &nvfp4_packing,
    &bitnet_packing, &mxfp4_packing,          &mxfp4_packed_packing, &modelopt_int4_packing,
    &awq_packing,    &bitsandbytes_packing,   &hqq_packing,          &mlx_packing,
    &quanto_packing, &torchao_packing,        &aqlm_packing,         NULL,
};
/* clang-format on */

/* Methods of which the converter dequantizes what it knows. */
static const char *const converted_methods[] = {"fp8", "gptq", "compressed-tensors", "modelopt", "bitnet", "mxfp4"};

/* Endings of what is stored of activations: whether the converter leaves them out by itself. */
static const struct activation {
    const char *suffix;
    const char *methods[2];
} activations[] = {
    {".activation_scale", {"fp8"}}, {"_activation_scale", {"fp8"}},
    {".qscale_act", {"fp8"}},       {".input_scale", {"modelopt"}},
    {".k_scale", {"modelopt"}},     {".v_scale", {"modelopt"}},
    {".output_scale", {NULL}},      {".q_scale", {NULL}},
    {".input_zero_point", {NULL}},  {".input_global_scale", {"compressed-tensors"}},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

bool packing_is_known(const char *method)
{
    for (const struct packing *const *packing = packings; *packing != NULL; packing++)
        for (const char *const *name = (*packing)->methods; *name != NULL; name++)
            if (strcmp(*name, method) == 0)
                return true;
    return false;
}

bool packing_has_suffix(const struct tensor *tensor, const char *suffix)
{
    size_t length = strlen(suffix);
    return tensor->name_length >= length && memcmp(tensor->name + tensor->name_length - length, suffix, length) == 0;
}

const struct tensor *packing_partner(const struct packing_input *input, const struct tensor *tensor, const char *own,
                                     const char *suffix)
{
    char name[1024];
    size_t kept = tensor->name_length - strlen(own), length = strlen(suffix);
    if (kept + length > sizeof name)
        return NULL;
    memcpy(name, tensor->name, kept);
    memcpy(name + kept, suffix, length);
    return tensor_set_find(input->set, name, kept + length);
}

/* The configuration. */

static bool is_text(const struct json *value, const char *const *texts, size_t n_texts)
{
    for (size_t i = 0; i < n_texts; i++)
        if (json_string_is(value, texts[i]))
            return true;
    return false;
}

/* As the converter tells. */
static bool is_nvfp4(const struct json *quantization)
{
    static const char *const algorithms[] = {"NVFP4", "W4A16_NVFP4"};
    static const char packed[] = "nvfp4-pack-quantized";
    const struct json *layers = json_get(quantization, "quantized_layers"),
                      *groups = json_get(quantization, "config_groups");
    if (is_text(json_get(quantization, "quant_algo"), algorithms, COUNT(algorithms)))
        return true;
    const struct json *layer = json_is(layers, JSON_OBJECT) ? json_first(layers) : NULL;
    for (; layer != NULL; layer = json_next(layer)) {
        const char *algorithm = json_string(json_get(layer, "quant_algo"), NULL);
        size_t length = algorithm != NULL ? strlen(algorithm) : 0;
        if (length >= 5 && strcmp(algorithm + length - 5, "NVFP4") == 0)
            return true;
    }
    if (!json_string_is(json_get(quantization, "quant_method"), "compressed-tensors"))
        return false;
    if (json_string_is(json_get(quantization, "format"), packed))
        return true;
    bool all = json_string_is(json_get(quantization, "format"), "mixed-precision") && json_count(groups) > 0;
    const struct json *group = json_is(groups, JSON_OBJECT) ? json_first(groups) : NULL;
    for (; group != NULL; group = json_next(group))
        all &= json_string_is(json_get(group, "format"), packed);
    return all && json_is(groups, JSON_OBJECT);
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

/* What hf_quant_config.json says, where config.json says nothing: the producer's name is the method. */
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

bool packing_config_open(const struct checkpoint *checkpoint, struct arena *arena, struct packing_config *ret_config,
                         struct error *error)
{
    struct packing_config config = {.method = ""};
    if (!document_open(checkpoint, "config.json", &config.documents[0], error) ||
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
        if (json_is(values[i], JSON_OBJECT) && json_count(values[i]) > 0)
            config.quantization = values[i];
    const char *method = json_string(json_get(config.quantization, "quant_method"), NULL);
    if (method != NULL)
        config.method = arena_strdup(arena, method);
    else if (json_is(values[2], JSON_OBJECT))
        config.method = "mlx"; /* which names none */
    config.is_nvfp4 = is_nvfp4(config.quantization);
    config.dtype = model_dtype(root);
    if (config.documents[1] != NULL)
        read_producer(&config, document_root(config.documents[1]), arena);
    *ret_config = config;
    return true;
}

void packing_config_close(struct packing_config *config)
{
    document_close(config->documents[0]);
    document_close(config->documents[1]);
}

/* Weights. */

static const struct packing *packing_of_key(const struct packing_input *input, const struct tensor *tensor)
{
    if (tensor->refusal != NULL || memchr(tensor->name, '\0', tensor->name_length) != NULL)
        return NULL;
    for (const struct packing *const *packing = packings; *packing != NULL; packing++)
        if ((*packing)->is_key(input, tensor))
            return *packing;
    return NULL;
}

static void unpack(const struct packing_input *input, const struct tensor *key, struct unpacked *unpacked)
{
    struct error error;
    const char *bare = key->name;
    if (!unpacked->packing->unpack(input, key, unpacked, &error)) {
        unpacked->refusal = arena_strdup(input->arena, error.message);
        unpacked->view = unpacked->blocks = unpacked->repacked = unpacked->converted = NULL;
    }
    if (unpacked->name == NULL)
        unpacked->name = bare;
}

static int compare_names(const void *a, const void *b)
{
    const struct unpacked *x = *(struct unpacked *const *)a, *y = *(struct unpacked *const *)b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x > y) - (x < y);
}

/* Of two weights of one name, or of one besides a plain one, neither can be told to be the right one. */
static void refuse_twins(const struct packing_input *input, struct unpacked_weights *found)
{
    struct unpacked **sorted = memory_alloc(found->n_weights * sizeof *sorted);
    for (size_t i = 0; i < found->n_weights; i++)
        sorted[i] = &found->weights[i];
    qsort(sorted, found->n_weights, sizeof *sorted, compare_names);
    for (size_t i = 1; i < found->n_weights; i++)
        if (strcmp(sorted[i]->name, sorted[i - 1]->name) == 0) {
            sorted[i]->is_twin = true;
            sorted[i]->refusal = arena_printf(input->arena, "it is packed as %s and as %s",
                                              sorted[i - 1]->packing->name, sorted[i]->packing->name);
            sorted[i]->view = sorted[i]->blocks = sorted[i]->repacked = sorted[i]->converted = NULL;
        }
    free(sorted);
}

struct unpacked_weights packings_find(const struct packing_input *input)
{
    const struct tensor_set *set = input->set;
    struct unpacked_weights found = {0};
    size_t capacity = 0;
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct packing *packing = packing_of_key(input, &set->tensors[i]);
        if (packing == NULL)
            continue;
        if (found.n_weights == capacity) {
            size_t more = capacity * 2 + 16;
            struct unpacked *weights = arena_array(input->arena, more, sizeof *weights);
            if (capacity > 0)
                memcpy(weights, found.weights, capacity * sizeof *weights);
            found.weights = weights;
            capacity = more;
        }
        struct unpacked *weight = &found.weights[found.n_weights++];
        *weight = (struct unpacked){.packing = packing};
        unpack(input, &set->tensors[i], weight);
    }
    if (found.n_weights > 1)
        refuse_twins(input, &found);
    return found;
}

/* The plain set. */

/* What becomes of each stored tensor. */
struct fate {
    const struct unpacked *unpacked; /* that is in its place; NULL: none */
    bool is_left_out;
};

struct unpacking {
    const struct packing_input *input;
    struct fate *fates; /* of the stored tensors */
    bool is_foreign;    /* the converter does not know the method */
    struct plain_set plain;
};

static bool is_converted(const char *method)
{
    for (size_t i = 0; i < COUNT(converted_methods); i++)
        if (strcmp(converted_methods[i], method) == 0)
            return true;
    return false;
}

static void leave_out_parts(struct unpacking *unpacking, const struct unpacked *unpacked)
{
    const struct packing_input *input = unpacking->input;
    const struct tensor *tensors = input->set->tensors, *key = unpacked->parts[0], *beside;
    for (unsigned i = 0; i < unpacked->n_parts; i++)
        unpacking->fates[unpacked->parts[i] - tensors].is_left_out = true;
    for (const char *const *suffix = unpacked->packing->beside; suffix != NULL && *suffix != NULL; suffix++)
        if ((beside = packing_partner(input, key, key->name + unpacked->stem, *suffix)) != NULL)
            unpacking->fates[beside - tensors].is_left_out = true;
}

/* A plain tensor of the same name gives its place to the packed one. */
static void place_weight(struct unpacking *unpacking, const struct unpacked *unpacked)
{
    const struct packing_input *input = unpacking->input;
    const struct tensor *at = tensor_set_find_text(input->set, unpacked->name);
    leave_out_parts(unpacking, unpacked);
    if (at == NULL)
        at = unpacked->parts[0];
    unpacking->fates[at - input->set->tensors] = (struct fate){unpacked, true};
    if (unpacking->plain.beyond == NULL)
        unpacking->plain.beyond = unpacked->beyond;
}

static void leave_out_activations(struct unpacking *unpacking)
{
    const struct packing_input *input = unpacking->input;
    for (size_t i = 0; i < input->set->n_tensors; i++)
        for (size_t j = 0; j < COUNT(activations); j++) {
            const struct activation *activation = &activations[j];
            if (unpacking->fates[i].is_left_out || !packing_has_suffix(&input->set->tensors[i], activation->suffix))
                continue;
            unpacking->fates[i].is_left_out = true;
            bool is_known = activation->methods[0] != NULL && strcmp(activation->methods[0], input->method) == 0;
            if (!is_known && unpacking->plain.beyond == NULL)
                unpacking->plain.beyond = "scales of activations";
        }
}

static const struct view *view_of(const struct unpacking *unpacking, const struct unpacked *unpacked)
{
    const struct packing_input *input = unpacking->input;
    const struct dtype *dtype = unpacked->dtype != NULL ? unpacked->dtype : input->dtype;
    if (input->keeps_blocks && unpacked->repacked != NULL && view_repacked_holds(unpacked->repacked))
        return unpacked->repacked;
    if (input->keeps_blocks && unpacked->blocks != NULL)
        return unpacked->blocks;
    if (unpacking->is_foreign)
        return view_convert(input->arena, unpacked->view, dtype);
    if (unpacked->blocks != NULL)
        return unpacked->blocks;
    return unpacked->converted != NULL ? unpacked->converted : unpacked->view;
}

static bool add_weight(struct unpacking *unpacking, const struct unpacked *unpacked, struct tensor_set *set,
                       struct error *error)
{
    if (unpacked->refusal != NULL)
        return error_set(error, "tensor '%.200s': %s", unpacked->name, unpacked->refusal);
    unpacking->plain.unpacked[set->n_tensors] = unpacked;
    tensor_set_add_view(set, unpacked->name, view_of(unpacking, unpacked));
    return true;
}

/* Adds the tensors of one place. */
static bool add_place(struct unpacking *unpacking, enum packing_place place, struct tensor_set *set,
                      struct error *error)
{
    const struct tensor_set *stored = unpacking->input->set;
    for (size_t i = 0; i < stored->n_tensors; i++) {
        const struct fate *fate = &unpacking->fates[i];
        if (fate->unpacked == NULL && !fate->is_left_out && place == IN_PLACE)
            tensor_set_add(set, &stored->tensors[i]);
        if (fate->unpacked != NULL && fate->unpacked->packing->place == place &&
            !add_weight(unpacking, fate->unpacked, set, error))
            return false;
    }
    return true;
}

/* Adds all by name. */
static bool add_sorted(struct unpacking *unpacking, struct tensor_set *set, struct error *error)
{
    const struct tensor_set *stored = unpacking->input->set;
    const struct unpacked **unpacked = unpacking->plain.unpacked;
    struct tensor_set *unsorted = tensor_set_new(unpacking->input->arena);
    for (enum packing_place place = BEFORE_ALL; place <= AFTER_ALL; place++)
        if (!add_place(unpacking, place, unsorted, error))
            return false;
    if (!tensor_set_seal(unsorted, error))
        return false;
    unpacking->plain.unpacked = arena_array(unpacking->input->arena, stored->n_tensors + 1, sizeof *unpacked);
    for (size_t i = 0; i < unsorted->n_tensors; i++) {
        unpacking->plain.unpacked[i] = unpacked[unsorted->by_name[i]];
        tensor_set_add(set, &unsorted->tensors[unsorted->by_name[i]]);
    }
    return true;
}

static bool put_in_order(struct unpacking *unpacking, struct error *error)
{
    struct arena *arena = unpacking->input->arena;
    struct tensor_set *set = tensor_set_new(arena);
    bool good = true;
    unpacking->plain.set = set;
    unpacking->plain.unpacked =
        arena_array(arena, unpacking->input->set->n_tensors + 1, sizeof *unpacking->plain.unpacked);
    if (unpacking->is_foreign)
        good = add_sorted(unpacking, set, error);
    for (enum packing_place place = BEFORE_ALL; !unpacking->is_foreign && good && place <= AFTER_ALL; place++)
        good = add_place(unpacking, place, set, error);
    return good && tensor_set_seal(set, error);
}

bool packings_unpack(const struct packing_input *input, struct plain_set *ret_plain, struct error *error)
{
    size_t n_tensors = input->set->n_tensors;
    struct unpacked_weights found = packings_find(input);
    *ret_plain = (struct plain_set){.set = input->set};
    if (found.n_weights == 0)
        return true;
    struct unpacking unpacking = {.input = input, .is_foreign = input->is_saved_again || !is_converted(input->method)};
    unpacking.plain.is_saved_again = unpacking.is_foreign;
    unpacking.fates = memory_alloc(n_tensors * sizeof *unpacking.fates);
    memset(unpacking.fates, 0, n_tensors * sizeof *unpacking.fates);
    if (unpacking.is_foreign)
        unpacking.plain.beyond = *input->method != '\0' ? "the method of its quantization"
                                                        : "packed weights of which config.json says nothing";
    for (size_t i = 0; i < found.n_weights; i++)
        place_weight(&unpacking, &found.weights[i]);
    leave_out_activations(&unpacking);
    bool good = put_in_order(&unpacking, error);
    free(unpacking.fates);
    if (good)
        *ret_plain = unpacking.plain;
    return good;
}

bool packings_undo(const struct checkpoint *checkpoint, struct arena *arena, struct plain_set *ret_plain,
                   struct error *error)
{
    struct packing_config config;
    struct error reason;
    struct arena *scratch = arena_new();
    if (!packing_config_open(checkpoint, scratch, &config, &reason))
        config = (struct packing_config){.method = "", .dtype = &f16_dtype};
    const struct packing_input input = {
        .arena = arena,
        .set = checkpoint->tensors,
        .config = config.quantization,
        .method = config.method,
        .dtype = config.dtype,
        .is_saved_again = true,
    };
    bool undone = packings_unpack(&input, ret_plain, error);
    packing_config_close(&config);
    arena_free(scratch);
    return undone;
}
