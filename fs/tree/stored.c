/* Nodes that the tree stores: files, directories, and deferred directories, which node_fill() fills. */
#include "fs/kept/kept.h"
#include "fs/kept/kept_files.h"
#include "fs/tree/content_options.h"
#include "fs/tree/identity.h"
#include "fs/tree/node_ops.h"
#include "models/diffusion/state_dict.h"

#include <string.h>
#include <unistd.h>

/* Returns the inputs of a node. A directory reveals only names, so a collection's needs the tensors' names. */
static struct origin node_origin(const struct tree *tree, const struct node *node)
{
    if (!node->directory)
        return node->file.origin;
    return node->collection != 0 ? origin_of_weights(tree->checkpoint) : (struct origin){0};
}

static bool is_of_weights(const struct checkpoint *checkpoint, const struct source *source)
{
    for (size_t i = 0; i < checkpoint->n_sources; i++)
        if (checkpoint->sources[i] == source)
            return true;
    return false;
}

/* Returns the time of a file or directory. An unchanged side file keeps its own without options; directories have the
 * weights' time. */
struct timespec node_time(const struct tree *tree, const struct origin *origin)
{
    const struct dated_origin *shared[] = {&tree->packed, &tree->model};
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        if (origin->sources == shared[i]->origin.sources)
            return shared[i]->time;
    if (origin->sources == tree->checkpoint->sources || origin->n_sources == 0 ||
        (origin->n_sources == 1 && is_of_weights(tree->checkpoint, origin->sources[0])))
        return tree->weights.time;
    return file_time(origin->sources, origin->n_sources, &tree->options->file_request);
}

/* Returns a node's permissions. Read permission for a directory includes search permission. Its owner also gets write
 * permission: the tree is read-only, but `cp -r` gives it to the copy, which only root could fill or remove without. */
mode_t node_permissions(const struct origin *origin, bool directory)
{
    mode_t mode = origin_permissions(origin);
    return directory ? mode | mode >> 2 | (mode & 0400) >> 1 : mode;
}

static void take_original(const struct original *original, struct node_attributes *attributes)
{
    attributes->original = true;
    attributes->link = original->target;
    attributes->permissions = original->mode;
    attributes->group = getgid();
}

static bool node_attributes(struct tree *tree, struct node *node, struct node_attributes *ret_attributes)
{
    if (!node->directory && !node_plan(tree, node)) {
        *ret_attributes = (struct node_attributes){.unreached = node_plan_state(node) != ABSENT};
        return false;
    }
    bool counts = node->directory && !node_is_opened_late(node);
    uint64_t n_links = counts ? 2 + (uint64_t)node->n_directories : 1;
    if (node->collection != 0) {
        const struct tree_collection *owner = &tree->collections[node->collection - 1];
        n_links += owner->collection->count(owner->context);
    }
    struct origin origin = node_origin(tree, node);
    *ret_attributes = (struct node_attributes){
        .id = node->number,
        .generation = tree_generation(tree),
        .directory = node->directory,
        .branch = node->branch != 0,
        .deferred = node->deferred,
        .permissions = node_permissions(&origin, node->directory),
        .group = origin_group(&origin),
        .size = node->directory ? 0 : node->file.size,
        .n_links = n_links,
        .mtime = node->original != NULL ? node->original->mtime : node_time(tree, &origin),
    };
    if (node->original != NULL)
        take_original(node->original, ret_attributes);
    return true;
}

static bool attributes_of(struct tree *tree, struct node *node, enum waiting waiting,
                          struct node_attributes *ret_attributes)
{
    enum plan_state state = node_plan_state(node);
    bool wait = waiting == WAIT_FOR_ALL || (waiting == WAIT_FOR_UNCERTAIN && !node->certain);
    if (wait || node->directory || state == PLANNED || state == ABSENT)
        return node_attributes(tree, node, ret_attributes);
    *ret_attributes = (struct node_attributes){.id = node->number, .pending = true};
    return true;
}

bool stored_attributes(const struct place *place, enum waiting waiting, struct node_attributes *ret_attributes)
{
    return attributes_of(place->tree, place->node, waiting, ret_attributes);
}

/* Reports whether a deferred directory is empty because a remote source could not be read. */
static bool is_unreached(const struct place *place)
{
    return !node_fill(place->tree, place->node) && node_plan_state(place->node) != ABSENT;
}

static bool lookup(const struct place *place, const char *name, struct node_attributes *ret_attributes)
{
    struct tree *tree = place->tree;
    ret_attributes->unreached = is_unreached(place);
    uint32_t child = node_fill(tree, place->node) ? node_child(tree, place->node, name) : 0;
    return child != 0 && node_attributes(tree, tree->nodes[child], ret_attributes);
}

static bool prepare(const struct place *place, const char *name)
{
    struct tree *tree = place->tree;
    bool prepared = true;
    if (place->node->deferred && !node_prepare(tree, place->node))
        return false;
    if (!node_fill(tree, place->node))
        return true;
    for (uint32_t child = place->node->first_child; child != 0; child = tree->nodes[child]->next_sibling) {
        struct node *planned = tree->nodes[child];
        if (!planned->directory && (name == NULL ? !planned->certain : node_is_called(planned, name)))
            prepared &= node_prepare(tree, planned);
    }
    return prepared;
}

node_id stored_parent(const struct place *place)
{
    return place->tree->nodes[place->node->parent]->number;
}

static void list(const struct place *place, uint64_t first, enum waiting waiting, tree_emit *emit, void *context)
{
    struct tree *tree = place->tree;
    if (!node_fill(tree, place->node))
        return;
    uint64_t index = 0;
    for (uint32_t child = place->node->first_child; child != 0; child = tree->nodes[child]->next_sibling, index++) {
        struct node *node = tree->nodes[child];
        struct node_attributes attributes;
        if (index >= first && !node->unlisted && attributes_of(tree, node, waiting, &attributes) &&
            !emit(context, index, node->name, &attributes))
            return;
    }
}

void node_keep(struct tree *tree, node_id id, struct vfile *file)
{
    if (tree->kept != NULL)
        file->kept = kept_files_get(tree->kept, tree, id, file);
}

bool stored_file(const struct place *place, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    struct node *node = place->node;
    if (node->original != NULL && node->original->target != NULL)
        return error_set(error, "a symbolic link to %s, which leads nowhere here", node->original->target);
    if (node->directory || !node_plan(place->tree, node))
        return error_set(error, "no such file");
    bool is_whole = node_spans(place->tree, node, error);
    *ret_file = is_whole ? node->file : (struct vfile){0};
    ret_file->has_size_alone = false;
    if (is_whole)
        node_keep(place->tree, place->id, ret_file);
    return is_whole;
}

bool tree_same_file(struct tree *tree, node_id id, bool *has_size, struct arena *arena, struct vfile *ret_file,
                    struct error *error)
{
    struct node *node = node_of(tree, id);
    if (node == NULL || node->directory || *has_size || !node_plan(tree, node) || !node->file.has_size_alone ||
        atomic_load(&node->arena) != NULL)
        return tree_file(tree, id, arena, ret_file, error);
    *ret_file = (struct vfile){.size = node->file.size, .origin = node->file.origin, .has_size_alone = true};
    return *has_size = true;
}

/* Gets the sealed file of a planned node. */
static bool sealed_file(struct tree *tree, node_id id, struct whole_file *ret_whole)
{
    struct error unsaid;
    struct vfile file;
    struct arena *unused = arena_new(); /* by files of collections alone */
    bool found = tree_file(tree, id, unused, &file, &unsaid) && file.kept != NULL;
    if (found)
        *ret_whole = (struct whole_file){kept_sealed_descriptor(file.kept), file.origin};
    arena_free(unused);
    return found;
}

bool stored_whole_file(const struct place *place, struct whole_file *ret_whole)
{
    const struct node *node = place->node;
    if (node->directory || node_plan_state(node) != PLANNED)
        return false;
    int descriptor = node->file.whole != NULL ? source_descriptor(node->file.whole) : -1;
    *ret_whole = (struct whole_file){descriptor, node->file.origin};
    return descriptor >= 0 || (place->tree->kept != NULL && sealed_file(place->tree, place->id, ret_whole));
}

void node_emit_identity(struct tree *tree, node_id id, const struct origin *origin, tree_emit_xattr *emit,
                        void *context)
{
    struct arena *arena = arena_new();
    char identity[SHA256_HEX + 1];
    file_identity(origin, tree->checkpoint->model_name, tree->options->file_request.text, tree_path(tree, id, arena),
                  identity);
    emit(context, "user.wfs.identity", identity, SHA256_HEX);
    arena_free(arena);
}

/* Emits the tool and version that a file follows, such as "llama.cpp=b11549"; a file of the source follows none. */
static void emit_reference(struct tree *tree, node_id id, const struct vfile *file, tree_emit_xattr *emit,
                           void *context)
{
    struct arena *arena = arena_new();
    bool is_diffusion = state_dict_of(tree->checkpoint) != NULL;
    const struct reference_tool *tool = reference_of_path(tree_path(tree, id, arena), is_diffusion);
    if (tool != NULL && file->whole == NULL) {
        const char *version = reference_version(tool, &tree->options->request.references, arena);
        const char *text = arena_printf(arena, "%s=%s", tool->name, version);
        emit(context, "user.wfs.reference", text, strlen(text));
    }
    arena_free(arena);
}

/* Emits only what is known: asking for extended attributes must neither open a branch nor plan a file. */
void stored_xattrs(const struct place *place, tree_emit_xattr *emit, void *context)
{
    const struct node *node = place->node;
    if (node->directory || node_plan_state(node) != PLANNED)
        return;
    node_emit_identity(place->tree, place->id, &node->file.origin, emit, context);
    emit_reference(place->tree, place->id, &node->file, emit, context);
}

const char *stored_name(const struct place *place, struct arena *arena, bool *ret_is_whole)
{
    return place->node->name;
}

const struct node_ops stored_ops = {
    .attributes = stored_attributes,
    .lookup = lookup,
    .is_unreached = is_unreached,
    .prepare = prepare,
    .parent = stored_parent,
    .list = list,
    .file = stored_file,
    .whole_file = stored_whole_file,
    .xattrs = stored_xattrs,
    .path = stored_name,
};
