/* Compares a GGUF with the file that wfs makes from a source: for `wfs verify`.
 *
 * The reproduction comes from headers alone (reproduction.h). A few blocks of each tensor show whether it was made by
 * the same search for scales. If so, every block is compared in one pass: a block that differs is a near tie
 * (quant/views/near_tie.h) or another block. If not, because an importance matrix or a tool is unknown, one pass
 * without a search tells whether its codes are the nearest for its scales (quant/blocks/codes.h). A tensor with
 * others is weighed, for which it is read again: its error, the root mean square of its differences from the source's
 * values, is compared with the error of wfs in the same type. An importance matrix or other rounding gives an error of
 * about the same size; weights of another model give one many times larger. */
#pragma once

#include "fs/lib/match.h"
#include "fs/lib/reproduction.h"
#include "quant/blocks/codes.h"
#include "text/json_write.h"

/* Verdicts about a tensor, the worst last. */
enum tensor_verdict {
    TENSOR_SAME,
    TENSOR_NEAR_TIES,      /* all blocks that differ are near ties, or close where those are few in the whole file */
    TENSOR_NEAREST_CODES,  /* other scales, as a search gives them, and the nearest codes for these */
    TENSOR_OTHER_TYPE,     /* with about the error of its type: another mix */
    TENSOR_OTHER_ROUNDING, /* the same type, with about its error */
    TENSOR_MISSING,        /* from the file */
    TENSOR_UNKNOWN,        /* the model has no tensor of that name */
    TENSOR_OTHER_SHAPE,
    TENSOR_OTHER_WEIGHTS,
    TENSOR_VERDICTS,
};

/* The blocks of a tensor that has the expected type and shape; zeros for others. */
struct block_counts {
    uint64_t n_blocks, n_different;
    uint64_t n_near;  /* near ties; not all are counted once a tensor has too many others */
    uint64_t n_close; /* not recognized as near ties, but with at most 1.25 times the error of the expected block */
    uint64_t first;   /* number of the first block that differs */
    double largest;   /* difference of a value, in units of its block's scale (block_distance()) */
};

struct tensor_finding {
    const struct tensor *expected, *found; /* NULL: missing there */
    enum tensor_verdict verdict;
    struct block_counts blocks;
    bool is_unlike;           /* most blocks differ, as an importance matrix or another tool gives: no near ties */
    bool by_codes;            /* the next two fields are known, and `blocks` is not */
    struct code_counts codes; /* of the tensor */
    const char *cast;         /* the type to which the source's values were rounded before; NULL: not at all */
    bool weighed;             /* the fields below are known */
    double error;             /* RMS difference from the source */
    double relative;          /* `error` divided by the source's RMS */
    double cost;              /* the error of wfs in the same type; 0 if unknown */
    bool cost_is_known;       /* false for types that need an importance matrix */
};

/* IDENTICAL: byte for byte. EQUAL: all tensors are the same up to near ties, and so are all keys that do more than
 * describe the model and those that another known build of llama.cpp writes; order and alignment may differ. NEAREST:
 * like EQUAL, but some tensors have other scales, with the nearest codes. */
enum answer { ANSWER_IDENTICAL, ANSWER_EQUAL, ANSWER_NEAREST, ANSWER_DIFFERENT };

struct verification {
    enum answer answer;
    struct tensor_finding *tensors;
    size_t n_tensors, counts[TENSOR_VERDICTS];
    struct key_matches keys;              /* `a` is expected, `b` is in the file */
    const struct build_class **explained; /* by key: other builds of llama.cpp that write it so; NULL: none known */
    bool has_importance;                  /* the file's keys name an importance matrix */
    struct block_counts all;              /* of all tensors; `first` is unused */
    struct code_counts codes;             /* of the tensors that have been checked by codes; no block is first */
};

/* Compares a GGUF with a reproduction. The result lives as long as the arena, the reproduction and the file. Fails if
 * bytes cannot be read. */
bool verify(const struct checkpoint *file, const struct reproduction *reproduction, struct arena *arena,
            struct verification *ret_verification, struct error *error);

/* Returns the word for a verdict: "near ties". */
const char *verdict_word(enum tensor_verdict verdict);

/* A GGUF that was compared with what wfs makes from a source. */
struct verified {
    const char *path, *source; /* as they were named */
    const struct checkpoint *file;
    struct reproduction reproduction;
    struct verification verification;
    const char *command; /* that makes the file, or one like it: "wfs cp ..."; NULL: the file is different */
    struct arena *arena; /* holds the verification and the command */
};

/* Opens both, finds the reproduction and verifies the file. The options are for the source; texts and options must
 * outlive the result, which verified_free() frees. */
bool verify_file(const char *path, const char *source, const struct options *options, struct verified *ret_verified,
                 struct error *error);
void verified_free(struct verified *verified);

/* Puts the members of the object that `wfs verify --json` prints: docs/trust.md. */
void verified_put(struct json_writer *writer, const struct verified *verified);

/* Compares the blocks of tensors in one pass over both files, and counts what differs: for the findings with both
 * tensors, of one type and shape. */
bool compare_blocks(struct tensor_finding *const *findings, size_t n_findings, const struct reproduction *reproduction,
                    struct error *error);

/* Checks the codes of tensors whose blocks are not those of the reproduction in one pass over the file and the source,
 * and sets by_codes and what belongs to it: for the findings with both tensors, of one type and shape. */
bool compare_codes(struct tensor_finding *const *findings, size_t n_findings, const struct reproduction *reproduction,
                   struct error *error);

/* Returns the span that encodes exactly this tensor; NULL: its bytes are copied, so that no rounding is involved. */
const struct span *expected_span(const struct vfile *file, const struct tensor_finding *finding);
