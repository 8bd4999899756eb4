/* The tree: directories and virtual files by name, the same for a mount and for `wfs ls`, `cat` and `cp`.
 *
 * Nodes are numbered; a number is the inode number, is stable for the life of the tree, and can be computed rather than
 * stored: the files below tensors/ cost no memory. Files are planned (their spans and size found) when somebody asks
 * for their attributes; what cannot be made turns out to be absent then, with a note in the checkpoint. Who asks for a
 * file that somebody else is planning waits for it, and nobody else does. Everything may be used from any thread. A
 * tree uses its checkpoint and options, which must outlive it. A branch is a directory that is another tree, of another
 * checkpoint, which is opened when somebody looks into it. */
#pragma once

#include "formats/checkpoint.h"
#include "fs/tree/vfile.h"
#include "models/shown.h"

typedef uint64_t node_id;

enum { TREE_ROOT = 1 };

struct content_options; /* content_options.h: for the kinds of content, not for the tree */

struct node_attributes {
    node_id id;
    bool directory;
    bool branch;        /* a directory that is that of another tree (tree_add_branch()) */
    bool pending;       /* still being planned: only what is above is known (tree_list_prepared()) */
    mode_t permissions; /* to read, and to search directories: what the sources allow (origin.h) */
    gid_t group;        /* whose permissions those of the group are, or NO_GROUP */
    uint64_t size;
    uint64_t n_links;
    struct timespec mtime; /* of the newest source */
};

struct tree;

struct tree *tree_new(const struct checkpoint *checkpoint, const struct content_options *options, struct error *error);
void tree_free(struct tree *tree); /* NULL is allowed */

const struct checkpoint *tree_checkpoint(const struct tree *tree);

/* Calls opened(context, checkpoint) at once for the tree's checkpoint and those of the branches that are open, and from
 * then on for that of each that is opened, on its thread, before anybody sees it; it must not use the tree. They live
 * as long as the tree. NULL ends it. */
typedef void tree_checkpoint_function(void *context, const struct checkpoint *checkpoint);
void tree_on_checkpoint(struct tree *tree, tree_checkpoint_function *opened, void *context);

const struct content_options *tree_options(const struct tree *tree);

/* The tensors: as tensors/ has them, and as the source does. */
const struct shown *tree_shown(const struct tree *tree);
const struct shown *tree_source_shown(const struct tree *tree);

/* False where the number is nobody's, or there is no such name. */
bool tree_attributes(struct tree *tree, node_id id, struct node_attributes *ret_attributes);
bool tree_lookup(struct tree *tree, node_id directory, const char *name, struct node_attributes *ret_attributes);
node_id tree_parent(struct tree *tree, node_id id);

/* The node of a path such as "tensors/a.weight/f32"; slashes at either end or doubled, and parts that are
 * ".", are ignored. The error says which part is missing, and why where that is known. */
bool tree_walk(struct tree *tree, const char *path, struct node_attributes *ret_attributes, struct error *error);

/* Calls `emit` for the entries from number `first` on, until it returns false; entry numbers are stable. `name` is
 * valid during the call. "." and ".." are not among them. */
typedef bool tree_emit(void *context, uint64_t index, const char *name, const struct node_attributes *attributes);
void tree_list(struct tree *tree, node_id directory, uint64_t first, tree_emit *emit, void *context);

/* The same for who wants no attributes: files that are certain are not planned for it, and may be pending. */
void tree_list_names(struct tree *tree, node_id directory, uint64_t first, tree_emit *emit, void *context);

/* For a server, which must not wait. Begins to plan, in threads of their own, the files that tree_lookup() of `name`,
 * or tree_list_names() where `name` is NULL, would plan. True once none of them is being planned any more: these return
 * at once then. */
bool tree_prepare(struct tree *tree, node_id directory, const char *name);

/* Whether the names of a directory are known; else whoever asks for one waits until they are. */
bool tree_is_open(const struct tree *tree, node_id directory);

/* As tree_list(), but plans nothing: what is not planned yet is pending, and may turn out to be absent. */
void tree_list_prepared(struct tree *tree, node_id directory, uint64_t first, tree_emit *emit, void *context);

/* Calls planned(context) after each plan that has ended, on its thread; it must not use the tree. NULL ends it. */
void tree_on_planned(struct tree *tree, void (*planned)(void *context), void *context);

/* Calls `emit` with the number of every file there may be; none is planned for it. */
typedef void tree_emit_number(void *context, node_id id);
void tree_number_files(const struct tree *tree, tree_emit_number *emit, void *context);

/* The tree that a directory is that of, opened now if it has not been; NULL where it is that of none, or cannot be
 * opened. It may be used like any other, but not freed. */
struct tree *tree_branch(struct tree *tree, node_id directory);

/* What leads to a node from the root, without a slash before it, in `arena`: "tensors/a.weight/f32". */
const char *tree_path(struct tree *tree, node_id id, struct arena *arena);

/* The file of a node, valid as long as the tree and `arena` are. */
bool tree_file(struct tree *tree, node_id id, struct arena *arena, struct vfile *ret_file, struct error *error);

/* Extended attributes (user.wfs.*) of a node: calls `emit` for each. A value may hold any byte: a tensor's name does.
 */
typedef void tree_emit_xattr(void *context, const char *name, const char *value, size_t length);
void tree_xattrs(struct tree *tree, node_id id, tree_emit_xattr *emit, void *context);

/* For the kinds of content (content.h), while a tree is made. */

/* A directory in another; the one that is there already if there is. 0 where the name is taken by something else. */
node_id tree_add_directory(struct tree *tree, node_id parent, const char *name);

/* A file that is planned when its attributes are asked for. `plan` makes its spans in `arena`, which lives as long as
 * the tree; it is called once, with an arena of its own, while other plans are made. It may ask the tree for other
 * files, not in a circle. A failure hides the file, and its message, unless empty, becomes a note. A name that is taken
 * in the directory is refused: false. */
typedef bool plan_function(const void *context, struct arena *arena, struct vfile *ret_file, struct error *error);
bool tree_add_file(struct tree *tree, node_id parent, const char *name, plan_function *plan, const void *context);

/* The same of a file whose plan does not fail: who lists the directory need not wait for it. */
bool tree_add_certain_file(struct tree *tree, node_id parent, const char *name, plan_function *plan,
                           const void *context);

/* Another name that a file of the directory is found by, but not listed under. */
void tree_add_alias(struct tree *tree, node_id parent, const char *name, const char *alias);

/* What to say to whoever asks for a path that is not in the tree: what it takes, or where the like of it is. Both texts
 * live as long as the tree. */
void tree_add_hint(struct tree *tree, const char *path, const char *hint);

/* The same where the like of it is at `place`, and why it is there; if that is absent, too, why that is. All three
 * texts live as long as the tree. */
void tree_add_place(struct tree *tree, const char *path, const char *place, const char *why);

/* A directory that is the root of another tree. open(context, error) makes that tree, once, when somebody looks into
 * the directory, on any thread; this tree frees it, before what tree_on_free() has been given. It has no branches
 * itself. A failure leaves an empty directory, and becomes a note. False where the name is taken, or there are too many
 * branches. What is in it has numbers of its own here. */
typedef struct tree *branch_function(const void *context, struct error *error);
bool tree_add_branch(struct tree *tree, node_id parent, const char *name, branch_function *open, const void *context);

/* The same of a directory at the top of the tree of `branch`, once more, or of its root where it has none of that name:
 * who looks into either opens both. */
bool tree_add_part_of_branch(struct tree *tree, node_id parent, const char *name, node_id branch,
                             const char *directory);

/* A directory of directories of files that is computed on demand, never stored: tensors/. Items are numbered from 0;
 * each has up to COLLECTION_MAX_SLOTS files, which keep their slot numbers whether present or not. */
enum { COLLECTION_MAX_SLOTS = 200, TREE_MAX_NAME = 255 };
struct collection {
    uint64_t (*count)(const void *context);
    void (*name)(const void *context, uint64_t item, char name[TREE_MAX_NAME + 1]);
    bool (*find)(const void *context, const char *name, uint64_t *ret_item);
    unsigned (*n_slots)(void);
    /* The name and size of a file; false where the item has none in that slot. */
    bool (*file)(const void *context, uint64_t item, unsigned slot, char name[TREE_MAX_NAME + 1], uint64_t *ret_size);
    /* Why an item has no file of that name; NULL where that is not known. */
    const char *(*refusal)(const void *context, uint64_t item, const char *name);
    struct origin (*origin)(const void *context, uint64_t item);
    bool (*plan)(const void *context, uint64_t item, unsigned slot, struct arena *arena, struct vfile *ret_file,
                 struct error *error);
    /* `slot` is -1 for the item's directory. */
    void (*xattrs)(const void *context, uint64_t item, int slot, tree_emit_xattr *emit, void *emit_context);
};
void tree_add_collection(struct tree *tree, node_id parent, const char *name, const struct collection *collection,
                         const void *context);

/* Other tensors below tensors/ than those of the source; they live until the tree is freed. */
void tree_show(struct tree *tree, const struct shown *shown);

/* Calls release(context) when the tree is freed, before its arena is. */
void tree_on_free(struct tree *tree, void (*release)(void *context), void *context);

/* Memory that lives as long as the tree. */
struct arena *tree_arena(struct tree *tree);
