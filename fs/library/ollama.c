/* ollama/: a store for Ollama of the files that a library shows: manifests/registry.ollama.ai/library/NAME/TAG, and
 * blobs/sha256-HEX.
 *
 * Ollama reads all manifests when it starts. So the first look into ollama/ opens every model and plans the files that
 * it shows; a model that cannot be opened is left out. Ollama does not compare a blob with its name: the name is the
 * file's identity (identity.h), which costs nothing, and with content_options.true_digests its SHA-256, which takes a
 * pass over it. Configurations and texts always have their SHA-256.
 *
 * Source: Ollama, manifest/paths.go, types/model/name.go. */
#include "base/text.h"
#include "formats/format.h"
#include "fs/library/library.h"
#include "fs/library/manifest.h"
#include "fs/tree/content.h"
#include "fs/tree/content_options.h"
#include "fs/tree/digests.h"
#include "sources/source.h"

#include <ctype.h>
#include <string.h>

enum { MAX_NAME = 80 }; /* Ollama's */

static const char ending[] = ".gguf";

struct store {
    struct tree *library;
    const struct library *models;
    const node_id *branches;
};

/* A store while it is made. */
struct making {
    const struct store *store;
    struct tree *tree;
    node_id names, blobs; /* manifests/registry.ollama.ai, blobs */
    struct digests *digests;
};

/* A file of a model's tree. */
struct model_file {
    struct tree *tree;
    const char *name;
    node_id node;
};

/* The files of one model. */
struct model_files {
    struct making *making;
    struct tree *tree;
    const char *name;                   /* "NAME" of its files, which the names of all begin with */
    node_id tags;                       /* its directory in the store */
    struct model_file projector, draft; /* their names are NULL if there are none */
    struct model_file *items;
    size_t count;
};

/* Returns a name as Ollama allows them, in the arena: other characters become '-'. */
static const char *allowed_name(struct arena *arena, const char *name, const char *marks)
{
    char *allowed = arena_strdup(arena, name);
    if (strlen(allowed) > MAX_NAME)
        allowed[MAX_NAME] = '\0';
    for (char *at = allowed; *at != '\0'; at++) {
        bool is_mark = at > allowed && strchr(marks, *at) != NULL;
        *at = isalnum((unsigned char)*at) ? (char)tolower((unsigned char)*at)
              : is_mark                   ? *at
              : at > allowed              ? '-'
                                          : '_';
    }
    return allowed;
}

static void take_identity(void *context, const char *name, const char *value, size_t length)
{
    if (strcmp(name, "user.wfs.identity") == 0 && length == SHA256_HEX)
        memcpy(context, value, length);
}

static bool measure(void *context, struct tree *tree, struct manifest_layer *layer, struct error *error)
{
    const struct making *making = context;
    struct node_attributes attributes;
    struct vfile file;
    char identity[SHA256_HEX + 1] = "", hex[SHA256_HEX + 1];
    if (!tree_attributes(tree, layer->node, &attributes))
        return error_set(error, "%s cannot be made", layer->name);
    layer->size = attributes.size;
    tree_xattrs(tree, layer->node, take_identity, identity);
    memcpy(hex, identity, sizeof hex);
    struct arena *arena = arena_new();
    bool is_named_by_identity = text_ends_with(layer->name, ending) && !tree_options(making->tree)->true_digests;
    bool good = is_named_by_identity || (tree_file(tree, layer->node, arena, &file, error) &&
                                         digest_get(making->digests, identity, layer->name, &file, hex, error));
    arena_free(arena);
    manifest_write_digest(hex, layer->digest);
    return good;
}

static enum outcome plan_text(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    *ret_file = *(const struct vfile *)context;
    return OK;
}

static void add_text(struct making *making, node_id directory, const char *name, const char *text, size_t length,
                     struct origin origin)
{
    struct vfile *file = arena_alloc(tree_arena(making->tree), sizeof *file);
    *file = vfile_of_text(text, length, origin, tree_arena(making->tree));
    tree_add_certain_file(making->tree, directory, name, plan_text, file);
}

struct blob {
    struct tree *tree;
    node_id node;
    bool has_size;
};

static enum outcome plan_blob(void *context, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    struct blob *blob = context;
    return tree_same_file(blob->tree, blob->node, &blob->has_size, arena, ret_file, error) ? OK : FAILED;
}

/* Returns the name of a digest's file. */
static const char *blob_name(struct making *making, const char *digest)
{
    return arena_printf(tree_arena(making->tree), "sha256-%s", digest + strlen(DIGEST_PREFIX));
}

/* Adds a manifest under a tag, and the blobs that it names. */
static void add_manifest(struct model_files *files, const struct model_file *file, const char *tag, const char *type)
{
    struct making *making = files->making;
    struct arena *arena = tree_arena(making->tree);
    struct manifest manifest;
    struct error error;
    const struct manifest_model model = {
        .tree = files->tree,
        .name = files->name,
        .type = type,
        .file = file->name,
        .node = file->node,
        .projector_file = files->projector.name,
        .projector = files->projector.node,
        .draft_file = files->draft.name,
        .draft = files->draft.node,
    };
    if (!manifest_make(&model, &manifest_forms[N_MANIFEST_FORMS - 1], measure, making, arena, &manifest, &error)) {
        checkpoint_note(tree_checkpoint(making->tree), SUBJECT_SOURCE, "ollama/: %s is left out: %s", file->name,
                        error.message);
        return;
    }
    struct origin origin = tree_origin_of_model(files->tree);
    const char *line = arena_printf(arena, "%.*s\n", (int)manifest.length, manifest.text);
    add_text(making, files->tags, tag, line, manifest.length + 1, origin);
    add_text(making, making->blobs, blob_name(making, manifest.config_digest), manifest.config, manifest.config_length,
             origin);
    for (size_t i = 0; i < manifest.n_layers; i++) {
        struct blob *blob = arena_alloc(arena, sizeof *blob);
        *blob = (struct blob){files->tree, manifest.layers[i].node, false};
        tree_add_file(making->tree, making->blobs, blob_name(making, manifest.layers[i].digest), plan_blob, blob);
    }
}

static bool take_file(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    struct model_files *files = context;
    struct arena *arena = tree_arena(files->making->tree);
    const struct model_file file = {files->tree, arena_strdup(arena, name), attributes->id};
    if (attributes->directory || !text_ends_with(name, ending))
        return true;
    if (strstr(name, "mmproj") != NULL)
        files->projector = file;
    else if (text_starts_with(name, "mtp-") || text_starts_with(name, "dflash-") || strcmp(name, "draft.gguf") == 0)
        files->draft = file; /* of the kinds that Ollama runs, or of its own store */
    if (format_is_companion(name))
        return true;
    files->items = arena_grow(arena, files->items, files->count, sizeof *files->items);
    files->items[files->count++] = file;
    return true;
}

/* Returns the type in the name of a file, NAME-TYPE.gguf; of NAME.gguf, which is the source, "". */
static const char *type_of(const struct model_files *files, const struct model_file *file)
{
    const char *rest = file->name + strlen(files->name);
    size_t length = strlen(rest) - strlen(ending);
    return length > 0 ? arena_strndup(tree_arena(files->making->tree), rest + 1, length - 1) : "";
}

/* Adds the manifests of one model. The last file is that which -o show= names first: "latest". */
static void add_model(struct making *making, const struct library_model *model, struct tree *tree)
{
    struct arena *arena = tree_arena(making->tree);
    const char *slash = strchr(model->id, '/');
    const char *publisher = arena_strndup(arena, model->id, (size_t)(slash - model->id));
    struct model_files files = {.making = making, .tree = tree, .name = tree_options(tree)->name_in_library};
    struct node_attributes taken;
    node_id space = tree_add_directory(making->tree, making->names, "library");
    const char *name = allowed_name(arena, slash + 1, "_-.");
    tree_list(tree, TREE_ROOT, 0, take_file, &files);
    if (files.count == 0)
        return;
    if (tree_lookup(making->tree, space, name, &taken))
        space = tree_add_directory(making->tree, making->names, allowed_name(arena, publisher, "_-"));
    if (tree_lookup(making->tree, space, name, &taken)) {
        checkpoint_note(tree_checkpoint(making->tree), SUBJECT_SOURCE,
                        "ollama/: %s is left out: Ollama has no name for it that another model does not have; "
                        "ORG/NAME=SOURCE gives it one",
                        model->id);
        return;
    }
    files.tags = tree_add_directory(making->tree, space, name);
    for (size_t i = files.count; i-- > 0;) {
        const char *type = type_of(&files, &files.items[i]);
        if (i + 1 == files.count)
            add_manifest(&files, &files.items[i], "latest", *type != '\0' ? type : "unknown");
        if (*type != '\0')
            add_manifest(&files, &files.items[i], allowed_name(arena, type, "_-."), type);
    }
}

static struct tree *open_store(void *context, struct error *error)
{
    const struct store *store = context;
    uint64_t n_unreached = source_unreached();
    const struct content_options *options = tree_options(store->library);
    struct tree *tree = tree_empty(tree_checkpoint(store->library), options);
    struct making making = {.store = store, .tree = tree, .digests = digests_new(options->true_digests, NULL, NULL)};
    node_id manifests = tree_add_directory(tree, TREE_ROOT, "manifests");
    making.blobs = tree_add_directory(tree, TREE_ROOT, "blobs");
    making.names = tree_add_directory(tree, manifests, "registry.ollama.ai");
    for (size_t i = 0; i < store->models->n_models; i++) {
        struct tree *model = tree_branch(store->library, store->branches[i]);
        if (model != NULL)
            add_model(&making, &store->models->models[i], model);
    }
    digests_free(making.digests);
    if (source_unreached() == n_unreached)
        return tree;
    tree_free(tree);
    error_set(error, "ollama/ needs all models, and one of them cannot be reached");
    return NULL;
}

void ollama_add(struct tree *tree, const struct library *library, const node_id *branches)
{
    struct store *store = arena_alloc(tree_arena(tree), sizeof *store);
    *store = (struct store){tree, library, branches};
    tree_add_branch(tree, TREE_ROOT, "ollama", open_store, store);
}
