/* The file .metadata of a distributed torch checkpoint: which tensors there are, the chunks that each is cut into, and
 * where each chunk is stored.
 *
 * A pickle of dataclasses, read as data: nothing is called. Source: torch/distributed/checkpoint/metadata.py and
 * filesystem.py.
 *
 * Everything lives in the arena that it was read into. Texts are slices of the file, without a NUL at the end. Work and
 * memory are linear in the size of the file: an entry or chunk for fewer than DCP_LEAST_BYTES bytes is refused, because
 * pickles can repeat an object in two bytes. */
#pragma once

#include "base/arena.h"
#include "quant/blocks/dtype.h"
#include "quant/views/view.h"
#include "sources/source.h"

enum { DCP_LEAST_BYTES = 32 }; /* torch needs more than 40 for a chunk, and as many for its place */

struct dcp_text {
    const char *bytes;
    size_t length;
};

/* A chunk, or the place of one: elements [first, first + size) of each dimension. */
struct dcp_box {
    const uint64_t *first, *sizes;
};

struct dcp_tensor {
    struct dcp_text name;
    size_t root_length; /* of the keys at the beginning of the name that only say what a dict holds: "model." */
    const struct dtype *dtype;
    unsigned rank;
    const uint64_t *shape;
    struct dcp_box *chunks; /* each inside the shape */
    size_t n_chunks;
};

/* Where a chunk is stored: a torch.save() of the chunk alone, in a run of bytes of a file. In files with safetensors
 * (below), `offset` is that of the safetensors, and `length` the bytes of the chunk's elements. */
struct dcp_place {
    struct dcp_text name; /* of the tensor */
    unsigned rank;
    const uint64_t *first; /* of the chunk's elements */
    struct dcp_text file;  /* a path in the checkpoint's directory */
    uint64_t offset, length;
    bool transformed; /* by a writer's extension, such as compression */
};

struct dcp_metadata {
    struct dcp_tensor *tensors; /* in the order of the file, of different names */
    size_t n_tensors;
    size_t n_objects;          /* entries that are no tensors */
    struct dcp_place *objects; /* the places of objects, which may be fewer; `rank` is 0 */
    size_t n_object_places;
    struct dcp_place *places; /* of tensors */
    size_t n_places;
    uint32_t *order; /* the places, sorted for dcp_find_place() */
};

/* Reads the file. The error names it, the tensor at fault if there is one, and the reason. */
bool dcp_metadata_read(struct dcp_metadata *metadata, const struct source *source, struct arena *arena,
                       struct error *error);

/* Returns the place of a tensor's chunk, or NULL. */
const struct dcp_place *dcp_find_place(const struct dcp_metadata *metadata, const struct dcp_tensor *tensor,
                                       const struct dcp_box *chunk);

/* What the entries of a distributed torch checkpoint hold: chunks of tensors, and objects with tensors in them. */

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

/* Chunks that FileSystemWriter stores with SerializationFormat.SAFETENSORS. A file begins with Python objects; the rest
 * of it is one safetensors file, which has each chunk that the process wrote there, under the name of its tensor. torch
 * does not load these checkpoints itself. Source: torch/distributed/checkpoint/filesystem.py,
 * _write_files_from_queue(). */
struct dcp_parts;

struct checkpoint;
struct open_options;

/* Reads the header of the safetensors that begin at `offset` of a file; *ret_parts is NULL if there are none. Lives in
 * the checkpoint's arena. */
bool dcp_parts_read(struct checkpoint *checkpoint, struct source *file, uint64_t offset,
                    const struct open_options *options, struct dcp_parts **ret_parts, struct error *error);

/* Returns the view of a tensor's chunk, which must be in the safetensors as .metadata describes it, and each only once:
 * the writer keeps the last one if a process has several chunks of a tensor. */
const struct view *dcp_part_view(struct dcp_parts *parts, const struct dcp_tensor *tensor, const struct dcp_box *chunk,
                                 uint64_t offset, struct error *error);

/* Tensors inside Python objects of a distributed torch checkpoint: torch cuts dicts and lists into entries, but stores
 * a tuple, and what is in it, as one torch.save(). Source: torch/distributed/checkpoint/_nested_dict.py. */

/* Adds the tensors of the object in [offset, offset + length) of a file, which has these bytes, with the names NAME.0,
 * NAME.1 ... that the torch reader gives to a file's. *ret_found is false for an object without storages of torch,
 * which is not read. Fails if there are tensors that cannot be read, and then adds none. */
bool dcp_object_read(struct checkpoint *checkpoint, struct source *file, uint64_t offset, uint64_t length,
                     const char *name, bool *ret_found, struct error *error);
