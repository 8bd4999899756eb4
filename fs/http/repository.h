/* Repositories: models under the names and in the form that the model hub gives them.
 *
 * Each source is two repositories: ORG/NAME has the files of hf/ (of a pipeline, those of each component in the
 * component's directory), and ORG/NAME-GGUF has NAME-Q4_K_M.gguf and its siblings from gguf/, and
 * mmproj-NAME-F16.gguf. A repository without a file is left out.
 *
 * Names are known once a repository is made; a file is planned when its size is asked for. Repositories do not change
 * once made, and may be used from any thread. The trees must outlive them. */
#pragma once

#include "base/sha256.h"
#include "fs/tree/tree.h"

enum { COMMIT_DIGITS = 40 };

struct repository_file {
    const char *name; /* in the repository: "NAME-Q4_K_M.gguf", "vae/config.json" */
    node_id node;     /* in the tree */
};

struct repository {
    const char *id;    /* "ORG/NAME-GGUF" */
    const char *model; /* "NAME" */
    bool gguf;         /* the files are GGUFs */
    struct tree *tree;
    char commit[COMMIT_DIGITS + 1]; /* follows the identities of the inputs and the request */
    struct timespec modified;
    const struct repository_file *files; /* sorted by name, as bytes */
    size_t n_files;
};

struct repositories {
    struct repository *items;
    size_t count;
};

/* Adds the repositories of a tree under `id`, "ORG/NAME", in `arena`. `shown` are patterns (glob(7)) of the file names
 * to list; none lists all. Fails if another model has the name already. */
bool repositories_add(struct repositories *repositories, struct tree *tree, const char *id, const char *const *shown,
                      size_t n_shown, struct arena *arena, struct error *error);

void repositories_free(struct repositories *repositories);

/* NULL if there is none of that name. */
const struct repository *repository_find(const struct repositories *repositories, const char *id);
const struct repository_file *repository_file(const struct repository *repository, const char *name);

/* Reports whether a revision is the one that a repository has: its commit, "main" or "HEAD". */
bool repository_has_revision(const struct repository *repository, const char *revision);

/* Returns the file of a tag: NAME-TAG.gguf with letters of either case, and for "latest" the first of the usual
 * choices. NULL if there is none. */
const struct repository_file *repository_file_of_tag(const struct repository *repository, const char *tag,
                                                     struct arena *arena);

/* Plans a file of the tree, and gets its size and its quoted entity tag: its identity (fs/tree/identity.h). Returns
 * false if the file turns out to be absent. */
enum { ETAG_TEXT = SHA256_HEX + 3 };
bool repository_plan(const struct repository *repository, node_id node, uint64_t *ret_size, char etag[ETAG_TEXT]);
