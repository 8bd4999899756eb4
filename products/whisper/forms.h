/* The forms of Whisper models, for whisper.c: each fills in the header and the tensors of an empty model. */
#pragma once

#include "products/whisper/whisper.h"
#include "text/json.h"

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
