/* The forms of Whisper models, for whisper.c: each fills in the header and the tensors of an empty model. */
#pragma once

#include "formats/checkpoint.h"
#include "products/whisper/whisper.h"
#include "text/json.h"

#include <stdbool.h>
#include <stdint.h>

struct whisper_form {
    bool (*is)(const struct checkpoint *checkpoint);
    bool (*take)(struct whisper_model *model, struct error *error);
};

extern const struct whisper_form whisper_hugging_face, whisper_openai;

/* Adds a tensor as the conversion scripts write it: without dimensions of 1, a convolution's bias as a column, and in
 * ggml-model.bin as F32 if it is a vector, such a bias or a positional embedding, else as F16. Copies the name. */
void whisper_add_tensor(struct whisper_model *model, const char *name, const struct view *view);

/* Adds the mel filters to the header. Fails if whisper.cpp has none for that number of bands. */
bool whisper_add_filters(struct whisper_model *model, uint64_t n_mels, struct error *error);

/* Reports whether whisper-quantize, like the conversion scripts, keeps a tensor of that name in F32. */
bool whisper_stays_f32(const char *name);

/* Reads a whole number of 31 bits from config.json. */
bool whisper_number(const struct json *config, const char *key, uint64_t *ret_number, struct error *error);

/* Gives all tensors of a Hugging Face directory, unpacked and in the shapes that config.json says, in the order of the
 * class: their names without "model.", whisper.cpp's names, and views in `arena`, like the names. */
typedef void whisper_taker(void *context, const char *name, const char *ggml_name, const struct view *view);
bool whisper_take_tensors(const struct checkpoint *checkpoint, const struct json *config, struct arena *arena,
                          whisper_taker *take, void *context, struct error *error);

/* The tokens of whisper.cpp's files, from the vocabularies of Whisper: bytes, in the order of the file.
 *
 * A vocab.json has them spelled in the byte alphabet (tokenizers/byte_alphabet.h), a .tiktoken file in base64, a line
 * each. */

/* Sets "tokens" to those of the side file vocab.json, sorted by id. Fails if it is missing or a token has another
 * character than those of bytes. */
bool whisper_tokens_by_id(const struct checkpoint *checkpoint, struct gguf_kvs *metadata, struct error *error);

/* Sets "tokens" to those of the side file `name` ("gpt2.tiktoken"); without it, to those of vocab.json, in the order of
 * that file and without <|endoftext|>, which the other file lacks. Fails if both are missing. */
bool whisper_tokens_of_openai(const struct checkpoint *checkpoint, const char *name, struct gguf_kvs *metadata,
                              struct error *error);

/* The mel filters of Whisper, which OpenAI publishes as mel_filters.npz: triangles over the frequencies of a spectrum
 * on Slaney's mel scale, each of area 1.
 *
 * Source: librosa.filters.mel(sr=16000, n_fft=400, n_mels), in its order of operations and roundings. */

enum { MEL_FREQUENCIES = 201, MEL_MOST_BANDS = 128 };

/* Computes a row of MEL_FREQUENCIES weights for each band. Returns false unless n_mels is 80 or 128, the numbers that
 * OpenAI's models have. */
bool mel_filters(uint64_t n_mels, float out[MEL_MOST_BANDS * MEL_FREQUENCIES]);
