/* What the entries of a distributed torch checkpoint hold: chunks of tensors, and objects with tensors in them. */
#pragma once

#include "quant/views/view.h"
#include "sources/source.h"

/* Chunks of tensors as views: each is stored as what torch.save() writes for a tensor on its own, a zip archive.
 *
 * A checkpoint may have 100,000s of chunks, so a chunk's archive is read by the first read of its elements. A damaged
 * archive, or one of another tensor, fails the read with an error that names the file and the place in it. */

/* What the chunks of a checkpoint share. Lives in the arena, and until it is freed. */
struct dcp_chunks;
struct dcp_chunks *dcp_chunks_new(struct arena *arena);

/* Makes the view of a chunk that is stored in [offset, offset + length) of the file, which has these bytes. `shape`
 * lives as long as the view. */
const struct view *dcp_chunk_view(struct dcp_chunks *chunks, struct source *file, uint64_t offset, uint64_t length,
                                  const struct dtype *dtype, unsigned rank, const uint64_t *shape);

/* Reads the archive of a view of dcp_chunk_view(). */
bool dcp_chunk_check(const struct view *view, struct error *error);

/* Tensors inside Python objects of a distributed torch checkpoint: torch cuts dicts and lists into entries, but stores
 * a tuple, and what is in it, as one torch.save(). Source: torch/distributed/checkpoint/_nested_dict.py. */

struct checkpoint;
struct open_options;

/* Adds the tensors of the object in [offset, offset + length) of a file, which has these bytes, with the names NAME.0,
 * NAME.1 ... that the torch reader gives to a file's. *ret_found is false for an object without storages of torch,
 * which is not read. Fails if there are tensors that cannot be read, and then adds none. */
bool dcp_object_read(struct checkpoint *checkpoint, struct source *file, uint64_t offset, uint64_t length,
                     const char *name, bool *ret_found, struct error *error);
