#include "fs/lib/library.h"

#include "base/report.h"
#include "base/text.h"
#include "base/text_index.h"
#include "formats/checkpoint_builder.h"
#include "formats/format.h"
#include "formats/huggingface/hub_cache.h"
#include "formats/shard_name.h"
#include "fs/lib/lib.h"
#include "fs/library/library.h"
#include "models/formats.h"
#include "sources/archive/location.h"
#include "sources/paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_DEPTH = 1 }; /* of a folder whose entries are listed, below the source */

static const char pipeline_list[] = "model_index.json";
static const char local[] = "local"; /* the publisher of models without one */

/* A model of a library; it lives as long as the tree. */
struct opened_model {
    const struct options *options;
    const struct content_options *content;
    const char *source, *shown;          /* its path, without secrets in the second */
    const char *folder;                  /* that was searched for it, as ids name it; NULL: none was */
    bool is_named;                       /* by the user */
    const struct checkpoint *checkpoint; /* NULL until it is opened */
};

/* The place of a folder among the sources. */
struct place {
    const char *path, *id; /* the id that its model has */
    unsigned depth;        /* below the source */
    unsigned deepest;      /* of a folder whose entries are listed */
    bool is_link;          /* the path ends at a link */
    bool is_named;         /* by the user, or the snapshot of a repository that is */
};

enum known { LINKED, SEARCHED };

/* A library while its models are found. */
struct search {
    struct arena *arena;
    const struct options *options; /* of each model */
    struct library_model *models;
    size_t n_models;
    struct text_index folders; /* of models, by their real paths: enum known */
    struct place *links;       /* to folders of models, which are searched after all others of their source */
    size_t n_links;
};

const char *library_split(const char *argument, struct arena *arena, const char **ret_id)
{
    const char *equals = strchr(argument, '='), *slash = strchr(argument, '/');
    bool is_path = *argument == '/' || *argument == '.' || *argument == '~';
    *ret_id = NULL;
    if (equals == NULL || is_path || slash == NULL || slash > equals || slash == argument || slash + 1 == equals)
        return argument;
    *ret_id = arena_strndup(arena, argument, (size_t)(equals - argument));
    return equals + 1;
}

/* Returns the first two names of a path, "ORG/NAME", without "@REVISION"; NULL if there are not two. */
static const char *first_names(const char *path, struct arena *arena)
{
    size_t org = strcspn(path, "/@"), name = path[org] == '/' ? strcspn(path + org + 1, "/@") : 0;
    return org > 0 && name > 0 ? arena_strndup(arena, path, org + 1 + name) : NULL;
}

const char *library_repository(const char *source, struct arena *arena)
{
    static const char folder[] = "models--", scheme[] = "hf://";
    const char *at = strstr(source, folder), *org = at != NULL ? at + strlen(folder) : NULL;
    const char *separator = org != NULL ? strstr(org, "--") : NULL;
    if (text_starts_with(source, scheme))
        return first_names(source + strlen(scheme), arena);
    if (separator == NULL || strcspn(org, "/") < (size_t)(separator - org))
        return strstr(source, "://") == NULL && local_kind(source) == LOCATION_NOTHING ? first_names(source, arena)
                                                                                       : NULL;
    const char *name = separator + strlen("--");
    return arena_printf(arena, "%.*s/%.*s", (int)(separator - org), org, (int)strcspn(name, "/"), name);
}

/* Models. */

static struct tree *open_model(void *context, struct error *error)
{
    struct opened_model *model = context;
    model->checkpoint = lib_open_checkpoint(model->source, model->options, error);
    struct tree *tree = model->checkpoint != NULL ? tree_new(model->checkpoint, model->content, error) : NULL;
    if (tree != NULL)
        return tree;
    if (!text_starts_with(error->message, model->shown))
        error_prefix(error, "%s", model->shown);
    report("%s", error->message);
    checkpoint_close(model->checkpoint);
    model->checkpoint = NULL;
    return NULL;
}

/* Adds a model with companions, the names in its folder and what ids call that, each of which may be NULL. Returns it.
 */
static struct opened_model *add_model_with(struct search *search, const char *id, const char *source,
                                           const struct companion *companions, const struct folder_names *names,
                                           const char *folder)
{
    struct arena *arena = search->arena;
    struct options *options = arena_copy(arena, search->options, sizeof *options);
    struct opened_model *model = arena_alloc(arena, sizeof *model);
    struct content_options *content = arena_copy(arena, &search->options->content, sizeof *content);
    content->name_in_library = arena_strdup(arena, strchr(id, '/') + 1);
    content->request.layouts = (struct layout_requests){0};
    options->open.companions = companions;
    options->open.names = names;
    *model = (struct opened_model){.options = options,
                                   .content = content,
                                   .source = arena_strdup(arena, source),
                                   .shown = location_shown(source, arena),
                                   .folder = folder};
    search->models = arena_grow(arena, search->models, search->n_models, sizeof *search->models);
    search->models[search->n_models++] =
        (struct library_model){arena_strdup(arena, id), model->shown, open_model, model};
    return model;
}

static struct opened_model *add_model(struct search *search, const char *id, const char *source)
{
    return add_model_with(search, id, source, NULL, NULL, NULL);
}

/* Reports whether a file of a folder is a model by itself. Projectors of GGUFs are not, nor are later splits. */
static bool is_model_file(const char *name)
{
    const struct extension *extension = formats_extension(formats, name);
    struct shard_name shard;
    return extension != NULL && !extension->shared && strstr(name, "mmproj") == NULL &&
           (!shard_name_parse(name, &shard) || shard.number == 1);
}

/* Returns a weights file's name without its extension, and its number if it is a split. */
static const char *stem(struct arena *arena, const char *name)
{
    const struct extension *extension = formats_extension(formats, name);
    struct shard_name shard;
    if (shard_name_parse(name, &shard))
        return arena_strndup(arena, name, shard.stem_length);
    return arena_strndup(arena, name, strlen(name) - (extension != NULL ? strlen(extension->text) : 0));
}

/* Directories. */

enum folder { FOLDER_OF_MODELS, FOLDER_MODEL, FOLDER_PIPELINE, FOLDER_REPOSITORY, FOLDER_OLLAMA };

/* Counts the weights files of a folder that are GGUFs, and the others. */
static void count_weights(const struct location_list *list, size_t *ret_ggufs, size_t *ret_others)
{
    *ret_ggufs = *ret_others = 0;
    for (size_t i = 0; i < list->count; i++) {
        bool is_gguf = text_ends_with(list->entries[i].name, ".gguf");
        *ret_ggufs += is_gguf;
        *ret_others += !is_gguf && formats_extension(formats, list->entries[i].name) != NULL;
    }
}

/* Reports whether the files of a folder are one model: its shards, or files beside a name that says so. GGUFs are
 * models of their own, whatever lies beside them. */
static bool is_model(const struct location_list *list)
{
    static const char *const marks[] = {"config.json", "params.json", "adapter_config.json", "model.safetensors",
                                        "model.safetensors.index.json"};
    struct shard_name shard;
    size_t n_ggufs, n_others;
    count_weights(list, &n_ggufs, &n_others);
    if (n_ggufs > 0 && n_others == 0)
        return false;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (location_list_has(list, marks[i]))
            return true;
    for (size_t i = 0; i < list->count; i++)
        if (shard_name_parse(list->entries[i].name, &shard) && !text_ends_with(list->entries[i].name, ".gguf") &&
            formats_extension(formats, list->entries[i].name) != NULL)
            return true;
    return false;
}

static enum folder kind_of(const struct location_list *list, const char *name)
{
    if (text_starts_with(name, "models--") && location_list_has(list, "snapshots"))
        return FOLDER_REPOSITORY;
    if (location_list_has(list, "manifests") && location_list_has(list, "blobs"))
        return FOLDER_OLLAMA;
    if (location_list_has(list, pipeline_list))
        return FOLDER_PIPELINE;
    return is_model(list) ? FOLDER_MODEL : FOLDER_OF_MODELS;
}

static bool list_folder(struct search *search, const char *path, struct location_list *ret_list, struct error *error)
{
    struct location *location = location_open(path, LOCATION_FOLLOW, NULL, error);
    bool listed = location != NULL && location_list(location, "", search->arena, ret_list, error);
    location_close(location);
    return listed;
}

static void add_components(struct search *search, const struct place *place, const struct location_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        struct location_list component;
        struct error unused;
        const char *name = list->entries[i].name;
        const char *below = arena_printf(search->arena, "%s/%s", place->path, name);
        bool may_be_folder = *name != '.' && list->entries[i].kind != LOCATION_FILE;
        bool has_weights = false;
        if (may_be_folder && list_folder(search, below, &component, &unused))
            for (size_t j = 0; j < component.count; j++)
                has_weights |= is_model_file(component.entries[j].name);
        if (has_weights)
            add_model(search, arena_printf(search->arena, "%s-%s", place->id, name), below);
    }
}

/* Reports whether an entry is a link to its folder, or to one above: these are searched already. */
static bool is_loop(struct arena *arena, const char *folder, const struct location_entry *entry)
{
    if (entry->kind != LOCATION_LINK)
        return false;
    const char *target = location_real_path(arena_printf(arena, "%s/%s", folder, entry->name), arena);
    const char *here = location_real_path(folder, arena);
    size_t length = target != NULL ? strlen(target) : 0;
    return length > 0 && here != NULL && text_starts_with(here, target) &&
           (here[length] == '/' || here[length] == '\0' || length == 1);
}

/* Reports whether a folder of models is known, so that links to it are passed over: a folder full of links to another
 * one would show that one's models as many times. */
static bool is_known(const struct search *search, const char *path, size_t *ret_known)
{
    const char *real = location_real_path(path, search->arena);
    return real != NULL && text_index_find(&search->folders, real, strlen(real), ret_known);
}

static void note_folder(struct search *search, const char *path, enum known known)
{
    const char *real = location_real_path(path, search->arena);
    if (real != NULL)
        text_index_set(&search->folders, real, strlen(real), known);
}

/* Adds the models of a store of Ollama, whose manifests are HOST/NAMESPACE/NAME/TAG below `folder`. `names` are those
 * of the folders down to here. Recurses up to the tags. */
static void add_manifests(struct search *search, const char *folder, bool is_link, const char *names[4],
                          unsigned n_names)
{
    struct arena *arena = search->arena;
    struct location_list list;
    struct error unused;
    if ((is_link && is_known(search, folder, &(size_t){0})) || !list_folder(search, folder, &list, &unused))
        return;
    note_folder(search, folder, SEARCHED);
    for (size_t i = 0; i < list.count; i++) {
        const char *name = names[n_names] = list.entries[i].name;
        const char *below = arena_printf(arena, "%s/%s", folder, name);
        if (*name == '.' || is_loop(arena, folder, &list.entries[i]))
            continue;
        if (n_names < 3)
            add_manifests(search, below, list.entries[i].kind == LOCATION_LINK, names, n_names + 1);
        else if (strcmp(name, "latest") == 0)
            add_model(search, arena_printf(arena, "%s/%s", names[1], names[2]),
                      arena_printf(arena, "ollama://%s", below));
        else
            add_model(search, arena_printf(arena, "%s/%s-%s", names[1], names[2], name),
                      arena_printf(arena, "ollama://%s", below));
    }
}

static void add_entry(struct search *search, const struct place *place, const char *publisher,
                      const struct library_folder *folder, const struct location_entry *entry);

/* Adds the models of a folder, which is a model, a pipeline, or a directory of them. Recurses MAX_DEPTH deep, and once
 * more for the snapshot of a repository. */
static void add_folder(struct search *search, const struct place *place, const struct location_list *list)
{
    struct arena *arena = search->arena;
    struct error error;
    struct location_list inside;
    const char *name = text_trimmed_name(arena, place->path);
    enum folder kind = kind_of(list, name);
    if (kind == FOLDER_OF_MODELS || kind == FOLDER_OLLAMA)
        note_folder(search, place->path, SEARCHED);
    if (kind == FOLDER_REPOSITORY) {
        const char *snapshot = hub_cache_resolve(arena, place->path, formats, LOCATION_FOLLOW, &error);
        const char *id = library_repository(place->path, arena);
        bool has_id = id != NULL && library_is_id(id);
        bool is_shown = snapshot == NULL || (place->is_link && is_known(search, snapshot, &(size_t){0}));
        if (!is_shown && strcmp(snapshot, place->path) != 0 && list_folder(search, snapshot, &inside, &error))
            add_folder(search,
                       &(struct place){snapshot, has_id ? id : place->id, place->deepest, place->deepest,
                                       place->is_link, place->is_named},
                       &inside);
    } else if (kind == FOLDER_OLLAMA) {
        const char *names[4];
        add_manifests(search, arena_printf(arena, "%s/manifests", place->path), place->is_link, names, 0);
    } else if (kind == FOLDER_PIPELINE) {
        add_components(search, place, list);
    } else if (kind == FOLDER_MODEL) {
        add_model(search, place->id, place->path)->is_named = place->is_named;
    } else {
        const char *above = arena_strndup(arena, place->id, strcspn(place->id, "/"));
        const char *publisher = place->depth == 0 || strcmp(above, local) != 0 ? above : strchr(place->id, '/') + 1;
        const struct library_folder *folder = library_folder_new(place->path, list, arena);
        for (size_t i = 0; i < list->count; i++)
            add_entry(search, place, publisher, folder, &list->entries[i]);
    }
}

/* Adds a model that is one file of a folder. */
static void add_file(struct search *search, const struct place *place, const char *publisher,
                     const struct library_folder *folder, const char *file)
{
    struct arena *arena = search->arena;
    struct flat_model flat;
    const char *source = arena_printf(arena, "%s/%s", place->path, file), *name = strchr(place->id, '/') + 1;
    const char *id = arena_printf(arena, "%s/%s", publisher, stem(arena, file));
    if (!library_flat_model(folder, file, &flat) || (flat.id != NULL && !library_is_id(flat.id)))
        add_model_with(search, library_is_id(id) ? id : arena_printf(arena, "%s/%s", publisher, file), source,
                       library_projectors(folder, file), library_names_beside(folder), name);
    else if (flat.id != NULL)
        add_model_with(search, flat.id, source, flat.companions, library_names_beside(folder), name);
}

/* Adds the models of an entry of a directory of models. */
static void add_entry(struct search *search, const struct place *place, const char *publisher,
                      const struct library_folder *folder, const struct location_entry *entry)
{
    struct arena *arena = search->arena;
    struct location_list inside;
    struct error unused;
    if (*entry->name == '.')
        return;
    if (is_model_file(entry->name)) {
        add_file(search, place, publisher, folder, entry->name);
        return;
    }
    if (place->depth > place->deepest || entry->kind == LOCATION_FILE || entry->kind == LOCATION_OTHER ||
        is_loop(arena, place->path, entry))
        return;
    const struct place below = {arena_printf(arena, "%s/%s", place->path, entry->name),
                                arena_printf(arena, "%s/%s", publisher, entry->name),
                                place->depth + 1,
                                place->deepest,
                                entry->kind == LOCATION_LINK,
                                false};
    if ((below.is_link && is_known(search, below.path, &(size_t){0})) ||
        !list_folder(search, below.path, &inside, &unused))
        return;
    enum folder kind = kind_of(&inside, entry->name);
    if (!below.is_link || (kind != FOLDER_OF_MODELS && kind != FOLDER_OLLAMA)) {
        add_folder(search, &below, &inside);
        return;
    }
    note_folder(search, below.path, LINKED);
    search->links = arena_grow(arena, search->links, search->n_links, sizeof *search->links);
    search->links[search->n_links++] = below;
}

/* Adds the models of the folders that only links lead to, and of the links in these. */
static void add_links(struct search *search)
{
    struct location_list inside;
    struct error unused;
    for (size_t i = 0; i < search->n_links; i++) {
        const struct place place = search->links[i];
        size_t known = LINKED;
        is_known(search, place.path, &known);
        if (known != SEARCHED && list_folder(search, place.path, &inside, &unused))
            add_folder(search, &place, &inside);
    }
    search->n_links = 0;
}

/* Makes a local path absolute, since models are opened by a server, whose working directory is another one. */
static const char *absolute(struct arena *arena, const char *path, struct error *error)
{
    size_t length = text_trimmed_length(path);
    if (*path == '/')
        return arena_strndup(arena, path, length);
    char *directory = getcwd(NULL, 0);
    if (directory == NULL)
        error_set_errno(error, errno, "the working directory");
    const char *joined = directory != NULL ? arena_printf(arena, "%s/%.*s", directory, (int)length, path) : NULL;
    free(directory);
    return joined;
}

/* Returns the kind of what a path in an archive names; LOCATION_NOTHING with the reason. */
static enum location_kind kind_in_archive(const char *path, struct error *error)
{
    const char *file;
    struct location *location = location_open(path, LOCATION_INSIDE, &file, error);
    enum location_kind kind = location == NULL ? LOCATION_NOTHING : file != NULL ? LOCATION_FILE : LOCATION_FOLDER;
    location_close(location);
    return kind;
}

/* Returns the last name of a source: of "." and "..", that of the directory. */
static const char *name_of_source(struct arena *arena, const char *source, const char *path)
{
    const char *name = text_trimmed_name(arena, source);
    bool is_dots = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
    const char *real = is_dots ? local_real_path(path, arena) : NULL;
    return real != NULL ? text_trimmed_name(arena, real) : name;
}

/* Adds the models of a source that the user named. */
static bool add_source(struct search *search, const char *argument, struct error *error)
{
    struct arena *arena = search->arena;
    const char *id, *source = library_split(argument, arena, &id);
    size_t n_before = search->n_models;
    struct location_list list;
    bool is_remote = strstr(source, "://") != NULL;
    const char *path = is_remote ? source : hub_cache_resolve(arena, source, formats, LOCATION_FOLLOW, error);
    if (path == NULL || (!is_remote && (path = absolute(arena, path, error)) == NULL))
        return false;
    const char *repository = id != NULL ? id : library_repository(source, arena);
    const char *own =
        repository != NULL ? repository : arena_printf(arena, "%s/%s", local, name_of_source(arena, source, path));
    size_t archive = archive_prefix(path);
    bool is_archived = archive > 0, is_whole_archive = is_archived && path[archive] == '\0';
    enum location_kind kind = is_archived ? kind_in_archive(path, error)
                              : is_remote ? LOCATION_OTHER
                                          : local_kind(path);
    if (kind == LOCATION_NOTHING)
        return is_archived ? false : error_set(error, "%s: no such file or directory", source);
    if (kind == LOCATION_FOLDER && !list_folder(search, path, &list, error))
        return false;
    if (kind == LOCATION_FOLDER)
        add_folder(search, &(struct place){path, own, 0, is_whole_archive ? MAX_DEPTH + 1 : MAX_DEPTH, false, true},
                   &list);
    else
        add_model(search, repository != NULL ? repository : stem(arena, own), path)->is_named = true;
    add_links(search);
    return search->n_models > n_before || is_archived || error_set(error, "%s: holds no models", source);
}

/* Returns a free id for a model whose id an earlier one has, in the arena: FOLDER-NAME for a file of another searched
 * folder, since publishers call the files of several repositories alike; the whole name of a file, such as model.gguf
 * beside model/; else one of them, or the NAME of a directory, with -2 and so on. Returns the same id for a source that
 * the user named twice. */
static const char *another_id(struct arena *arena, const struct text_index *ids, const struct library_model *model,
                              const struct library_model *earlier)
{
    const struct opened_model *own = model->context, *other = earlier->context;
    const char *file = text_last_name(model->source);
    const char *name = strchr(model->id, '/') + 1, *base = model->id;
    int n_publisher = (int)(name - model->id);
    bool is_beside = strncmp(earlier->source, model->source, (size_t)(file - model->source)) == 0;
    bool is_named = own->is_named && other->is_named;
    if (own->folder != NULL)
        base = arena_printf(arena, "%.*s%s-%s", n_publisher, model->id, own->folder, name);
    const char *id = is_model_file(file) && (is_beside || is_named)
                         ? arena_printf(arena, "%.*s%s", n_publisher, model->id, file)
                         : base;
    for (unsigned i = 2; text_index_find(ids, id, strlen(id), &(size_t){0}); i++)
        if (is_named)
            return model->id;
        else
            id = arena_printf(arena, "%s-%u", base, i);
    return id;
}

/* Gives each model that a search found under the name of another one a name of its own. */
static void tell_apart(struct search *search)
{
    struct text_index ids = {0};
    for (size_t i = 0; i < search->n_models; i++) {
        struct library_model *model = &search->models[i];
        size_t other;
        if (text_index_find(&ids, model->id, strlen(model->id), &other))
            model->id = another_id(search->arena, &ids, model, &search->models[other]);
        text_index_add(&ids, model->id, strlen(model->id), i);
    }
    text_index_free(&ids);
}

/* What the tree of a library needs besides its models. */
struct opened_library {
    struct search search;
    struct library library;
};

static void close_models(void *context)
{
    struct opened_library *opened = context;
    for (size_t i = 0; i < opened->library.n_models; i++)
        checkpoint_close(((struct opened_model *)opened->library.models[i].context)->checkpoint);
}

/* Returns a checkpoint without weights that stands for the whole library. */
static struct checkpoint *stand_in(const char *path, struct error *error)
{
    struct checkpoint *checkpoint = checkpoint_new(path);
    checkpoint->formats = formats;
    checkpoint->format = "library";
    checkpoint->model_name = "library";
    if (checkpoint_seal(checkpoint, error))
        return checkpoint;
    checkpoint_close(checkpoint);
    return NULL;
}

/* Shows the original files of a source in an archive. */
static bool add_archived_files(struct tree *tree, const char *source, struct error *error)
{
    const char *rest;
    bool is_archive;
    struct archive *archive = archive_of_text(source, &rest, &is_archive, error);
    if (archive == NULL)
        return !is_archive;
    size_t length = strcspn(rest, "/"), member = *rest != '\0' ? archive_find(archive, rest, length) : SIZE_MAX;
    bool added = archive_files_add(tree, archive, member, error);
    archive_drop(archive);
    return added;
}

/* Finds the models of the sources, and returns the library's tree, which the checkpoint stands for. */
static struct tree *find_models(struct checkpoint *checkpoint, const char *const *sources, size_t n_sources,
                                const struct options *options, struct error *error)
{
    struct arena *arena = checkpoint->arena;
    struct opened_library *opened = arena_alloc(arena, sizeof *opened);
    struct options *of_models = arena_copy(arena, options, sizeof *of_models);
    of_models->library = false;
    opened->search = (struct search){.arena = arena, .options = of_models};
    size_t n_added = 0;
    while (n_added < n_sources && add_source(&opened->search, sources[n_added], error))
        n_added++;
    text_index_free(&opened->search.folders);
    if (n_added < n_sources)
        return NULL;
    tell_apart(&opened->search);
    opened->library = (struct library){opened->search.models, opened->search.n_models};
    struct tree *tree = library_new(checkpoint, &options->content, &opened->library, error);
    if (tree != NULL)
        tree_on_free(tree, close_models, opened);
    return tree;
}

/* Opens the archive that holds a source. While it is open, archive_open() gives the same archive to all callers.
 * Returns NULL if the source is in no archive, or the archive cannot be opened: find_models() reports that. */
static struct archive *hold_archive(const char *argument)
{
    struct arena *arena = arena_new();
    struct error unsaid;
    const char *id, *rest;
    bool is_archive;
    struct archive *archive = archive_of_text(library_split(argument, arena, &id), &rest, &is_archive, &unsaid);
    arena_free(arena);
    return archive;
}

static struct tree *open_sources(const char *const *sources, size_t n_sources, const struct options *options,
                                 struct error *error)
{
    struct checkpoint *checkpoint = stand_in(n_sources == 1 ? sources[0] : "library", error);
    struct tree *tree = checkpoint != NULL ? find_models(checkpoint, sources, n_sources, options, error) : NULL;
    for (size_t i = 0; i < n_sources && tree != NULL; i++)
        if (!add_archived_files(tree, sources[i], error)) {
            tree_free(tree);
            tree = NULL;
        }
    if (tree == NULL)
        checkpoint_close(checkpoint);
    return tree;
}

struct tree *library_open(const char *const *sources, size_t n_sources, const struct options *options,
                          struct error *error)
{
    struct archive **held = memory_alloc((n_sources + 1) * sizeof(struct archive *));
    for (size_t i = 0; i < n_sources; i++)
        held[i] = hold_archive(sources[i]);
    struct tree *tree = open_sources(sources, n_sources, options, error);
    for (size_t i = 0; i < n_sources; i++)
        archive_drop(held[i]);
    free(held);
    return tree;
}
