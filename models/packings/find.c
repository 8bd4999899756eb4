/* The packed weights of a checkpoint. */
#include "base/sort.h"
#include "base/text.h"
#include "formats/documents.h"
#include "models/packings/packed.h"
#include "models/packings/packings.h"
#include "models/packings/refusals.h"
#include "sources/source.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool is_of(const struct tensor *tensor, const char *dtype)
{
    return dtype == NULL || strcmp(tensor->dtype->name, dtype) == 0;
}

/* The ends of a checkpoint's names, from the last dot on, with the dtypes, each pair as the first tensor that has it:
 * few, as layers are alike. */
enum { MOST_ENDINGS = 64 };
struct endings {
    const struct tensor *of[MOST_ENDINGS];
    size_t count;
    bool has_more; /* than are listed */
};

static const char *ending_of(const struct tensor *tensor, size_t *ret_length)
{
    const char *dot = text_last(tensor->name, tensor->name_length, '.');
    const char *ending = dot != NULL ? dot : tensor->name;
    *ret_length = (size_t)(tensor->name + tensor->name_length - ending);
    return ending;
}

static bool have_same_ending(const struct tensor *tensor, const struct tensor *other)
{
    size_t length, other_length;
    const char *ending = ending_of(tensor, &length), *other_ending = ending_of(other, &other_length);
    return tensor->dtype == other->dtype && length == other_length && memcmp(ending, other_ending, length) == 0;
}

static struct endings find_endings(const struct tensor_set *set)
{
    struct endings endings = {.count = 0};
    for (size_t i = 0; i < set->n_tensors && !endings.has_more; i++) {
        size_t known = 0;
        while (known < endings.count && !have_same_ending(endings.of[known], &set->tensors[i]))
            known++;
        endings.has_more = known == MOST_ENDINGS;
        if (known == endings.count && !endings.has_more)
            endings.of[endings.count++] = &set->tensors[i];
    }
    return endings;
}

static bool may_have(const struct endings *endings, const char *suffix, const char *dtype)
{
    bool may = endings->has_more;
    const char *dot = strrchr(suffix, '.');
    for (size_t i = 0; !may && i < endings->count; i++)
        may = is_of(endings->of[i], dtype) && packing_has_suffix(endings->of[i], dot != NULL ? dot : suffix);
    return may;
}

/* Lists the packings whose keys and partners may be there, in their order, up to a NULL. */
static const struct packing **find_candidates(const struct packing_input *input, const struct endings *endings)
{
    size_t count = 0, n_packings = 0;
    while (packings[n_packings] != NULL)
        n_packings++;
    const struct packing **candidates = arena_array(input->arena, n_packings + 1, sizeof *candidates);
    for (const struct packing *const *packing = packings; *packing != NULL; packing++) {
        const struct packing_key *key = (*packing)->keys;
        while (key->suffix != NULL && !(may_have(endings, key->suffix, key->dtype) &&
                                        (key->partner == NULL || may_have(endings, key->partner, key->partner_dtype))))
            key++;
        if (key->suffix != NULL)
            candidates[count++] = *packing;
    }
    candidates[count] = NULL;
    return candidates;
}

/* Returns the spelling whose key the tensor is; NULL if it is no key of the packing. */
static const struct packing_key *find_spelling(const struct packing *packing, const struct packing_input *input,
                                               const struct tensor *tensor)
{
    for (const struct packing_key *key = packing->keys; key->suffix != NULL; key++) {
        if (!is_of(tensor, key->dtype) || !packing_has_suffix(tensor, key->suffix) ||
            (packing->is_key != NULL && !packing->is_key(input, tensor)))
            continue;
        const struct tensor *partner =
            key->partner != NULL ? packing_partner(input->set, tensor, key->suffix, key->partner) : NULL;
        if (key->partner == NULL || (partner != NULL && is_of(partner, key->partner_dtype)))
            return key;
    }
    return NULL;
}

static const struct packing *packing_of_key(const struct packing *const *candidates, const struct packing_input *input,
                                            const struct tensor *tensor)
{
    if (tensor->refusal != NULL || memchr(tensor->name, '\0', tensor->name_length) != NULL)
        return NULL;
    for (const struct packing *const *packing = candidates; *packing != NULL; packing++)
        if (find_spelling(*packing, input, tensor) != NULL)
            return *packing;
    return NULL;
}

static struct unpacked_forms no_forms; /* stays empty */

static bool has_any(const struct unpacked_forms *forms)
{
    return forms->blocks != NULL || forms->repacked != NULL || forms->groups != NULL || forms->factors[0] != NULL ||
           forms->factors[1] != NULL || forms->converted != NULL || forms->mended != CHANGE_NONE ||
           forms->dtype != NULL;
}

/* Unpacks a weight. `declared` is the reason why no weight of the checkpoint has values; NULL: none. */
static void unpack(const struct packing_input *input, const struct tensor *key, const char *declared,
                   struct unpacked *unpacked)
{
    const struct tensor *parts[PACKING_MAX_PARTS] = {key};
    struct unpacked_forms forms = {0};
    struct error error;
    unpacked->forms = &forms;
    unpacked->parts = parts;
    unpacked->n_parts = 1;
    struct packed packed = packed_begin(input, key, find_spelling(unpacked->packing, input, key), unpacked, &error);
    bool is_good = unpacked->packing->unpack(&packed) && rotation_undo(&packed);
    if (declared == NULL && is_good)
        declared = declared_layer_refusal(input, unpacked->name);
    if (declared != NULL)
        is_good = error_set(&error, "%s", declared);
    if (!is_good) {
        unpacked->refusal = arena_strdup(input->arena, error.message);
        unpacked->view = NULL;
        forms = no_forms;
    }
    unpacked->forms = has_any(&forms) ? arena_copy(input->arena, &forms, sizeof forms) : &no_forms;
    unpacked->parts = arena_copy(input->arena, parts, unpacked->n_parts * sizeof(struct tensor *));
}

static const char *name_of(const void *context, uint32_t index, size_t *ret_length)
{
    const struct unpacked *weights = context;
    *ret_length = strlen(weights[index].name);
    return weights[index].name;
}

/* Refuses the second of two weights with one name: either may be the right one. */
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
        second->refusal = arena_printf(input->arena, "the weight is packed twice: as %s and as %s",
                                       first->packing->name, second->packing->name);
        second->view = NULL;
        second->forms = &no_forms;
    }
    free(sorted);
}

/* Reports whether the name of some tensor ends with a suffix. The suffix begins with its only dot. */
static bool is_any(const struct tensor_set *set, const struct endings *endings, const char *suffix)
{
    bool is = false;
    for (size_t i = 0; !is && i < endings->count; i++)
        is = packing_has_suffix(endings->of[i], suffix);
    for (size_t i = 0; !is && endings->has_more && i < set->n_tensors; i++)
        is = packing_has_suffix(&set->tensors[i], suffix);
    return is;
}

struct unpacked_weights packings_find(const struct packing_input *input)
{
    const struct tensor_set *set = input->set;
    struct packing_input own = *input;
    own.is_known = packing_is_known(input->method);
    const struct endings endings = find_endings(set);
    own.has_comfy_marks = input->comfy_layers != NULL || is_any(set, &endings, ".comfy_quant");
    own.has_old_comfy_marks = is_any(set, &endings, ".scale_weight");
    struct unpacked_weights found = {0};
    const struct packing *const *candidates = find_candidates(&own, &endings);
    const struct packing **packing_of = memory_alloc((set->n_tensors + 1) * sizeof *packing_of);
    for (size_t i = 0; i < set->n_tensors; i++) {
        packing_of[i] = packing_of_key(candidates, &own, &set->tensors[i]);
        found.n_weights += packing_of[i] != NULL;
    }
    found.weights = arena_array(input->arena, found.n_weights, sizeof *found.weights);
    struct unpacked *weight = found.weights;
    const char *declared = input->unread != NULL ? input->unread : declared_refusal(input);
    own.scratch = arena_new();
    for (size_t i = 0; i < set->n_tensors; i++)
        if (packing_of[i] != NULL) {
            weight->packing = packing_of[i];
            unpack(&own, &set->tensors[i], declared, weight++);
        }
    arena_free(own.scratch);
    free(packing_of);
    if (found.n_weights > 0)
        left_over_refuse(input, &found);
    if (found.n_weights > 1)
        refuse_twins(input, &found);
    return found;
}

static const void *find_packed(const struct checkpoint *checkpoint, struct arena *arena)
{
    struct packed_weights *packed = arena_alloc(arena, sizeof *packed);
    struct packing_config config;
    struct error error;
    uint64_t n_unreached = source_unreached();
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
        .metadata = &checkpoint->metadata,
        .differing = &checkpoint->differing,
        .comfy_layers = config.comfy_layers,
        .unread = packed->unread,
    };
    packed->checkpoint = checkpoint;
    packed->is_unreached = packed->unread != NULL && source_unreached() != n_unreached;
    packed->method = config.method;
    packed->dtype = config.dtype;
    packed->is_nvfp4 = config.is_nvfp4;
    packed->found = packings_find(&input);
    packing_config_close(&config);
    return packed;
}

const struct packed_weights *packings_of(const struct checkpoint *checkpoint)
{
    return checkpoint_once(checkpoint, find_packed);
}

/* The packing that a checkpoint declares. */

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
