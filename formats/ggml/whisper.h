/* Files of whisper.cpp (ggml-*.bin) as metadata and tensors, both ways.
 *
 * The file's header is a dictionary whose keys are in the order of the file, which has no keys itself:
 * - "n_vocab" ... "n_mels", "ftype": the hyperparameters, u32;
 * - "filters.n_mels", "filters.n_fft", u32, and "filters": an array of as many F32;
 * - "tokens": an array of strings.
 *
 * Source: whisper.cpp, whisper_model_load(), models/convert-pt-to-ggml.py. */
#pragma once

#include "formats/artifact.h"

/* whisper.cpp's numbers of the types of a whole file: that of the scripts, and of whisper-quantize. */
enum { WHISPER_FTYPE_F32 = 0, WHISPER_FTYPE_F16 = 1, WHISPER_FTYPE_BLOCKS = 2000 };

/* Reads the header of a file that ggml_format opens as model "whisper"; the caller frees the dictionary. */
bool whisper_read_metadata(struct source *file, struct gguf_kvs *ret_metadata, struct error *error);

/* Lays a file out: its artifact's metadata is a header as above. Fails if a number exceeds 31 bits, as whisper.cpp
 * reads them, or a tensor has more than 4 dimensions. */
extern const struct container whisper_container;
