#include "fs/tree/nodes.h"

#include <string.h>

node_id computed_id(size_t collection, uint64_t item, unsigned slot_plus_1)
{
    return (node_id)(collection + 1) << COLLECTION_SHIFT | item << SLOT_BITS | slot_plus_1;
}

bool computed_of(const struct tree *tree, node_id id, struct computed *ret_computed)
{
    uint64_t number = id >> COLLECTION_SHIFT;
    if (number == 0 || number > tree->n_collections || (id & BRANCH_MASK) != 0)
        return false;
    struct computed computed = {
        .owner = &tree->collections[number - 1],
        .collection = number - 1,
        .item = (id & (((node_id)1 << BRANCH_SHIFT) - 1)) >> SLOT_BITS,
        .slot = (int)(id & ((1 << SLOT_BITS) - 1)) - 1,
    };
    if (computed.item >= computed.owner->collection->count(computed.owner->context))
        return false;
    *ret_computed = computed;
    return true;
}

struct node *node_of(const struct tree *tree, node_id id)
{
    return id >= 1 && id <= tree->n_nodes ? tree->nodes[id - 1] : NULL;
}

uint32_t node_add(struct tree *tree, uint32_t parent, const char *name, bool directory)
{
    struct node *node = arena_alloc(tree->arena, sizeof *node);
    *node = (struct node){.name = arena_strdup(tree->arena, name), .parent = parent, .directory = directory};
    tree->nodes = arena_grow(tree->arena, tree->nodes, tree->n_nodes, sizeof(struct node *));
    uint32_t index = tree->n_nodes;
    tree->nodes[index] = node;
    tree->n_nodes = index + 1;
    if (index == 0)
        return index;
    struct node *above = tree->nodes[parent];
    if (above->last_child != 0)
        tree->nodes[above->last_child]->next_sibling = index;
    else
        above->first_child = index;
    above->last_child = index;
    above->n_directories += directory;
    return index;
}

bool node_is_called(const struct node *node, const char *name)
{
    return strcmp(node->name, name) == 0 || (node->alias != NULL && strcmp(node->alias, name) == 0);
}

uint32_t node_child(const struct tree *tree, const struct node *directory, const char *name)
{
    for (uint32_t child = directory->first_child; child != 0; child = tree->nodes[child]->next_sibling)
        if (node_is_called(tree->nodes[child], name))
            return child;
    return 0;
}
