/* Tensors from the graph of a pickle.
 *
 * A container (a zip archive, a legacy file, a plain pickle) reads its pickle and resolves every persistent id to a
 * storage; all containers share the code that follows. Source: torch/_utils.py and torch/_tensor.py of torch 2.9 and
 * 1.13.
 *
 * A tensor that exceeds its storage, or has invalid sizes, makes the whole file an error: honest writers produce none.
 * Sparse, quantized, nested and meta tensors, those of unknown subclasses, and tensors that repeat stored bytes many
 * times, are listed with a refusal. */
#pragma once

#include "formats/checkpoint.h"
#include "formats/torch/pickle.h"
#include "quant/blocks/dtype.h"

/* The bytes of the file that a tensor is made from, compressed or not: two tensors have equal or disjoint bytes. */
struct torch_stored {
    const struct source *source; /* NULL: the pickle, at its opcodes */
    uint64_t offset, n_bytes;
};

/* The place of a PERSISTENT node's elements. */
struct torch_storage {
    struct source *source;
    uint64_t offset, n_bytes;
    struct torch_stored stored;
    const struct torch_dtype *dtype; /* NULL: the persistent id names no storage */
    bool untyped;
};

/* Storages that lie in bytes of the pickle, in the order in which they are read. */
struct torch_nested {
    struct torch_storage *storages;
    uint32_t n;
};

struct torch_container {
    struct checkpoint *checkpoint;
    struct tensor_set *tensors;           /* the set to fill */
    struct source *file;                  /* the file being read */
    const char *place;                    /* "model.pth: archive/data.pkl", for messages */
    const char *prefix;                   /* names begin with it and '.'; NULL: with nothing */
    const struct torch_storage *storages; /* of each PERSISTENT node */
    struct torch_nested *nested;          /* set by torch_add_tensors() */
    bool big_endian;                      /* the storages are */

    /* The pickle itself, which holds the bytes of numpy arrays. */
    const char *pickle_bytes;
    bool pickle_mapped; /* its bytes lie unchanged at `pickle_offset` of the file */
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

/* Reads a persistent id, and checks its numbers. *ret_is_storage is false, without an error, for other ids
 * ("module"). */
bool torch_storage_id(const struct torch_container *container, const struct pickle_node *persistent,
                      struct torch_storage_id *ret_id, bool *ret_is_storage, struct error *error);

/* Sets the error "PLACE: offset N: <reason>"; returns false. */
bool torch_refuse(const struct torch_container *container, const struct pickle_node *node, struct error *error,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Reports whether the node stands for a tensor or a numpy array. */
bool torch_is_tensor(const struct pickle_node *node);

/* Returns the node that holds the values of a tensor subclass that keeps them in other tensors; else NULL. */
struct pickle_node *torch_inner_tensors(const struct pickle_node *node);

/* Places a tensor that has its dtype and shape in a storage, from element `first` on, with strides in units. Returns
 * false if it exceeds the storage. *ret_span is the number of units from its first to its last, both included. */
bool torch_place(struct arena *arena, struct tensor *tensor, const struct torch_storage *storage, uint64_t first,
                 const uint64_t *strides, uint64_t *ret_span);

/* names.c: refuses tensors that show stored bytes more than 8 times over, expanded or under several names, if all
 * tensors together exceed that ratio of the file: a small file must not fill the disk of a user who copies the tree.
 * Small files have a constant allowance, which shards divide by their number. */
void torch_limit_expansion(const struct checkpoint *checkpoint, const struct source *file, struct tensor *tensors,
                           const struct torch_stored *stored, size_t n);

/* Makes a tensor, without its name, from a node that torch_is_tensor() accepts. */
bool torch_make_tensor(const struct torch_container *container, const struct pickle_node *node,
                       struct tensor *ret_tensor, struct torch_stored *ret_stored, struct error *error);

/* arrays.c: like torch_make_tensor(), for numpy arrays. */
bool torch_make_array(const struct torch_container *container, const struct pickle_node *node,
                      struct tensor *ret_tensor, struct torch_stored *ret_stored, struct error *error);

/* arrays.c: reports whether a node is an array of numpy, or of JAX, of any dtype. */
bool torch_holds_array(const struct pickle_node *node);

/* arrays.c: reports whether a node is an array of texts, objects or dates, which cannot be a tensor. Returns its shape
 * and the name of its dtype from the pickle; both may be NULL. */
bool torch_array_of_objects(const struct pickle_node *node, struct pickle_node **ret_shape,
                            struct pickle_node **ret_dtype);

/* arrays.c: returns the dtype of an OBJECT of numpy.dtype; NULL if it is not supported. */
const struct dtype *torch_numpy_dtype(const struct pickle_node *node, bool *ret_swapped);

/* A mark of nodes: see torch_bytes(). */
enum { TORCH_COPIED = 16 };

/* arrays.c: returns the bytes of a BYTES node, an old TEXT, or an _codecs.encode(text, "latin1"), in the arena, copied
 * by the first call; every call needs the same arena. NULL for all other nodes. */
const void *torch_bytes(struct arena *arena, struct pickle_node *node, size_t *ret_length);

/* legacy.c: returns the storage in the bytes of a call of _load_from_bytes, read by the first call. Returns NULL, with
 * the reason in the error, if the bytes hold no storage. */
const struct torch_storage *torch_nested_storage(const struct torch_container *container, struct pickle_node *node,
                                                 struct error *error);

/* Reads the sizes in a tuple, list or torch.Size: at most SHAPE_MAX_RANK integers >= 0, else returns false. */
bool torch_sizes(const struct pickle_node *node, uint64_t *sizes, unsigned *ret_rank);

/* names.c: adds all tensors of the graph to the set, and everything else to the checkpoint's extras. Names:
 *
 * - a tensor's name joins the dict keys, list and tuple indices and object attributes on the way to it with '.':
 * "optimizer.state.0.exp_avg". The tensors of a plain state dict have its keys as names;
 * - names omit the key "state_dict" or "model" if nothing else in its dict holds tensors, repeatedly, a "module." that
 * all names start with (DataParallel), and "_parameters", "_buffers" and "_modules" of an nn.Module, so that a pickled
 * module has the names of its state dict;
 * - of equal names ({"a.b": x, "a": {"b": y}}, or the keys 1 and "1"), the second gets the suffix "~2", the third "~3",
 * skipping existing names;
 * - a tensor on its own has the name of the file without its ending;
 * - elements of an array of objects have their index in memory order, that of an array without dimensions has none;
 * - a tensor of Paddle, a tuple of a variable's name and an array, has the path of the tuple;
 * - tensors are in the order of the pickle, depth first. A tensor in several places has several names. */
bool torch_add_tensors(const struct torch_container *container, struct pickle *pickle, struct arena *scratch,
                       struct error *error);

/* read.c: fails if the file says that it holds a part of a model alone, which other ranks have the rest of. */
bool torch_check_whole(const struct torch_container *container, const struct pickle_node *root, struct error *error);

/* arrays.c: joins arrays that paddle.save() cut into slices, among the tensors from `first` on. Fails if a slice is
 * missing or used twice, or if the slices do not fill the array. */
bool torch_join_slices(const struct torch_container *container, const struct pickle *pickle, size_t first,
                       struct error *error);

/* read.c: appends a dict key as in names and extras: texts and bytes unchanged (absent bytes as their number), other
 * keys as Python prints them, "(1, a)" without quotes. A tuple takes little more than TENSOR_MAX_NAME bytes. */
void torch_append_key(struct buffer *path, const struct pickle_node *key);

/* extras.c: returns the JSON of everything but tensors, in the arena; NULL if there is nothing. Nodes that hold tensors
 * are marked TORCH_HOLDS_TENSORS; a node within itself is omitted. *ret_cut tells whether TORCH_MAX_EXTRAS bytes were
 * too few. Values without a JSON type:
 *
 * - bytes are {"bytes": the first 64 of them in hexadecimal, "length": how many}, integers beyond 64 bits are texts of
 * their digits;
 * - a date, a time, or both without a zone is a text as ISO 8601 has it;
 * - a storage on its own is {"torch.FloatStorage": [key, location, number of elements]}, an array of texts or objects
 *   {"numpy.ndarray": [dtype, shape]};
 * - the unknown result of a function, and any other object without members, is {"MODULE.NAME": [arguments]}, with
 * "state" if it has one. */
enum { TORCH_HOLDS_TENSORS = 1, TORCH_MAX_EXTRAS = 256 * 1024 };
const char *torch_extras(struct arena *arena, struct pickle_node *root, bool *ret_cut);

/* Reads data.pkl of a zip archive of torch as a graph, in the arena, which must be freed before the source is closed:
 * the values without the tensors, which a reader of several archives needs to join them. Fails for other containers. */
bool torch_values_read(struct pickle *pickle, const struct source *source, struct arena *arena, struct error *error);

/* The element types of torch, by the names that pickles use. */

struct torch_dtype {
    const char *name;        /* of the constant torch.NAME */
    const char *storage;     /* of the storage class; NULL: none */
    const char *dtype;       /* the name of wfs's dtype */
    uint8_t component_bytes; /* bytes of one number, with one sign: half an element if complex */
    bool quantized;          /* the values need scales that are kept elsewhere */
};

/* Return the row of that name ("float32") or storage ("FloatStorage"), or NULL. */
const struct torch_dtype *torch_dtype_by_name(const char *name);
const struct torch_dtype *torch_dtype_by_storage(const char *name);
