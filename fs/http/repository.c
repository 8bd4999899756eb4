#include "fs/http/repository.h"

#include "base/lock.h"
#include "base/report.h"
#include "base/text.h"
#include "formats/once.h"
#include "fs/tree/content_options.h"
#include "fs/tree/identity.h"
#include "models/convert/model.h"
#include "models/diffusion/state_dict.h"
#include "models/facts.h"
#include "sources/archive/archive.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SEVERAL SIZE_MAX /* repositories whose names differ in case alone, in by_lower_id */

/* The notes on a source that were reported. */
struct told_notes {
    const char *id; /* of the source: "ORG/NAME" */
    struct lock lock;
    size_t count;
};

/* The names of a repository's files, found once. */
struct repository_names {
    struct once *found; /* struct repository_files; NULL until they are asked for: most never are. Guarded by `lock` */
    struct lock *lock;  /* of the source */
    struct tree *tree;
    const char *model;
    const char *directory; /* in the tree: "mlx/4bit" */
    const char *const *shown;
    size_t n_shown;
    bool gguf;
    atomic_bool are_known; /* asking for them takes no time */
};

/* A repository while its files are collected. */
struct collecting {
    const struct repository_names *names;
    struct arena *arena;
    struct repository_file *files; /* freed by find_names() */
    size_t n_files;
    const char *prefix; /* of names: "", "vae/" */
    bool skips_weights; /* they are under another name */
    unsigned depth;
};

enum { MAX_DEPTH = 16 };

static const char hf[] = "hf", gguf[] = "gguf";

static void add_file(struct collecting *collecting, const char *name, node_id node)
{
    const struct repository_names *names = collecting->names;
    bool is_shown = names->n_shown == 0;
    for (size_t i = 0; i < names->n_shown && !is_shown; i++)
        is_shown = fnmatch(names->shown[i], name, 0) == 0;
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
    tree_list_prepared(collecting->names->tree, directory, 0, emit, collecting);
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
    struct node_attributes hf_directory, weights;
    if (!attributes->directory)
        return strcmp(name, "metadata.json") == 0 || add_hf_entry(context, index, name, attributes);
    bool has_hf = tree_lookup(collecting->names->tree, attributes->id, "hf", &hf_directory) && hf_directory.directory;
    collecting->skips_weights = has_hf && tree_lookup(collecting->names->tree, attributes->id, diffusers, &weights);
    add_directory(collecting, arena_printf(collecting->arena, "%s/", name), has_hf ? hf_directory.id : attributes->id,
                  add_hf_entry);
    if (collecting->skips_weights)
        add_file(collecting, arena_printf(collecting->arena, "%s/%s", name, diffusers), weights.id);
    collecting->skips_weights = false;
    return true;
}

/* Adds an entry of gguf/: "model-X.gguf" is NAME-X.gguf, "mmproj-X.gguf" mmproj-NAME-X.gguf, "mtp-model-X.gguf"
 * mtp-NAME-X.gguf: llama-server looks for these beginnings. */
static bool add_gguf_entry(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    struct collecting *collecting = context;
    struct arena *arena = collecting->arena;
    const char *model = collecting->names->model;
    if (attributes->directory || !text_ends_with(name, ".gguf"))
        return true;
    if (text_starts_with(name, "model-"))
        add_file(collecting, arena_printf(arena, "%s%s", model, name + strlen("model")), attributes->id);
    else if (text_starts_with(name, "mmproj-"))
        add_file(collecting, arena_printf(arena, "mmproj-%s%s", model, name + strlen("mmproj")), attributes->id);
    else if (text_starts_with(name, "mtp-model-"))
        add_file(collecting, arena_printf(arena, "mtp-%s%s", model, name + strlen("mtp-model")), attributes->id);
    return true;
}

/* Adds a projector or a draft of a GGUF that lies beside it, under its own name. */
static bool add_companion(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    struct collecting *collecting = context;
    if (!attributes->directory && checkpoint_is_companion(tree_checkpoint(collecting->names->tree), name))
        add_file(collecting, arena_strdup(collecting->arena, name), attributes->id);
    return true;
}

static int by_name(const void *a, const void *b)
{
    const struct repository_file *one = a, *other = b;
    return strcmp(one->name, other->name);
}

/* Adds the files of a directory; of a pipeline, which has no hf/, those of its components. */
static void collect(struct collecting *collecting)
{
    const struct repository_names *names = collecting->names;
    struct error unsaid;
    struct node_attributes directory;
    if (names->gguf)
        add_directory(collecting, "", TREE_ROOT, add_companion);
    if (tree_walk(names->tree, names->directory, &directory, &unsaid) && directory.directory)
        add_directory(collecting, "", directory.id, names->gguf ? add_gguf_entry : add_hf_entry);
    else if (strcmp(names->directory, hf) == 0 && tree_checkpoint(names->tree)->n_sources == 0)
        add_directory(collecting, "", TREE_ROOT, add_component);
}

static const void *find_names(void *context, struct arena *arena, struct error *error)
{
    struct collecting collecting = {.names = context, .arena = arena};
    collect(&collecting);
    struct repository_files files = {NULL, collecting.n_files};
    if (files.count != 0) {
        qsort(collecting.files, files.count, sizeof *collecting.files, by_name);
        files.items = arena_copy(arena, collecting.files, files.count * sizeof *collecting.files);
    }
    free(collecting.files);
    return arena_copy(arena, &files, sizeof files);
}

static void release_names(void *context)
{
    struct repository_names *names = context;
    if (names->found != NULL)
        once_destroy(names->found);
    free(names->found);
}

static struct once *once_of(struct repository_names *names)
{
    struct once *added = memory_alloc(sizeof *added);
    lock_take(names->lock);
    if (names->found == NULL) {
        once_init(added);
        names->found = added;
        added = NULL;
    }
    lock_drop(names->lock);
    free(added);
    return names->found;
}

/* A source that cannot be reached leaves none, until it can. */
struct repository_files repository_files(const struct repository *repository)
{
    struct repository_names *names = repository->names;
    const void *found;
    struct error unsaid;
    if (once_get(once_of(names), find_names, names, &found, &unsaid) != OK)
        return (struct repository_files){NULL, 0};
    atomic_store(&names->are_known, true);
    return *(const struct repository_files *)found;
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

/* The repositories of one source while they are added. */
struct adding {
    struct repositories *repositories;
    struct arena *arena;
    struct repository common; /* what all of them share */
    const char *const *shown;
    size_t n_shown;
};

/* Returns a repository of a directory of the tree. Its name is the source's with an ending. */
static struct repository make(const struct adding *adding, const char *directory, const char *ending)
{
    struct arena *arena = adding->arena;
    struct repository repository = adding->common;
    struct tree *tree = repository.tree;
    struct origin origin = tree_origin_of_model(tree);
    char identity[SHA256_HEX + 1];
    repository.id = arena_printf(arena, "%s%s", repository.base, ending);
    repository.gguf = strcmp(directory, gguf) == 0;
    file_identity(&origin, tree_checkpoint(tree)->model_name, tree_options(tree)->file_request.text, repository.id,
                  identity);
    memcpy(repository.commit, identity, COMMIT_DIGITS);
    repository.names = arena_alloc(arena, sizeof *repository.names);
    *repository.names = (struct repository_names){.tree = tree,
                                                  .lock = &repository.told->lock,
                                                  .model = repository.model,
                                                  .directory = directory,
                                                  .shown = adding->shown,
                                                  .n_shown = adding->n_shown,
                                                  .gguf = repository.gguf};
    arena_on_free(arena, release_names, repository.names);
    return repository;
}

static const char *lower(const char *text, struct arena *arena)
{
    char *copy = arena_strdup(arena, text);
    for (char *c = copy; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    return copy;
}

/* Adds a repository, in place of a directory for an engine of the same name. */
static void add(const struct adding *adding, const struct repository *repository)
{
    struct repositories *repositories = adding->repositories;
    const char *id = repository->id, *lower_id = lower(id, adding->arena);
    size_t place;
    if (text_index_find(&repositories->by_id, id, strlen(id), &place)) {
        repositories->items[place] = *repository;
        return;
    }
    text_index_add(&repositories->by_id, id, strlen(id), repositories->count);
    if (!text_index_add(&repositories->by_lower_id, lower_id, strlen(lower_id), repositories->count))
        text_index_set(&repositories->by_lower_id, lower_id, strlen(lower_id), SEVERAL);
    repositories->items = memory_resize(repositories->items, (repositories->count + 1) * sizeof *repositories->items);
    repositories->items[repositories->count++] = *repository;
}

/* Reports whether programs may know the model's class: that of a GGUF, or of a config.json that can be read. */
static bool has_known_class(struct tree *tree)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    struct error unused;
    return facts_of(checkpoint).keys != NULL || (config_facts_of(checkpoint, &unused) != NULL &&
                                                 !gguf_is_plain(checkpoint, &tree_options(tree)->request.references));
}

/* Reports whether llama.cpp runs the GGUFs of a tree: no adapter, no diffusion model, and no plain container. */
static bool llama_cpp_runs(struct tree *tree)
{
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    return !facts_of(checkpoint).is_adapter && state_dict_of(checkpoint) == NULL && has_known_class(tree);
}

static bool add_model(const struct adding *adding, const char *directory, const char *ending, struct error *error)
{
    struct repository repository = make(adding, directory, ending);
    repository.tag = directory;
    repository.is_listed = true;
    repository.is_tagged = repository.gguf && llama_cpp_runs(repository.tree);
    repository.command = repository.is_tagged ? "llama-server -hf" : NULL;
    const struct repository *taken = repository_find(adding->repositories, repository.id);
    if (taken != NULL && !taken->is_of_engine)
        return error_set(error, "%s: two sources have this name; give one another: ORG/NAME=SOURCE", repository.id);
    const struct repository_files *files = once_value(once_of(repository.names), find_names, repository.names);
    if (files->count != 0)
        add(adding, &repository);
    return true;
}

static void add_engine(void *context, const struct tree_engine *engine)
{
    const struct adding *adding = context;
    struct arena *arena = adding->arena;
    struct repository repository = make(adding, arena_strdup(arena, engine->path), arena_strdup(arena, engine->ending));
    repository.tag = arena_strdup(arena, engine->tag);
    repository.command = has_known_class(repository.tree) ? engine->command : NULL;
    repository.is_of_engine = true;
    repository.is_listed = engine->is_listed && adding->n_shown == 0;
    if (repository_find(adding->repositories, repository.id) == NULL)
        add(adding, &repository);
}

bool repositories_add(struct repositories *repositories, struct tree *tree, const char *id, const char *const *shown,
                      size_t n_shown, struct arena *arena, struct error *error)
{
    struct node_attributes root = {0};
    tree_attributes(tree, TREE_ROOT, &root);
    struct adding adding = {
        .repositories = repositories,
        .arena = arena,
        .shown = shown,
        .n_shown = n_shown,
        .common = {.base = id,
                   .model = strchr(id, '/') + 1,
                   .tree = tree,
                   .modified = root.mtime,
                   .told = told_notes_new(id, arena)},
    };
    if (!add_model(&adding, hf, "", error) || !add_model(&adding, gguf, "-GGUF", error))
        return false;
    tree_list_engines(tree, add_engine, &adding);
    return true;
}

void repositories_free(struct repositories *repositories)
{
    text_index_free(&repositories->by_id);
    text_index_free(&repositories->by_lower_id);
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
    size_t place;
    return text_index_find(&repositories->by_id, id, strlen(id), &place) ? &repositories->items[place] : NULL;
}

const struct repository *repository_find_any_case(const struct repositories *repositories, const char *id)
{
    const struct repository *exact = repository_find(repositories, id);
    size_t place;
    if (exact != NULL)
        return exact;
    struct arena *arena = arena_new();
    const char *lower_id = lower(id, arena);
    bool found = text_index_find(&repositories->by_lower_id, lower_id, strlen(lower_id), &place);
    arena_free(arena);
    return found && place != SEVERAL ? &repositories->items[place] : NULL;
}

static bool have_one_owner(const struct repository *a, const struct repository *b)
{
    size_t length = strcspn(a->id, "/") + 1;
    return strncmp(a->id, b->id, length) == 0;
}

bool repository_is_first_of_owner(const struct repositories *repositories, size_t index, repository_counts *counts)
{
    const struct repository *items = repositories->items;
    for (size_t i = index; i > 0; i--) /* backwards: those of a source are side by side */
        if (have_one_owner(&items[i - 1], &items[index]) && (counts == NULL || counts(&items[i - 1])))
            return false;
    return true;
}

const struct repository_file *repository_file(const struct repository *repository, const char *name)
{
    const struct repository_file key = {.name = name};
    struct repository_files files = repository_files(repository);
    return files.count != 0 ? bsearch(&key, files.items, files.count, sizeof key, by_name) : NULL;
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
    if (repository->is_of_engine && !atomic_load(&repository->names->are_known))
        return false;
    struct repository_files files = repository_files(repository);
    while (i < files.count && !repository_peek(repository, files.items[i].node, &unused))
        i++;
    return i == files.count;
}

bool repository_has_weights(const struct repository *repository)
{
    struct repository_files files = repository_files(repository);
    char etag[ETAG_TEXT];
    uint64_t size;
    size_t i = 0;
    while (i < files.count && !text_ends_with(files.items[i].name, ".safetensors"))
        i++;
    return i < files.count && repository_plan(repository, files.items[i].node, &size, etag);
}

static const char *why_absent(const struct repository *repository, const char *path, struct arena *arena)
{
    struct error error = {0};
    struct node_attributes attributes;
    tree_walk(repository->tree, path, &attributes, &error);
    return arena_strdup(arena, error.message);
}

const char *repository_refusal(const struct repository *repository, struct arena *arena)
{
    struct repository_files files = repository_files(repository);
    return files.count != 0 ? repository_refusal_of(repository, &files.items[0], arena)
                            : why_absent(repository, repository->names->directory, arena);
}

const char *repository_refusal_of(const struct repository *repository, const struct repository_file *file,
                                  struct arena *arena)
{
    return why_absent(repository, tree_path(repository->tree, file->node, arena), arena);
}

const char *repository_tag_of(const struct repository *repository, const struct repository_file *file,
                              struct arena *arena)
{
    size_t model = strlen(repository->model), length = strlen(file->name), ending = strlen(".gguf");
    bool is_one = text_starts_with(file->name, repository->model) && text_ends_with(file->name, ".gguf") &&
                  length > model + 1 + ending && file->name[model] == '-' &&
                  strstr(file->name + model, "mmproj") == NULL;
    return is_one ? arena_strndup(arena, file->name + model + 1, length - model - 1 - ending) : NULL;
}

const struct repository_file *repository_projector(const struct repository *repository, struct arena *arena)
{
    struct repository_files files = repository_files(repository);
    const struct repository_file *found =
        repository_file(repository, arena_printf(arena, "mmproj-%s-F16.gguf", repository->model));
    for (size_t i = 0; i < files.count && found == NULL; i++)
        if (strstr(files.items[i].name, "mmproj") != NULL && text_ends_with(files.items[i].name, ".gguf"))
            found = &files.items[i];
    return found;
}

const struct repository_file *repository_draft(const struct repository *repository, struct arena *arena)
{
    const struct repository_file *found =
        repository_file(repository, arena_printf(arena, "mtp-%s-Q8_0.gguf", repository->model));
    return found != NULL ? found : repository_file(repository, "draft.gguf");
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
    struct repository_files files = repository_files(repository);
    for (size_t i = 0; i < files.count && found == NULL; i++)
        if (strcasecmp(files.items[i].name, name) == 0 && is_there(repository, &files.items[i], plans))
            found = &files.items[i];
    return found;
}

/* Replaces the identity of a file that is an original of an archive, as it was, by its SHA-256. */
static void take_original(const struct repository *repository, node_id node, char identity[SHA256_HEX + 1])
{
    const struct checkpoint *checkpoint = tree_checkpoint(repository->tree);
    if (checkpoint->n_sources == 0 || archive_digest_of_source(checkpoint->sources[0]) == NULL)
        return;
    struct arena *arena = arena_new();
    struct vfile file;
    struct error unused;
    bool is_whole = tree_file(repository->tree, node, arena, &file, &unused) && file.whole != NULL;
    const struct digest *digest = is_whole ? archive_digest_of_source(file.whole) : NULL;
    if (digest != NULL)
        digest_hex(digest, identity);
    arena_free(arena);
}

bool repository_plan(const struct repository *repository, node_id node, uint64_t *ret_size, char etag[ETAG_TEXT])
{
    char identity[SHA256_HEX + 1] = "";
    struct node_attributes attributes;
    if (!tree_attributes(repository->tree, node, &attributes))
        return false;
    *ret_size = attributes.size;
    tree_xattrs(repository->tree, node, take_identity, identity);
    take_original(repository, node, identity);
    snprintf(etag, ETAG_TEXT, "\"%s\"", identity);
    return true;
}
