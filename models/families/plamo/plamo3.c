/* PLaMo 3. conversion/plamo.py. */
#include "formats/documents.h"
#include "models/families/layers.h"
#include "models/families/plamo/plamo2.h"
#include "models/tokenizers/tokenizer_files.h"

#include <inttypes.h>
#include <stdlib.h>

/* Sets the layers with a window: a period, or a list. */
static bool emit_window(struct model_builder *builder, struct error *error)
{
    static const struct key_row window_rows[] = {
        {"attention.sliding_window", GGUF_U32, REQUIRED, "window_size|sliding_window"}, {0}};
    static const struct key_row period_rows[] = {
        {"attention.sliding_window_pattern", GGUF_U32, REQUIRED, "sliding_window_pattern"}, {0}};
    const struct hparams *hparams = builder->model->hparams;
    const struct json *window = hparams_find(hparams, "window_size|sliding_window"),
                      *pattern = hparams_get(hparams, "sliding_window_pattern");
    struct layers layers;
    if (window == NULL || json_is(window, JSON_NULL))
        return true;
    if (!builder_emit(builder, window_rows, error))
        return false;
    if (!json_is(pattern, JSON_ARRAY))
        return builder_emit(builder, period_rows, error);
    if (!layers_new(builder, &layers, error))
        return false;
    if (json_count(pattern) != layers.n)
        return error_set(error, "config.json: sliding_window_pattern is not a list with a value for each layer");
    layers_fill(&layers, pattern);
    layers_set(builder, "attention.sliding_window_pattern", GGUF_BOOL, &layers);
    return true;
}

static bool add_chat_template(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    struct gguf_kvs *kvs = &builder->model->kvs;
    struct document *config;
    size_t length;
    bool absent;
    char *text = document_text(input->checkpoint, "chat_template.jinja", &length, &absent, error);
    if (text != NULL) {
        length = unify_newlines(text, length);
        if (length > 0)
            gguf_set_string(kvs, "tokenizer.chat_template", text, length);
        free(text);
        return true;
    }
    if (!absent || !document_open(input->checkpoint, "tokenizer_config.json", &config, error))
        return false;
    const char *said = json_string(json_get(document_root(config), "chat_template"), &length);
    if (said != NULL && length > 0)
        gguf_set_string(kvs, "tokenizer.chat_template", said, length);
    document_close(config);
    return true;
}

/* Adds the YaRN that the model's code makes of flat keys of config.json. */
static bool add_yarn(struct model_builder *builder, struct error *error)
{
    const struct gguf_model *model = builder->model;
    uint64_t length;
    double factor;
    if (!builder_number(builder, "rope_scaling_factor", 1, &factor, error))
        return false;
    bool has_type = hparams_rope(model->hparams, "rope_type") != NULL;
    if (factor == 1 || has_type || !follows(&model->references, PLAMO_YARN))
        return true;
    if (!hparams_count(model->hparams, "initial_context_length", 1, INT32_MAX, &length, error))
        return false;
    const char *scaling =
        arena_printf(model->arena,
                     "{'rope_scaling': {'rope_type': 'yarn', 'factor': %.17g, "
                     "'original_max_position_embeddings': %llu, 'beta_fast': 32.0, 'beta_slow': 1.0}}",
                     factor, (unsigned long long)length);
    return hparams_default(model->hparams, scaling, error);
}

/* Returns the layers with a window, a list or a period, as the key has them; NULL: it is missing. */
static const char *make_pattern(const struct config_material *material)
{
    static const char key[] = "plamo3.attention.sliding_window_pattern";
    struct gguf_array array;
    struct error unused;
    uint64_t period;
    const char *list = "";
    if (gguf_get_u64(material->kvs, key, &period))
        return arena_printf(material->arena, "%" PRIu64, period);
    if (!gguf_get_array(material->kvs, key, material->arena, &array, &unused) || array.count > MAX_LISTED_LAYERS)
        return NULL;
    for (uint64_t i = 0; i < array.count && gguf_array_u64(&array, i, &period); i++)
        list = arena_printf(material->arena, "%s%s%s", list, i > 0 ? ", " : "", period != 0 ? "true" : "false");
    return arena_printf(material->arena, "[%s]", list);
}

static const struct config_row config_rows[] = {
    {"window_size", FROM_KEY, "attention.sliding_window"},
    {"sliding_window_pattern", .make = make_pattern},
    {"head_dim", FROM_KEY, "attention.key_length"},
    {"rope_local_theta", FROM_KEY, "rope.freq_base_swa"},
    {"rope_scaling_factor", FROM_KEY, "rope.scaling.factor"},
    {"initial_context_length", FROM_KEY, "rope.scaling.original_context_length"},
    {0},
};

const struct family plamo3_family = {
    .name = "plamo3",
    .summary = "PLaMo 3",
    .hf = FAMILY_NAMES({"Plamo3ForCausalLM"}, {"PLaMo3ForCausalLM"}),
    .tensors = {TENSORS({"model.layers.layers.{}.mixer.q_norm", "blk.{}.attn_q_norm", .map = &plus_one},
                        {"model.layers.layers.{}.mixer.k_norm", "blk.{}.attn_k_norm", .map = &plus_one}),
                plamo2_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Plamo3ForCausalLM", "plamo3", NULL, CONFIG_TABLES(silu_rows, config_rows), OWN_CLASS_NOTE}),
    .keys = {base_keys, KEYS({"vocab_size", GGUF_U32, REQUIRED, "vocab_size"}, {.emit = emit_window})},
    .vocabs = {&plamo_vocab},
    .adjust = add_yarn,
    .after_vocab = add_chat_template,
};
