#include "fs/tree/nodes.h"

#include "fs/tree/content_options.h"
#include "fs/tree/identity.h"

#include <stdlib.h>
#include <string.h>

enum { FEW_CHILDREN = 32 }; /* which are found without an index: most directories have fewer */

static node_id number_of_kind(enum number_kind kind, uint64_t value)
{
    return value << KIND_BITS | kind;
}

/* The places of one item: its directory, and its slots. */
static uint64_t n_places(const struct tree_collection *owner)
{
    return owner->collection->n_slots() + UINT64_C(1);
}

node_id computed_id(const struct tree_collection *owner, uint64_t item, unsigned slot_plus_1)
{
    return number_of_kind(COMPUTED, owner->first + item * n_places(owner) + slot_plus_1);
}

/* Returns the collection that has a place, or NULL. */
static const struct tree_collection *collection_of(const struct tree *tree, uint64_t place)
{
    for (size_t i = tree->n_collections; i-- > 0;)
        if (tree->collections[i].first <= place)
            return &tree->collections[i];
    return NULL;
}

bool computed_of(const struct tree *tree, node_id id, struct computed *ret_computed)
{
    uint64_t place = id >> KIND_BITS;
    bool is_computed = number_of_kind(COMPUTED, place) == id && (id & BRANCH_MASK) == 0;
    const struct tree_collection *owner = is_computed ? collection_of(tree, place) : NULL;
    if (owner == NULL)
        return false;
    place -= owner->first;
    struct computed computed = {
        .owner = owner, .item = place / n_places(owner), .slot = (int)(place % n_places(owner)) - 1};
    if (computed.item >= owner->collection->n_items(owner->context))
        return false;
    *ret_computed = computed;
    return true;
}

/* Returns the node that was added to a deferred directory as the one of that number, or NULL. */
static struct node *filled_node(const struct tree *tree, const struct node *directory, uint64_t number)
{
    bool is_there = directory->deferred && number < atomic_load(&directory->n_filled);
    return is_there ? tree->nodes[directory->first_filled + number] : NULL;
}

static struct node *find_filled(const struct tree *tree, uint64_t value)
{
    uint64_t ordinal = value % MAX_DEFERRED, place = value / MAX_DEFERRED;
    if (ordinal >= tree->n_first_level)
        return NULL;
    const struct node *first = tree->nodes[tree->first_level[ordinal]];
    if (place < MAX_FILLED)
        return filled_node(tree, first, place);
    const struct node *second = filled_node(tree, first, (place >> FILLED_BITS) - 1);
    return second != NULL ? filled_node(tree, second, place % MAX_FILLED) : NULL;
}

struct node *node_of(const struct tree *tree, node_id id)
{
    uint64_t value = id >> KIND_BITS;
    struct node *node = NULL;
    if (number_of_kind(STORED, value) == id && value < tree->n_nodes)
        node = tree->nodes[value];
    else if (number_of_kind(FILLED, value) == id)
        node = find_filled(tree, value);
    return node != NULL && node->number == id ? node : NULL;
}

static uint32_t make_generation(const struct tree *tree)
{
    char identity[SHA256_HEX + 1], all[SHA256_HEX + 1];
    struct buffer text = {0};
    file_identity(&tree->model.origin, tree->checkpoint->model_name, tree->options->file_request.text, "", identity);
    buffer_append_text(&text, identity);
    for (uint32_t i = 0; i < tree->n_nodes; i++)
        if (tree->nodes[i]->number == number_of_kind(STORED, i))
            buffer_printf(&text, "%u/%s", tree->nodes[i]->parent, tree->nodes[i]->name);
    sha256_hex(text.bytes, text.length, all);
    buffer_free(&text);
    all[8] = '\0';
    return (uint32_t)strtoul(all, NULL, 16);
}

uint32_t tree_generation(struct tree *tree)
{
    uint64_t known = atomic_load(&tree->generation);
    if (known == 0) {
        known = (uint64_t)make_generation(tree) << 1 | 1;
        atomic_store(&tree->generation, known);
    }
    return (uint32_t)(known >> 1);
}

/* Returns the number of the next node that the plan of a deferred directory adds. */
static node_id next_filled(const struct node *directory)
{
    uint64_t value = directory->number >> KIND_BITS, n_filled = atomic_load(&directory->n_filled);
    if (number_of_kind(FILLED, value) == directory->number)
        n_filled += (value / MAX_DEFERRED + 1) << FILLED_BITS;
    return number_of_kind(FILLED, n_filled * MAX_DEFERRED + directory->ordinal);
}

static void release_names(void *names)
{
    text_index_free(names);
}

static void add_to_names(struct text_index *names, const struct node *node)
{
    text_index_add(names, node->name, strlen(node->name), node->index);
    if (node->alias != NULL)
        text_index_add(names, node->alias, strlen(node->alias), node->index);
}

/* Returns the index of a directory's children. */
static struct text_index *index_children(const struct tree *tree, const struct node *directory)
{
    struct text_index *names = arena_alloc(tree->arena, sizeof *names);
    *names = (struct text_index){0};
    arena_on_free(tree->arena, release_names, names);
    for (uint32_t child = directory->first_child; child != 0; child = tree->nodes[child]->next_sibling)
        add_to_names(names, tree->nodes[child]);
    return names;
}

/* Links a new node into its parent, and makes an index once an older child would be hard to find. */
static void add_child(struct tree *tree, struct node *parent, const struct node *node)
{
    if (parent->names == NULL && parent->n_children == FEW_CHILDREN)
        parent->names = index_children(tree, parent);
    if (parent->names != NULL)
        add_to_names(parent->names, node);
    if (parent->last_child != 0)
        tree->nodes[parent->last_child]->next_sibling = node->index;
    else
        parent->first_child = node->index;
    parent->last_child = node->index;
    parent->n_children++;
    parent->n_directories += node->directory;
}

struct node *node_add(struct tree *tree, struct node *parent, const char *name, bool directory)
{
    struct node *filled = tree->filled;
    uint32_t index = tree->n_nodes;
    node_id number = filled != NULL ? next_filled(filled) : number_of_kind(STORED, index);
    bool is_full = filled != NULL && atomic_load(&filled->n_filled) == MAX_FILLED;
    if (is_full || number >= (node_id)1 << BRANCH_SHIFT)
        return NULL;
    struct node *node = arena_alloc(tree->arena, sizeof *node);
    *node = (struct node){
        .number = number,
        .index = index,
        .name = arena_strdup(tree->arena, name),
        .parent = parent != NULL ? parent->index : 0,
        .directory = directory,
    };
    tree->nodes = arena_grow(tree->arena, tree->nodes, tree->n_nodes, sizeof(struct node *));
    tree->nodes[index] = node;
    tree->n_nodes = index + 1;
    if (filled != NULL)
        atomic_fetch_add(&filled->n_filled, 1);
    if (parent != NULL)
        add_child(tree, parent, node);
    return node;
}

void node_add_alias(const struct tree *tree, struct node *node, const char *alias)
{
    struct text_index *names = tree->nodes[node->parent]->names;
    node->alias = arena_strdup(tree->arena, alias);
    if (names != NULL)
        add_to_names(names, node);
}

bool node_is_called(const struct node *node, const char *name)
{
    return strcmp(node->name, name) == 0 || (node->alias != NULL && strcmp(node->alias, name) == 0);
}

uint32_t node_child(const struct tree *tree, const struct node *directory, const char *name)
{
    size_t found = 0;
    if (directory->names != NULL)
        return text_index_find(directory->names, name, strlen(name), &found) ? (uint32_t)found : 0;
    for (uint32_t child = directory->first_child; child != 0; child = tree->nodes[child]->next_sibling)
        if (node_is_called(tree->nodes[child], name))
            return child;
    return 0;
}
