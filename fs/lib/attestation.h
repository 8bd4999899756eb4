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

#include "base/encodings.h"
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

/* A statement made again from a source and compared (attested.c): for `wfs verify --attestation`. */

struct attested {
    const char *path; /* of the statement */
    struct attestation stated, made;
    const struct options *options; /* the user's with those of the statement: the source is to be opened with them */
    struct arena *arena;
};

/* Reads the statement at `path`, and adds its options to the user's: except those that the user gives, and those that
 * name files, which the user must give. attested_free() frees the result, which the user's options must outlive. */
bool attested_read(const char *path, const struct options *options, struct attested *ret_attested, struct error *error);
void attested_free(struct attested *attested);

/* Makes the statement again from the tree of a source, which must outlive it. */
bool attested_make(struct attested *attested, struct tree *tree, struct error *error);

/* Calls take(context, kind, stated, made) for each "subject" and "material" that is not as stated; one of the two is
 * NULL if it is missing there. Returns how many there are. */
typedef void attested_line(void *context, const char *kind, const struct attested_file *stated,
                           const struct attested_file *made);
size_t attested_differences(const struct attested *attested, attested_line *take, void *context);

/* Puts the members of the object that `wfs verify --attestation --json` prints; returns the number of differences. */
size_t attested_put(struct json_writer *writer, const struct attested *attested);
