/* Attestations: which virtual files were made, from which files, by which request. For `wfs attest` and `wfs verify
 * --attestation`.
 *
 * An attestation is an in-toto statement with a SLSA provenance. Its subjects are virtual files, its resolved
 * dependencies (materials) all files of the source that the subjects are declared to be made from (formats/origin.h),
 * and the files that options name. It holds no time, no absolute path and no name of a user or machine, so that anyone
 * with the same files makes the same bytes.
 *
 * Source: in-toto Attestation Framework, Statement v1; SLSA Provenance v1. */
#pragma once

#include "base/sha256.h"
#include "fs/lib/paths.h"
#include "fs/options/options.h"
#include "text/json_write.h"

struct attested_file {
    const char *name; /* of a subject: its path in the tree; of a material: its path in the source, or its file name */
    char sha256[SHA256_HEX + 1];
};

struct attestation {
    const char *model;                   /* the model's name, which GGUF files contain */
    const char *version;                 /* of wfs */
    const struct references *references; /* the builds that the files follow; not set by attestation_read() */
    const char *llama_cpp;               /* set by attestation_read(): "b11549"; NULL: not stated */
    const char *const *options; /* "name=Other", in the order of the table of options; files without their folders */
    size_t n_options;
    struct attested_file *subjects, *materials; /* sorted by name */
    size_t n_subjects, n_materials;
};

/* Reads and hashes the files of a tree, and all their inputs. The result lives as long as the arena and the options. */
bool attestation_make(struct tree *tree, const struct found_list *files, const struct options *options,
                      struct arena *arena, struct attestation *ret_attestation, struct error *error);

/* Appends the statement as JSON. */
void attestation_append(const struct attestation *attestation, enum json_letters letters, struct buffer *out);

/* Reads the statement of a file. Fails if it is no statement of wfs. */
bool attestation_read(const char *path, struct arena *arena, struct attestation *ret_attestation, struct error *error);

/* Compares two lists of files by name, and calls differ(context, a, b) for each file that only one list has (the other
 * is NULL) or whose digest differs. Returns how many there are. */
typedef void attested_difference(void *context, const struct attested_file *a, const struct attested_file *b);
size_t attestation_compare(const struct attested_file *a, size_t n_a, const struct attested_file *b, size_t n_b,
                           attested_difference *differ, void *context);
