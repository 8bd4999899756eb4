/* Packs: the tensors of an archive, each in chunks of zstd frames (docs/archive.md).
 *
 *     frames of tensor 0, frames of tensor 1 ...
 *     a skippable frame: the list of tensors (lines.h), the size of each chunk, the footer
 *
 * "Tensor" also means bytes between tensors, or a file without any. Every reader may be hostile: sizes are sums that
 * are checked against the blob's, so no two chunks overlap. A pack does not change and is safe to read from any number
 * of threads. */
#pragma once

#include "sources/archive/coding.h"
#include "sources/archive/digest.h"
#include "sources/source.h"

enum {
    PACK_FOOTER = 24,      /* bytes: length of the list, number of chunks, PACK_MAGIC */
    PACK_FRAME_HEADER = 8, /* of a skippable frame */
    PACK_SKIPPABLE = 0x184d2a57,
};
#define PACK_MAGIC "wfs-pack"

/* Which values of its input a tensor has: those of an array (any, rows, columns, run), with rows and columns swapped.
 * So the rows of queries and keys lie in a GGUF. `run` is 0 if the values lie as in the input. */
struct pack_swap {
    uint64_t rows, columns, run;
};
enum { PACK_LEAST_RUN = 32 }; /* values: shorter runs would be read one by one */

struct pack_tensor {
    uint64_t length;      /* bytes */
    uint64_t offset;      /* of its first chunk in the pack */
    uint64_t first_chunk; /* among those of the pack */
    uint32_t chunk;       /* values of each of its chunks, but the last */
    const struct coding *coding;
    const struct dtype *dtype; /* for what is packed later; NULL: unknown */
    uint64_t name;             /* pack_name_hash(), for what is packed later; 0: unknown */
    struct digest digest;      /* of its bytes */
    /* the tensor that it is coded against, whose coding is CODING_ALONE; all zero if its own coding is */
    struct digest input_pack;
    uint32_t input;
    const struct dtype *input_dtype; /* of CODING_VALUES */
    struct pack_swap swap;           /* of CODING_VALUES */
};

/* Bytes and values of the largest block, for code that samples blocks. */
enum { CODING_BLOCK_MOST = 256, CODING_BLOCK_VALUES = 256 };

struct pack;

/* A tensor that others are coded against. */
struct pack_input {
    struct pack *pack;
    struct digest digest; /* of the pack */
    uint32_t number;
    const struct dtype *dtype; /* an element type */
    struct pack_swap swap;
};

/* Return what codings read a tensor by: its values as they are stored, or swapped and as F32. The input must outlive
 * it. */
struct coding_input pack_input_bytes(struct pack_input *input);
struct coding_input pack_input_values(struct pack_input *input);

/* Returns what stands for a tensor's name in struct pack_tensor. */
uint64_t pack_name_hash(const char *name, size_t length);

/* Finds the pack of a tensor that another one is coded against, for pack_read(). */
typedef bool pack_find(void *context, const struct digest *pack, struct pack **ret_pack, struct error *error);

/* Reads the index of a pack. Takes the blob, even on failure. `find` serves tensors that are coded against others. */
struct pack *pack_open(struct source *blob, pack_find *find, void *context, struct error *error);
void pack_close(struct pack *pack); /* NULL is allowed */

size_t pack_count(const struct pack *pack);
const struct pack_tensor *pack_tensor(const struct pack *pack, size_t index);

/* Reads [offset, offset + length), which must be in the tensor. */
bool pack_read(struct pack *pack, size_t index, uint64_t offset, size_t length, void *out, struct error *error);

/* Gets where the frames of such a read are in the blob. */
void pack_depends(const struct pack *pack, size_t index, uint64_t offset, uint64_t length, uint64_t *ret_offset,
                  uint64_t *ret_length);

/* Calls each() with every range of a blob that such a read needs: of this pack and, if the tensor is coded against
 * another one, of that tensor's. Stops, and fails, when each() fails. */
typedef bool pack_range(void *context, struct source *blob, uint64_t offset, uint64_t length, struct error *error);
bool pack_ranges(struct pack *pack, size_t index, uint64_t offset, uint64_t length, pack_range *each, void *context,
                 struct error *error);

struct source *pack_blob(const struct pack *pack);

/* Gets where the list of the tensors is in the blob, for lines_read(), and the sizes of a tensor's chunks. */
void pack_list(const struct pack *pack, uint64_t *ret_offset, uint64_t *ret_length);
const uint32_t *pack_chunk_sizes(const struct pack *pack, size_t index, uint64_t *ret_count);
