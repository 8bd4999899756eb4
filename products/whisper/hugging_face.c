/* Whisper as transformers saves it. The header comes from config.json alone, the tokens from vocab.json, and the
 * tensors from the order of the class's modules, whatever that of the file: rounded to F16, as the script does before
 * it writes F32. */
#include "formats/documents.h"
#include "models/facts.h"
#include "models/packings/packings.h"
#include "products/whisper/forms.h"
#include "quant/views/convert.h"
#include "text/json.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { USUAL_TEXT_CONTEXT = 448 };

/* A parameter of a module: its name, whisper.cpp's, and its shape, a letter for each dimension (size_of()). */
struct parameter {
    const char *name, *ggml_name, *shape;
};

static const struct parameter encoder_first[] = {
    {"conv1.weight", "conv1.weight", "dm3"},
    {"conv1.bias", "conv1.bias", "d"},
    {"conv2.weight", "conv2.weight", "dd3"},
    {"conv2.bias", "conv2.bias", "d"},
    {"embed_positions.weight", "positional_embedding", "ad"},
    {NULL, NULL, NULL},
};
static const struct parameter decoder_first[] = {
    {"embed_tokens.weight", "token_embedding.weight", "vd"},
    {"embed_positions.weight", "positional_embedding", "td"},
    {NULL, NULL, NULL},
};
static const struct parameter attention[] = {
    {"k_proj.weight", "key.weight", "dd"}, {"v_proj.weight", "value.weight", "dd"},
    {"v_proj.bias", "value.bias", "d"},    {"q_proj.weight", "query.weight", "dd"},
    {"q_proj.bias", "query.bias", "d"},    {"out_proj.weight", "out.weight", "dd"},
    {"out_proj.bias", "out.bias", "d"},    {NULL, NULL, NULL},
};
static const struct parameter norm[] = {{"weight", "weight", "d"}, {"bias", "bias", "d"}, {NULL, NULL, NULL}};
static const struct parameter fc1[] = {{"weight", "weight", "fd"}, {"bias", "bias", "f"}, {NULL, NULL, NULL}};
static const struct parameter fc2[] = {{"weight", "weight", "df"}, {"bias", "bias", "d"}, {NULL, NULL, NULL}};

/* A module: the beginning of its parameters' names, and of whisper.cpp's. */
struct module {
    const char *name, *ggml_name;
    const struct parameter *parameters;
};

static const struct module encoder_layer[] = {
    {"self_attn.", "attn.", attention},
    {"self_attn_layer_norm.", "attn_ln.", norm},
    {"fc1.", "mlp.0.", fc1},
    {"fc2.", "mlp.2.", fc2},
    {"final_layer_norm.", "mlp_ln.", norm},
    {NULL, NULL, NULL},
};
static const struct module decoder_layer[] = {
    {"self_attn.", "attn.", attention},
    {"self_attn_layer_norm.", "attn_ln.", norm},
    {"encoder_attn.", "cross_attn.", attention},
    {"encoder_attn_layer_norm.", "cross_attn_ln.", norm},
    {"fc1.", "mlp.0.", fc1},
    {"fc2.", "mlp.2.", fc2},
    {"final_layer_norm.", "mlp_ln.", norm},
    {NULL, NULL, NULL},
};

static const struct side {
    const char *name, *layers, *feed_forward; /* the side's, and the keys of config.json */
    const struct parameter *first;
    const struct module *layer;
    struct module last;
} sides[] = {
    {"encoder", "encoder_layers", "encoder_ffn_dim", encoder_first, encoder_layer, {"layer_norm.", "ln_post.", norm}},
    {"decoder", "decoder_layers", "decoder_ffn_dim", decoder_first, decoder_layer, {"layer_norm.", "ln.", norm}},
};

/* A model while its tensors are taken. */
struct taking {
    struct arena *arena;
    whisper_taker *take;
    void *context;
    const struct json *config;
    const struct tensor_set *set; /* sealed */
    const char *prefix;           /* of all names: "model." */
    const struct side *side;
    struct error *error;
};

static bool is_hugging_face(const struct checkpoint *checkpoint)
{
    struct document *document;
    struct error unused;
    if (!facts_of(checkpoint).has_class_names || !document_open(checkpoint, "config.json", &document, &unused))
        return false;
    bool is_whisper = json_string_is(json_get(document_root(document), "model_type"), "whisper");
    document_close(document);
    return is_whisper;
}

bool whisper_number(const struct json *config, const char *key, uint64_t *ret_number, struct error *error)
{
    return (json_u64(json_get(config, key), ret_number) && *ret_number <= INT32_MAX) ||
           error_set(error, "config.json: %s is no whole number of 31 bits", key);
}

/* Reads a number as Python's int() does a text, without underscores; returns the usual one for any other text. */
static uint64_t number_of_text(const char *text)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    while (isspace((unsigned char)*end))
        end++;
    bool is_number = errno == 0 && end != text && *end == '\0' && number >= 0 && number <= INT32_MAX;
    return is_number ? (uint64_t)number : USUAL_TEXT_CONTEXT;
}

/* max_length, which newer models lack. */
static bool get_text_context(const struct json *config, uint64_t *ret_number, struct error *error)
{
    const struct json *length = json_get(config, "max_length");
    const char *text = json_string(length, NULL);
    if (text != NULL)
        *ret_number = number_of_text(text);
    if (text != NULL)
        return true;
    if (length != NULL && !json_is(length, JSON_NULL))
        return whisper_number(config, "max_length", ret_number, error);
    *ret_number = USUAL_TEXT_CONTEXT;
    return json_get(config, "max_target_positions") == NULL ||
           whisper_number(config, "max_target_positions", ret_number, error);
}

static bool take_header(struct whisper_model *model, const struct json *config, struct error *error)
{
    static const struct {
        const char *name, *key;
    } numbers[] = {
        {"n_vocab", "vocab_size"},           {"n_audio_ctx", "max_source_positions"},
        {"n_audio_state", "d_model"},        {"n_audio_head", "encoder_attention_heads"},
        {"n_audio_layer", "encoder_layers"}, {"n_text_ctx", "max_length"},
        {"n_text_state", "d_model"},         {"n_text_head", "decoder_attention_heads"},
        {"n_text_layer", "decoder_layers"},  {"n_mels", "num_mel_bins"},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        uint64_t number;
        bool is_context = strcmp(numbers[i].key, "max_length") == 0;
        if (is_context ? !get_text_context(config, &number, error)
                       : !whisper_number(config, numbers[i].key, &number, error))
            return false;
        gguf_set_u32(&model->metadata, numbers[i].name, (uint32_t)number);
    }
    gguf_set_u32(&model->metadata, "ftype", 0); /* each file has its own */
    return true;
}

/* Returns the size that a letter stands for; 0 if config.json does not tell. */
static uint64_t size_of(const struct taking *taking, char letter)
{
    const char *key = letter == 'd'   ? "d_model"
                      : letter == 'f' ? taking->side->feed_forward
                      : letter == 'm' ? "num_mel_bins"
                      : letter == 'a' ? "max_source_positions"
                      : letter == 't' ? "max_target_positions"
                                      : "vocab_size";
    uint64_t size = 0;
    if (letter >= '0' && letter <= '9')
        return (uint64_t)(letter - '0');
    return json_u64(json_get(taking->config, key), &size) ? size : 0;
}

static bool check_shape(const struct taking *taking, const struct tensor *tensor, const char *letters)
{
    if (tensor->rank != strlen(letters))
        return error_set(taking->error, "%s has %d dimensions instead of %zu", tensor->name, tensor->rank,
                         strlen(letters));
    for (unsigned i = 0; i < tensor->rank; i++) {
        uint64_t size = size_of(taking, letters[i]);
        if (size != 0 && tensor->shape[i] != size)
            return error_set(taking->error, "%s: dimension %u is %" PRIu64 ", and config.json makes it %" PRIu64,
                             tensor->name, i + 1, tensor->shape[i], size);
    }
    return true;
}

/* Takes the parameters of a module; the texts begin its names below the side ("layers.0."), and whisper.cpp's. */
static bool take_module(const struct taking *taking, const char *begin, const char *ggml_begin,
                        const struct module *module)
{
    struct arena *arena = taking->arena;
    const char *side = taking->side->name;
    for (const struct parameter *row = module->parameters; row->name != NULL; row++) {
        const char *own = arena_printf(arena, "%s.%s%s%s", side, begin, module->name, row->name);
        const char *name = arena_printf(arena, "%s%s", taking->prefix, own);
        const struct tensor *tensor = tensor_set_find_text(taking->set, name);
        if (tensor == NULL)
            return error_set(taking->error, "%s is missing", name);
        if (tensor->refusal != NULL)
            return error_set(taking->error, "%s: %s", name, tensor->refusal);
        if (!check_shape(taking, tensor, row->shape))
            return false;
        name = arena_printf(arena, "%s.%s%s%s", side, ggml_begin, module->ggml_name, row->ggml_name);
        taking->take(taking->context, own, name, tensor_view(tensor, arena));
    }
    return true;
}

static bool take_layer(const struct taking *taking, uint64_t number)
{
    const char *begin = arena_printf(taking->arena, "layers.%" PRIu64 ".", number);
    const char *ggml_begin = arena_printf(taking->arena, "blocks.%" PRIu64 ".", number);
    for (const struct module *module = taking->side->layer; module->name != NULL; module++)
        if (!take_module(taking, begin, ggml_begin, module))
            return false;
    return true;
}

static bool take_side(const struct taking *taking)
{
    uint64_t n_layers;
    const struct module first = {"", "", taking->side->first};
    if (!whisper_number(taking->config, taking->side->layers, &n_layers, taking->error) ||
        !take_module(taking, "", "", &first))
        return false;
    for (uint64_t i = 0; i < n_layers; i++)
        if (!take_layer(taking, i))
            return false;
    return take_module(taking, "", "", &taking->side->last);
}

bool whisper_take_tensors(const struct checkpoint *checkpoint, const struct json *config, struct arena *arena,
                          whisper_taker *take, void *context, struct error *error)
{
    const struct plain_wish wish = {.arena = arena, .is_saved_again = true};
    struct plain_set plain;
    struct taking taking = {.arena = arena, .take = take, .context = context, .config = config, .error = error};
    if (!packings_unpack(packings_of(checkpoint), &wish, arena, &plain, error) ||
        (plain.made != NULL && !tensor_set_seal(plain.made, error)))
        return false;
    taking.set = plain.set;
    taking.prefix = tensor_set_find_text(plain.set, "encoder.conv1.weight") != NULL ? "" : "model.";
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        taking.side = &sides[i];
        if (!take_side(&taking))
            return false;
    }
    return true;
}

static void add_rounded(void *context, const char *name, const char *ggml_name, const struct view *view)
{
    struct whisper_model *model = context;
    whisper_add_tensor(model, ggml_name, view_convert(model->arena, view, &f16_dtype));
}

static bool take_hugging_face(struct whisper_model *model, struct error *error)
{
    uint64_t n_mels = 0;
    struct document *document;
    if (!document_open(model->checkpoint, "config.json", &document, error))
        return false;
    const struct json *config = document_root(document);
    bool good = take_header(model, config, error);
    gguf_get_u64(&model->metadata, "n_mels", &n_mels);
    good = good && whisper_add_filters(model, n_mels, error) &&
           whisper_tokens_by_id(model->checkpoint, &model->metadata, error) &&
           whisper_take_tensors(model->checkpoint, config, model->arena, add_rounded, model, error);
    document_close(document);
    if (good && checkpoint_side_file(model->checkpoint, "added_tokens.json") == NULL)
        checkpoint_note(model->checkpoint, SUBJECT_WHISPER,
                        "added_tokens.json is missing; convert-h5-to-ggml.py refuses such a directory");
    return good;
}

const struct whisper_form whisper_hugging_face = {is_hugging_face, take_hugging_face};
