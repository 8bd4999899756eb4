/* Compares a GGUF with the files that wfs makes from a source: for `wfs verify`.
 *
 * A file without splits is compared byte by byte with the virtual GGUFs of its size. If none is identical, the nearest
 * one is compared tensor by tensor and key by key. A tensor with other values is weighed: its error, the root mean
 * square of its differences from the source's values, is compared with the error of wfs in the same type. An importance
 * matrix or other rounding gives an error of about the same size; weights of another model give one many times larger.
 */
#pragma once

#include "fs/cli/match.h"
#include "fs/tree/tree.h"

/* Verdicts about a tensor, the worst last. */
enum tensor_verdict {
    TENSOR_SAME,
    TENSOR_OTHER_TYPE,     /* with about the error of its type: another mix */
    TENSOR_OTHER_ROUNDING, /* the same type, with about its error */
    TENSOR_MISSING,        /* from the file */
    TENSOR_UNKNOWN,        /* the model has no tensor of that name */
    TENSOR_OTHER_SHAPE,
    TENSOR_OTHER_WEIGHTS,
    TENSOR_VERDICTS,
};

struct tensor_finding {
    const struct tensor *expected, *found; /* NULL: missing there */
    enum tensor_verdict verdict;
    bool weighed;       /* the fields below are known */
    double error;       /* RMS difference from the source */
    double relative;    /* `error` divided by the source's RMS */
    double cost;        /* the error of wfs in the same type; 0 if unknown */
    bool cost_is_known; /* false for types that need an importance matrix */
};

struct verification {
    const char *identical, *nearest; /* paths of virtual files; one is NULL */
    struct tensor_finding *tensors;
    size_t n_tensors, counts[TENSOR_VERDICTS];
    struct key_matches keys; /* `a` is expected, `b` is in the file */
    bool has_importance;     /* the file's keys name an importance matrix */
};

/* Compares a file with the tree of a source. The result lives as long as the arena, the tree and the file. Fails if the
 * file is no GGUF, if the source gives none, or if one cannot be read. */
bool verify(const struct checkpoint *file, struct tree *tree, struct arena *arena,
            struct verification *ret_verification, struct error *error);
