/* Repositories: models under the names and in the form that the model hub gives them.
 *
 * Each source is several repositories: ORG/NAME has the files of hf/ (of a pipeline, those of each component in the
 * component's directory), and ORG/NAME-GGUF has NAME-Q4_K_M.gguf and its siblings from gguf/, and
 * mmproj-NAME-F16.gguf. Either is left out if it has no file. Each directory for an engine is one more:
 * ORG/NAME-MLX-4bit has the files of mlx/4bit/ (tree_list_engines()). If patterns choose the files, no directory for an
 * engine is listed.
 *
 * Making a repository plans nothing: its names are those that the tree would list, and a file may turn out to be absent
 * when it is planned, which is when its size is asked for. The names of a directory for an engine are found when they
 * are first asked for, which may take as long as a plan. Repositories do not change otherwise, and may be used from any
 * thread. The trees must outlive them. */
#pragma once

#include "base/encodings.h"
#include "base/text_index.h"
#include "fs/tree/tree.h"

enum { COMMIT_DIGITS = 40 };

struct repository_file {
    const char *name; /* in the repository: "NAME-Q4_K_M.gguf", "vae/config.json" */
    node_id node;     /* in the tree */
};

struct repository {
    const char *id;    /* "ORG/NAME-GGUF" */
    const char *base;  /* "ORG/NAME" */
    const char *model; /* "NAME" */
    const char *tag;   /* tells the source's repositories apart: "hf", "gguf", "mlx-4bit" */
    const char
        *command;      /* runs the files, before the repository's id; NULL: none is known, or nothing knows the class */
    bool gguf;         /* the files are GGUFs */
    bool is_tagged;    /* ... and the command takes the tag of one after the id */
    bool is_of_engine; /* the files are those of a directory for an engine */
    bool is_listed;    /* else it is found only by its name */
    struct tree *tree;
    char commit[COMMIT_DIGITS + 1]; /* follows the identities of the inputs and the request */
    struct timespec modified;
    struct repository_names *names; /* of its files (repository_files()) */
    struct told_notes *told;        /* of the tree */
};

struct repository_files {
    const struct repository_file *items; /* sorted by name, as bytes */
    size_t count;
};

/* Begins with zeros. Those of a source are one after the other. */
struct repositories {
    struct repository *items;
    size_t count;
    struct text_index by_id, by_lower_id; /* places in items */
};

/* Adds the repositories of a tree under `id`, "ORG/NAME", in `arena`. `shown` are patterns (glob(7)) of the file names
 * to list, and live as long; none lists all. Fails if another model has the name already; a directory for an engine
 * leaves its name to a model. */
bool repositories_add(struct repositories *repositories, struct tree *tree, const char *id, const char *const *shown,
                      size_t n_shown, struct arena *arena, struct error *error);

void repositories_free(struct repositories *repositories);

/* Returns the files of a repository, as long as the arena of repositories_add(). */
struct repository_files repository_files(const struct repository *repository);

/* Reports, once each, the notes so far on a repository's source itself: which files are left out, and why. NULL is
 * allowed. */
void repository_report(const struct repository *repository);

/* NULL if there is none of that name. The second also takes letters of another case, unless several names have them:
 * references to OCI registries have lower-case names. */
const struct repository *repository_find(const struct repositories *repositories, const char *id);
const struct repository *repository_find_any_case(const struct repositories *repositories, const char *id);
const struct repository_file *repository_file(const struct repository *repository, const char *name);

/* Reports whether a repository is the first one of its owner, as far as `counts` (NULL: all) reports of it. */
typedef bool repository_counts(const struct repository *repository);
bool repository_is_first_of_owner(const struct repositories *repositories, size_t index, repository_counts *counts);

/* Reports whether a revision is the one that a repository has: its commit, "main" or "HEAD". */
bool repository_has_revision(const struct repository *repository, const char *revision);

/* Gets the size of a file if it is planned, else 0. Returns false if it is known to be absent. Plans nothing. */
bool repository_peek(const struct repository *repository, node_id node, uint64_t *ret_size);

/* Reports whether every file is known to be absent. Plans nothing, and does not ask for names. */
bool repository_is_empty(const struct repository *repository);

/* Reports whether a directory for an engine has weights: plans the first file of them. */
bool repository_has_weights(const struct repository *repository);

/* Returns why a file is absent: a reason in the arena, or "". The first is for all files of a repository. */
const char *repository_refusal(const struct repository *repository, struct arena *arena);
const char *repository_refusal_of(const struct repository *repository, const struct repository_file *file,
                                  struct arena *arena);

/* Returns the tag of a file, TAG of NAME-TAG.gguf; NULL for others, which are of no model of their own. */
const char *repository_tag_of(const struct repository *repository, const struct repository_file *file,
                              struct arena *arena);

/* Return the projector and the draft of the models, made by wfs or beside the source; NULL: none. */
const struct repository_file *repository_projector(const struct repository *repository, struct arena *arena);
const struct repository_file *repository_draft(const struct repository *repository, struct arena *arena);

/* Returns the file of a tag: NAME-TAG.gguf with letters of either case, and for "latest" the first of the usual
 * choices. NULL if there is none. Plans the file if `plans`; else the file may turn out to be absent. */
const struct repository_file *repository_file_of_tag(const struct repository *repository, const char *tag, bool plans,
                                                     struct arena *arena);

/* Plans a file of the tree, and gets its size and its quoted entity tag: its identity (fs/tree/identity.h). Returns
 * false if the file turns out to be absent. */
enum { ETAG_TEXT = SHA256_HEX + 3 };
bool repository_plan(const struct repository *repository, node_id node, uint64_t *ret_size, char etag[ETAG_TEXT]);
