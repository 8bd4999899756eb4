#include "models/packings/packing.h"

#include "base/sort.h"
#include "base/text.h"
#include "formats/documents.h"
#include "models/packings/repack.h"
#include "quant/convert.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

extern const struct packing aqlm_packing, awq_packing, bitnet_packing, bitsandbytes_packing, fp8_ranks_packing,
    gptq_packing, hqq_packing, mlx_packing, modelopt_int4_packing, mxfp4_packed_packing, mxfp4_packing, nvfp4_packing,
    pack_quantized_packing, quanto_packing, scaled_packing, torchao_packing;

/* One row a line. */
/* clang-format off */
const struct packing *const packings[] = {
    &fp8_ranks_packing, /* before those that it is like */
    &scaled_packing,
    &pack_quantized_packing,
    &gptq_packing,
    &nvfp4_packing,
    &bitnet_packing,
    &mxfp4_packing,
    &mxfp4_packed_packing,
    &modelopt_int4_packing,
    &awq_packing,
    &bitsandbytes_packing,
    &hqq_packing,
    &mlx_packing,
    &quanto_packing,
    &torchao_packing,
    &aqlm_packing,
    NULL,
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

static const struct tensor *find_partner(const struct tensor_set *set, const struct tensor *tensor, const char *own,
                                         const char *suffix)
{
    char name[1024];
    size_t kept = tensor->name_length - strlen(own), length = strlen(suffix);
    if (kept + length > sizeof name)
        return NULL;
    memcpy(name, tensor->name, kept);
    memcpy(name + kept, suffix, length);
    return tensor_set_find_near(set, tensor, name, kept + length);
}

const struct tensor *packing_partner(const struct packing_input *input, const struct tensor *tensor, const char *own,
                                     const char *suffix)
{
    return find_partner(input->set, tensor, own, suffix);
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
        if (algorithm != NULL && text_ends_with(algorithm, "NVFP4"))
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
        if (json_is(values[i], JSON_OBJECT) && json_count(values[i]) > 0)
            config.quantization = values[i];
    const char *method = json_string(json_get(config.quantization, "quant_method"), NULL);
    if (method != NULL)
        config.method = arena_strdup(arena, method);
    else if (json_is(values[2], JSON_OBJECT)) /* whose kind names none */
        config.method = json_string_is(json_get(values[2], "qformat_weight"), "fp8_e4m3") ? "fp8" : "mlx";
    config.is_nvfp4 = is_nvfp4(config.quantization);
    config.model = root;
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

static struct unpacked_forms no_forms; /* stays empty */

static void unpack(const struct packing_input *input, const struct tensor *key, struct unpacked *unpacked)
{
    const struct tensor *parts[PACKING_MAX_PARTS] = {key};
    struct unpacked_forms forms = {0};
    struct error error;
    unpacked->forms = &forms;
    unpacked->parts = parts;
    unpacked->n_parts = 1;
    if (!unpacked->packing->unpack(input, key, unpacked, &error)) {
        unpacked->refusal = arena_strdup(input->arena, error.message);
        unpacked->view = NULL;
        forms = no_forms;
    }
    bool has_none = memcmp(&forms, &no_forms, sizeof forms) == 0;
    unpacked->forms = has_none ? &no_forms : arena_copy(input->arena, &forms, sizeof forms);
    unpacked->parts = arena_copy(input->arena, parts, unpacked->n_parts * sizeof(struct tensor *));
    if (unpacked->name == NULL)
        unpacked->name = key->name;
}

static const char *name_of(const void *context, uint32_t index, size_t *ret_length)
{
    const struct unpacked *weights = context;
    *ret_length = strlen(weights[index].name);
    return weights[index].name;
}

/* Of two weights of one name, or of one besides a plain one, neither can be told to be the right one. */
static void refuse_twins(const struct packing_input *input, struct unpacked_weights *found)
{
    uint32_t *sorted = memory_alloc(found->n_weights * sizeof *sorted);
    for (size_t i = 0; i < found->n_weights; i++)
        sorted[i] = (uint32_t)i;
    sort_texts(sorted, found->n_weights, name_of, found->weights);
    for (size_t i = 1; i < found->n_weights; i++) {
        struct unpacked *first = &found->weights[sorted[i - 1]], *second = &found->weights[sorted[i]];
        if (strcmp(first->name, second->name) != 0)
            continue;
        second->is_twin = true;
        second->refusal =
            arena_printf(input->arena, "it is packed as %s and as %s", first->packing->name, second->packing->name);
        second->view = NULL;
        second->forms = &no_forms;
    }
    free(sorted);
}

struct unpacked_weights packings_find(const struct packing_input *input)
{
    const struct tensor_set *set = input->set;
    struct packing_input own = *input;
    struct unpacked_weights found = {0};
    const struct packing **packing_of = memory_alloc((set->n_tensors + 1) * sizeof *packing_of);
    for (size_t i = 0; i < set->n_tensors; i++) {
        packing_of[i] = packing_of_key(input, &set->tensors[i]);
        found.n_weights += packing_of[i] != NULL;
    }
    found.weights = arena_array(input->arena, found.n_weights, sizeof *found.weights);
    struct unpacked *weight = found.weights;
    own.scratch = arena_new();
    for (size_t i = 0; i < set->n_tensors; i++)
        if (packing_of[i] != NULL) {
            weight->packing = packing_of[i];
            unpack(&own, &set->tensors[i], weight++);
        }
    arena_free(own.scratch);
    free(packing_of);
    if (found.n_weights > 1)
        refuse_twins(input, &found);
    return found;
}

const struct packed_weights *packings_find_of(const struct checkpoint *checkpoint, struct arena *arena)
{
    struct packed_weights *packed = arena_alloc(arena, sizeof *packed);
    struct packing_config config;
    struct error error;
    if (!packing_config_open(checkpoint, arena, &config, &error)) {
        config = (struct packing_config){.method = "", .dtype = &f16_dtype};
        packed->unread = arena_strdup(arena, error.message);
    }
    const struct packing_input input = {
        .arena = arena,
        .set = checkpoint->tensors,
        .config = config.quantization,
        .method = config.method,
        .dtype = config.dtype,
        .model = config.model,
    };
    packed->checkpoint = checkpoint;
    packed->method = config.method;
    packed->dtype = config.dtype;
    packed->is_nvfp4 = config.is_nvfp4;
    packed->found = packings_find(&input);
    packing_config_close(&config);
    return packed;
}

static const void *find_packed(const struct checkpoint *checkpoint, struct arena *arena)
{
    return packings_find_of(checkpoint, arena);
}

const struct packed_weights *packings_of(const struct checkpoint *checkpoint)
{
    return checkpoint_once(checkpoint, find_packed);
}

/* The plain set. */

/* What becomes of each stored tensor. */
struct fate {
    const struct unpacked *unpacked; /* that is in its place; NULL: none */
    bool is_left_out;
};

struct unpacking {
    const struct packed_weights *packed;
    const struct plain_wish *wish;
    const struct tensor_set *stored;
    struct arena *arena;
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
    const struct tensor_set *stored = unpacking->stored;
    const struct tensor *key = unpacked->parts[0], *beside;
    for (unsigned i = 0; i < unpacked->n_parts; i++)
        unpacking->fates[unpacked->parts[i] - stored->tensors].is_left_out = true;
    for (const char *const *suffix = unpacked->packing->beside; suffix != NULL && *suffix != NULL; suffix++)
        if ((beside = find_partner(stored, key, key->name + unpacked->stem, *suffix)) != NULL)
            unpacking->fates[beside - stored->tensors].is_left_out = true;
}

/* Whether what the weight's blocks are for is wanted. */
static bool has_blocks(const struct unpacking *unpacking, const struct unpacked *unpacked)
{
    return unpacked->forms->blocks != NULL && (!unpacked->is_of_some || unpacking->wish->keeps_mxfp4);
}

/* A plain tensor of the same name gives its place to the packed one. */
static void place_weight(struct unpacking *unpacking, const struct unpacked *unpacked)
{
    const struct tensor_set *stored = unpacking->stored;
    const struct tensor *key = unpacked->parts[0],
                        *at = tensor_set_find_near(stored, key, unpacked->name, strlen(unpacked->name));
    leave_out_parts(unpacking, unpacked);
    if (at == NULL)
        at = key;
    unpacking->fates[at - stored->tensors] = (struct fate){unpacked, true};
    bool is_taken = unpacked->is_of_some && has_blocks(unpacking, unpacked);
    if (unpacking->plain.beyond == NULL && !is_taken)
        unpacking->plain.beyond = unpacked->beyond;
}

static void leave_out_activations(struct unpacking *unpacking)
{
    const struct tensor_set *stored = unpacking->stored;
    for (size_t i = 0; i < stored->n_tensors; i++)
        for (size_t j = 0; j < COUNT(activations); j++) {
            const struct activation *activation = &activations[j];
            if (unpacking->fates[i].is_left_out || !packing_has_suffix(&stored->tensors[i], activation->suffix))
                continue;
            unpacking->fates[i].is_left_out = true;
            bool is_known =
                activation->methods[0] != NULL && strcmp(activation->methods[0], unpacking->packed->method) == 0;
            if (!is_known && unpacking->plain.beyond == NULL)
                unpacking->plain.beyond = "scales of activations";
        }
}

static const struct view *view_of(const struct unpacking *unpacking, const struct unpacked *unpacked)
{
    const struct dtype *dtype = unpacked->forms->dtype != NULL ? unpacked->forms->dtype : unpacking->packed->dtype;
    bool keeps_blocks = unpacking->wish->keeps_blocks;
    if (keeps_blocks && unpacked->forms->repacked != NULL && view_repacked_holds(unpacked->forms->repacked))
        return unpacked->forms->repacked;
    if (keeps_blocks && unpacked->forms->blocks != NULL)
        return unpacked->forms->blocks;
    if (unpacking->is_foreign)
        return view_convert(unpacking->wish->arena, unpacked->view, dtype);
    if (has_blocks(unpacking, unpacked))
        return unpacked->forms->blocks;
    return unpacked->forms->converted != NULL ? unpacked->forms->converted : unpacked->view;
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

/* Adds the tensors of one place, the stored ones in that order. */
static bool add_place(struct unpacking *unpacking, enum packing_place place, const uint32_t *order,
                      struct tensor_set *set, struct error *error)
{
    const struct tensor_set *stored = unpacking->stored;
    for (size_t i = 0; i < stored->n_tensors; i++) {
        size_t index = order != NULL ? order[i] : i;
        const struct fate *fate = &unpacking->fates[index];
        if (fate->unpacked == NULL && !fate->is_left_out && place == IN_PLACE)
            tensor_set_add(set, &stored->tensors[index]);
        if (fate->unpacked != NULL && fate->unpacked->packing->place == place &&
            !add_weight(unpacking, fate->unpacked, set, error))
            return false;
    }
    return true;
}

/* Adds all by name. */
static bool add_sorted(struct unpacking *unpacking, struct tensor_set *set, struct error *error)
{
    const struct unpacked **unpacked = unpacking->plain.unpacked;
    struct arena *scratch = arena_new();
    struct tensor_set *unsorted = tensor_set_new(scratch);
    bool good = true;
    for (enum packing_place place = BEFORE_ALL; good && place <= AFTER_ALL; place++)
        good = add_place(unpacking, place, unpacking->stored->by_name, unsorted, error);
    size_t n_tensors = unsorted->n_tensors;
    uint32_t *order = tensors_by_name(unsorted->tensors, n_tensors);
    unpacking->plain.unpacked = arena_array(unpacking->arena, n_tensors + 1, sizeof *unpacked);
    for (size_t i = 0; i < n_tensors; i++) {
        unpacking->plain.unpacked[i] = unpacked[order[i]];
        tensor_set_add(set, &unsorted->tensors[order[i]]);
    }
    free(order);
    arena_free(scratch);
    return good;
}

static bool put_in_order(struct unpacking *unpacking, struct error *error)
{
    struct arena *arena = unpacking->arena;
    struct tensor_set *set = tensor_set_new(arena);
    bool good = true;
    unpacking->plain.set = set;
    unpacking->plain.unpacked = arena_array(arena, unpacking->stored->n_tensors + 1, sizeof *unpacking->plain.unpacked);
    if (unpacking->is_foreign)
        return add_sorted(unpacking, set, error);
    for (enum packing_place place = BEFORE_ALL; good && place <= AFTER_ALL; place++)
        good = add_place(unpacking, place, unpacking->wish->order, set, error);
    return good;
}

static const struct tensor_set *ordered(const struct tensor_set *stored, const uint32_t *order, struct arena *arena)
{
    if (order == NULL)
        return stored;
    struct tensor_set *set = tensor_set_new(arena);
    for (size_t i = 0; i < stored->n_tensors; i++)
        tensor_set_add(set, &stored->tensors[order[i]]);
    return set;
}

bool packings_unpack(const struct packed_weights *packed, const struct plain_wish *wish, struct arena *arena,
                     struct plain_set *ret_plain, struct error *error)
{
    const struct tensor_set *stored = packed->checkpoint->tensors;
    const struct unpacked_weights *found = &packed->found;
    *ret_plain = (struct plain_set){.set = stored};
    if (found->n_weights == 0) {
        ret_plain->set = ordered(stored, wish->order, arena);
        return true;
    }
    struct unpacking unpacking = {.packed = packed, .wish = wish, .stored = stored, .arena = arena};
    unpacking.is_foreign = unpacking.plain.is_saved_again = wish->is_saved_again || !is_converted(packed->method);
    unpacking.fates = memory_alloc(stored->n_tensors * sizeof *unpacking.fates);
    memset(unpacking.fates, 0, stored->n_tensors * sizeof *unpacking.fates);
    if (unpacking.is_foreign)
        unpacking.plain.beyond = *packed->method != '\0' ? "the method of its quantization"
                                                         : "packed weights of which config.json says nothing";
    for (size_t i = 0; i < found->n_weights; i++)
        place_weight(&unpacking, &found->weights[i]);
    leave_out_activations(&unpacking);
    bool good = put_in_order(&unpacking, error);
    free(unpacking.fates);
    if (good)
        *ret_plain = unpacking.plain;
    return good;
}
