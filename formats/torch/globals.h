/* The globals of pickles: the closed table of globals that stand for data, and names that data never needs.
 *
 * A pickle names Python objects, "module name", and which of them to call. wfs never calls anything: each global has
 * one of these meanings instead. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

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
