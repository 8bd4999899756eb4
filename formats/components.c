#include "formats/components.h"

#include "base/text.h"
#include "formats/documents.h"

#include <string.h>

static const char pipeline_list[] = "model_index.json", modules_list[] = "modules.json", config[] = "config.json";

/* The audio codecs of audio models, models of their own that no list names. */
static const char *const codec_folders[] = {"audio_tokenizer", "speech_tokenizer"};

enum { N_CODECS = sizeof codec_folders / sizeof *codec_folders };

enum { MAX_MODULES = 64 }; /* entries of a list that are read: a model has ten */

struct finding {
    struct checkpoint *checkpoint;
    const struct input *input;
    struct component *items;
    size_t count;
};

static bool is_weights(const struct format *const *formats, const char *name)
{
    const struct extension *extension = formats_extension(formats, name);
    return *name != '.' && ((extension != NULL && !extension->alone) || text_ends_with(name, ".index.json"));
}

/* Reports whether a folder of the directory has weights or an index of them, and their bytes. */
static bool has_weights(const struct finding *finding, const char *folder, uint64_t *ret_bytes)
{
    const struct location *location = finding->input->location;
    struct location_list list = {0};
    struct source_identity identity;
    struct error unused;
    struct arena *arena = arena_new();
    bool found = false, inside;
    *ret_bytes = 0;
    if (*folder != '.' && location_kind(location, folder) == LOCATION_FOLDER)
        location_list(location, folder, arena, &list, &unused);
    for (size_t i = 0; i < list.count; i++) {
        const char *name = list.entries[i].name;
        if (!is_weights(finding->input->formats, name))
            continue;
        found = true;
        if (location_identify(location, arena_printf(arena, "%s/%s", folder, name), &identity, &inside) && inside)
            *ret_bytes += identity.size;
    }
    arena_free(arena);
    return found;
}

static bool is_taken(const struct finding *finding, const char *folder)
{
    for (size_t i = 0; i < finding->count; i++)
        if (strcmp(finding->items[i].name, folder) == 0)
            return true;
    return false;
}

static bool take(struct finding *finding, const char *folder, const char *class_name)
{
    struct arena *arena = finding->checkpoint->arena;
    uint64_t bytes;
    if (is_taken(finding, folder) || !has_weights(finding, folder, &bytes))
        return false;
    if (finding->count == COMPONENTS_MAX)
        checkpoint_note(finding->checkpoint, SUBJECT_SOURCE, "more than %d folders of weights: the rest are not shown",
                        COMPONENTS_MAX);
    else
        finding->items[finding->count++] = (struct component){
            arena_strdup(arena, folder), class_name != NULL ? arena_strdup(arena, class_name) : NULL, bytes};
    return true;
}

/* Returns the class of an entry [library, class] of model_index.json; NULL: the entry is something else, or null. */
static const char *class_of_entry(const struct json *entry)
{
    return json_count(entry) == 2 ? json_string(json_at(entry, 1), NULL) : NULL;
}

/* Reports whether a folder has config.json, as models do; schedulers and tokenizers, which have no weights, do not. */
static bool has_configuration(const struct finding *finding, const char *folder)
{
    const char *path = arena_printf(finding->checkpoint->arena, "%s/config.json", folder);
    return location_kind(finding->input->location, path) == LOCATION_FILE;
}

static void find_in_pipeline(struct finding *finding, const struct json *list)
{
    const struct input *input = finding->input;
    for (struct json_member entry = {0}; json_next_member(list, &entry);) {
        const char *name = entry.key, *class_name = class_of_entry(entry.value);
        if (class_name != NULL && *name != '_' && !input_has(input, name))
            checkpoint_note(finding->checkpoint, SUBJECT_SOURCE, "%.200s is missing, but %s names it (%.200s)", name,
                            pipeline_list, class_name);
    }
    for (size_t i = 0; i < input->list.count; i++) {
        const char *name = input->list.entries[i].name, *class_name = class_of_entry(json_get(list, name));
        if (!take(finding, name, class_name) && class_name != NULL && has_configuration(finding, name))
            checkpoint_note(finding->checkpoint, SUBJECT_SOURCE, "%s: contains no weights that wfs can read (%.200s)",
                            name, class_name);
    }
}

/* Returns the class without its modules: "Dense" of "sentence_transformers.models.Dense". */
static const char *class_of_module(const struct json *module)
{
    const char *type = json_string(json_get(module, "type"), NULL), *dot = type != NULL ? strrchr(type, '.') : NULL;
    return dot != NULL ? dot + 1 : type;
}

static void find_modules(struct finding *finding, const struct json *list)
{
    size_t n_modules = 0;
    for (const struct json *module = json_first(list); module != NULL && n_modules < MAX_MODULES;
         module = json_next(module), n_modules++) {
        const char *path = json_string(json_get(module, "path"), NULL);
        if (path != NULL && input_has(finding->input, path))
            take(finding, path, class_of_module(module));
    }
}

static struct json_document *read_list(const struct finding *finding, const char *name)
{
    struct error error;
    struct source *file = location_source(finding->input->location, name, &error);
    struct json_document *list = file != NULL ? document_parse(file, &error) : NULL;
    if (list == NULL)
        checkpoint_note(finding->checkpoint, SUBJECT_SOURCE, "%s", error.message);
    source_close(file);
    return list;
}

static void find_listed(struct finding *finding, const char *name)
{
    struct json_document *list = read_list(finding, name);
    const struct json *root = list != NULL ? json_root(list) : NULL;
    if (name == pipeline_list)
        find_in_pipeline(finding, root);
    else
        find_modules(finding, root);
    json_free(list);
}

static bool has_codec(const struct input *input)
{
    bool found = false;
    for (size_t i = 0; i < N_CODECS; i++)
        found |= input_has(input, codec_folders[i]);
    return found;
}

/* Returns the file that lists components, or config.json beside an audio codec; NULL: no components. */
static const char *list_of(const struct input *input)
{
    if (input->file != NULL)
        return NULL;
    if (input_has(input, pipeline_list) || input_has(input, modules_list))
        return input_has(input, pipeline_list) ? pipeline_list : modules_list;
    return input_has(input, config) && has_codec(input) ? config : NULL;
}

struct components *components_find(struct checkpoint *checkpoint, const struct input *input)
{
    const char *name = list_of(input);
    struct component items[COMPONENTS_MAX];
    struct finding finding = {checkpoint, input, items, 0};
    if (name == NULL)
        return NULL;
    for (size_t i = 0; name == config && i < N_CODECS; i++)
        if (input_has(input, codec_folders[i]))
            take(&finding, codec_folders[i], NULL);
    if (name != config)
        find_listed(&finding, name);
    if (finding.count == 0)
        return NULL;
    struct components *components = arena_alloc(checkpoint->arena, sizeof *components);
    *components = (struct components){
        .list = name,
        .items = arena_copy(checkpoint->arena, items, finding.count * sizeof *items),
        .count = finding.count,
        .alone = true,
        .path = arena_strdup(checkpoint->arena, input->path),
    };
    for (size_t i = 0; i < input->list.count; i++)
        if (is_weights(input->formats, input->list.entries[i].name) &&
            location_kind(input->location, input->list.entries[i].name) == LOCATION_FILE)
            components->alone = false;
    return name == config && components->alone ? NULL : components;
}

const struct component *components_named(const struct components *components, const char *name)
{
    for (size_t i = 0; components != NULL && i < components->count; i++)
        if (strcmp(components->items[i].name, name) == 0)
            return &components->items[i];
    return NULL;
}

bool components_hold(const struct components *components, const char *path)
{
    size_t length = strcspn(path, "/");
    for (size_t i = 0; components != NULL && path[length] == '/' && i < components->count; i++)
        if (strncmp(components->items[i].name, path, length) == 0 && components->items[i].name[length] == '\0')
            return true;
    return false;
}

bool components_ask_for_one(const struct components *components, struct error *error)
{
    struct buffer names = {0};
    for (size_t i = 0; i < components->count; i++)
        buffer_printf(&names, "%s%s", i > 0 ? ", " : "", components->items[i].name);
    error_set(error, "%s: a pipeline of %zu model%s (%s): %.*s; name one, such as %s/%s", components->path,
              components->count, components->count == 1 ? "" : "s", components->list, (int)names.length,
              (const char *)names.bytes, components->path, components->items[0].name);
    buffer_free(&names);
    return false;
}
