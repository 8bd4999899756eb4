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
#pragma once

#include "formats/artifact.h"

enum { GGUF_SHARED_BLOCK = 4096 };

extern const struct container gguf_sharing_container;
