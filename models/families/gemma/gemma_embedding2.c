/* EmbeddingGemma 2: Gemma 4 as an encoder. conversion/gemma.py, EmbeddingGemma2Model. */
#include "base/text.h"
#include "models/families/gemma/gemma.h"
#include "text/json_write.h"

#include <inttypes.h>
#include <string.h>

#define BLOCK "model.layers.{}.ple_block."

static const struct relation_row tensors[] = {
    {"ple.per_layer_model_projection", "per_layer_model_proj", .parallel = "row"},
    {"ple.per_layer_projection_norm", "per_layer_proj_norm"},
    {BLOCK "per_layer_input_gate", "blk.{}.inp_gate"},
    {BLOCK "per_layer_projection", "blk.{}.proj"},
    {BLOCK "post_per_layer_input_norm", "blk.{}.post_norm"},
    {"embedding_projection", "output", .parallel = "row"},
    {0},
};

/* No layer takes the keys of another one, whatever config.json says. */
static bool adjust(struct model_builder *builder, struct error *error)
{
    return hparams_override(builder->model->hparams, "num_kv_shared_layers", 0, error) &&
           gemma3_count_tokens(builder, error);
}

static const struct key_row keys[] = {
    {"attention.sliding_window", GGUF_U32, REQUIRED, "sliding_window", .times = 2}, /* of both sides of a token */
    {"embedding_length_out", GGUF_U32, REQUIRED, "embedding_dim"},
    {"attention.causal", GGUF_BOOL, ALWAYS, .value = 0},
    {.emit = emit_pooling_type},
    {0},
};

/* The class has names without "model.". */
static const char *rename_tensor(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    static const char model[] = "model.";
    (void)arena;
    (void)dimensions;
    return direction == BACKWARD && text_starts_with(name, model) ? name + strlen(model) : name;
}

/* Returns the window of one side of a token. */
static const char *make_window(const struct config_material *material)
{
    uint64_t window;
    return gguf_get_u64(material->kvs, "gemma-embedding2.attention.sliding_window", &window)
               ? arena_printf(material->arena, "%" PRIu64, window / 2)
               : NULL;
}

static const char *make_ropes(const struct config_material *material)
{
    double base = 1e6, base_swa = 1e4;
    char digits[2][JSON_FLOAT_TEXT];
    gguf_get_f64(material->kvs, "gemma-embedding2.rope.freq_base", &base);
    gguf_get_f64(material->kvs, "gemma-embedding2.rope.freq_base_swa", &base_swa);
    return arena_printf(
        material->arena,
        "{\n    \"full_attention\": {\n      \"rope_theta\": %s,\n      \"rope_type\": \"default\"\n    },\n"
        "    \"sliding_attention\": {\n      \"rope_theta\": %s,\n      \"rope_type\": \"default\"\n    }\n  }",
        json_f32_text((float)base, digits[0]), json_f32_text((float)base_swa, digits[1]));
}

static const struct config_row config_rows[] = {
    {"sliding_window", .make = make_window},
    {"rope_parameters", .make = make_ropes},
    {"tie_word_embeddings", FROM_TEXT, .text = "true"}, /* output.weight is no head */
    {0},
};

const struct family gemma_embedding2_family = {
    .name = "gemma-embedding2",
    .summary = "EmbeddingGemma 2",
    .since = 11549,
    .hf = FAMILY_NAMES({"EmbeddingGemma2Model"}),
    .tensors = {tensors, gemma4_tensors, qk_norm_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"EmbeddingGemma2Model", "embedding_gemma2_text", NULL,
                           CONFIG_TABLES(gemma4_config_rows, config_rows), HALF_NOTE}),
    .keys = {base_keys, gemma3_keys, gemma4_keys, keys},
    .vocabs = {&gemma4_vocab},
    .adjust = adjust,
    .rename = rename_tensor,
};
