/* What is kept (kept.h) of a tree's files, and of the findings of its checkpoint. */
#pragma once

#include "fs/tree/content_options.h"
#include "fs/tree/tree.h"

/* The kept bytes of a tree's files (kept.h), by node: made when a file is first read, and kept until the tree is freed.
 * Safe from any thread. */

struct kept_files;

struct kept_files *kept_files_new(void);

/* Call it before the sources are closed. NULL is allowed. */
void kept_files_free(struct kept_files *files);

/* Returns what is kept of a file of the tree, which is planned and belongs to no branch; NULL: nothing ever is. */
struct kept *kept_files_get(struct kept_files *files, struct tree *tree, node_id id, const struct vfile *file);

/* Findings of merges (quant/views/finding.h) in the store: what the first reader of a merged tensor finds out in passes
 * over that tensor in every model, later processes of the user read there.
 *
 * Short ones, such as sizes, are kept without an option, in the records of the process (base/record_file.h).
 *
 * Findings are kept where the bytes of files are (content_options.h), on the same terms (kept.h). They belong to the
 * checkpoint, not to a file: a merge as GGUF has those of the merge as safetensors. Each is an object of 4 KiB, and a
 * second one for what does not fit. */

struct kept_findings;

/* Keeps the findings of a checkpoint from now on. Returns NULL if it has none, or nothing is kept. */
struct kept_findings *kept_findings_new(const struct checkpoint *checkpoint, const struct content_options *options);

/* Keeps no more of them. Call it before the sources are closed. NULL is allowed. */
void kept_findings_free(struct kept_findings *kept);
