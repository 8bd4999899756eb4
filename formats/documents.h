/* Documents: the small files that say what a model is (config.json, tokenizer.json ...), each parsed once for all who
 * ask.
 *
 * A document is opened and closed like a file, from any thread; its values are there until it is closed. What has been
 * closed by everybody is forgotten, but not while somebody holds the checkpoint's documents (documents_hold()): who
 * plans a file asks for the same ones repeatedly. Small ones stay as long as the checkpoint. Nothing here is on
 * the path of a read. */
#pragma once

#include "formats/checkpoint.h"
#include "formats/json.h"

/* A side file, parsed. */
struct document;

/* Opens the side file of that name, which is declared; *ret_document is NULL where there is none. The error names the
 * file. */
bool document_open(const struct checkpoint *checkpoint, const char *name, struct document **ret_document,
                   struct error *error);

/* The same where a text that is not JSON is as good as none: *ret_document is NULL then, and a note says so. */
bool document_open_if_valid(const struct checkpoint *checkpoint, const char *name, struct document **ret_document,
                            struct error *error);

void document_close(struct document *document); /* NULL is allowed */

const struct json *document_root(const struct document *document); /* NULL for NULL */

/* Between the two, which may nest, no document is forgotten. */
void documents_hold(const struct checkpoint *checkpoint);
void documents_release(const struct checkpoint *checkpoint);

/* Reports whether models are made from side files of that name. Those files and the weights are the declared inputs of
 * everything that is computed. No other side file can be opened here, so that a file's inputs are known before any is
 * read. */
bool document_is_declared(const char *name);

/* Reports whether a declared file says how weights are packed: the inputs of tensors that are unpacked. */
bool document_says_packing(const char *name);

/* The most bytes that a file of that name may have to be read as a whole, as text or as JSON: the one table of such
 * limits. */
size_t document_limit(const char *name);

/* The side file of that name, which is declared, as a NUL-terminated text that the caller frees; NULL where it is not
 * there (*ret_absent) or cannot be read. */
char *document_text(const struct checkpoint *checkpoint, const char *name, size_t *ret_length, bool *ret_absent,
                    struct error *error);

/* A whole source parsed, within the limit of its name; freed by the caller. For readers, and for files that are read
 * once. */
struct json_document *document_parse(const struct source *source, struct error *error);

/* For the checkpoint that they belong to. */
struct documents *documents_new(void);
void documents_free(struct documents *documents); /* also what a failed attempt (base/attempt.h) has left open */
