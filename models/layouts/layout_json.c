#include "models/layouts/making.h"

#include "base/system.h"
#include "base/text.h"
#include "formats/documents.h"
#include "models/layouts/layout_file.h"
#include "sources/paths.h"
#include "text/json_write.h"

#include <string.h>

enum { INDENTATION = 4 };

struct writing {
    struct scope *scope; /* for expressions; NULL: no text is one */
    struct json_writer *json;
    struct error *error;
};

static bool put_json(const struct writing *writing, const struct json *value);

static bool put_expression(const struct writing *writing, const char *expression)
{
    const struct writing plain = {.json = writing->json, .error = writing->error};
    struct value value;
    if (!scope_value(writing->scope, expression, &value, writing->error))
        return false;
    switch (value.kind) {
    case VALUE_NULL:
        json_put_null(writing->json, NULL);
        break;
    case VALUE_BOOLEAN:
        json_put_bool(writing->json, NULL, value.number != 0);
        break;
    case VALUE_NUMBER:
        json_put_i64(writing->json, NULL, value.number);
        break;
    case VALUE_TEXT:
        json_put_text(writing->json, NULL, value.text);
        break;
    case VALUE_JSON:
        return put_json(&plain, value.json);
    }
    return true;
}

/* Recurses as deep as the document, which has a limit (JSON_MAX_DEPTH). */
static bool put_object(const struct writing *writing, const struct json *object)
{
    json_begin_object(writing->json, NULL);
    for (struct json_member member = {0}; json_next_member(object, &member);) {
        json_put_key(writing->json, member.key, member.key_length);
        if (!put_json(writing, member.value))
            return false;
    }
    json_end(writing->json);
    return true;
}

static bool put_array(const struct writing *writing, const struct json *array)
{
    json_begin_array(writing->json, NULL);
    for (const struct json *element = json_first(array); element != NULL; element = json_next(element))
        if (!put_json(writing, element))
            return false;
    json_end(writing->json);
    return true;
}

static bool put_json(const struct writing *writing, const struct json *value)
{
    static const char *const words[] = {[JSON_NULL] = "null", [JSON_FALSE] = "false", [JSON_TRUE] = "true"};
    size_t length;
    const char *text = json_string(value, &length);
    if (text != NULL && *text == '=' && writing->scope != NULL)
        return put_expression(writing, text + 1);
    if (text != NULL)
        json_put_text_n(writing->json, NULL, text, length);
    else if (json_is(value, JSON_NUMBER))
        json_put_raw(writing->json, NULL, json_number_text(value));
    else if (json_is(value, JSON_OBJECT))
        return put_object(writing, value);
    else if (json_is(value, JSON_ARRAY))
        return put_array(writing, value);
    else
        json_put_raw(writing->json, NULL, words[json_type(value)]);
    return true;
}

/* The sections of a document: objects whose members are joined. */
struct sections {
    const struct json *objects[64];
    unsigned n_objects;
    bool first_is_plain; /* the first is a side file, whose texts are no expressions */
};

static bool is_set_later(const struct sections *sections, unsigned section, const char *key, size_t length)
{
    for (unsigned i = section + 1; i < sections->n_objects; i++)
        if (json_get_n(sections->objects[i], key, length) != NULL)
            return true;
    return false;
}

static bool put_sections(const struct writing *writing, const struct sections *sections)
{
    const struct writing plain = {.json = writing->json, .error = writing->error};
    json_begin_object(writing->json, NULL);
    for (unsigned i = 0; i < sections->n_objects; i++)
        for (struct json_member member = {0}; json_next_member(sections->objects[i], &member);) {
            if (is_set_later(sections, i, member.key, member.key_length))
                continue;
            json_put_key(writing->json, member.key, member.key_length);
            if (!put_json(i == 0 && sections->first_is_plain ? &plain : writing, member.value))
                return error_prefix(writing->error, "%.100s", member.key);
        }
    json_end(writing->json);
    return true;
}

/* Returns an expression, which may also be a JSON number; NULL: there is none. */
static const char *expression_of(const struct json *value)
{
    return json_is(value, JSON_NUMBER) ? json_number_text(value) : json_string(value, NULL);
}

bool layout_json_document(const struct layout_document *document, struct scope *scope,
                          const struct checkpoint *checkpoint, struct buffer *out, struct error *error)
{
    struct sections sections = {.first_is_plain = document->of != NULL};
    struct document *side_file = NULL;
    struct json_writer json = {.out = out, .letters = JSON_ASCII, .width = INDENTATION};
    const struct writing writing = {scope, &json, error};
    if (document->of != NULL) {
        if (!document_open(checkpoint, document->of, &side_file, error))
            return false;
        sections.objects[sections.n_objects++] = document_root(side_file);
    }
    bool is_good = true;
    for (const struct json *part = json_first(document->members); is_good && part != NULL; part = json_next(part)) {
        bool holds;
        is_good = scope_holds(scope, expression_of(json_get(part, "when")), &holds, error);
        if (is_good && holds && sections.n_objects == sizeof sections.objects / sizeof *sections.objects)
            is_good = error_set(error, "more than 63 sections");
        if (is_good && holds)
            sections.objects[sections.n_objects++] = json_get(part, "set");
    }
    is_good = is_good && put_sections(&writing, &sections);
    buffer_append_text(out, "\n");
    document_close(side_file);
    return is_good;
}

void layout_json_manifest(const struct layout_product *product, struct buffer *out)
{
    struct json_writer json = {.out = out, .letters = JSON_ASCII, .width = INDENTATION};
    json_put_template(&json, "{'tensors': [");
    for (size_t i = 0; i < product->n_artifacts; i++) {
        const struct artifact_tensor *written = &product->artifacts[i].artifact.tensors[0];
        const struct tensor *tensor = written->tensor;
        json_put_template(&json, "{");
        json_keep_line(&json);
        json_put_template(&json, "'name': %s, 'file': %s, 'dtype': %s, 'shape': [", tensor->name,
                          product->artifacts[i].name, written->encoding.dtype->name);
        for (unsigned j = 0; j < tensor->rank; j++)
            json_put_number(&json, NULL, tensor->shape[j]);
        json_put_template(&json, "], 'bytes': %u}", artifact_tensor_bytes(written));
    }
    json_put_template(&json, "]}");
    buffer_append_text(out, "\n");
}

/* The directories of layouts, from the program's own: installed, and in the build directory. */
static const char *const places[] = {"../share/wfs/layouts", "models/layouts"};
enum { N_PLACES = sizeof places / sizeof *places };

/* Returns the path of a directory of layouts; NULL: the program's own path is unknown. */
static const char *place_at(size_t i, struct arena *arena)
{
    char program[PATH_MAX];
    if (!system_program_path(program))
        return NULL;
    return arena_printf(arena, "%.*s/%s", (int)(strrchr(program, '/') - program), program, places[i]);
}

const char *const *layout_directories(struct arena *arena)
{
    const char **directories = arena_array(arena, N_PLACES + 1, sizeof *directories);
    size_t count = 0;
    for (size_t i = 0; i < N_PLACES; i++)
        if ((directories[count] = place_at(i, arena)) != NULL)
            count++;
    directories[count] = NULL;
    return directories;
}

static const char *installed_path(const char *name, struct arena *arena)
{
    for (size_t i = 0; i < N_PLACES; i++) {
        const char *place = place_at(i, arena);
        const char *path = place != NULL ? arena_printf(arena, "%s/%s.json", place, name) : NULL;
        if (path != NULL && local_kind(path) == LOCATION_FILE)
            return path;
    }
    return NULL;
}

static const char *base_name(const char *path, struct arena *arena)
{
    const char *base = text_last_name(path);
    return arena_strndup(arena, base, strlen(base) - (text_ends_with(base, ".json") ? strlen(".json") : 0));
}

const char *const *layout_names(struct arena *arena)
{
    struct error unused;
    const char **layouts = arena_array(arena, 1, sizeof *layouts);
    struct location_list list;
    size_t n_layouts = 0;
    for (size_t i = 0; i < N_PLACES && n_layouts == 0; i++) {
        const char *place = place_at(i, arena);
        struct location *location = place != NULL ? location_open(place, LOCATION_INSIDE, NULL, &unused) : NULL;
        if (location != NULL && location_list(location, "", arena, &list, &unused)) {
            layouts = arena_array(arena, list.count + 1, sizeof *layouts);
            for (size_t j = 0; j < list.count; j++)
                if (text_ends_with(list.entries[j].name, ".json"))
                    layouts[n_layouts++] = base_name(list.entries[j].name, arena);
        }
        location_close(location);
    }
    layouts[n_layouts] = NULL;
    return layouts;
}

static bool refuse_name(const char *name, struct arena *arena, struct error *error)
{
    struct text_guess guess = {.typed = name};
    char question[TEXT_QUESTION];
    const char *known = "";
    for (const char *const *layout = layout_names(arena); *layout != NULL; layout++) {
        text_guess_try(&guess, *layout);
        known = arena_printf(arena, "%s%s%s", known, *known != '\0' ? ", " : " (known: ", *layout);
    }
    return error_set(error, "there is no layout '%.100s'%s%s%s", name, known, *known != '\0' ? ")" : "",
                     text_guess_question(&guess, question));
}

bool layout_find(const char *text, struct arena *arena, struct layout_request *ret_request, struct error *error)
{
    const char *colon = strchr(text, ':');
    const char *given = arena_strndup(arena, text, colon != NULL ? (size_t)(colon - text) : strlen(text));
    bool is_path = strchr(given, '/') != NULL || text_ends_with(given, ".json");
    const char *path = is_path ? given : installed_path(given, arena), *name = base_name(given, arena);
    if (path == NULL)
        return refuse_name(given, arena, error);
    if (*name == '\0' || *name == '.')
        return error_set(error, "'%.200s' names no layout file", given);
    struct source *source = location_open_file(path, error);
    if (source == NULL)
        return false;
    ret_request->file = layout_file_read(source, name, arena, error);
    ret_request->parameters = colon != NULL ? arena_strdup(arena, colon + 1) : NULL;
    source_close(source);
    return ret_request->file != NULL;
}
