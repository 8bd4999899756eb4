/* From the graph of a pickle to tensors.
 *
 * A container (a zip archive, a legacy file, a plain pickle) reads its pickle and resolves every persistent id to a
 * storage; from there on all containers are alike, and this is what they share. Follows torch/_utils.py and
 * torch/_tensor.py of torch 2.9 and of 1.13.
 *
 * A tensor that is more than its storage holds, or whose numbers are not sizes at all, makes the file refused: honest
 * writers produce none. Sparse, quantized, nested and meta tensors, and those that show what is stored many times over,
 * are listed with their refusal. */
#pragma once

#include "formats/checkpoint.h"
#include "formats/torch/pickle.h"
#include "formats/torch/torch_dtypes.h"

/* The bytes of the file that a tensor is made from, compressed or not: those of two tensors are the same, or apart. */
struct torch_stored {
    const struct source *source; /* NULL: the pickle, by opcodes */
    uint64_t offset, n_bytes;
};

/* Where a PERSISTENT node's elements are. */
struct torch_storage {
    struct source *source;
    uint64_t offset, n_bytes;
    struct torch_stored stored;
    const struct torch_dtype *dtype; /* NULL: the persistent id names no storage */
    bool untyped;
};

struct torch_container {
    struct checkpoint *checkpoint;
    struct tensor_set *tensors;           /* where they are added */
    struct source *file;                  /* that is read */
    const char *place;                    /* "model.pth: archive/data.pkl", for messages */
    const struct torch_storage *storages; /* of each PERSISTENT node */
    bool big_endian;                      /* the storages are */

    /* The pickle itself, which holds the bytes of numpy arrays. */
    const char *pickle_bytes;
    bool pickle_mapped; /* it lies as it is at `pickle_offset` of the file */
    uint64_t pickle_offset;
};

/* A persistent id ("storage", class, key, location, numel[, view]). */
struct torch_storage_id {
    const char *key;
    size_t key_length;
    const struct torch_dtype *dtype;
    bool untyped;
    uint64_t n_elements, n_bytes;
    const struct pickle_node *view; /* the sixth field, or NULL */
};

/* *ret_is_storage is false for ids of another kind ("module"), which are not an error. Numbers are checked. */
bool torch_storage_id(const struct torch_container *container, const struct pickle_node *persistent,
                      struct torch_storage_id *ret_id, bool *ret_is_storage, struct error *error);

/* "PLACE: offset N: <reason>". Returns false. */
bool torch_refuse(const struct torch_container *container, const struct pickle_node *node, struct error *error,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Reports whether the node stands for a tensor or a numpy array. */
bool torch_is_tensor(const struct pickle_node *node);

/* A tensor subclass that keeps its values in other tensors: the node that holds those; NULL for all others. */
struct pickle_node *torch_inner_tensors(const struct pickle_node *node);

/* Makes a tensor of such a node: all but its name. */
bool torch_make_tensor(const struct torch_container *container, const struct pickle_node *node,
                       struct tensor *ret_tensor, struct torch_stored *ret_stored, struct error *error);

/* arrays.c: the same for arrays. */
bool torch_make_array(const struct torch_container *container, const struct pickle_node *node,
                      struct tensor *ret_tensor, struct torch_stored *ret_stored, struct error *error);

/* arrays.c: whether a node is an array of texts, objects or dates, which are not numbers: no tensor is made of it. Then
 * its shape and the name of its dtype, as the pickle has them; both may be NULL. */
bool torch_array_of_objects(const struct pickle_node *node, struct pickle_node **ret_shape,
                            struct pickle_node **ret_dtype);

/* arrays.c: the dtype that an OBJECT of numpy.dtype stands for; NULL where it is not supported. */
const struct dtype *torch_numpy_dtype(const struct pickle_node *node, bool *ret_swapped);

/* A mark of nodes: see torch_bytes(). */
enum { TORCH_COPIED = 16 };

/* arrays.c: the bytes of a BYTES node, an old TEXT, or an _codecs.encode(text, "latin1"), in the arena: copied once,
 * however often they are asked for, and always with the same arena. NULL where it is not one. */
const void *torch_bytes(struct arena *arena, struct pickle_node *node, size_t *ret_length);

/* Sizes of a tuple, list or torch.Size of integers; at most LAYOUT_MAX_RANK. False where they are not all integers >=
 * 0. */
bool torch_sizes(const struct pickle_node *node, uint64_t *sizes, unsigned *ret_rank);

/* names.c: adds all tensors of the graph to the set, and what else it holds to the checkpoint's extras. Names:
 *
 * - a tensor's name is the keys of the dicts, the indices of the lists and tuples and the attributes of the objects on
 * the way to it, joined with '.': "optimizer.state.0.exp_avg". A plain state dict gives exactly its keys;
 * - a dict that holds tensors only under "state_dict" or "model" is opened: that key is left out, repeatedly. So
 * is a "module." that all names start with (DataParallel). Of an nn.Module, "_parameters", "_buffers" and "_modules"
 * are left out, so that a pickled module has the names of its state dict;
 * - of names that are equal then ({"a.b": x, "a": {"b": y}}, or the keys 1 and "1"), the second gets "~2" at its end,
 * the third "~3", passing over names that are there already;
 * - a tensor on its own has the name of the file without its ending;
 * - tensors are in the order of the pickle, depth first. A tensor that is found in several places has several names. */
bool torch_add_tensors(const struct torch_container *container, struct pickle *pickle, struct arena *scratch,
                       struct error *error);

/* keys.c: appends a key of a dict as names and extras have it: texts and bytes as they are, all others as Python shows
 * them, "(1, a)" without quotes. Not much more than TENSOR_MAX_NAME of a tuple. */
void torch_append_key(struct buffer *path, const struct pickle_node *key);

/* extras.c: the JSON of all that is not a tensor, in the arena; NULL where there is nothing. Nodes that hold tensors
 * are marked TORCH_HOLDS_TENSORS; what contains itself is not written again. At most TORCH_MAX_EXTRAS bytes: *ret_cut
 * tells whether more was there. What JSON has no word for:
 *
 * - bytes are {"bytes": the first 64 of them in hexadecimal, "length": how many}, integers beyond 64 bits are texts of
 * their digits;
 * - a date, a time, or both without a zone is a text as ISO 8601 has it;
 * - a storage on its own is {"torch.FloatStorage": [key, location, number of elements]}, an array of texts or objects
 *   {"numpy.ndarray": [dtype, shape]};
 * - what calling a function would give, and any other object that says nothing else of itself, is {"MODULE.NAME":
 * [arguments]}, with "state" where it has one. */
enum { TORCH_HOLDS_TENSORS = 1, TORCH_MAX_EXTRAS = 256 * 1024 };
const char *torch_extras(struct arena *arena, struct pickle_node *root, bool *ret_cut);
