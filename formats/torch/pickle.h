/* Pickles, read as data.
 *
 * The machine understands protocols 0 to 5 and builds a graph of passive nodes. It imports, calls and constructs
 * nothing. Source: Lib/pickletools.py of CPython 3.11, which describes all 68 opcodes. The rules:
 *
 * - a call (REDUCE, INST, OBJ) of a global that stands for data in the table of globals.c is an OBJECT node;
 * - so is making a plain object of any class outside the table: NEWOBJ, copyreg._reconstructor, and INST or OBJ without
 * arguments; such classes are listed in `foreign`;
 * - a pickle may name any other global as a value, which is only its name;
 * - a call of any other global, or of the result of such a call, is an opaque OBJECT: the function and its arguments,
 * listed in `foreign` as well. Its value is unknown, so no tensor can depend on it;
 * - a file that names a harmful global (globals.c), called or not, is refused; BUILD,
 *   SETITEM, APPEND on anything but such an object or container are refused; so are EXT1-4, NEXT_BUFFER and
 *   READONLY_BUFFER, which need tables outside the file.
 *
 * Work and memory are linear in the bytes of the pickle: lengths are compared with the remaining bytes before any
 * allocation, texts are slices of the input, the memo is sparse, no recursion follows the input. Nodes, the memo, the
 * stack and its marks may use at most PICKLE_MEMORY_RATIO bytes for each byte of the pickle plus a constant, and at
 * most pickle_max_memory.
 *
 * The graph may share nodes and have cycles; a walker bounds its walk. Nodes live in the arena; texts and bytes
 * in the input, which must outlive them.
 *
 * Arrays inside a pickle can be larger than memory. pickle_read_parts() therefore asks for the bytes that it needs, one
 * part after the other, and never for the contents of bytes objects of PICKLE_LEFT_OUT or more, but for the first
 * PICKLE_PRESENT: such a node is `absent`. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The globals of pickles: the closed table of globals that stand for data, and names that data never needs.
 *
 * A pickle names Python objects, "module name", and which of them to call. wfs never calls anything: each global has
 * one of these meanings instead. */

enum global_meaning {
    GLOBAL_FOREIGN, /* not in the table: a name, the class of plain objects, or a function with an unknown result */
    GLOBAL_HARMFUL, /* acts on the world or runs code: a file that names it is refused */

    GLOBAL_CLASS,    /* a class or constant of Python that may be named; an object of it is plain data */
    GLOBAL_CONSTANT, /* torch.float32, torch.strided, numpy.dtypes ...: plain data, identified by its name */
    GLOBAL_STORAGE,  /* a torch storage type: torch.FloatStorage */

    GLOBAL_REBUILD_TENSOR,    /* (storage, offset, size, stride) */
    GLOBAL_REBUILD_TENSOR_V2, /* (..., requires_grad, hooks[, metadata]) */
    GLOBAL_REBUILD_TENSOR_V3, /* (..., requires_grad, hooks, dtype[, metadata]) */
    GLOBAL_REBUILD_PARAMETER, /* (tensor, requires_grad, hooks[, state]) */
    GLOBAL_REBUILD_FROM_TYPE, /* (function, type, arguments, state) */
    GLOBAL_REBUILD_WRAPPER,   /* a tensor subclass without data of its own: (class, dtype, size, ...) */
    GLOBAL_REBUILD_QUANTIZED, /* (storage, offset, size, stride, scheme, ...) */
    GLOBAL_REBUILD_SPARSE,    /* (layout, (indices, values, size, ...)) */
    GLOBAL_REBUILD_NESTED,    /* (buffer, sizes, strides, offsets) */
    GLOBAL_REBUILD_META,      /* (dtype, size, stride, requires_grad) */
    GLOBAL_REBUILD_ON_DEVICE, /* (tensor or numpy array, dtype, device, requires_grad) */
    GLOBAL_TENSOR_CLASS,      /* torch.Tensor, Parameter: an object of it gets its tensor as argument or by BUILD */
    GLOBAL_LOAD_FROM_BYTES,   /* (bytes of a legacy file that holds a storage) */

    GLOBAL_DICT,        /* dict and its kin: filled by SETITEM */
    GLOBAL_LIST,        /* list, deque: filled by APPEND */
    GLOBAL_SET,         /* (items) */
    GLOBAL_TUPLE,       /* (items) */
    GLOBAL_FIRST,       /* stands for its first argument: torch.jit lists, device */
    GLOBAL_NUMPY_ARRAY, /* _reconstruct, filled by BUILD */
    GLOBAL_NUMPY_FROM_BUFFER,
    GLOBAL_JAX_ARRAY,    /* (numpy's _reconstruct, its arguments, the array's state, the state of its type) */
    GLOBAL_NUMPY_SCALAR, /* (dtype, bytes) */
    GLOBAL_NUMPY_DTYPE,  /* (text, ...), completed by BUILD */
    GLOBAL_ENCODE,       /* _codecs.encode (text, "latin1"): bytes, as protocol 2 writes them */
    GLOBAL_RECONSTRUCT,  /* copyreg._reconstructor (class, base, state): an object of the class */
    GLOBAL_NEW_OBJECT,   /* copyreg.__newobj__ (class, arguments ...): an object of the class */
};

/* Returns the meaning of a global; names are NUL-terminated and may be any bytes. Knows the Python 2 names of modules,
 * too. */
enum global_meaning global_meaning(const char *module, const char *name);

enum {
    PICKLE_MAX_BYTES = 512 * 1024 * 1024, /* without the contents of absent bytes */
    PICKLE_LEFT_OUT = 64 * 1024,
    PICKLE_PRESENT = 64,
    PICKLE_MEMORY_RATIO = 48,
    PICKLE_MEMORY_CONSTANT = 1024 * 1024,
    PICKLE_MAX_FOREIGN = 16, /* classes and functions listed */
};

static const uint64_t pickle_max_memory = UINT64_C(2) << 30; /* bytes */
#define PICKLE_MAX_LENGTH (UINT64_C(1) << 38)                /* bytes, with all contents */

enum pickle_kind {
    PICKLE_NONE,
    PICKLE_FALSE,
    PICKLE_TRUE,
    PICKLE_INTEGER,
    PICKLE_BIG_INTEGER, /* more than 64 bits: `text` is its little-endian bytes, or its digits where `old` */
    PICKLE_FLOAT,
    PICKLE_TEXT,  /* UTF-8, surrogates allowed; any bytes where `old`: a str of Python 2 */
    PICKLE_BYTES, /* bytes or bytearray */
    PICKLE_TUPLE,
    PICKLE_LIST,
    PICKLE_SET,  /* or frozenset */
    PICKLE_DICT, /* `items` are keys and values in turn, as written: a key may appear twice */
    PICKLE_GLOBAL,
    PICKLE_OBJECT,
    PICKLE_PERSISTENT,
};

struct pickle_node;

struct pickle_items {
    struct pickle_node **nodes;
    uint32_t n, capacity;
};

/* The result of calling a class or function of the table, an object of a foreign class, or the unknown result of a
 * foreign function. */
struct pickle_object {
    const struct pickle_node *class;  /* a GLOBAL */
    struct pickle_node *arguments;    /* a TUPLE */
    struct pickle_node *state;        /* of BUILD, or NULL */
    struct pickle_items pairs, items; /* added by SETITEM(S) and APPEND(S) */
    bool called;                      /* the last: opaque */
    uint32_t nested;                  /* for tensors.c: the number of its nested storage, from 1; 0: not read yet */
};

struct pickle_node {
    uint8_t kind;    /* enum pickle_kind */
    uint8_t meaning; /* of a GLOBAL; of an OBJECT, that of its class */
    uint8_t mark;    /* 0, for the use of walkers */
    bool old : 1;
    bool absent : 1;      /* PICKLE_BYTES of which only the beginning is in memory */
    uint64_t offset : 38; /* of its opcode in the pickle */
    union {
        int64_t integer;
        double number;
        struct {
            const char *bytes;
            size_t length;
        } text;
        struct pickle_items items;
        struct {
            const char *module, *name; /* NUL-terminated */
        } global;
        struct pickle_object *object;
        struct {
            struct pickle_node *id;
            uint32_t index; /* in the list of the pickle */
        } persistent;
    };
};

/* A class or function outside the table, where it is used first. */
struct pickle_foreign {
    const struct pickle_node *global;
    bool called; /* by REDUCE, INST or OBJ; else the class of plain objects */
};

struct pickle {
    struct pickle_node *root;
    size_t length;   /* through STOP; later bytes are ignored */
    size_t n_needed; /* of them, without the contents of absent bytes: the bound of walks */
    struct pickle_foreign foreign[PICKLE_MAX_FOREIGN];
    unsigned n_foreign;
    struct pickle_items persistent; /* all PERSISTENT nodes, in the order of the pickle */
    bool harmful;                   /* refused, because it names a harmful global */
};

/* Reads the pickle at `bytes`. The error starts with the offset and name of the opcode at fault. *ret_truncated, if not
 * NULL, tells whether the only fault is that the input ends too early. */
bool pickle_read(struct pickle *pickle, const void *bytes, size_t length, struct arena *arena, bool *ret_truncated,
                 struct error *error);

/* A pickle whose bytes are brought to memory as they are needed. */
struct pickle_parts {
    unsigned char *bytes; /* memory for all of them, which takes no pages before they are brought */
    uint64_t length;
    bool (*bring)(void *context, uint64_t from, size_t length, unsigned char *out, struct error *error);
    void *context;
};

/* Like pickle_read(), for a pickle in parts. */
bool pickle_read_parts(struct pickle *pickle, const struct pickle_parts *parts, struct arena *arena,
                       struct error *error);

/* Functions to read the graph; all accept any node, and NULL. */

bool pickle_is(const struct pickle_node *node, enum pickle_kind kind);
bool pickle_text_is(const struct pickle_node *node, const char *text);

/* Reports whether the node is an OBJECT of a global with that meaning. */
bool pickle_object_is(const struct pickle_node *node, enum global_meaning meaning);

/* Returns an element of a TUPLE or LIST, or NULL. */
struct pickle_node *pickle_at(const struct pickle_node *node, uint32_t index);

/* Returns the number of elements of a TUPLE or LIST; 0 for all other nodes. */
uint32_t pickle_count(const struct pickle_node *node);

/* Returns the last value of a text key in a DICT, or in an OBJECT of the dict kind; NULL if there is none. */
const struct pickle_node *pickle_get(const struct pickle_node *node, const char *key);

/* Returns false if the node is not an integer of 64 bits (True and False are not). */
bool pickle_integer(const struct pickle_node *node, int64_t *ret_value);
