/* Compares a GGUF with the files that wfs makes from a source: for `wfs verify`.
 *
 * The file is compared with the virtual GGUFs of its size, byte by byte. Where none is the same, the nearest is looked
 * at tensor by tensor and key by key. A tensor of other values is weighed: its error, the root of the mean square of
 * its differences from the source's values, is compared with the error that wfs makes when it writes them in the same
 * type. An importance matrix, or another way to round, costs about as much again; weights of another model cost many
 * times that. */
#pragma once

#include "fs/cli/match.h"
#include "fs/tree/tree.h"

/* Verdicts about a tensor, the worst last. */
enum tensor_verdict {
    TENSOR_SAME,
    TENSOR_OTHER_TYPE,     /* with about the error that its type costs: another mix */
    TENSOR_OTHER_ROUNDING, /* of the same type, with about that error */
    TENSOR_MISSING,        /* in the file */
    TENSOR_UNKNOWN,        /* the model has none of that name */
    TENSOR_OTHER_SHAPE,
    TENSOR_OTHER_WEIGHTS,
    TENSOR_VERDICTS,
};

struct tensor_finding {
    const struct tensor *expected, *found; /* NULL: there is none */
    enum tensor_verdict verdict;
    bool weighed;       /* the rest is known */
    double error;       /* RMS, against the source */
    double relative;    /* the same as a share of the source's RMS */
    double cost;        /* the error of wfs in the same type; 0 too where it is not known */
    bool cost_is_known; /* not where a type needs an importance matrix */
};

struct verification {
    const char *identical, *nearest; /* paths of virtual files, one of them NULL */
    struct tensor_finding *tensors;
    size_t n_tensors, counts[TENSOR_VERDICTS];
    struct key_matches keys; /* `a` is what is expected, `b` what is found */
    bool has_importance;     /* its keys name an importance matrix */
};

/* Everything found lives in the arena, as long as the tree and the file do. */
bool verify(const struct checkpoint *file, struct tree *tree, struct arena *arena,
            struct verification *ret_verification, struct error *error);
