#include "fs/http/repository.h"

#include "base/lock.h"
#include "base/report.h"
#include "base/text.h"
#include "fs/tree/content_options.h"
#include "fs/tree/identity.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The notes on a source that were reported. */
struct told_notes {
    const char *id; /* of the source: "ORG/NAME" */
    struct lock lock;
    size_t count;
};

/* A repository while its files are collected. */
struct collecting {
    struct tree *tree;
    struct arena *arena;
    const char *model;
    const char *const *shown;
    size_t n_shown;
    struct repository_file *files; /* freed by seal() */
    size_t n_files;
    const char *prefix; /* of names: "", "vae/" */
    bool skips_weights; /* they are under another name */
    unsigned depth;
};

enum { MAX_DEPTH = 16 };

static void add_file(struct collecting *collecting, const char *name, node_id node)
{
    bool is_shown = collecting->n_shown == 0;
    for (size_t i = 0; i < collecting->n_shown && !is_shown; i++)
        is_shown = fnmatch(collecting->shown[i], name, 0) == 0;
    if (!is_shown)
        return;
    collecting->files = memory_grow(collecting->files, collecting->n_files, sizeof *collecting->files);
    collecting->files[collecting->n_files++] = (struct repository_file){name, node};
}

static void add_directory(struct collecting *collecting, const char *prefix, node_id directory, tree_emit *emit)
{
    const char *outer = collecting->prefix;
    if (collecting->depth == MAX_DEPTH)
        return;
    collecting->prefix = prefix;
    collecting->depth++;
    tree_list_prepared(collecting->tree, directory, 0, emit, collecting);
    collecting->depth--;
    collecting->prefix = outer;
}

/* Adds an entry of hf/, or of a directory below it. */
static bool add_hf_entry(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    struct collecting *collecting = context;
    const char *path = arena_printf(collecting->arena, "%s%s", collecting->prefix, name);
    if (collecting->skips_weights &&
        (text_ends_with(name, ".safetensors") || text_ends_with(name, ".safetensors.index.json")))
        return true;
    if (attributes->directory)
        add_directory(collecting, arena_printf(collecting->arena, "%s/", path), attributes->id, add_hf_entry);
    else
        add_file(collecting, path, attributes->id);
    return true;
}

/* Adds an entry of a pipeline's root: a side file, or a component, whose weights have the name that Diffusers looks for
 * if the component's directory has it. */
static bool add_component(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    struct collecting *collecting = context;
    static const char diffusers[] = "diffusion_pytorch_model.safetensors";
    struct node_attributes hf, weights;
    if (!attributes->directory)
        return strcmp(name, "metadata.json") == 0 || add_hf_entry(context, index, name, attributes);
    bool has_hf = tree_lookup(collecting->tree, attributes->id, "hf", &hf) && hf.directory;
    collecting->skips_weights = has_hf && tree_lookup(collecting->tree, attributes->id, diffusers, &weights);
    add_directory(collecting, arena_printf(collecting->arena, "%s/", name), has_hf ? hf.id : attributes->id,
                  add_hf_entry);
    if (collecting->skips_weights)
        add_file(collecting, arena_printf(collecting->arena, "%s/%s", name, diffusers), weights.id);
    collecting->skips_weights = false;
    return true;
}

/* Adds an entry of gguf/: "model-X.gguf" is NAME-X.gguf, "mmproj-X.gguf" mmproj-NAME-X.gguf. */
static bool add_gguf_entry(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    struct collecting *collecting = context;
    struct arena *arena = collecting->arena;
    if (attributes->directory || !text_ends_with(name, ".gguf"))
        return true;
    if (text_starts_with(name, "model-"))
        add_file(collecting, arena_printf(arena, "%s%s", collecting->model, name + strlen("model")), attributes->id);
    else if (text_starts_with(name, "mmproj-"))
        add_file(collecting, arena_printf(arena, "mmproj-%s%s", collecting->model, name + strlen("mmproj")),
                 attributes->id);
    return true;
}

static int by_name(const void *a, const void *b)
{
    const struct repository_file *one = a, *other = b;
    return strcmp(one->name, other->name);
}

static struct repository seal(struct collecting *collecting, const char *id, bool gguf)
{
    struct tree *tree = collecting->tree;
    struct origin origin = tree_origin_of_model(tree);
    struct node_attributes root = {0};
    char identity[SHA256_HEX + 1];
    tree_attributes(tree, TREE_ROOT, &root);
    qsort(collecting->files, collecting->n_files, sizeof *collecting->files, by_name);
    file_identity(&origin, tree_checkpoint(tree)->model_name, tree_options(tree)->file_request.text, id, identity);
    struct repository repository = {
        .id = id,
        .model = collecting->model,
        .gguf = gguf,
        .tree = tree,
        .modified = root.mtime,
        .files = arena_copy(collecting->arena, collecting->files, collecting->n_files * sizeof *collecting->files),
        .n_files = collecting->n_files,
    };
    memcpy(repository.commit, identity, COMMIT_DIGITS);
    free(collecting->files);
    return repository;
}

static void collect_hf(struct collecting *collecting)
{
    struct node_attributes hf;
    if (tree_lookup(collecting->tree, TREE_ROOT, "hf", &hf) && hf.directory)
        add_directory(collecting, "", hf.id, add_hf_entry);
    else if (tree_checkpoint(collecting->tree)->n_sources == 0)
        add_directory(collecting, "", TREE_ROOT, add_component);
}

static void collect_gguf(struct collecting *collecting)
{
    struct node_attributes gguf;
    if (tree_lookup(collecting->tree, TREE_ROOT, "gguf", &gguf) && gguf.directory)
        add_directory(collecting, "", gguf.id, add_gguf_entry);
}

static void release_told(void *told)
{
    lock_destroy(&((struct told_notes *)told)->lock);
}

static struct told_notes *told_notes_new(const char *id, struct arena *arena)
{
    struct told_notes *told = arena_alloc(arena, sizeof *told);
    *told = (struct told_notes){.id = id};
    lock_init(&told->lock);
    arena_on_free(arena, release_told, told);
    return told;
}

bool repositories_add(struct repositories *repositories, struct tree *tree, const char *id, const char *const *shown,
                      size_t n_shown, struct arena *arena, struct error *error)
{
    static void (*const collect[])(struct collecting *) = {collect_hf, collect_gguf};
    static const char *const endings[] = {"", "-GGUF"};
    const char *model = strchr(id, '/') + 1;
    struct told_notes *told = told_notes_new(id, arena);
    for (size_t i = 0; i < sizeof collect / sizeof *collect; i++) {
        const char *name = arena_printf(arena, "%s%s", id, endings[i]);
        if (repository_find(repositories, name) != NULL)
            return error_set(error, "%s: two sources have this name; give one another: ORG/NAME=SOURCE", name);
        struct collecting collecting = {
            .tree = tree, .arena = arena, .model = model, .shown = shown, .n_shown = n_shown};
        collect[i](&collecting);
        struct repository repository = seal(&collecting, name, i == 1);
        repository.told = told;
        if (repository.n_files == 0)
            continue;
        repositories->items =
            memory_resize(repositories->items, (repositories->count + 1) * sizeof *repositories->items);
        repositories->items[repositories->count++] = repository;
    }
    return true;
}

void repositories_free(struct repositories *repositories)
{
    free(repositories->items);
}

void repository_report(const struct repository *repository)
{
    if (repository == NULL)
        return;
    struct told_notes *told = repository->told;
    const struct checkpoint *checkpoint = tree_checkpoint(repository->tree);
    lock_take(&told->lock);
    for (size_t n_notes = checkpoint_notes(checkpoint); told->count < n_notes; told->count++) {
        struct note note = checkpoint_note_at(checkpoint, told->count);
        if (!note.is_hint && note.subject == SUBJECT_SOURCE)
            report("%s: %s", told->id, note.text);
    }
    lock_drop(&told->lock);
}

const struct repository *repository_find(const struct repositories *repositories, const char *id)
{
    for (size_t i = 0; i < repositories->count; i++)
        if (strcmp(repositories->items[i].id, id) == 0)
            return &repositories->items[i];
    return NULL;
}

const struct repository *repository_find_any_case(const struct repositories *repositories, const char *id)
{
    const struct repository *exact = repository_find(repositories, id);
    for (size_t i = 0; i < repositories->count && exact == NULL; i++)
        if (strcasecmp(repositories->items[i].id, id) == 0)
            exact = &repositories->items[i];
    return exact;
}

const struct repository_file *repository_file(const struct repository *repository, const char *name)
{
    const struct repository_file key = {.name = name};
    return bsearch(&key, repository->files, repository->n_files, sizeof key, by_name);
}

bool repository_has_revision(const struct repository *repository, const char *revision)
{
    return strcmp(revision, "main") == 0 || strcmp(revision, "HEAD") == 0 || strcmp(revision, repository->commit) == 0;
}

static void take_identity(void *context, const char *name, const char *value, size_t length)
{
    if (strcmp(name, "user.wfs.identity") == 0 && length == SHA256_HEX)
        memcpy(context, value, length);
}

bool repository_peek(const struct repository *repository, node_id node, uint64_t *ret_size)
{
    struct node_attributes attributes;
    if (!tree_attributes_prepared(repository->tree, node, &attributes))
        return false;
    *ret_size = attributes.size;
    return true;
}

bool repository_is_empty(const struct repository *repository)
{
    size_t i = 0;
    uint64_t unused;
    while (i < repository->n_files && !repository_peek(repository, repository->files[i].node, &unused))
        i++;
    return i == repository->n_files;
}

const char *repository_refusal(const struct repository *repository, const struct repository_file *file,
                               struct arena *arena)
{
    struct error error = {0};
    struct node_attributes attributes;
    const char *path = tree_path(repository->tree, file->node, arena);
    tree_walk(repository->tree, path, &attributes, &error);
    return arena_strdup(arena, error.message);
}

static bool is_there(const struct repository *repository, const struct repository_file *file, bool plans)
{
    uint64_t unused;
    char etag[ETAG_TEXT];
    return plans ? repository_plan(repository, file->node, &unused, etag)
                 : repository_peek(repository, file->node, &unused);
}

const struct repository_file *repository_file_of_tag(const struct repository *repository, const char *tag, bool plans,
                                                     struct arena *arena)
{
    static const char *const usual[] = {"Q4_K_M", "Q4_0", "Q8_0", "F16"};
    const struct repository_file *found = NULL;
    for (size_t i = 0; strcmp(tag, "latest") == 0 && i < sizeof usual / sizeof *usual && found == NULL; i++)
        found = repository_file_of_tag(repository, usual[i], plans, arena);
    const char *name = arena_printf(arena, "%s-%s.gguf", repository->model, tag);
    for (size_t i = 0; i < repository->n_files && found == NULL; i++)
        if (strcasecmp(repository->files[i].name, name) == 0 && is_there(repository, &repository->files[i], plans))
            found = &repository->files[i];
    return found;
}

bool repository_plan(const struct repository *repository, node_id node, uint64_t *ret_size, char etag[ETAG_TEXT])
{
    char identity[SHA256_HEX + 1] = "";
    struct node_attributes attributes;
    if (!tree_attributes(repository->tree, node, &attributes))
        return false;
    *ret_size = attributes.size;
    tree_xattrs(repository->tree, node, take_identity, identity);
    snprintf(etag, ETAG_TEXT, "\"%s\"", identity);
    return true;
}
