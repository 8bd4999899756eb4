/* Writing GGUF: version 3, little-endian. Header, keys, records of tensors, data, each aligned to what
 * general.alignment says, or 32. Any keys, any tensors. Laying a file out reads no tensor values, and a long metadata
 * value of another GGUF stays in that file.
 *
 * Fails if sizes overflow, or general.alignment is not a power of two. */
#pragma once

#include "formats/artifact.h"

/* Files as gguf-py writes them, and as ggml does (gguf_write_to_file()), whose tensor records omit leading dimensions
 * of 1. */
extern const struct container gguf_container, ggml_container;

/* The header of a file that was laid out before, by this build and from the same source: its keys may take long to make
 * again. The source begins with the header, and must outlive what is laid out with it. Laying out fails if the records
 * of the artifact's tensors are not those of the header. */
struct gguf_kept_header {
    struct source *source;
    uint64_t length;
    const char *table; /* SHA-256 of the tensors' records */
};

/* Returns the bytes that a model's entry takes in a file; 0: its value cannot be read. */
uint64_t gguf_entry_bytes(const struct gguf_kv *kv);

/* Gets what the data and each tensor's part of it are aligned to; false: general.alignment is no power of two. */
bool gguf_alignment(const struct gguf_kvs *kvs, uint64_t *alignment, struct error *error);

/* Lays a file out like gguf_container, with one more key of that many spaces, which moves the data. */
#define GGUF_PADDING_KEY "wfs.padding"
bool gguf_lay_out_padded(const struct artifact *artifact, size_t padding, struct span_list *spans, struct error *error);

/* GGUF files whose tensors can share disk blocks with the files they come from, on file systems that share blocks
 * between files (XFS, Btrfs).
 *
 * A block can be shared if it begins at a multiple of GGUF_SHARED_BLOCK in both files. So a tensor that is stored as it
 * is written is placed where its offset in the GGUF and its offset in the source have the same remainder. GGUF leaves
 * two things free for that: the length of the header, here by a key of spaces (GGUF_PADDING_KEY), and the order of the
 * tensors. The data begins at the remainder that most bytes have. Then comes, each time, the next tensor that fits
 * there; if none does, one that cannot be shared anyway, since its length may lead on to the remainder of others.
 *
 * Programs that map a GGUF want its data at a multiple of 32 (GGML_MEM_ALIGN, a failed assertion otherwise), so a
 * tensor can only be shared if its offset in the source is one: for safetensors that depends on the header's length.
 *
 * The file has the keys, tensors and values of gguf_container, and other bytes. Without a tensor that can be shared, it
 * is that file. */

enum { GGUF_SHARED_BLOCK = 4096 };

extern const struct container gguf_sharing_container;
