/* The inside of wfs.h, for its implementation and for commands, which open models by the options of their command line.
 *
 * Each function of wfs.h runs as a call: an attempt (base/attempt.h) with the threads and the log of the context. */
#pragma once

#include "base/pool.h"
#include "fs/lib/wfs.h"
#include "fs/options/options.h"

#include "base/report.h"

struct wfs_context {
    struct pool *pool; /* NULL: what the calling thread uses (pool.h) */
    struct report_sink sink;
    wfs_log *log; /* NULL: messages are dropped, or go where the program's go if the pool is NULL */
    void *user;
};

struct wfs_model {
    const wfs_context *context;
    const struct options *options;
    struct options *own_options; /* NULL: they are the program's, which outlive the model */
    struct tree *tree;
};

/* Appends what `wfs --version` prints: the version, the build (fs/tree/identity.h), the commit if it is known, and the
 * versions of the tools that files follow, on one line. */
void lib_append_version(const char *commit, struct buffer *out);

/* Puts the directory before a message that begins with the name of a file of the source, for readers know only names:
 * for the user who named the source, not for clients, who need not know where it lies. Returns false. */
bool lib_name_directory(const char *source, struct error *error);

/* Opens a source as the options say, and merges their adapters. Returns NULL on failure. */
const struct checkpoint *lib_open_checkpoint(const char *source, const struct options *options, struct error *error);

/* Open a source and make its tree, which the options must outlive; NULL on failure. lib_open() also takes pipelines and
 * libraries: a source of `-o library`, or what an archive holds. lib_open_model() takes one model. */
struct tree *lib_open(const char *source, const struct options *options, struct error *error);
struct tree *lib_open_model(const char *source, const struct options *options, struct error *error);
void lib_close_tree(struct tree *tree); /* frees the checkpoint, too */

/* Makes a model of a tree that a program has opened with these options, which wfs_close() closes. The program's pool
 * and messages serve it. */
wfs_model *lib_model(struct tree *tree, const struct options *options);

/* Adds the words that wfs_open() takes to empty options. */
bool lib_parse_options(struct options *options, const char *const *words, struct error *error);

/* Work of a call: returns false with an error. */
typedef bool lib_work(void *call, struct error *error);

/* Runs the work of a call, and hands on its failure. Within the call, changes to `call` survive a failure. */
bool lib_call(const wfs_context *context, lib_work *work, void *call, struct wfs_error *ret_error);

/* Fails with ESTALE if a source has changed since the model was opened. */
bool lib_check_unchanged(const struct origin *origin, struct error *error);

/* Sets the error EINVAL, and returns false. */
bool lib_misuse(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
