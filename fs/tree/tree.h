/* The tree: directories and virtual files by name, the same for a mount and for `wfs ls`, `cat` and `cp`.
 *
 * A node's number is its inode number. It is stable for the life of the tree, and can be computed instead of stored:
 * the files below tensors/ cost no memory. Asking for a file's attributes plans it: finds its spans and size. A file
 * that cannot be made becomes absent then, and tree_walk() gives the reason. Only callers that ask for the same file
 * wait for a plan. Functions for complete trees are safe from any thread. The checkpoint and the options must outlive
 * the tree. A branch is a directory that shows the tree of another checkpoint, which the first look into the directory
 * opens. A deferred directory is filled by the first look into it. */
#pragma once

#include "formats/checkpoint.h"
#include "fs/tree/vfile.h"
#include "models/shown_tensors.h"

typedef uint64_t node_id;

enum { TREE_ROOT = 1 };

struct content_options; /* content_options.h */
struct component;

struct node_attributes {
    node_id id;
    uint32_t generation; /* of its tree: a number means the same node only in trees of the same one */
    bool directory;
    bool branch;        /* a directory of another tree (tree_add_branch()) */
    bool deferred;      /* a directory that is filled when needed (tree_add_deferred()) */
    bool pending;       /* not planned yet: only the fields above are known (tree_list_prepared()) */
    bool unreached;     /* alone set by a failure of tree_attributes() or tree_lookup(): a remote source could not be
                           read, and asking again later may find the file */
    mode_t permissions; /* read permissions as the sources allow (formats/origin.h); directories also have search
                           permissions, and the owner's write permission */
    gid_t group;        /* the group that the group permissions apply to, or NO_GROUP */
    uint64_t size;
    uint64_t n_links;
    struct timespec mtime; /* file_time(), or that of the original */
    bool original;    /* permissions and mtime are those of an archived file, folder or link (tree_add_original()) */
    const char *link; /* the target of a symbolic link, whose size is the target's length; NULL: it is none */
};

struct tree;

struct tree *tree_new(const struct checkpoint *checkpoint, const struct content_options *options, struct error *error);
void tree_free(struct tree *tree); /* NULL is allowed */

const struct checkpoint *tree_checkpoint(const struct tree *tree);

/* Calls opened(context, checkpoint) at once for the checkpoints of the tree and of its open branches, and later for
 * each branch that opens, on the opening thread, before the branch becomes visible. The callback must not use the tree.
 * The checkpoints live as long as the tree. NULL ends the calls. */
typedef void tree_checkpoint_function(void *context, const struct checkpoint *checkpoint);
void tree_on_checkpoint(struct tree *tree, tree_checkpoint_function *opened, void *context);

const struct content_options *tree_options(const struct tree *tree);

/* Return the inputs of files made from the model, and of dequantized tensors: origin_of_model() and origin_of_packed().
 * They live as long as the tree. */
struct origin tree_origin_of_model(const struct tree *tree);
struct origin tree_origin_of_packed(const struct tree *tree);

/* The objects that a product's files share (products/product.h): what they are made from, and what their sizes are
 * planned from. */
enum product_object { OBJECT_WHOLE, OBJECT_FOR_SIZES, N_OBJECTS };

/* Returns an object of a product, which is made if no file has been planned. NULL if the product is not offered, or the
 * object cannot be made, which is noted for the whole one. */
struct product;
const void *tree_object(const struct tree *tree, const struct product *product, enum product_object which);

/* Returns the tensors as tensors/ shows them. */
const struct shown_tensors *tree_shown(const struct tree *tree);

/* Return false if the number or the name does not exist. */
bool tree_attributes(struct tree *tree, node_id id, struct node_attributes *ret_attributes);
bool tree_lookup(struct tree *tree, node_id directory, const char *name, struct node_attributes *ret_attributes);
node_id tree_parent(struct tree *tree, node_id id);

/* Reports whether the names of a directory are not known because a remote source could not be read. */
bool tree_is_unreached(struct tree *tree, node_id directory);

/* Returns why a remote source could not be read when a file was last planned in vain; the message is "" if none was. */
struct error tree_outage(struct tree *tree);

/* Finds the node of a path such as "tensors/a.weight/f32"; ignores extra slashes and parts that are ".". The error
 * names the missing part, and the reason if that is known. */
bool tree_walk(struct tree *tree, const char *path, struct node_attributes *ret_attributes, struct error *error);

/* Replaces the attributes of a symbolic link by those of its target; leaves others alone. Returns false if the link
 * leads nowhere, or out of the tree. tree_walk() follows all links. */
bool tree_follow(struct tree *tree, struct node_attributes *attributes);

/* Reports whether files of that name hold a model's weights. */
bool tree_names_weights(const char *name);

/* Reports whether a directory of this tree would have files of weights, by their names, and has none of them: the error
 * is the reason for the first. Plans the directory's files. */
bool tree_lacks_weights(struct tree *tree, node_id directory, struct error *error);

/* Calls `emit` for the entries from number `first` on, until it returns false; entry numbers are stable. `name` is
 * valid during the call. "." and ".." are left out. */
typedef bool tree_emit(void *context, uint64_t index, const char *name, const struct node_attributes *attributes);
void tree_list(struct tree *tree, node_id directory, uint64_t first, tree_emit *emit, void *context);

/* Like tree_list(), for callers that need no attributes: certain files are not planned, and may be pending. */
void tree_list_names(struct tree *tree, node_id directory, uint64_t first, tree_emit *emit, void *context);

/* For a server, which must not wait: starts to plan, on other threads, the files that tree_lookup() of `name` would
 * plan, or tree_list_names() if `name` is NULL. Returns true if none is being planned: then these return at once. */
bool tree_prepare(struct tree *tree, node_id directory, const char *name);

/* Reports whether the names of a directory are known; else a lookup waits until they are. */
bool tree_is_open(const struct tree *tree, node_id directory);

/* Like tree_list(), but plans nothing: files that are not planned are pending, and may turn out to be absent. */
void tree_list_prepared(struct tree *tree, node_id directory, uint64_t first, tree_emit *emit, void *context);

/* Like tree_attributes(), but plans nothing: a file that is not planned is pending, and may turn out to be absent. */
bool tree_attributes_prepared(struct tree *tree, node_id id, struct node_attributes *ret_attributes);

/* Calls planned(context) after each plan, on its thread. The callback must not use the tree. NULL ends the calls. */
void tree_on_planned(struct tree *tree, void (*planned)(void *context), void *context);

/* Calls `emit` with the number of every possible file, and plans none. */
typedef void tree_emit_number(void *context, node_id id);
void tree_number_files(const struct tree *tree, tree_emit_number *emit, void *context);

/* Returns the tree of a branch's directory, and opens it if necessary; NULL if the directory is no branch or cannot be
 * opened. The caller must not free the tree. */
struct tree *tree_branch(struct tree *tree, node_id directory);

/* Returns a node's path from the root, without a leading slash, in `arena`: "tensors/a.weight/f32". */
const char *tree_path(struct tree *tree, node_id id, struct arena *arena);

/* Returns the file of a node, valid as long as the tree and `arena`. */
bool tree_file(struct tree *tree, node_id id, struct arena *arena, struct vfile *ret_file, struct error *error);

/* Like tree_file(), for the plan of a file that is the same: at first, while `*has_size` is false, it may get the size
 * alone (vfile.has_size_alone), which sets that. */
bool tree_same_file(struct tree *tree, node_id id, bool *has_size, struct arena *arena, struct vfile *ret_file,
                    struct error *error);

/* A file whose bytes are all in one regular file on disk: an unchanged source, or a sealed file of the store
 * (fs/kept/kept.h). */
struct whole_file {
    int descriptor; /* valid as long as the tree; -1: the file may be sealed later */
    struct origin origin;
};

/* Gets the whole file of a planned file. Returns false for all files that neither are nor will be one. Opens no branch.
 */
bool tree_whole_file(struct tree *tree, node_id id, struct whole_file *ret_whole);

/* Reports whether computed files may be sealed. */
bool tree_keeps(const struct tree *tree);

/* Returns the largest source that a file may show unchanged, without those in branches; NULL: none. */
const struct source *tree_largest_whole(const struct tree *tree);

/* Reports whether the tree has branches. */
bool tree_has_branches(const struct tree *tree);

/* Calls `emit` for each extended attribute (user.wfs.*) of a node. A value may hold any byte, as a tensor's name may.
 * Files have their identity (identity.h) if they are planned. Plans nothing, and opens no branch. */
typedef void tree_emit_xattr(void *context, const char *name, const char *value, size_t length);
void tree_xattrs(struct tree *tree, node_id id, tree_emit_xattr *emit, void *context);

/* A directory that an engine loads as a model of its own. Texts are valid during the call. */
struct tree_engine {
    const char *path;    /* "mlx/4bit" */
    const char *ending;  /* after the name of the model, for the name of the directory's own: "-MLX-4bit" */
    const char *tag;     /* "mlx-4bit" */
    const char *command; /* that runs the directory, before its name; NULL: unknown */
    bool is_listed;      /* else only those who know the name look for it */
};

/* Calls `emit` for each of them, also if its files cannot be made. Opens no directory. */
typedef void tree_emit_engine(void *context, const struct tree_engine *engine);
void tree_list_engines(struct tree *tree, tree_emit_engine *emit, void *context);

/* For the kinds of content (content.h), while a tree is made. */

/* Adds a directory in another, or returns the existing one; 0 if the name belongs to a file. */
node_id tree_add_directory(struct tree *tree, node_id parent, const char *name);

/* Adds a directory that the first look into it fills; returns 0 if the name is taken. First, prepare(context) makes
 * what fill() needs, and may take long, on any thread; NULL: nothing is needed. Then fill(context, directory) adds
 * directories and files to this directory alone, as while the tree was made: no collection, branch or hint. One
 * directory of a tree is filled at a time. If a source cannot be reached meanwhile, both are called again later. */
typedef void prepare_function(void *context);
typedef void fill_function(void *context, node_id directory);
node_id tree_add_deferred(struct tree *tree, node_id parent, const char *name, prepare_function *prepare,
                          fill_function *fill, void *context);

/* Leaves a directory or a file out of listings: it is found by name only. */
void tree_unlist(struct tree *tree, node_id id);

/* Lists a file after all others of its directory so far, even if it was left out; does nothing if there is none of that
 * name. */
void tree_list_last(struct tree *tree, node_id parent, const char *name);

/* Finds or adds the directories of a path, all names but the last, which *ret_name becomes. Returns the last directory,
 * or 0 if one of the names is taken by something else. */
node_id tree_add_path(struct tree *tree, node_id parent, const char *path, const char **ret_name);

/* Adds a file that is planned when its attributes are asked for. `plan` makes its spans in `arena`, on any thread,
 * while other plans are made. It may ask the tree for the attributes of other files, not in a circle. If many files are
 * planned, only the size and the origin are kept, so the origin must not be in the arena; the first read calls `plan`
 * again, for the same spans. A failure hides the file; tree_walk() gives the reason, and FAILED also makes it a note.
 * Returns false if the name is taken. */
typedef enum outcome plan_function(void *context, struct arena *arena, struct vfile *ret_file, struct error *error);
bool tree_add_file(struct tree *tree, node_id parent, const char *name, plan_function *plan, void *context);

/* Like tree_add_file(), for a file whose plan does not fail and is made once: listing names does not wait for it. */
bool tree_add_certain_file(struct tree *tree, node_id parent, const char *name, plan_function *plan, void *context);

/* An archived file, folder or link. */
struct original {
    mode_t mode; /* 07777 at most */
    struct timespec mtime;
    const char *target; /* of a link, else NULL */
};

/* Adds an original, which must live as long as the tree: a file as tree_add_certain_file() does, a link, or, without a
 * plan and a target, a directory. Returns its number, or 0 if the name is taken. */
node_id tree_add_original(struct tree *tree, node_id parent, const char *name, const struct original *original,
                          plan_function *plan, void *context);

/* Like tree_add_file(), for a text that write() appends to `out` when the file is planned; `origin` is its inputs. A
 * long text may be written again when it is read (sources/source_kinds.h). */
typedef enum outcome text_writer(void *context, struct buffer *out, struct error *error);
bool tree_add_text(struct tree *tree, node_id parent, const char *name, struct origin origin, text_writer *write,
                   void *context);

/* Records that a file may show this source unchanged, for tree_largest_whole(). */
void tree_expect_whole(struct tree *tree, const struct source *source);

/* Adds another name for a file of the directory, if that exists, in place of its earlier alias. The name opens the
 * file, but is not listed. */
void tree_add_alias(struct tree *tree, node_id parent, const char *name, const char *alias);

/* Sets the message for a path that is not in the tree, or for all paths that a pattern of fnmatch() matches: the option
 * they need, or the equivalent file. Both texts must live as long as the tree. */
void tree_add_hint(struct tree *tree, const char *path, const char *hint);

/* Like tree_add_hint(), for a path with an equivalent file at `place`, and the reason `why`. If that file is absent,
 * too, the message has its reason. All three texts must live as long as the tree. */
void tree_add_place(struct tree *tree, const char *path, const char *place, const char *why);

/* Adds a directory that is the root of another tree. The first look into the directory calls open(context, error), on
 * any thread, to make that tree; this tree frees it, before the releases of tree_on_free(). A branch has no branches. A
 * failure leaves an empty directory and a note. Returns the directory; 0 if the name exists or there are too many
 * branches. The branch's nodes have other numbers here. */
typedef struct tree *branch_function(void *context, struct error *error);
node_id tree_add_branch(struct tree *tree, node_id parent, const char *name, branch_function *open, void *context);

/* Like tree_add_branch(), for a top directory of the tree of `branch`, or for its root if that directory is missing: a
 * look into this directory opens both. `directory` must live as long as the tree. */
bool tree_add_part_of_branch(struct tree *tree, node_id parent, const char *name, node_id branch,
                             const char *directory);

/* A directory of directories of files, computed on demand and never stored: tensors/. Its items are directories,
 * numbered from 0: first those in the collection's own directory, then those in other items. Each has up to
 * COLLECTION_MAX_SLOTS files with fixed slot numbers. The name must be free. */
enum { COLLECTION_MAX_SLOTS = 200, TREE_MAX_NAME = 255 };
#define ITEM_NONE UINT64_MAX
struct collection {
    /* Return the number of items in the collection's own directory, and of all items. */
    uint64_t (*count)(const void *context);
    uint64_t (*n_items)(const void *context);
    /* Returns the number of items in an item's directory; they are numbered from *ret_first on. */
    uint64_t (*below)(const void *context, uint64_t item, uint64_t *ret_first);
    /* Returns the item whose directory holds an item; ITEM_NONE: the collection's own. */
    uint64_t (*above)(const void *context, uint64_t item);
    void (*name)(const void *context, uint64_t item, char name[TREE_MAX_NAME + 1]);
    /* Finds an item by its name in the directory of the item `above`; ITEM_NONE: the collection's own. */
    bool (*find)(const void *context, uint64_t above, const char *name, uint64_t *ret_item);
    unsigned (*n_slots)(void);
    /* Gets the name and size of a file; returns false if the slot is empty. */
    bool (*file)(const void *context, uint64_t item, unsigned slot, char name[TREE_MAX_NAME + 1], uint64_t *ret_size);
    /* Returns the reason why an item has no file of that name; NULL if unknown. */
    const char *(*refusal)(const void *context, uint64_t item, const char *name);
    struct origin (*origin)(const void *context, uint64_t item);
    bool (*plan)(const void *context, uint64_t item, unsigned slot, struct arena *arena, struct vfile *ret_file,
                 struct error *error);
    /* `slot` is -1 for the item's directory. */
    void (*xattrs)(const void *context, uint64_t item, int slot, tree_emit_xattr *emit, void *emit_context);
};
void tree_add_collection(struct tree *tree, node_id parent, const char *name, const struct collection *collection,
                         const void *context);

/* Replaces the tensors that tensors/ shows. They must live until the tree is freed. */
void tree_show(struct tree *tree, const struct shown_tensors *shown);

/* Calls release(context) when the tree is freed, before its arena is; the release that was added last comes first. */
void tree_on_free(struct tree *tree, void (*release)(void *context), void *context);

/* Returns memory that lives as long as the tree. */
struct arena *tree_arena(struct tree *tree);

/* Returns the tree of a component, and opens it if necessary; NULL if the component is not shown or cannot be opened.
 * The caller must not free it. */
struct tree *tree_of_component(struct tree *tree, const struct component *component);

/* Returns a note of the checkpoint as a line in the arena, with the paths of the files that it is about: "model.gguf:
 * no config.json". models/ and formats/ know the subject, the tree knows its files. */
const char *note_line(struct note note, struct arena *arena);
