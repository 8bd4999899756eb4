#include "models/config/hparams.h"

#include "base/buffer.h"
#include "base/text.h"
#include "formats/documents.h"
#include "models/config/config_class.h"
#include "text/json_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DOCUMENTS = 16, MAX_LAYERS = 16, MAX_KEY = 64 };
enum part { TEXT, OUTER, AUDIO, PREPROCESSOR, N_PARTS };

/* Prefixes of an encoder's keys that are read from another part of the configuration. */
static const char *const part_prefixes[N_PARTS] = {"text.", "outer.", "audio.", "preprocessor."};

/* One of the objects in which a key is looked up; the first object that has the key wins. */
struct layer {
    const struct json *object;
    const struct config_class *class; /* whose aliases apply to the keys of the file; NULL: none */
};

struct hparams {
    struct document *files[2];                      /* side files that layers point into; NULL: none */
    struct json_document *documents[MAX_DOCUMENTS]; /* other JSON that layers point into */
    size_t n_documents;
    struct layer layers[MAX_LAYERS];
    size_t n_layers;
    const struct json *raw;
    const char *class_name;
    struct hparams *parts[N_PARTS]; /* of an encoder; NULL: none */
};

/* Keys under which multimodal configurations keep the text model's configuration; the first one present counts. The
 * converter renames each to text_config, in the opposite order. */
static const char *const text_config_keys[] = {
    "lfm", "language_config", "thinker_config.text_config", "lm_config", "llm_config", "text_config", "talker_config"};

static const struct json *get_path(const struct json *object, const char *path)
{
    for (;;) {
        size_t length = strcspn(path, ".");
        object = json_get_n(object, path, length);
        if (path[length] == '\0' || object == NULL)
            return object;
        path += length + 1;
    }
}

static const struct json *get_in_layer(const struct layer *layer, const char *key)
{
    const struct config_alias *aliases = layer->class ? layer->class->aliases : NULL;
    for (size_t i = 0; aliases != NULL && aliases[i].alias != NULL; i++) {
        if (strcmp(aliases[i].alias, key) == 0)
            return NULL;
        const struct json *renamed =
            strcmp(aliases[i].key, key) == 0 ? get_path(layer->object, aliases[i].alias) : NULL;
        if (renamed != NULL)
            return renamed;
    }
    return get_path(layer->object, key);
}

const struct json *hparams_get(const struct hparams *hparams, const char *key)
{
    for (size_t i = 0; i < N_PARTS; i++)
        if (hparams->parts[i] != NULL && text_starts_with(key, part_prefixes[i]))
            return hparams_get(hparams->parts[i], key + strlen(part_prefixes[i]));
    for (size_t i = 0; i < hparams->n_layers; i++) {
        const struct json *value = get_in_layer(&hparams->layers[i], key);
        if (value != NULL)
            return value;
    }
    return NULL;
}

const struct json *hparams_find(const struct hparams *hparams, const char *keys)
{
    while (*keys != '\0') {
        size_t length = strcspn(keys, "|");
        char key[MAX_KEY];
        if (length < sizeof key) {
            memcpy(key, keys, length);
            key[length] = '\0';
            const struct json *value = hparams_get(hparams, key);
            if (value != NULL)
                return value;
        }
        keys += length + (keys[length] == '|');
    }
    return NULL;
}

bool hparams_truth(const struct json *value)
{
    double number;
    size_t length;
    if (json_double(value, &number))
        return number != 0;
    if (json_string(value, &length) != NULL)
        return length != 0;
    return json_is(value, JSON_TRUE) || json_first(value) != NULL || json_count_members(value) > 0;
}

bool hparams_number(const struct json *value, double *ret_number)
{
    bool is_true = json_is(value, JSON_TRUE);
    *ret_number = is_true;
    return is_true || json_is(value, JSON_FALSE) || json_double(value, ret_number);
}

static const struct json *rope_parameters(const struct hparams *hparams)
{
    const struct json *parameters = hparams_find(hparams, "rope_parameters|rope_scaling");
    return json_is(parameters, JSON_OBJECT) ? parameters : NULL;
}

/* Returns the kind of rope; NULL: none. Some classes of transformers rename `type` of rope_scaling before the converter
 * sees it, whatever rope_type is. */
static const struct json *rope_type(const struct hparams *hparams, const struct json *parameters)
{
    const struct json *type = json_get(parameters, "rope_type"), *older = json_get(parameters, "type");
    bool is_renamed = type == NULL;
    for (size_t i = 0; i < hparams->n_layers && hparams_get(hparams, "rope_parameters") == NULL; i++)
        if (get_in_layer(&hparams->layers[i], "rope_scaling") == parameters)
            is_renamed |= hparams->layers[i].class != NULL && config_class_takes_type(hparams->layers[i].class);
    return older != NULL && is_renamed ? older : type;
}

static bool rope_is_per_attention(const struct json *parameters)
{
    return json_get(parameters, "full_attention") != NULL || json_get(parameters, "sliding_attention") != NULL;
}

const struct json *hparams_rope(const struct hparams *hparams, const char *key)
{
    static const struct {
        const char *key, *sources;
    } mirrored[] = {
        {"rope_theta", "global_rope_theta|rope_global_theta|rope_theta_global|rope_theta|rotary_emb_base"},
        {"partial_rotary_factor", "partial_rotary_factor|rope_pct|rope_percent"},
        {"original_max_position_embeddings", "original_max_position_embeddings"},
    };
    const struct json *parameters = rope_parameters(hparams);
    const struct json *full = json_get(parameters, "full_attention"),
                      *indexed = json_get(parameters, "indexed_attention"); /* transformers 5's name for it */
    full = full != NULL ? full : indexed;
    const struct json *value = json_get(full ? full : parameters, key);
    if (rope_is_per_attention(parameters))
        return value;
    if (strcmp(key, "rope_type") == 0)
        return full != NULL ? value : rope_type(hparams, parameters);
    if (value != NULL)
        return value;
    for (size_t i = 0; i < sizeof mirrored / sizeof *mirrored; i++)
        if (strcmp(mirrored[i].key, key) == 0)
            return hparams_find(hparams, mirrored[i].sources);
    return NULL;
}

const struct json *hparams_rope_of_all(const struct hparams *hparams, const char *key)
{
    const struct json *parameters = rope_parameters(hparams);
    return rope_is_per_attention(parameters) ? json_get(parameters, key) : hparams_rope(hparams, key);
}

const struct json *hparams_rope_sliding(const struct hparams *hparams, const char *key)
{
    const struct json *parameters = rope_parameters(hparams);
    if (rope_is_per_attention(parameters))
        return json_get(json_get(parameters, "sliding_attention"), key);
    if (strcmp(key, "rope_theta") != 0)
        return NULL;
    return hparams_find(hparams,
                        "local_rope_theta|rope_local_theta|rope_theta_local|swa_rope_theta|rope_local_base_freq");
}

bool hparams_count(const struct hparams *hparams, const char *keys, uint64_t low, uint64_t high, uint64_t *ret_count,
                   struct error *error)
{
    const struct json *value = hparams_find(hparams, keys);
    uint64_t count;
    if (!json_u64(value, &count))
        return error_set(error, "config.json: %s is %s", keys, value ? "not a whole number" : "missing");
    if (count < low || count > high)
        return error_set(error, "config.json: %s is %" PRIu64 ", outside %" PRIu64 " to %" PRIu64, keys, count, low,
                         high);
    *ret_count = count;
    return true;
}

const struct json *hparams_raw(const struct hparams *hparams)
{
    return hparams->raw;
}

const char *hparams_class(const struct hparams *hparams)
{
    return hparams->class_name;
}

static void add_layer(struct hparams *hparams, const struct json *object, const struct config_class *class)
{
    hparams->layers[hparams->n_layers++] = (struct layer){object, class};
}

static bool add_document(struct hparams *hparams, const char *text, size_t length, struct error *error)
{
    struct json_document *document = json_parse_python(text, length, error);
    if (document == NULL)
        return false;
    hparams->documents[hparams->n_documents++] = document;
    add_layer(hparams, json_root(document), NULL);
    return true;
}

/* Moves the last object before all others. */
static void move_to_front(struct hparams *hparams)
{
    struct layer front = hparams->layers[hparams->n_layers - 1];
    memmove(hparams->layers + 1, hparams->layers, (hparams->n_layers - 1) * sizeof *hparams->layers);
    hparams->layers[0] = front;
}

bool hparams_put_first(struct hparams *hparams, const char *text, size_t length, struct error *error)
{
    if (!add_document(hparams, text, length, error))
        return false;
    move_to_front(hparams);
    return true;
}

bool hparams_override(struct hparams *hparams, const char *key, uint64_t value, struct error *error)
{
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .compact = true};
    json_begin_object(&writer, NULL);
    json_put_number(&writer, key, value);
    json_end(&writer);
    bool done = hparams_put_first(hparams, (const char *)text.bytes, text.length, error);
    buffer_free(&text);
    return done;
}

static bool is_absent_or_null(const struct json *value)
{
    return value == NULL || json_type(value) == JSON_NULL;
}

/* Adds the values that the class computes from others, as an object before the existing ones. */
static bool add_computed(struct hparams *hparams, const struct config_class *class, struct error *error)
{
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .compact = true};
    json_begin_object(&writer, NULL);
    for (const struct config_computed *rule = class->computed; rule != NULL && rule->key != NULL; rule++) {
        uint64_t value, divisor = 1;
        if (!is_absent_or_null(hparams_get(hparams, rule->key)) || !json_u64(hparams_get(hparams, rule->from), &value))
            continue;
        if (rule->divided_by != NULL && !json_u64(hparams_get(hparams, rule->divided_by), &divisor))
            continue;
        if (divisor != 0)
            json_put_number(&writer, rule->key, value / divisor);
    }
    json_end(&writer);
    bool done = text.length == strlen("{}") || hparams_put_first(hparams, (const char *)text.bytes, text.length, error);
    buffer_free(&text);
    return done;
}

/* Adds the labels that the class makes up when config.json gives only their number. */
static bool add_labels(struct hparams *hparams, struct error *error)
{
    enum { MAX_LABELS = 100000 };
    uint64_t n_labels;
    if (!is_absent_or_null(hparams_get(hparams, "id2label")) ||
        !json_u64(hparams_get(hparams, "num_labels"), &n_labels) || n_labels == 0 || n_labels > MAX_LABELS)
        return true;
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .compact = true};
    json_begin_object(&writer, NULL);
    json_begin_object(&writer, "id2label");
    for (uint64_t i = 0; i < n_labels; i++) {
        char number[24], label[32];
        snprintf(number, sizeof number, "%" PRIu64, i);
        snprintf(label, sizeof label, "LABEL_%" PRIu64, i);
        json_put_text(&writer, number, label);
    }
    json_end(&writer);
    json_end(&writer);
    bool done = hparams_put_first(hparams, (const char *)text.bytes, text.length, error);
    buffer_free(&text);
    return done;
}

/* Adds defaults spelled as JSON with ' for the quotation mark, which keeps C strings readable. */
static bool add_defaults(struct hparams *hparams, const char *defaults, struct error *error)
{
    size_t length = strlen(defaults);
    char *text = memory_alloc(length + 1);
    for (size_t i = 0; i < length; i++)
        text[i] = defaults[i] == '\'' ? '"' : defaults[i];
    bool done = add_document(hparams, text, length, error);
    free(text);
    return done;
}

bool hparams_default(struct hparams *hparams, const char *defaults, struct error *error)
{
    return add_defaults(hparams, defaults, error);
}

static bool add_class(struct hparams *hparams, const struct config_class *class, struct error *error)
{
    return class == NULL ||
           (add_defaults(hparams, class->defaults, error) && add_defaults(hparams, config_common_defaults, error));
}

/* Adds a configuration object, and the defaults of its class, after the existing layers. */
static bool add_config(struct hparams *hparams, const struct json *object, const struct config_class *class,
                       struct error *error)
{
    add_layer(hparams, object, class);
    return add_class(hparams, class, error);
}

/* Like add_config(), for the text_config of the class `whole`. */
static bool add_text_config(struct hparams *hparams, const struct json *text, const struct config_class *text_class,
                            const struct config_class *whole, struct error *error)
{
    add_layer(hparams, text, text_class);
    if (whole != NULL && whole->text_defaults != NULL && !add_defaults(hparams, whole->text_defaults, error))
        return false;
    return add_class(hparams, text_class, error) && (text_class == NULL || add_computed(hparams, text_class, error));
}

static const struct json *text_config(const struct json *raw)
{
    for (size_t i = 0; i < sizeof text_config_keys / sizeof *text_config_keys; i++) {
        const struct json *config = get_path(raw, text_config_keys[i]);
        if (json_is(config, JSON_OBJECT))
            return config;
    }
    return NULL;
}

static const struct config_class *class_of(const struct json *config, const char *otherwise)
{
    const char *model_type = json_string(json_get(config, "model_type"), NULL);
    if (model_type == NULL)
        model_type = otherwise;
    const struct config_class *class = model_type ? config_class_find(model_type) : NULL;
    return class != NULL && class->is_raw ? NULL : class;
}

/* Reports whether the converter has a class for this multimodal model, whatever class its text model names. */
static bool counts_as_whole(const char *class_name)
{
    static const char *const wholes[] = {"StepVLForConditionalGeneration", "Sarashina2VisionForCausalLM",
                                         "Exaone4_5_ForConditionalGeneration", "Step3p7ForConditionalGeneration",
                                         "KimiK3ForConditionalGeneration"};
    for (size_t i = 0; class_name != NULL && i < sizeof wholes / sizeof *wholes; i++)
        if (strcmp(class_name, wholes[i]) == 0)
            return true;
    return false;
}

static const char *find_class(struct hparams *hparams, const struct json *text)
{
    const char *inner = json_string(json_first(json_get(text, "architectures")), NULL);
    const char *outer = json_string(json_first(json_get(hparams->raw, "architectures")), NULL);
    if (inner != NULL || outer != NULL)
        return inner != NULL && !counts_as_whole(outer) ? inner : outer;
    const struct json *ssm = json_get(hparams->raw, "ssm_cfg");
    if (ssm == NULL)
        return NULL;
    const char *layer = json_string(json_get(ssm, "layer"), NULL);
    return layer != NULL && strcmp(layer, "Mamba2") == 0 ? "Mamba2ForCausalLM" : "MambaForCausalLM";
}

/* Returns the class of a configuration, and in *ret_text that of its text_config. */
static const struct config_class *class_of_whole(const struct json *raw, const struct json *text,
                                                 const struct config_class **ret_text)
{
    const struct config_class *class = class_of(raw, NULL);
    *ret_text = class && text ? class_of(text, class->text_class) : NULL;
    if (class != NULL && class->text_class != NULL && text != NULL && *ret_text == NULL)
        return NULL; /* transformers does not load a model with an unknown text_config */
    const struct config_class *own = *ret_text;
    if (text == NULL)
        own = class != NULL && class->text_may_be_flat ? config_class_find(class->text_class) : class;
    if (class == NULL || (config_is_shown(raw) && (own == NULL || config_class_takes(own, text != NULL ? text : raw))))
        return class;
    *ret_text = NULL;
    return NULL;
}

static bool fill_in(struct hparams *hparams, struct error *error)
{
    const struct json *raw = hparams->raw, *text = text_config(raw);
    const struct config_class *text_class;
    if (!json_is(raw, JSON_OBJECT))
        return error_set(error, "not a JSON object");
    hparams->class_name = find_class(hparams, text);
    const struct config_class *class = class_of_whole(raw, text, &text_class);
    if (text == NULL && class != NULL && class->text_may_be_flat)
        class = config_class_find(class->text_class);
    if (text != NULL)
        return add_text_config(hparams, text, text_class, class, error) && add_config(hparams, raw, class, error);
    if (!add_config(hparams, raw, class, error))
        return false;
    return class == NULL || (add_computed(hparams, class, error) && add_labels(hparams, error));
}

/* Adds a draft model's layer from the configuration of speculators. */
static void add_layer_config(struct hparams *hparams)
{
    const struct json *config = json_get(hparams->raw, "transformer_layer_config");
    if (!json_is(config, JSON_OBJECT))
        return;
    add_layer(hparams, config, NULL);
    move_to_front(hparams);
}

/* Fills in `hparams` and returns it; on failure frees it and returns NULL. */
static struct hparams *completed(struct hparams *hparams, struct error *error)
{
    if (fill_in(hparams, error)) {
        add_layer_config(hparams);
        return hparams;
    }
    error_prefix(error, "config.json");
    hparams_free(hparams);
    return NULL;
}

struct hparams *hparams_parse(const char *text, size_t length, struct error *error)
{
    struct json_document *document = json_parse_python(text, length, error);
    if (document == NULL) {
        error_prefix(error, "config.json");
        return NULL;
    }
    struct hparams *hparams = memory_alloc(sizeof *hparams);
    *hparams = (struct hparams){.n_documents = 1, .documents = {document}, .raw = json_root(document)};
    return completed(hparams, error);
}

/* Like completed(), for Mistral's own params.json, which names no class: the converter has classes for it. */
static struct hparams *completed_mistral(struct hparams *hparams, struct error *error)
{
    static const char mixture[] = "MistralMoeModel";
    bool is_mixture = json_is(json_get(hparams->raw, "moe"), JSON_OBJECT);
    hparams->class_name = is_mixture ? mixture : "MistralModel";
    if (!json_is(hparams->raw, JSON_OBJECT))
        error_set(error, "params.json: not a JSON object");
    else if (add_config(hparams, hparams->raw, is_mixture ? config_class_find(mixture) : NULL, error))
        return hparams;
    hparams_free(hparams);
    return NULL;
}

static bool is_of_mistral(const struct checkpoint *checkpoint)
{
    return strcmp(checkpoint->format, "mistral") == 0;
}

const char *hparams_file(const struct checkpoint *checkpoint)
{
    return is_of_mistral(checkpoint) ? "params.json" : "config.json";
}

struct hparams *hparams_load(const struct checkpoint *checkpoint, bool *ret_absent, struct error *error)
{
    struct document *config;
    const char *name = hparams_file(checkpoint);
    bool opened = document_open(checkpoint, name, &config, error);
    *ret_absent = opened && config == NULL;
    if (*ret_absent)
        error_set(error, "%s: %s is missing", checkpoint->path, name);
    if (config == NULL)
        return NULL;
    struct hparams *hparams = memory_alloc(sizeof *hparams);
    *hparams = (struct hparams){.files = {config}, .raw = document_root(config)};
    return is_of_mistral(checkpoint) ? completed_mistral(hparams, error) : completed(hparams, error);
}

struct hparams *hparams_over(const struct hparams *below)
{
    struct hparams *hparams = memory_alloc(sizeof *hparams);
    *hparams = *below;
    memset(hparams->files, 0, sizeof hparams->files);
    hparams->n_documents = 0; /* the others', which own them */
    return hparams;
}

static struct hparams *hparams_new(const struct json *raw)
{
    struct hparams *hparams = memory_alloc(sizeof *hparams);
    *hparams = (struct hparams){.raw = raw};
    return hparams;
}

/* Returns the class of a vision or audio encoder: by its own model type, or else the one that `whole` names. */
static const struct config_class *class_of_tower(const struct config_class *whole, const struct json *config,
                                                 const char *otherwise)
{
    const struct config_class *class = whole != NULL ? class_of(config, NULL) : NULL;
    if (class != NULL && class->is_tower)
        return class;
    return whole != NULL && otherwise != NULL ? config_class_find(otherwise) : NULL;
}

static bool add_tower(struct hparams *hparams, const struct json *config, const struct config_class *class,
                      struct error *error)
{
    return add_config(hparams, config, class, error) && (class == NULL || add_computed(hparams, class, error));
}

/* Reads the checkpoint's processor: processor_config.json before preprocessor_config.json, and in each file the section
 * about images before the rest. */
static bool add_preprocessor(struct hparams *hparams, const struct checkpoint *checkpoint, struct error *error)
{
    static const struct {
        const char *file, *section;
    } places[] = {{"processor_config.json", "image_processor"}, {"preprocessor_config.json", "media_proc_cfg"}};
    struct hparams *preprocessor = hparams->parts[PREPROCESSOR] = hparams_new(NULL);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (!document_open(checkpoint, places[i].file, &preprocessor->files[i], error))
            return false;
        const struct json *root = document_root(preprocessor->files[i]), *section = json_get(root, places[i].section);
        if (json_is(section, JSON_OBJECT))
            add_layer(preprocessor, section, NULL);
        if (json_is(root, JSON_OBJECT))
            add_layer(preprocessor, root, NULL);
    }
    return true;
}

/* Returns the first object among the paths "whisper_config|audio_config"; NULL: there is none. */
static const struct json *find_tower(const struct json *raw, const char *paths)
{
    while (paths != NULL && *paths != '\0') {
        char path[MAX_KEY];
        size_t length = strcspn(paths, "|");
        snprintf(path, sizeof path, "%.*s", (int)length, paths);
        const struct json *found = get_path(raw, path);
        if (json_is(found, JSON_OBJECT))
            return found;
        paths += length + (paths[length] == '|');
    }
    return NULL;
}

/* Returns the object that describes the vision encoder; NULL: there is none. */
static const struct json *find_vision(const struct json *raw, const struct tower_config *configs)
{
    double n_layers;
    bool is_flat =
        configs->vision_layers != NULL && json_double(json_get(raw, configs->vision_layers), &n_layers) && n_layers > 0;
    return is_flat ? raw : find_tower(raw, configs->vision);
}

bool hparams_has_tower(const struct hparams *text, const struct tower_config *configs)
{
    return find_vision(text->raw, configs) != NULL || find_tower(text->raw, configs->audio) != NULL;
}

static bool add_file_part(struct hparams *hparams, const struct checkpoint *checkpoint, const char *name,
                          struct error *error)
{
    struct hparams *audio = hparams->parts[AUDIO] = hparams_new(NULL);
    if (!document_open(checkpoint, name, &audio->files[0], error))
        return false;
    audio->raw = document_root(audio->files[0]);
    if (!json_is(audio->raw, JSON_OBJECT))
        return error_set(error, "%s is missing or not an object", name);
    return add_config(audio, audio->raw, NULL, error);
}

static bool add_parts(struct hparams *hparams, const struct checkpoint *checkpoint, const struct tower_config *configs,
                      struct error *error)
{
    const struct json *raw = hparams->raw, *vision = find_vision(raw, configs),
                      *audio = find_tower(raw, configs->audio);
    const struct config_class *text_class, *class = class_of_whole(raw, text_config(raw), &text_class);
    const struct config_class *vision_class = class_of_tower(class, vision, class ? class->vision_class : NULL),
                              *audio_class = class_of_tower(class, audio, class ? class->audio_class : NULL);
    if (vision == NULL && audio == NULL)
        return error_set(error, "%s is missing",
                         configs->vision_layers != NULL ? configs->vision_layers
                         : configs->vision != NULL      ? configs->vision
                                                        : configs->audio);
    hparams->parts[OUTER] = hparams_new(raw);
    if (!add_config(hparams->parts[OUTER], raw, class, error))
        return false;
    if (configs->audio_file != NULL && !add_file_part(hparams, checkpoint, configs->audio_file, error))
        return false;
    if (audio != NULL) {
        hparams->parts[AUDIO] = hparams_new(raw);
        if (!add_tower(hparams->parts[AUDIO], audio, audio_class, error))
            return false;
    }
    if (vision != NULL ? !add_tower(hparams, vision, vision_class, error)
                       : !add_tower(hparams, audio, audio_class, error))
        return false;
    return add_preprocessor(hparams, checkpoint, error);
}

struct hparams *hparams_of_tower(struct hparams *text, const struct checkpoint *checkpoint,
                                 const struct tower_config *configs, struct error *error)
{
    struct hparams *hparams = hparams_new(text->raw);
    hparams->parts[TEXT] = text;
    if (add_parts(hparams, checkpoint, configs, error))
        return hparams;
    error_prefix(error, "config.json");
    hparams_free(hparams);
    return NULL;
}

const char *hparams_tower_class(const struct hparams *text)
{
    const char *inner = json_string(json_first(get_path(text->raw, "vision_config.architectures")), NULL);
    const char *outer = json_string(json_first(json_get(text->raw, "architectures")), NULL);
    if (inner != NULL || outer != NULL)
        return inner != NULL ? inner : outer;
    return text->class_name; /* Mistral's own format names none */
}

void hparams_free(struct hparams *hparams)
{
    if (hparams == NULL)
        return;
    for (size_t i = 0; i < hparams->n_documents; i++)
        json_free(hparams->documents[i]);
    for (size_t i = 0; i < sizeof hparams->files / sizeof *hparams->files; i++)
        document_close(hparams->files[i]);
    for (size_t i = 0; i < N_PARTS; i++)
        hparams_free(hparams->parts[i]);
    free(hparams);
}
