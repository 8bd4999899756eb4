/* Directory entries: attributes, names, lists and files. */
#include "fs/tree/content_options.h"
#include "fs/tree/identity.h"
#include "fs/tree/kept.h"
#include "fs/tree/kept_files.h"
#include "fs/tree/nodes.h"
#include "models/diffusion/state_dict.h"

#include <string.h>

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
static struct timespec time_of(const struct tree *tree, const struct origin *origin)
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
static mode_t permissions(const struct origin *origin, bool directory)
{
    mode_t mode = origin_permissions(origin);
    return directory ? mode | mode >> 2 | (mode & 0400) >> 1 : mode;
}

static bool node_attributes(struct tree *tree, uint32_t index, struct node_attributes *ret_attributes)
{
    struct node *node = tree->nodes[index];
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
        .permissions = permissions(&origin, node->directory),
        .group = origin_group(&origin),
        .size = node->directory ? 0 : node->file.size,
        .n_links = n_links,
        .mtime = time_of(tree, &origin),
    };
    return true;
}

/* Gets the attributes of a computed node, and its name if `name` is not NULL. */
static bool computed_attributes(struct tree *tree, const struct computed *computed, char *name,
                                struct node_attributes *ret_attributes)
{
    const struct tree_collection *owner = computed->owner;
    char unwanted[TREE_MAX_NAME + 1];
    uint64_t size = 0;
    if (computed->slot >= (int)owner->collection->n_slots())
        return false;
    if (computed->slot >= 0) {
        if (!owner->collection->file(owner->context, computed->item, (unsigned)computed->slot, name ? name : unwanted,
                                     &size))
            return false;
    } else if (name != NULL) {
        owner->collection->name(owner->context, computed->item, name);
    }
    struct origin origin = owner->collection->origin(owner->context, computed->item);
    *ret_attributes = (struct node_attributes){
        .id = computed_id(owner, computed->item, (unsigned)(computed->slot + 1)),
        .generation = tree_generation(tree),
        .directory = computed->slot < 0,
        .permissions = permissions(&origin, computed->slot < 0),
        .group = origin_group(&origin),
        .size = size,
        .n_links = computed->slot < 0 ? 2 : 1,
        .mtime = time_of(tree, &origin),
    };
    return true;
}

bool tree_attributes(struct tree *tree, node_id id, struct node_attributes *ret_attributes)
{
    struct computed computed;
    struct branch_node found;
    const struct node *node = node_of(tree, id);
    if (node != NULL)
        return node_attributes(tree, node->index, ret_attributes);
    if (branch_find(tree, id, &found))
        return found.tree != NULL && tree_attributes(found.tree, found.id, ret_attributes) &&
               branch_take(&found, ret_attributes);
    return computed_of(tree, id, &computed) && computed_attributes(tree, &computed, NULL, ret_attributes);
}

static bool lookup_slot(struct tree *tree, struct computed *item, const char *name,
                        struct node_attributes *ret_attributes)
{
    char found[TREE_MAX_NAME + 1];
    for (item->slot = 0; item->slot < (int)item->owner->collection->n_slots(); item->slot++)
        if (computed_attributes(tree, item, found, ret_attributes) && strcmp(found, name) == 0)
            return true;
    return false;
}

/* Reports whether a deferred directory is empty because a remote source could not be read. */
static bool is_unreached(struct tree *tree, struct node *node)
{
    return !node_fill(tree, node) && node_plan_state(node) != ABSENT;
}

bool tree_lookup(struct tree *tree, node_id directory, const char *name, struct node_attributes *ret_attributes)
{
    struct computed computed;
    struct branch_node found;
    struct node *node = node_of(tree, directory);
    *ret_attributes = (struct node_attributes){.unreached = false};
    if (branch_find(tree, directory, &found)) {
        ret_attributes->unreached = found.unreached;
        return found.tree != NULL && tree_lookup(found.tree, found.id, name, ret_attributes) &&
               branch_take(&found, ret_attributes);
    }
    if (node == NULL)
        return computed_of(tree, directory, &computed) && computed.slot < 0 &&
               lookup_slot(tree, &computed, name, ret_attributes);
    if (node->collection != 0) {
        const struct tree_collection *owner = &tree->collections[node->collection - 1];
        computed = (struct computed){.owner = owner, .slot = -1};
        return owner->collection->find(owner->context, name, &computed.item) &&
               computed_attributes(tree, &computed, NULL, ret_attributes);
    }
    ret_attributes->unreached = is_unreached(tree, node);
    uint32_t child = node_fill(tree, node) ? node_child(tree, node, name) : 0;
    return child != 0 && node_attributes(tree, child, ret_attributes);
}

bool tree_is_unreached(struct tree *tree, node_id directory)
{
    struct branch_node found;
    struct node *node = node_of(tree, directory);
    if (branch_find(tree, directory, &found))
        return found.unreached;
    return node != NULL && is_unreached(tree, node);
}

node_id tree_parent(struct tree *tree, node_id id)
{
    struct computed computed;
    struct branch_node found;
    if (node_of(tree, id) != NULL)
        return tree->nodes[node_of(tree, id)->parent]->number;
    if (branch_find(tree, id, &found))
        return found.tree != NULL ? branch_id_here(&found, tree_parent(found.tree, found.id)) : TREE_ROOT;
    if (!computed_of(tree, id, &computed))
        return TREE_ROOT;
    return computed.slot < 0 ? tree->nodes[computed.owner->node]->number
                             : computed_id(computed.owner, computed.item, 0);
}

static void list_items(struct tree *tree, size_t collection, uint64_t first, tree_emit *emit, void *context)
{
    const struct tree_collection *owner = &tree->collections[collection];
    uint64_t n_items = owner->collection->count(owner->context);
    for (uint64_t item = first; item < n_items; item++) {
        char name[TREE_MAX_NAME + 1];
        struct node_attributes attributes;
        struct computed computed = {owner, item, -1};
        if (computed_attributes(tree, &computed, name, &attributes) && !emit(context, item, name, &attributes))
            return;
    }
}

static void list_slots(struct tree *tree, struct computed *item, uint64_t first, tree_emit *emit, void *context)
{
    for (uint64_t slot = first; slot < item->owner->collection->n_slots(); slot++) {
        char name[TREE_MAX_NAME + 1];
        struct node_attributes attributes;
        item->slot = (int)slot;
        if (computed_attributes(tree, item, name, &attributes) && !emit(context, slot, name, &attributes))
            return;
    }
}

/* The children that are planned before they are listed. */
enum waiting { WAIT_FOR_ALL, WAIT_FOR_UNCERTAIN, WAIT_FOR_NONE };

static bool child_attributes(struct tree *tree, uint32_t index, enum waiting waiting,
                             struct node_attributes *ret_attributes)
{
    const struct node *node = tree->nodes[index];
    enum plan_state state = node_plan_state(node);
    bool wait = waiting == WAIT_FOR_ALL || (waiting == WAIT_FOR_UNCERTAIN && !node->certain);
    if (wait || node->directory || state == PLANNED || state == ABSENT)
        return node_attributes(tree, index, ret_attributes);
    *ret_attributes = (struct node_attributes){.id = node->number, .pending = true};
    return true;
}

bool tree_attributes_prepared(struct tree *tree, node_id id, struct node_attributes *ret_attributes)
{
    struct branch_node found;
    const struct node *node = node_of(tree, id);
    if (node != NULL)
        return child_attributes(tree, node->index, WAIT_FOR_NONE, ret_attributes);
    if (branch_find(tree, id, &found))
        return found.tree != NULL && tree_attributes_prepared(found.tree, found.id, ret_attributes) &&
               branch_take(&found, ret_attributes);
    return tree_attributes(tree, id, ret_attributes);
}

struct branch_listing {
    const struct branch_node *branch;
    tree_emit *emit;
    void *context;
};

static bool emit_from_branch(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    const struct branch_listing *listing = context;
    struct node_attributes here = *attributes;
    branch_take(listing->branch, &here);
    return listing->emit(listing->context, index, name, &here);
}

static void list(struct tree *tree, node_id directory, uint64_t first, enum waiting waiting, tree_emit *emit,
                 void *context)
{
    struct computed computed;
    struct branch_node found;
    struct node *node = node_of(tree, directory);
    if (branch_find(tree, directory, &found)) {
        if (found.tree != NULL)
            list(found.tree, found.id, first, waiting, emit_from_branch,
                 &(struct branch_listing){&found, emit, context});
        return;
    }
    if (node == NULL) {
        if (computed_of(tree, directory, &computed) && computed.slot < 0)
            list_slots(tree, &computed, first, emit, context);
        return;
    }
    if (node->collection != 0) {
        list_items(tree, node->collection - 1, first, emit, context);
        return;
    }
    if (!node_fill(tree, node))
        return;
    uint64_t index = 0;
    for (uint32_t child = node->first_child; child != 0; child = tree->nodes[child]->next_sibling, index++) {
        struct node_attributes attributes;
        if (index >= first && !tree->nodes[child]->unlisted && child_attributes(tree, child, waiting, &attributes) &&
            !emit(context, index, tree->nodes[child]->name, &attributes))
            return;
    }
}

void tree_list(struct tree *tree, node_id directory, uint64_t first, tree_emit *emit, void *context)
{
    list(tree, directory, first, WAIT_FOR_ALL, emit, context);
}

void tree_list_names(struct tree *tree, node_id directory, uint64_t first, tree_emit *emit, void *context)
{
    list(tree, directory, first, WAIT_FOR_UNCERTAIN, emit, context);
}

void tree_list_prepared(struct tree *tree, node_id directory, uint64_t first, tree_emit *emit, void *context)
{
    list(tree, directory, first, WAIT_FOR_NONE, emit, context);
}

struct branch_numbering {
    node_id prefix;
    tree_emit_number *emit;
    void *context;
};

static void emit_number_of_branch(void *context, node_id id)
{
    const struct branch_numbering *numbering = context;
    numbering->emit(numbering->context, id | numbering->prefix);
}

void tree_number_files(const struct tree *tree, tree_emit_number *emit, void *context)
{
    for (size_t i = 0; i < tree->n_branches; i++)
        if (node_plan_state(tree->nodes[tree->branches[i]->node]) == PLANNED)
            tree_number_files(tree->branches[i]->tree, emit_number_of_branch,
                              &(struct branch_numbering){(node_id)(i + 1) << BRANCH_SHIFT, emit, context});
    for (uint32_t i = 0; i < tree->n_nodes; i++)
        if (!tree->nodes[i]->directory)
            emit(context, tree->nodes[i]->number);
    for (size_t i = 0; i < tree->n_collections; i++) {
        const struct tree_collection *owner = &tree->collections[i];
        uint64_t n_items = owner->collection->count(owner->context);
        unsigned n_slots = owner->collection->n_slots();
        for (uint64_t item = 0; item < n_items; item++)
            for (unsigned slot = 0; slot < n_slots; slot++)
                emit(context, computed_id(owner, item, slot + 1));
    }
}

/* Plans a file of this tree, not of a branch. */
static bool find_file(struct tree *tree, node_id id, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    struct computed computed;
    struct node *node = node_of(tree, id);
    if (node != NULL && !node->directory && node_plan(tree, node)) {
        bool is_whole = node_spans(tree, node, error);
        *ret_file = is_whole ? node->file : (struct vfile){0};
        return is_whole;
    }
    if (node == NULL && computed_of(tree, id, &computed) && computed.slot >= 0)
        return computed.owner->collection->plan(computed.owner->context, computed.item, (unsigned)computed.slot, arena,
                                                ret_file, error);
    return error_set(error, "no such file");
}

bool tree_file(struct tree *tree, node_id id, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    struct branch_node found;
    if (branch_find(tree, id, &found) && found.tree != NULL)
        return tree_file(found.tree, found.id, arena, ret_file, error);
    if (!find_file(tree, id, arena, ret_file, error))
        return false;
    if (tree->kept != NULL)
        ret_file->kept = kept_files_get(tree->kept, tree, id, ret_file);
    return true;
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

bool tree_whole_file(struct tree *tree, node_id id, struct whole_file *ret_whole)
{
    struct branch_node found;
    const struct node *node = node_of(tree, id);
    if (node == NULL && branch_find(tree, id, &found))
        return found.tree != NULL && tree_whole_file(found.tree, found.id, ret_whole);
    if (node == NULL || node->directory || node_plan_state(node) != PLANNED)
        return false;
    int descriptor = node->file.whole != NULL ? source_descriptor(node->file.whole) : -1;
    *ret_whole = (struct whole_file){descriptor, node->file.origin};
    return descriptor >= 0 || (tree->kept != NULL && sealed_file(tree, id, ret_whole));
}

static void emit_identity(struct tree *tree, node_id id, const struct origin *origin, tree_emit_xattr *emit,
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
static void stored_xattrs(struct tree *tree, node_id id, tree_emit_xattr *emit, void *context)
{
    const struct node *node = node_of(tree, id);
    if (node->directory || node_plan_state(node) != PLANNED)
        return;
    emit_identity(tree, id, &node->file.origin, emit, context);
    emit_reference(tree, id, &node->file, emit, context);
}

void tree_xattrs(struct tree *tree, node_id id, tree_emit_xattr *emit, void *context)
{
    struct computed computed;
    struct branch_node found;
    if (node_of(tree, id) != NULL) {
        stored_xattrs(tree, id, emit, context);
    } else if (branch_find(tree, id, &found) && found.tree != NULL) {
        tree_xattrs(found.tree, found.id, emit, context);
    } else if (computed_of(tree, id, &computed)) {
        const struct tree_collection *owner = computed.owner;
        struct origin origin = owner->collection->origin(owner->context, computed.item);
        owner->collection->xattrs(owner->context, computed.item, computed.slot, emit, context);
        if (computed.slot >= 0)
            emit_identity(tree, id, &origin, emit, context);
    }
}
