/* The kinds of nodes, each a table of functions: the files and directories that a tree stores (stored.c), among them
 * deferred directories; a collection's directory and its computed entries (computed.c); a branch's directory and the
 * nodes in it (branches.c).
 *
 * tree.h documents each function under the same name. */
#pragma once

#include "fs/tree/nodes.h"

/* A node, for the functions of its kind. */
struct place {
    struct tree *tree;
    node_id id;
    struct node *node;        /* NULL: the tree does not store it */
    struct computed computed; /* if it is in a collection */
};

/* The children that are planned before they are listed. */
enum waiting { WAIT_FOR_ALL, WAIT_FOR_UNCERTAIN, WAIT_FOR_NONE };

struct node_ops {
    bool (*attributes)(const struct place *place, enum waiting waiting, struct node_attributes *ret_attributes);
    bool (*lookup)(const struct place *place, const char *name, struct node_attributes *ret_attributes);
    bool (*is_unreached)(const struct place *place);
    bool (*prepare)(const struct place *place, const char *name);
    node_id (*parent)(const struct place *place);
    void (*list)(const struct place *place, uint64_t first, enum waiting waiting, tree_emit *emit, void *context);
    bool (*file)(const struct place *place, struct arena *arena, struct vfile *ret_file, struct error *error);
    bool (*whole_file)(const struct place *place, struct whole_file *ret_whole);
    void (*xattrs)(const struct place *place, tree_emit_xattr *emit, void *context);

    /* Returns the last name of the path, or a whole path and *ret_is_whole; in the arena, or as long as the tree. */
    const char *(*path)(const struct place *place, struct arena *arena, bool *ret_is_whole);
};

extern const struct node_ops stored_ops, collection_ops, computed_ops, branch_top_ops, branch_ops;

/* Finds the kind of a node; returns NULL if there is no node of that number. */
const struct node_ops *place_of(struct tree *tree, node_id id, struct place *ret_place);

/* Like tree_list(), tree_list_names() and tree_list_prepared(). */
void node_list(struct tree *tree, node_id directory, uint64_t first, enum waiting waiting, tree_emit *emit,
               void *context);

/* What several kinds have in common (stored.c). */

/* Return the time and the permissions of a file or directory with these inputs. */
struct timespec node_time(const struct tree *tree, const struct origin *origin);
mode_t node_permissions(const struct origin *origin, bool directory);

bool stored_attributes(const struct place *place, enum waiting waiting, struct node_attributes *ret_attributes);
node_id stored_parent(const struct place *place);
bool stored_file(const struct place *place, struct arena *arena, struct vfile *ret_file, struct error *error);
bool stored_whole_file(const struct place *place, struct whole_file *ret_whole);
void stored_xattrs(const struct place *place, tree_emit_xattr *emit, void *context);
const char *stored_name(const struct place *place, struct arena *arena, bool *ret_is_whole);

/* Sets what is kept of a file of this tree, if anything is. */
void node_keep(struct tree *tree, node_id id, struct vfile *file);

void node_emit_identity(struct tree *tree, node_id id, const struct origin *origin, tree_emit_xattr *emit,
                        void *context);
