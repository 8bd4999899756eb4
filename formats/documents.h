/* Documents: the small files that describe a model (config.json, tokenizer.json ...), each parsed once for all users.
 *
 * A document is opened and closed like a file, from any thread; its values live until it is closed. A document that all
 * users have closed is freed, unless it is small (64 KiB of text) or documents_hold() keeps the checkpoint's documents:
 * planning a file opens the same ones repeatedly. Reads of virtual files use documents only to make a vocabulary again
 * (models/convert/kept_keys.h). */
#pragma once

#include "formats/checkpoint.h"
#include "text/json.h"

/* A side file, parsed. */
struct document;

/* Opens the declared side file of that name; *ret_document is NULL if the checkpoint has none. Fails if the file cannot
 * be read or parsed, or its name is not declared; the error names the file. */
bool document_open(const struct checkpoint *checkpoint, const char *name, struct document **ret_document,
                   struct error *error);

/* Like document_open(), but treats a text that is not JSON as missing: *ret_document is NULL, and a note says so. */
bool document_open_if_valid(const struct checkpoint *checkpoint, const char *name, struct document **ret_document,
                            struct error *error);

void document_close(struct document *document); /* NULL is allowed */

const struct json *document_root(const struct document *document); /* NULL for NULL */

/* Keep all documents of the checkpoint between the two calls, which may nest. */
void documents_hold(const struct checkpoint *checkpoint);
void documents_release(const struct checkpoint *checkpoint);

/* Reports whether the document of a side file is kept, once parsed, until the checkpoint is closed: small ones are. */
bool document_stays(const struct checkpoint *checkpoint, const char *name);

/* Reports whether models are made from side files of that name. Those files and the weights are the declared inputs of
 * all computed files. No other side file can be opened here, so that a file's inputs are known before any is read. */
bool document_is_declared(const char *name);

/* Reports whether a declared file describes how weights are packed: those files are inputs of unpacked tensors. */
bool document_says_packing(const char *name);

/* Returns the most bytes that a file of that name may have to be read whole, as text or JSON: the only table of such
 * limits. */
size_t document_limit(const char *name);

/* Returns the declared side file of that name as a NUL-terminated text that the caller frees; NULL if there is none
 * (*ret_absent, without an error) or it cannot be read. */
char *document_text(const struct checkpoint *checkpoint, const char *name, size_t *ret_length, bool *ret_absent,
                    struct error *error);

/* Parses a whole source, within the limit of its name; the caller frees the result. The error names the source. For
 * readers, and for files that are read once. */
struct json_document *document_parse(const struct source *source, struct error *error);

/* For checkpoints alone, which own their documents. */
struct documents *documents_new(void);
void documents_free(struct documents *documents); /* also those that a failed attempt (base/attempt.h) left open */
