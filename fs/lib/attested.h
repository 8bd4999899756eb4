/* A statement of `wfs attest`, made again from a source and compared: for `wfs verify --attestation`. */
#pragma once

#include "fs/lib/attestation.h"

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
