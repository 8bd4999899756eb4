/* Qwen3-TTS, the talker: a text model that continues a text with codes of speech. conversion/qwen3tts.py.
 *
 * A GGUF has one table of tokens: the embedding of text after a projection of two layers, then that of codes. */
#include "base/text.h"
#include "models/families/shared.h"
#include "quant/arithmetic/torch_functions.h"
#include "quant/views/product.h"
#include "quant/views/unpack.h"

#include <inttypes.h>
#include <string.h>

/* The parts of the table; arrange() makes it of them. */
enum { TEXT, CODES, WEIGHT_1, BIAS_1, WEIGHT_2, BIAS_2, N_PARTS };
static const char *const parts[N_PARTS] = {"text_embd.weight", "codec_embd.weight",  "text_proj.1.weight",
                                           "text_proj.1.bias", "text_proj.2.weight", "text_proj.2.bias"};

static const struct relation_row tensors[] = {
    {"codec_head", "output", .parallel = "row"},
    {"model.text_embedding", "text_embd", .parallel = "row"},
    {"model.codec_embedding", "codec_embd", .parallel = "row"},
    {"text_projection.linear_fc1", "text_proj.1", .parallel = "row"},
    {"text_projection.linear_fc2", "text_proj.2", .parallel = "column"},
    {0},
};

/* Leaves out what mmproj.gguf has. */
static const char *rename_tensor(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    return text_starts_with(name, "code_predictor.") || text_starts_with(name, "speaker_encoder.") ? NULL : name;
}

static void silu(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = values[i] / (1.0f + exponential(-values[i]));
}

static const struct tensor *find_part(const struct model_builder *builder, const char *name, unsigned rank,
                                      struct error *error)
{
    const struct tensor *tensor = tensor_set_find_text(builder->model->checkpoint->tensors, name);
    bool is_usable = tensor != NULL && tensor->rank == rank && tensor->refusal == NULL &&
                     dtype_kernels(tensor->dtype).decode != NULL;
    if (!is_usable)
        error_set(error, "tensor '%s', of which the table of tokens is made, is missing, or has not %u dimension%s",
                  name, rank, rank == 1 ? "" : "s");
    return is_usable ? tensor : NULL;
}

static bool check_product(const struct tensor *left, const struct tensor *weight, const struct tensor *bias,
                          struct error *error)
{
    if (left->shape[left->rank - 1] != weight->shape[1])
        return error_set(error, "tensor '%s' takes vectors of %" PRIu64 ", but '%s' has vectors of %" PRIu64,
                         weight->name, weight->shape[1], left->name, left->shape[left->rank - 1]);
    return bias->shape[0] == weight->shape[0] ||
           error_set(error, "tensor '%s' has %" PRIu64 " elements, but '%s' %" PRIu64 " rows", bias->name,
                     bias->shape[0], weight->name, weight->shape[0]);
}

/* Checks what arrange() makes the table of. */
static bool check_parts(struct model_builder *builder, struct error *error)
{
    static const char *const names[N_PARTS] = {
        "talker.model.text_embedding.weight",       "talker.model.codec_embedding.weight",
        "talker.text_projection.linear_fc1.weight", "talker.text_projection.linear_fc1.bias",
        "talker.text_projection.linear_fc2.weight", "talker.text_projection.linear_fc2.bias"};
    const struct tensor *found[N_PARTS];
    for (unsigned i = 0; i < N_PARTS; i++)
        if ((found[i] = find_part(builder, names[i], i == BIAS_1 || i == BIAS_2 ? 1 : 2, error)) == NULL)
            return false;
    if (!json_string_is(hparams_get(builder->model->hparams, "hidden_act"), "silu"))
        return error_set(error, "config.json: hidden_act of talker_config is not silu: other functions are not "
                                "supported");
    if (!check_product(found[TEXT], found[WEIGHT_1], found[BIAS_1], error) ||
        !check_product(found[BIAS_1], found[WEIGHT_2], found[BIAS_2], error))
        return false;
    return found[CODES]->shape[1] == found[WEIGHT_2]->shape[0] ||
           error_set(error, "tensor '%s' has rows of %" PRIu64 ", but '%s' has %" PRIu64 " rows", names[CODES],
                     found[CODES]->shape[1], names[WEIGHT_2], found[WEIGHT_2]->shape[0]);
}

static const struct view *linear(struct arena *arena, const struct view *input, const struct view *weight,
                                 const struct view *bias)
{
    const struct sharing rows = {.rows = input->shape[0], .columns = 1};
    const struct view *product = view_product(arena, input, view_transpose(arena, weight));
    return view_combine(arena, product, ADD, bias, &rows);
}

static const struct view *make_table(struct arena *arena, const struct view *const given[N_PARTS])
{
    const struct view *hidden = linear(arena, given[TEXT], given[WEIGHT_1], given[BIAS_1]);
    hidden = view_map(arena, hidden, &f32_dtype, silu);
    const struct view *text = linear(arena, hidden, given[WEIGHT_2], given[BIAS_2]);
    return view_concatenate(arena, (const struct view *const[]){text, view_convert(arena, given[CODES], &f32_dtype)}, 2,
                            0);
}

/* Puts the table where the last of its parts is. */
static void arrange(struct model_builder *builder)
{
    struct gguf_model *model = builder->model;
    const struct tensor_set *before = model->tensors;
    const struct view *found[N_PARTS];
    unsigned n_found = 0;
    model->tensors = tensor_set_new(model->arena);
    for (size_t i = 0; i < before->n_tensors; i++) {
        const struct tensor *tensor = &before->tensors[i];
        unsigned part = 0;
        while (part < N_PARTS && strcmp(tensor->name, parts[part]) != 0)
            part++;
        if (part == N_PARTS) {
            tensor_set_add(model->tensors, tensor);
            continue;
        }
        found[part] = tensor_view(tensor, model->arena);
        if (++n_found == N_PARTS)
            tensor_set_add_view(model->tensors, "token_embd.weight", make_table(model->arena, found));
    }
}

/* Sets the tokens that are never an answer: the last 1024 codes, except the end of speech. */
static bool emit_ends(struct model_builder *builder, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    struct gguf_kvs *kvs = &builder->model->kvs;
    uint64_t n_text, n_codes, end;
    if (!hparams_count(hparams, "text_vocab_size", 1, INT32_MAX / 2, &n_text, error) ||
        !hparams_count(hparams, "vocab_size", 1024, INT32_MAX / 2, &n_codes, error) ||
        !hparams_count(hparams, "codec_eos_token_id", 0, n_codes - 1, &end, error))
        return false;
    struct buffer suppressed = {0};
    uint64_t n_suppressed = 0;
    for (uint64_t id = n_text + n_codes - 1024; id < n_text + n_codes; id++) {
        if (id == n_text + end)
            continue;
        buffer_append_le(&suppressed, id, 4);
        n_suppressed++;
    }
    gguf_set_array(kvs, "tokenizer.ggml.suppress_tokens", GGUF_I32, n_suppressed, &suppressed);
    gguf_set_u32(kvs, "tokenizer.ggml.eos_token_id", (uint32_t)(n_text + end));
    gguf_set_bool(kvs, "tokenizer.ggml.add_eos_token", false);
    return true;
}

const struct family qwen3tts_family = {
    .name = "qwen3tts",
    .no_forms = "the text embedding and the projection whose product its token_embd.weight is",
    .summary = "Qwen3-TTS (talker)",
    .hf = FAMILY_NAMES({"Qwen3TTSForConditionalGeneration"}),
    .tensors = {tensors, qk_norm_tensors, decoder_tensors},
    .keys = {base_keys, KEYS({.emit = emit_ends})},
    .vocabs = {&codes_vocab},
    .dropped_prefixes = TEXTS("talker."),
    .folder = "speech_tokenizer", /* for models/projectors/qwen3tts.c */
    .note =
        "the embedding of text is computed in F64, and differs from the converter's in the last bit of some weights",
    .adjust = check_parts,
    .rename = rename_tensor,
    .arrange = arrange,
};
