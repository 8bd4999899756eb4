/* Writing a pack (pack.h): tensors one after the other, then the index. Bytes leave in order; nothing is held but
 * some chunks and the index. Each chunk is decoded again once it is coded, and compared. Chunks leave while the next
 * ones are coded, so an error may come with a later call. */
#pragma once

#include "sources/archive/pack.h"

/* Takes the next bytes of the pack, on any thread, one call after the other. */
typedef bool pack_put(void *context, const void *bytes, size_t length, struct error *error);

struct pack_writer;

/* Makes a writer, whose chunks are coded by the caller's pool (base/pool.h). */
struct pack_writer *pack_writer_new(pack_put *put, void *context);
void pack_writer_free(struct pack_writer *writer); /* NULL is allowed */

/* Sets what is done beside coding, on any thread: `work` is called once for each few chunks that are coded, never
 * twice at a time, until another is set. */
void pack_writer_beside(struct pack_writer *writer, void (*work)(void *context), void *context);

/* Begins a tensor. Its bytes follow, in pieces of any length, `length` in all; `digest` is theirs. */
struct pack_writer_tensor {
    uint64_t length;
    const struct coding *coding;
    struct pack_input input;   /* unless the coding is CODING_ALONE */
    const struct dtype *dtype; /* NULL: unknown */
    const char *name;          /* NULL: unknown; used during the call */
    struct digest digest;
};
void pack_writer_begin(struct pack_writer *writer, const struct pack_writer_tensor *tensor);
bool pack_writer_add(struct pack_writer *writer, const void *bytes, size_t length, struct error *error);

/* Adds a tensor whose frames are copied from another pack, where it is number `index`. */
bool pack_writer_copy(struct pack_writer *writer, const struct pack_writer_tensor *tensor, const struct pack *from,
                      size_t index, struct error *error);

/* Writes the index. */
bool pack_writer_finish(struct pack_writer *writer, struct error *error);

/* Return the number of tensors so far, and the bytes that they take. */
uint32_t pack_writer_count(const struct pack_writer *writer);
uint64_t pack_writer_bytes(const struct pack_writer *writer);
