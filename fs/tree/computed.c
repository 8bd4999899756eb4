/* Nodes of collections: computed from their numbers, and never stored but for the collection's directory. */
#include "fs/tree/content_options.h"
#include "fs/tree/node_ops.h"

#include <string.h>

/* Gets the attributes of a computed node, and its name if `name` is not NULL. */
static bool computed_attributes(struct tree *tree, const struct computed *computed, char *name,
                                struct node_attributes *ret_attributes)
{
    const struct tree_collection *owner = computed->owner;
    char unwanted[TREE_MAX_NAME + 1];
    uint64_t size = 0, unused;
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
        .permissions = node_permissions(&origin, computed->slot < 0),
        .group = origin_group(&origin),
        .size = size,
        .n_links = computed->slot < 0 ? 2 + owner->collection->below(owner->context, computed->item, &unused) : 1,
        .mtime = node_time(tree, &origin),
    };
    return true;
}

static bool has_no_outage(const struct place *place)
{
    return false;
}

static bool is_prepared(const struct place *place, const char *name)
{
    return true;
}

/* Emits the items [first_item + from, first_item + n_items); entry numbers are those from first_item on plus `offset`.
 */
static void emit_items(struct tree *tree, const struct tree_collection *owner, uint64_t first_item, uint64_t n_items,
                       uint64_t from, uint64_t offset, tree_emit *emit, void *context)
{
    for (uint64_t i = from; i < n_items; i++) {
        char name[TREE_MAX_NAME + 1];
        struct node_attributes attributes;
        struct computed computed = {owner, first_item + i, -1};
        if (computed_attributes(tree, &computed, name, &attributes) && !emit(context, offset + i, name, &attributes))
            return;
    }
}

/* The directory of a collection. */

static const struct tree_collection *owner_of(const struct place *place)
{
    return &place->tree->collections[place->node->collection - 1];
}

static bool lookup_item(const struct place *place, const char *name, struct node_attributes *ret_attributes)
{
    struct computed computed = {.owner = owner_of(place), .slot = -1};
    return computed.owner->collection->find(computed.owner->context, ITEM_NONE, name, &computed.item) &&
           computed_attributes(place->tree, &computed, NULL, ret_attributes);
}

static void list_items(const struct place *place, uint64_t first, enum waiting waiting, tree_emit *emit, void *context)
{
    const struct tree_collection *owner = owner_of(place);
    emit_items(place->tree, owner, 0, owner->collection->count(owner->context), first, 0, emit, context);
}

const struct node_ops collection_ops = {
    .attributes = stored_attributes,
    .lookup = lookup_item,
    .is_unreached = has_no_outage,
    .prepare = is_prepared,
    .parent = stored_parent,
    .list = list_items,
    .file = stored_file,
    .whole_file = stored_whole_file,
    .xattrs = stored_xattrs,
    .path = stored_name,
};

/* An item's directory, and its files. */

static bool attributes(const struct place *place, enum waiting waiting, struct node_attributes *ret_attributes)
{
    return computed_attributes(place->tree, &place->computed, NULL, ret_attributes);
}

static bool lookup_slot(const struct place *place, const char *name, struct node_attributes *ret_attributes)
{
    struct computed file = place->computed;
    const struct tree_collection *owner = file.owner;
    char found[TREE_MAX_NAME + 1];
    if (file.slot >= 0)
        return false;
    if (owner->collection->find(owner->context, place->computed.item, name, &file.item))
        return computed_attributes(place->tree, &file, NULL, ret_attributes);
    for (file.slot = 0; file.slot < (int)file.owner->collection->n_slots(); file.slot++)
        if (computed_attributes(place->tree, &file, found, ret_attributes) && strcmp(found, name) == 0)
            return true;
    return false;
}

static node_id parent(const struct place *place)
{
    const struct computed *computed = &place->computed;
    uint64_t above = computed->item;
    if (computed->slot < 0)
        above = computed->owner->collection->above(computed->owner->context, computed->item);
    return above == ITEM_NONE ? place->tree->nodes[computed->owner->node]->number
                              : computed_id(computed->owner, above, 0);
}

static void list_slots(const struct place *place, uint64_t first, enum waiting waiting, tree_emit *emit, void *context)
{
    struct computed file = place->computed;
    const struct tree_collection *owner = file.owner;
    uint64_t n_slots = owner->collection->n_slots(), first_item = 0;
    if (file.slot >= 0)
        return;
    for (uint64_t slot = first; slot < n_slots; slot++) {
        char name[TREE_MAX_NAME + 1];
        struct node_attributes attributes;
        file.slot = (int)slot;
        if (computed_attributes(place->tree, &file, name, &attributes) && !emit(context, slot, name, &attributes))
            return;
    }
    uint64_t n_items = owner->collection->below(owner->context, file.item, &first_item);
    emit_items(place->tree, owner, first_item, n_items, first > n_slots ? first - n_slots : 0, n_slots, emit, context);
}

static bool plan_file(const struct place *place, struct arena *arena, struct vfile *ret_file, struct error *error)
{
    const struct computed *computed = &place->computed;
    const struct tree_collection *owner = computed->owner;
    if (computed->slot < 0)
        return error_set(error, "no such file");
    bool planned =
        owner->collection->plan(owner->context, computed->item, (unsigned)computed->slot, arena, ret_file, error);
    if (planned)
        node_keep(place->tree, place->id, ret_file);
    return planned;
}

static bool is_never_whole(const struct place *place, struct whole_file *ret_whole)
{
    return false;
}

static void emit_xattrs(const struct place *place, tree_emit_xattr *emit, void *context)
{
    const struct computed *computed = &place->computed;
    const struct tree_collection *owner = computed->owner;
    struct origin origin = owner->collection->origin(owner->context, computed->item);
    owner->collection->xattrs(owner->context, computed->item, computed->slot, emit, context);
    if (computed->slot >= 0)
        node_emit_identity(place->tree, place->id, &origin, emit, context);
}

static const char *last_name(const struct place *place, struct arena *arena, bool *ret_is_whole)
{
    const struct computed *computed = &place->computed;
    const struct tree_collection *owner = computed->owner;
    char name[TREE_MAX_NAME + 1] = "";
    uint64_t size;
    if (computed->slot < 0)
        owner->collection->name(owner->context, computed->item, name);
    else
        owner->collection->file(owner->context, computed->item, (unsigned)computed->slot, name, &size);
    return arena_strdup(arena, name);
}

const struct node_ops computed_ops = {
    .attributes = attributes,
    .lookup = lookup_slot,
    .is_unreached = has_no_outage,
    .prepare = is_prepared,
    .parent = parent,
    .list = list_slots,
    .file = plan_file,
    .whole_file = is_never_whole,
    .xattrs = emit_xattrs,
    .path = last_name,
};
