/* Whisper as OpenAI publishes it: a torch file with `dims` and `model_state_dict`, whose names whisper.cpp keeps. The
 * tokens are in two files of OpenAI's repository, multilingual.tiktoken and gpt2.tiktoken. */
#include "base/text.h"
#include "products/whisper/forms.h"
#include "text/json.h"

#include <inttypes.h>
#include <string.h>

enum { FIRST_MULTILINGUAL = 51865 }; /* the least n_vocab of a multilingual model */

static const char state[] = "model_state_dict.";

/* In the order of whisper.cpp's header. */
static const char *const dimensions[] = {
    "n_vocab",    "n_audio_ctx",  "n_audio_state", "n_audio_head", "n_audio_layer",
    "n_text_ctx", "n_text_state", "n_text_head",   "n_text_layer", "n_mels",
};
enum { N_DIMENSIONS = sizeof dimensions / sizeof *dimensions };

/* Returns the other contents of the file, with its `dims`, or NULL; json_free() frees it. */
static struct json_document *parse_dims(const struct checkpoint *checkpoint)
{
    struct error unused;
    bool is_torch = strcmp(checkpoint->format, "torch") == 0 && checkpoint->extras != NULL;
    struct json_document *document =
        is_torch ? json_parse(checkpoint->extras, strlen(checkpoint->extras), &unused) : NULL;
    if (document == NULL || json_get(json_get(json_root(document), "dims"), "n_audio_state") != NULL)
        return document;
    json_free(document);
    return NULL;
}

static bool is_openai(const struct checkpoint *checkpoint)
{
    struct json_document *document = parse_dims(checkpoint);
    json_free(document);
    return document != NULL;
}

static bool take_dims(struct whisper_model *model, const struct json *dims, struct error *error)
{
    for (size_t i = 0; i < N_DIMENSIONS; i++) {
        uint64_t number;
        if (!json_u64(json_get(dims, dimensions[i]), &number) || number > INT32_MAX)
            return error_set(error, "dims: %s is no whole number of 31 bits", dimensions[i]);
        gguf_set_u32(&model->metadata, dimensions[i], (uint32_t)number);
    }
    gguf_set_u32(&model->metadata, "ftype", 0); /* each file has its own */
    return true;
}

static bool take_tensors(struct whisper_model *model, struct error *error)
{
    const struct tensor_set *set = model->checkpoint->tensors;
    size_t n_rounded = 0;
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        if (!text_starts_with(tensor->name, state))
            continue;
        if (tensor->refusal != NULL)
            return error_set(error, "%s: %s", tensor->name, tensor->refusal);
        whisper_add_tensor(model, tensor->name + strlen(state), tensor_view(tensor, model->arena));
        n_rounded += model->tensors[model->n_tensors - 1].dtype == &f16_dtype && tensor->dtype != &f16_dtype;
    }
    if (model->n_tensors == 0)
        return error_set(error, "model_state_dict has no tensors");
    if (n_rounded > 0)
        checkpoint_note(model->checkpoint, SUBJECT_WHISPER,
                        "%zu matrices are not stored in F16 and are rounded to it; convert-pt-to-ggml.py would write "
                        "a damaged file",
                        n_rounded);
    return true;
}

static bool take_openai(struct whisper_model *model, struct error *error)
{
    uint64_t n_vocab = 0, n_mels = 0;
    struct json_document *document = parse_dims(model->checkpoint);
    bool good = take_dims(model, json_get(json_root(document), "dims"), error);
    json_free(document);
    gguf_get_u64(&model->metadata, "n_vocab", &n_vocab);
    gguf_get_u64(&model->metadata, "n_mels", &n_mels);
    const char *tokens = n_vocab >= FIRST_MULTILINGUAL ? "multilingual.tiktoken" : "gpt2.tiktoken";
    return good && whisper_add_filters(model, n_mels, error) &&
           whisper_tokens_of_openai(model->checkpoint, tokens, &model->metadata, error) && take_tensors(model, error);
}

const struct whisper_form whisper_openai = {is_openai, take_openai};
