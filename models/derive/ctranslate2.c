/* The way back from CTranslate2: a Whisper model under the names that transformers gives it, with the config.json that
 * its shapes tell, so that transformers opens hf/ of what faster-whisper loads.
 *
 * CTranslate2 stacks the projections of queries, keys and values, and gives keys the bias that Whisper's do not have:
 * it is zeros, and is left out. Integers are dequantized. Other numbers of the specification, such as the one that says
 * whether norms come first, are the same in all Whisper models, and are left out, too. The special tokens are those of
 * the published vocabularies; `suppress_ids` of CTranslate2's config.json become suppress_tokens. Without a config.json
 * beside them, and where a number is missing, variables keep their names.
 *
 * Source: CTranslate2, python/ctranslate2/converters/transformers.py, WhisperLoader and BartLoader. */
#include "base/text.h"
#include "formats/documents.h"
#include "models/derive/derive.h"
#include "models/derive/foreign_names.h"
#include "models/packings/packings.h"
#include "quant/views/convert.h"
#include "text/json_write.h"

#include <inttypes.h>
#include <string.h>

const struct ctranslate2_module ctranslate2_of_layers[] = {
    {"self_attention/layer_norm", {"self_attn_layer_norm"}},
    {"self_attention/linear_0", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}},
    {"self_attention/linear_1", {"self_attn.out_proj"}},
    {"attention/layer_norm", {"encoder_attn_layer_norm"}, "decoder"},
    {"attention/linear_0", {"encoder_attn.q_proj"}, "decoder"},
    {"attention/linear_1", {"encoder_attn.k_proj", "encoder_attn.v_proj"}, "decoder"},
    {"attention/linear_2", {"encoder_attn.out_proj"}, "decoder"},
    {"ffn/layer_norm", {"final_layer_norm"}},
    {"ffn/linear_0", {"fc1"}},
    {"ffn/linear_1", {"fc2"}},
    {0},
};

const struct ctranslate2_module ctranslate2_of_sides[] = {
    {"conv1", {"conv1"}, "encoder"},
    {"conv2", {"conv2"}, "encoder"},
    {"position_encodings", {"embed_positions"}},
    {"embeddings", {"embed_tokens"}, "decoder"},
    {"layer_norm", {"layer_norm"}},
    {0},
};

static const struct {
    const char *there, *here;
} leaves[] = {
    {"/weight", "weight"}, {"/bias", "bias"}, {"/gamma", "weight"}, {"/beta", "bias"}, {"/encodings", "weight"}};

/* A parsed name: "encoder/layer_3/ffn/linear_0/weight". */
struct place {
    const struct ctranslate2_module *module;
    const char *leaf;   /* here */
    const char *prefix; /* here, with '.' at its end, in the arena */
};

static const struct ctranslate2_module *find_module(const struct ctranslate2_module *modules, const char *name,
                                                    size_t length)
{
    for (; modules->there != NULL; modules++)
        if (strlen(modules->there) == length && memcmp(modules->there, name, length) == 0)
            return modules;
    return NULL;
}

/* Returns the length of "layer_N/" at the start of a name, or 0. */
static size_t layer_length(const char *name)
{
    static const char layer[] = "layer_";
    if (!text_starts_with(name, layer))
        return 0;
    size_t n_digits = strspn(name + strlen(layer), "0123456789"), length = strlen(layer) + n_digits;
    return n_digits > 0 && n_digits <= 6 && name[length] == '/' ? length + 1 : 0;
}

static bool find_place(struct arena *arena, const char *name, struct place *ret_place)
{
    bool is_decoder = text_starts_with(name, "decoder/");
    const char *side = is_decoder ? "decoder" : "encoder", *rest = name + strlen("encoder/");
    if (!is_decoder && !text_starts_with(name, "encoder/"))
        return false;
    size_t in_layer = layer_length(rest);
    ret_place->prefix = arena_printf(arena, "model.%s.", side);
    if (in_layer > 0)
        ret_place->prefix = arena_printf(arena, "model.%s.layers.%.*s.", side, (int)(in_layer - strlen("layer_/")),
                                         rest + strlen("layer_"));
    rest += in_layer;
    for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++) {
        if (!text_ends_with(rest, leaves[i].there))
            continue;
        ret_place->leaf = leaves[i].here;
        ret_place->module = find_module(in_layer > 0 ? ctranslate2_of_layers : ctranslate2_of_sides, rest,
                                        strlen(rest) - strlen(leaves[i].there));
        return ret_place->module != NULL;
    }
    return false;
}

/* Adds a tensor under its names here. */
static bool add_parts(struct tensor_set *to, const struct tensor *tensor, const struct place *place,
                      struct arena *arena, struct error *error)
{
    uint64_t n = 0;
    while (n < CTRANSLATE2_STACKED && place->module->here[n] != NULL)
        n++;
    if (tensor->refusal != NULL)
        return error_set(error, "tensor '%.200s': %s", tensor->name, tensor->refusal);
    if (n > 1 && (tensor->rank == 0 || tensor->shape[0] == 0 || tensor->shape[0] % n != 0))
        return error_set(error, "tensor '%.200s' is not a stack of %" PRIu64 " projections", tensor->name, n);
    const struct view *view = tensor_view(tensor, arena);
    for (uint64_t i = 0; i < n; i++) {
        const char *here = place->module->here[i];
        uint64_t rows = n > 1 ? tensor->shape[0] / n : 0;
        const struct view *part = n > 1 ? view_slice(arena, view, 0, i * rows, rows, 1) : view;
        if (text_ends_with(here, ".k_proj") && strcmp(place->leaf, "bias") == 0)
            continue;
        tensor_set_add_view(to, arena_printf(arena, "%s%s.%s", place->prefix, here, place->leaf), part);
    }
    return true;
}

/* config.json. */

static const struct tensor *find(const struct tensor_set *set, const char *name, unsigned rank)
{
    const struct tensor *tensor = tensor_set_find_text(set, name);
    return tensor != NULL && tensor->rank == rank && tensor->refusal == NULL ? tensor : NULL;
}

static uint64_t count_layers(const struct tensor_set *set, const char *side, struct arena *arena)
{
    uint64_t n = 0;
    while (find(set, arena_printf(arena, "model.%s.layers.%" PRIu64 ".fc1.weight", side, n), 2) != NULL)
        n++;
    return n;
}

static bool read_number(const struct tensor_set *set, const char *name, uint64_t *ret_number, struct arena *arena,
                        struct error *error)
{
    float value;
    const struct tensor *tensor = find(set, name, 0);
    if (tensor == NULL)
        return error_set(error, "there is no number '%s'", name);
    if (!convert_values(tensor_view(tensor, arena), 0, 1, &value, error))
        return false;
    if (!(value >= 1 && value <= 4096))
        return error_set(error, "'%s' is %g, which is no number of heads", name, (double)value);
    *ret_number = (uint64_t)value;
    return true;
}

/* Writes the size of an axis. */
static bool put_size(struct json_writer *writer, const char *key, const struct tensor_set *set, const char *name,
                     unsigned rank, unsigned axis, struct error *error)
{
    const struct tensor *tensor = find(set, name, rank);
    if (tensor == NULL)
        return error_set(error, "there is no tensor '%s' of %u dimensions", name, rank);
    json_put_number(writer, key, tensor->shape[axis]);
    return true;
}

/* Writes the special tokens of the published vocabularies: that of English has 51864 tokens, the others a few more.
 * Those of other vocabularies are unknown; transformers' defaults would not fit a smaller one. */
static void put_tokens(struct json_writer *writer, const struct tensor_set *set)
{
    enum { ENGLISH = 51864, LAST = 51866, END_OF_TEXT = 50257 };
    static const char *const keys[] = {"bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id"};
    enum { N_KEYS = sizeof keys / sizeof *keys, START = N_KEYS - 1 };
    const struct tensor *embedding = find(set, "model.decoder.embed_tokens.weight", 2);
    uint64_t size = embedding != NULL ? embedding->shape[0] : 0, end = END_OF_TEXT - (size == ENGLISH);
    for (unsigned i = 0; i < N_KEYS; i++) {
        if (size >= ENGLISH && size <= LAST)
            json_put_number(writer, keys[i], i == START ? end + 1 : end);
        else
            json_put_null(writer, keys[i]);
    }
}

static void put_list(struct json_writer *writer, const char *key, const struct json *list)
{
    int64_t number;
    if (json_first(list) == NULL)
        return;
    json_begin_array(writer, key);
    for (const struct json *at = json_first(list); at != NULL; at = json_next(at))
        if (json_i64(at, &number))
            json_put_i64(writer, NULL, number);
    json_end(writer);
}

static bool put_config(struct json_writer *writer, const struct tensor_set *there, const struct tensor_set *here,
                       const struct json *own, struct arena *arena, struct error *error)
{
    static const struct {
        const char *key, *name;
        unsigned rank, axis;
    } sizes[] = {
        {"d_model", "model.encoder.conv1.weight", 3, 0},
        {"num_mel_bins", "model.encoder.conv1.weight", 3, 1},
        {"max_source_positions", "model.encoder.embed_positions.weight", 2, 0},
        {"max_target_positions", "model.decoder.embed_positions.weight", 2, 0},
        {"vocab_size", "model.decoder.embed_tokens.weight", 2, 0},
        {"encoder_ffn_dim", "model.encoder.layers.0.fc1.weight", 2, 0},
        {"decoder_ffn_dim", "model.decoder.layers.0.fc1.weight", 2, 0},
    };
    uint64_t encoder_heads, decoder_heads, encoder_layers = count_layers(here, "encoder", arena);
    if (!read_number(there, "encoder/num_heads", &encoder_heads, arena, error) ||
        !read_number(there, "decoder/num_heads", &decoder_heads, arena, error))
        return false;
    json_begin_object(writer, NULL);
    json_put_template(writer,
                      "'architectures': ['WhisperForConditionalGeneration'], 'model_type': 'whisper',"
                      " 'is_encoder_decoder': true, 'activation_function': 'gelu', 'scale_embedding': false,"
                      " 'encoder_attention_heads': %u, 'decoder_attention_heads': %u, 'encoder_layers': %u,"
                      " 'num_hidden_layers': %u, 'decoder_layers': %u",
                      encoder_heads, decoder_heads, encoder_layers, encoder_layers,
                      count_layers(here, "decoder", arena));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (!put_size(writer, sizes[i].key, here, sizes[i].name, sizes[i].rank, sizes[i].axis, error))
            return false;
    put_tokens(writer, here);
    put_list(writer, "suppress_tokens", json_get(own, "suppress_ids"));
    put_list(writer, "begin_suppress_tokens", json_get(own, "suppress_ids_begin"));
    json_end(writer);
    return true;
}

static bool change_config(struct checkpoint *derived, const struct tensor_set *there, const struct json *own,
                          struct error *error)
{
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .letters = JSON_ASCII};
    bool good = put_config(&writer, there, derived->tensors, own, derived->arena, error);
    buffer_append_text(&text, "\n");
    if (good)
        checkpoint_change_side_file(derived, "config.json", (const char *)text.bytes, text.length);
    buffer_free(&text);
    return good;
}

/* The tensors. */

/* Gets the tensors with integers dequantized to F32. */
static bool unpack(const struct checkpoint *from, struct checkpoint *derived, const struct tensor_set **ret_set,
                   struct error *error)
{
    const struct packed_weights *packed = packings_of(from);
    const struct plain_wish wish = {.arena = derived->arena, .is_saved_again = true, .saved_as = &f32_dtype};
    struct plain_set plain;
    *ret_set = from->tensors;
    if (packed->found.n_weights == 0)
        return true;
    if (!packings_unpack(packed, &wish, derived->arena, &plain, error) || !tensor_set_seal(plain.made, error))
        return false;
    *ret_set = plain.set;
    return packed->unread == NULL || error_set(error, "%s", packed->unread);
}

static bool rename_all(struct checkpoint *derived, const struct tensor_set *there, struct error *error)
{
    struct arena *arena = derived->arena;
    struct tensor_set *renamed = tensor_set_new(arena);
    size_t n_left_out = 0;
    for (size_t i = 0; i < there->n_tensors; i++) {
        const struct tensor *tensor = &there->tensors[i];
        struct place place;
        if (strlen(tensor->name) != tensor->name_length || !find_place(arena, tensor->name, &place))
            n_left_out++;
        else if (!add_parts(renamed, tensor, &place, arena, error))
            return false;
    }
    struct tensor_set *ordered = tensor_set_ordered(renamed, arena);
    derived->tensors = ordered;
    checkpoint_note(derived, SUBJECT_SOURCE,
                    "a Whisper model of CTranslate2 under transformers' names; %zu of its %zu variables, which "
                    "transformers does not have, are left out",
                    n_left_out, there->n_tensors);
    return tensor_set_seal(ordered, error);
}

static bool is_whisper(const struct checkpoint *checkpoint)
{
    const struct tensor_set *set = checkpoint->tensors;
    return tensor_set_find_text(set, "encoder/conv1/weight") != NULL &&
           tensor_set_find_text(set, "encoder/num_heads") != NULL &&
           tensor_set_find_text(set, "decoder/layer_0/self_attention/linear_0/weight") != NULL;
}

static bool apply(const struct checkpoint *from, const struct derive_options *options, struct checkpoint **ret_derived,
                  struct error *error)
{
    struct document *config;
    const struct tensor_set *there;
    if (!is_whisper(from))
        return true;
    if (!document_open(from, "config.json", &config, error))
        return false;
    if (config == NULL)
        return true;
    struct checkpoint *derived = *ret_derived = checkpoint_derive(from);
    bool good = unpack(from, derived, &there, error) && rename_all(derived, there, error) &&
                change_config(derived, there, document_root(config), error);
    if (!good) {
        derived->tensors = from->tensors;
        checkpoint_note(derived, SUBJECT_SOURCE, "variables keep CTranslate2's names: %s", error->message);
    }
    document_close(config);
    return true;
}

const struct derivation ctranslate2_derivation = {.apply = apply};
