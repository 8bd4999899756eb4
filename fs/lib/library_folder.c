#include "fs/lib/library.h"

#include "base/text.h"
#include "text/json.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { DOCUMENT_LIMIT = 4 << 20 }; /* manifests of llama.cpp have the repository's README, too */

static const char ending[] = ".gguf", mmproj[] = "mmproj";

static bool is_separator(char c)
{
    return c == '-' || c == '_' || c == '.';
}

/* Removes the encoding at the end of a name: "-F16", "-Q8_0"; in place. */
static void cut_encoding(char *name)
{
    static const char *const encodings[] = {"F16", "BF16", "F32", "Q8_0"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof encodings / sizeof *encodings; i++) {
        size_t n = strlen(encodings[i]);
        bool is_end = length >= n && strcasecmp(name + length - n, encodings[i]) == 0;
        if (is_end && (length == n || is_separator(name[length - n - 1]))) {
            name[length - n - (length > n)] = '\0';
            return;
        }
    }
}

/* Returns the name of the model in a projector's name: that of "mmproj-NAME-F16.gguf" and "NAME.mmproj-f16.gguf" is
 * NAME, "" if there is none. */
static const char *name_of_projector(const char *file, struct arena *arena)
{
    char *name = arena_strndup(arena, file, strlen(file) - strlen(ending)), *at = strstr(name, mmproj);
    size_t n_before = (size_t)(at - name);
    const char *after = at + strlen(mmproj);
    after += is_separator(*after) && n_before == 0;
    memmove(at, after, strlen(after) + 1);
    cut_encoding(name);
    for (size_t length = strlen(name); length > 0 && is_separator(name[length - 1]); length--)
        name[length - 1] = '\0';
    return name;
}

static bool is_projector(const char *file)
{
    return text_ends_with(file, ending) && strstr(file, mmproj) != NULL;
}

static bool begins_with(const char *model, const char *name)
{
    return *name != '\0' && strncasecmp(model, name, strlen(name)) == 0;
}

/* Reports whether a name begins that of a model in the folder. */
static bool names_a_model(const struct location_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (text_ends_with(list->entries[i].name, ending) && !is_projector(list->entries[i].name) &&
            begins_with(list->entries[i].name, name))
            return true;
    return false;
}

const struct companion *library_projectors(const char *path, const struct location_list *list, const char *model,
                                           struct arena *arena)
{
    struct companion *found = NULL;
    size_t n = 0;
    for (size_t i = 0; i < list->count; i++) {
        const char *file = list->entries[i].name;
        const char *name = is_projector(file) && text_ends_with(model, ending) ? name_of_projector(file, arena) : NULL;
        if (name == NULL || (!begins_with(model, name) && names_a_model(list, name)))
            continue;
        found = arena_grow(arena, found, n, sizeof *found);
        found[n++] = (struct companion){file, arena_printf(arena, "%s/%s", path, file)};
    }
    if (n > 0) {
        found = arena_grow(arena, found, n, sizeof *found);
        found[n] = (struct companion){NULL, NULL};
    }
    return found;
}

/* The cache of llama.cpp. */

struct flat {
    const char *path;
    const struct location_list *list;
    const char *file;
    struct arena *arena;
    struct flat_model *model;
};

static struct json_document *read_json(const struct flat *flat, const char *name)
{
    struct error unused;
    size_t length;
    struct source *source = location_open_file(arena_printf(flat->arena, "%s/%s", flat->path, name), &unused);
    char *text = source != NULL ? source_read_text(source, DOCUMENT_LIMIT, &length, &unused) : NULL;
    struct json_document *document = text != NULL ? json_parse(text, length, &unused) : NULL;
    source_close(source);
    free(text);
    return document;
}

/* Returns the name that the cache gives a repository's file. */
static const char *cached_name(const struct flat *flat, const char *publisher, const char *repository, const char *file)
{
    char *name = arena_printf(flat->arena, "%s_%s_%s", publisher, repository, file);
    for (char *at = name; *at != '\0'; at++)
        if (*at == '/' || *at == '\\')
            *at = '_';
    return name;
}

/* Sets PUBLISHER/FILE as the id. */
static void set_id(const struct flat *flat, const char *publisher, const char *file)
{
    const char *slash = strrchr(file, '/'), *last = slash != NULL ? slash + 1 : file;
    size_t n = strlen(last) - (text_ends_with(last, ending) ? strlen(ending) : 0);
    flat->model->id = arena_printf(flat->arena, "%s/%.*s", publisher, (int)n, last);
}

static void add_projector(const struct flat *flat, const char *stored, const char *file)
{
    struct companion *companions = arena_array(flat->arena, 2, sizeof *companions);
    const char *slash = strrchr(file, '/');
    companions[0] =
        (struct companion){slash != NULL ? slash + 1 : file, arena_printf(flat->arena, "%s/%s", flat->path, stored)};
    companions[1] = (struct companion){NULL, NULL};
    flat->model->companions = companions;
}

/* Takes "manifest=PUBLISHER=REPOSITORY=TAG.json" if it names the file as a model or as a projector. */
static bool take_manifest(const struct flat *flat, const char *manifest)
{
    static const char beginning[] = "manifest=";
    const char *publisher = manifest + strlen(beginning), *repository, *tag;
    if (!text_starts_with(manifest, beginning) || !text_ends_with(manifest, ".json") ||
        (repository = strchr(publisher, '=')) == NULL || (tag = strchr(repository + 1, '=')) == NULL)
        return false;
    publisher = arena_strndup(flat->arena, publisher, (size_t)(repository - publisher));
    repository = arena_strndup(flat->arena, repository + 1, (size_t)(tag - repository - 1));
    struct json_document *document = read_json(flat, manifest);
    const struct json *root = document != NULL ? json_root(document) : NULL;
    const char *model = json_string(json_get(json_get(root, "ggufFile"), "rfilename"), NULL);
    const char *projector = json_string(json_get(json_get(root, "mmprojFile"), "rfilename"), NULL);
    const char *stored = projector != NULL ? cached_name(flat, publisher, repository, projector) : NULL;
    bool is_model = model != NULL && strcmp(cached_name(flat, publisher, repository, model), flat->file) == 0;
    bool is_its_projector = stored != NULL && strcmp(stored, flat->file) == 0;
    if (is_model)
        set_id(flat, publisher, model);
    if (is_model && stored != NULL && location_list_has(flat->list, stored) && is_projector(projector))
        add_projector(flat, stored, arena_strdup(flat->arena, projector));
    json_free(document);
    return is_model || is_its_projector;
}

/* Takes the repository and file from the URL in FILE.gguf.json: https://HOST/PUBLISHER/REPOSITORY/resolve/... */
static bool take_url(const struct flat *flat)
{
    const char *name = arena_printf(flat->arena, "%s.json", flat->file);
    if (!location_list_has(flat->list, name))
        return false;
    struct json_document *document = read_json(flat, name);
    const char *url = document != NULL ? json_string(json_get(json_root(document), "url"), NULL) : NULL;
    const char *host = url != NULL ? strstr(url, "://") : NULL, *path = host != NULL ? strchr(host + 3, '/') : NULL;
    size_t n_publisher = path != NULL ? strcspn(path + 1, "/") : 0;
    const char *file = path != NULL ? strrchr(path, '/') + 1 : NULL;
    bool is_good = n_publisher > 0 && *file != '\0' && text_ends_with(flat->file, file);
    if (is_good)
        set_id(flat, arena_strndup(flat->arena, path + 1, n_publisher), file);
    json_free(document);
    return is_good;
}

/* Splits PUBLISHER_NAME-GGUF_FILE if FILE.etag lies beside it; the last try: no manifest and no URL named the model. */
static bool take_name(const struct flat *flat)
{
    static const char repository[] = "-GGUF_";
    const char *separator = strchr(flat->file, '_'), *mark = strcasestr(flat->file, repository);
    if (!location_list_has(flat->list, arena_printf(flat->arena, "%s.etag", flat->file)) || mark == NULL ||
        separator > mark || separator == flat->file)
        return false;
    set_id(flat, arena_strndup(flat->arena, flat->file, (size_t)(separator - flat->file)), mark + strlen(repository));
    return true;
}

bool library_flat_model(const char *path, const struct location_list *list, const char *file, struct arena *arena,
                        struct flat_model *ret_model)
{
    const struct flat flat = {path, list, file, arena, ret_model};
    *ret_model = (struct flat_model){NULL, NULL};
    if (!text_ends_with(file, ending))
        return false;
    bool found = false;
    for (size_t i = 0; i < list->count && ret_model->id == NULL; i++)
        found |= take_manifest(&flat, list->entries[i].name);
    return found || take_url(&flat) || take_name(&flat);
}
