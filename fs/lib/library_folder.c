#include "fs/lib/library.h"

#include "base/text.h"
#include "base/text_index.h"
#include "formats/format.h"
#include "text/json.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { DOCUMENT_LIMIT = 4 << 20 }; /* manifests of llama.cpp have the repository's README, too */

static const char ending[] = ".gguf", mmproj[] = "mmproj";

/* A projector of the folder. */
struct projector {
    size_t entry;                 /* its place in the list */
    const struct projector *next; /* of the same name */
};

struct library_folder {
    const char *path;
    const struct location_list *list;
    struct folder_names names_beside; /* a model of the folder */
    struct arena *arena;

    /* Models of the cache's manifests by the names of their files, and names of projectors of these. */
    struct flat_model *manifested;
    size_t n_manifested;
    struct text_index models, projectors;

    struct text_index names; /* of projectors that are named after a model, in lower case: places in of_name */
    const struct projector **of_name;
    size_t n_names;
    struct companion *shared; /* the projectors that belong to all, up to one without a name */
    size_t n_shared;
};

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

static const char *lower(struct arena *arena, const char *text)
{
    char *copy = arena_strdup(arena, text);
    for (char *at = copy; *at != '\0'; at++)
        *at = (char)tolower((unsigned char)*at);
    return copy;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names of a folder's models in lower case, sorted. */
struct model_names {
    const char **items;
    size_t count;
};

static struct model_names model_names_of(const struct library_folder *folder)
{
    struct model_names names = {NULL, 0};
    for (size_t i = 0; i < folder->list->count; i++) {
        const char *name = folder->list->entries[i].name;
        if (!text_ends_with(name, ending) || is_projector(name))
            continue;
        names.items = arena_grow(folder->arena, names.items, names.count, sizeof *names.items);
        names.items[names.count++] = lower(folder->arena, name);
    }
    if (names.count > 0)
        qsort(names.items, names.count, sizeof *names.items, compare_texts);
    return names;
}

/* Reports whether a name, in lower case, begins that of a model: the first one that is not before it. */
static bool names_a_model(const struct model_names *names, const char *name)
{
    size_t low = 0, high = names->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(names->items[middle], name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return *name != '\0' && low < names->count && text_starts_with(names->items[low], name);
}

static struct companion companion_of(const struct library_folder *folder, size_t entry)
{
    const char *file = folder->list->entries[entry].name;
    return (struct companion){file, arena_printf(folder->arena, "%s/%s", folder->path, file)};
}

/* Adds a projector under the name of models; the newest of a name is the first in the list. */
static void add_named(struct library_folder *folder, const char *name, size_t entry)
{
    struct projector *projector = arena_alloc(folder->arena, sizeof *projector);
    size_t place;
    if (!text_index_find(&folder->names, name, strlen(name), &place)) {
        place = folder->n_names++;
        folder->of_name = arena_grow(folder->arena, folder->of_name, place, sizeof *folder->of_name);
        folder->of_name[place] = NULL;
        text_index_add(&folder->names, name, strlen(name), place);
    }
    *projector = (struct projector){entry, folder->of_name[place]};
    folder->of_name[place] = projector;
}

static void find_projectors(struct library_folder *folder)
{
    const struct model_names models = model_names_of(folder);
    for (size_t i = 0; i < folder->list->count; i++) {
        const char *file = folder->list->entries[i].name;
        const char *name = is_projector(file) ? lower(folder->arena, name_of_projector(file, folder->arena)) : NULL;
        if (name == NULL)
            continue;
        if (names_a_model(&models, name)) {
            add_named(folder, name, i);
            continue;
        }
        folder->shared = arena_grow(folder->arena, folder->shared, folder->n_shared, sizeof *folder->shared);
        folder->shared[folder->n_shared++] = companion_of(folder, i);
    }
    folder->shared = arena_grow(folder->arena, folder->shared, folder->n_shared, sizeof *folder->shared);
    folder->shared[folder->n_shared] = (struct companion){NULL, NULL};
}

static int compare_companions(const void *a, const void *b)
{
    return strcmp(((const struct companion *)a)->name, ((const struct companion *)b)->name);
}

const struct companion *library_projectors(const struct library_folder *folder, const char *model)
{
    struct arena *arena = folder->arena;
    const char *name = lower(arena, model);
    struct companion *found = NULL;
    size_t n = 0, length = text_ends_with(model, ending) ? strlen(name) : 0, place;
    if (length == 0)
        return NULL;
    for (size_t i = 1; i <= length && folder->n_names > 0; i++) {
        bool is_name = text_index_find(&folder->names, name, i, &place);
        for (const struct projector *one = is_name ? folder->of_name[place] : NULL; one != NULL; one = one->next) {
            found = arena_grow(arena, found, n, sizeof *found);
            found[n++] = companion_of(folder, one->entry);
        }
    }
    if (n == 0)
        return folder->n_shared > 0 ? folder->shared : NULL;
    for (size_t i = 0; i <= folder->n_shared; i++) {
        found = arena_grow(arena, found, n, sizeof *found);
        found[n++] = folder->shared[i];
    }
    qsort(found, n - 1, sizeof *found, compare_companions);
    return found;
}

/* The cache of llama.cpp. */

static struct json_document *read_json(const struct library_folder *folder, const char *name)
{
    struct error unused;
    size_t length;
    struct source *source = location_open_file(arena_printf(folder->arena, "%s/%s", folder->path, name), &unused);
    char *text = source != NULL ? source_read_text(source, DOCUMENT_LIMIT, &length, &unused) : NULL;
    struct json_document *document = text != NULL ? json_parse(text, length, &unused) : NULL;
    source_close(source);
    free(text);
    return document;
}

/* Returns the name that the cache gives a repository's file. */
static const char *cached_name(struct arena *arena, const char *publisher, const char *repository, const char *file)
{
    char *name = arena_printf(arena, "%s_%s_%s", publisher, repository, file);
    for (char *at = name; *at != '\0'; at++)
        if (*at == '/' || *at == '\\')
            *at = '_';
    return name;
}

/* Returns PUBLISHER/FILE. */
static const char *id_of(struct arena *arena, const char *publisher, const char *file)
{
    const char *last = text_last_name(file);
    size_t n = strlen(last) - (text_ends_with(last, ending) ? strlen(ending) : 0);
    return arena_printf(arena, "%s/%.*s", publisher, (int)n, last);
}

/* Returns a projector, which has another name in the cache, up to one without a name. */
static const struct companion *projector_of(const struct library_folder *folder, const char *stored, const char *file)
{
    struct companion *companions = arena_array(folder->arena, 2, sizeof *companions);
    companions[0] =
        (struct companion){text_last_name(file), arena_printf(folder->arena, "%s/%s", folder->path, stored)};
    companions[1] = (struct companion){NULL, NULL};
    return companions;
}

/* Takes the model and the projector that "manifest=PUBLISHER=REPOSITORY=TAG.json" names; of several manifests for a
 * file, the first. */
static void take_manifest(struct library_folder *folder, const char *manifest)
{
    static const char beginning[] = "manifest=";
    struct arena *arena = folder->arena;
    const char *publisher = manifest + strlen(beginning), *repository, *tag;
    if (!text_starts_with(manifest, beginning) || !text_ends_with(manifest, ".json") ||
        (repository = strchr(publisher, '=')) == NULL || (tag = strchr(repository + 1, '=')) == NULL)
        return;
    publisher = arena_strndup(arena, publisher, (size_t)(repository - publisher));
    repository = arena_strndup(arena, repository + 1, (size_t)(tag - repository - 1));
    struct json_document *document = read_json(folder, manifest);
    const struct json *root = document != NULL ? json_root(document) : NULL;
    const char *model = json_string(json_get(json_get(root, "ggufFile"), "rfilename"), NULL);
    const char *projector = json_string(json_get(json_get(root, "mmprojFile"), "rfilename"), NULL);
    const char *of_model = model != NULL ? cached_name(arena, publisher, repository, model) : NULL;
    const char *stored = projector != NULL ? cached_name(arena, publisher, repository, projector) : NULL;
    if (stored != NULL)
        text_index_add(&folder->projectors, stored, strlen(stored), 0);
    if (of_model != NULL && text_index_add(&folder->models, of_model, strlen(of_model), folder->n_manifested)) {
        bool has_projector = stored != NULL && location_list_has(folder->list, stored) && is_projector(projector);
        folder->manifested = arena_grow(arena, folder->manifested, folder->n_manifested, sizeof *folder->manifested);
        folder->manifested[folder->n_manifested++] =
            (struct flat_model){id_of(arena, publisher, model),
                                has_projector ? projector_of(folder, stored, arena_strdup(arena, projector)) : NULL};
    }
    json_free(document);
}

/* Takes the repository and file from the URL in FILE.gguf.json: https://HOST/PUBLISHER/REPOSITORY/resolve/... */
static const char *id_of_url(const struct library_folder *folder, const char *stored)
{
    struct arena *arena = folder->arena;
    const char *name = arena_printf(arena, "%s.json", stored);
    if (!location_list_has(folder->list, name))
        return NULL;
    struct json_document *document = read_json(folder, name);
    const char *url = document != NULL ? json_string(json_get(json_root(document), "url"), NULL) : NULL;
    const char *host = url != NULL ? strstr(url, "://") : NULL, *path = host != NULL ? strchr(host + 3, '/') : NULL;
    size_t n_publisher = path != NULL ? strcspn(path + 1, "/") : 0;
    const char *file = path != NULL ? strrchr(path, '/') + 1 : NULL;
    bool is_good = n_publisher > 0 && *file != '\0' && text_ends_with(stored, file);
    const char *id = is_good ? id_of(arena, arena_strndup(arena, path + 1, n_publisher), file) : NULL;
    json_free(document);
    return id;
}

/* Splits PUBLISHER_NAME-GGUF_FILE if FILE.etag lies beside it; the last try: no manifest and no URL named the model. */
static const char *id_of_name(const struct library_folder *folder, const char *file)
{
    static const char repository[] = "-GGUF_";
    struct arena *arena = folder->arena;
    const char *separator = strchr(file, '_'), *mark = strcasestr(file, repository);
    if (!location_list_has(folder->list, arena_printf(arena, "%s.etag", file)) || mark == NULL || separator > mark ||
        separator == file)
        return NULL;
    return id_of(arena, arena_strndup(arena, file, (size_t)(separator - file)), mark + strlen(repository));
}

static void release(void *context)
{
    struct library_folder *folder = context;
    text_index_free(&folder->models);
    text_index_free(&folder->projectors);
    text_index_free(&folder->names);
}

const struct library_folder *library_folder_new(const char *path, const struct location_list *list, struct arena *arena)
{
    struct library_folder *folder = arena_alloc(arena, sizeof *folder);
    *folder = (struct library_folder){
        .path = path, .list = list, .names_beside = folder_names_of(list, arena), .arena = arena};
    arena_on_free(arena, release, folder);
    for (size_t i = 0; i < list->count; i++)
        take_manifest(folder, list->entries[i].name);
    find_projectors(folder);
    return folder;
}

const struct folder_names *library_names_beside(const struct library_folder *folder)
{
    return &folder->names_beside;
}

bool library_flat_model(const struct library_folder *folder, const char *file, struct flat_model *ret_model)
{
    size_t place;
    *ret_model = (struct flat_model){NULL, NULL};
    if (!text_ends_with(file, ending))
        return false;
    if (text_index_find(&folder->models, file, strlen(file), &place)) {
        *ret_model = folder->manifested[place];
        return true;
    }
    if (text_index_find(&folder->projectors, file, strlen(file), &place))
        return true;
    ret_model->id = id_of_url(folder, file);
    if (ret_model->id == NULL)
        ret_model->id = id_of_name(folder, file);
    return ret_model->id != NULL;
}
