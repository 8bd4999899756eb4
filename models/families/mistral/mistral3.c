/* Mistral Small 3.1 and later, Devstral, Magistral, Ministral 3: Llama's tensors under an architecture of their own.
 * conversion/mistral3.py. */
#include "models/families/llama/llama.h"

/* Sets the keys of Ministral 3, which extends its context by YaRN, and sharpens attention with its length. */
static bool emit_stretching(struct model_builder *builder, struct error *error)
{
    static const struct key_row rows[] = {
        {"rope.scaling.yarn_log_multiplier", GGUF_F32, REQUIRED, "rope.mscale_all_dim"},
        {"attention.temperature_scale", GGUF_F32, REQUIRED, "rope.llama_4_scaling_beta"},
        {0},
    };
    const struct hparams *hparams = builder->model->hparams;
    if (!json_string_is(hparams_get(hparams, "model_type"), "ministral3"))
        return true;
    if (!json_string_is(hparams_rope(hparams, "rope_type"), "yarn"))
        return error_set(error, "config.json: the rope_type of a ministral3 is not yarn");
    return builder_emit(builder, rows, error);
}

/* Only one of the two factors of attention is a key; if both are equal, as in all published models, they cancel out. */
static const struct config_row config_stretched_rows[] = {
    {"rope_scaling", FROM_NOWHERE},
    {"rope_theta", FROM_NOWHERE},
    {"rope_parameters", FROM_TEXT,
     .text = "{\n    'beta_fast': <rope.scaling.yarn_beta_fast>,\n    'beta_slow': <rope.scaling.yarn_beta_slow>,"
             "\n    'factor': <rope.scaling.factor>,\n    'llama_4_scaling_beta': <attention.temperature_scale>,"
             "\n    'mscale': <rope.scaling.yarn_log_multiplier>,"
             "\n    'mscale_all_dim': <rope.scaling.yarn_log_multiplier>,"
             "\n    'original_max_position_embeddings': <rope.scaling.original_context_length>,"
             "\n    'rope_theta': <rope.freq_base>,\n    'rope_type': 'yarn'\n  }"},
    {0},
};

const struct family mistral3_family = {
    .name = "mistral3",
    .summary = "Mistral Small 3.1, Devstral, Magistral, Ministral 3",
    .hf = FAMILY_NAMES({"Mistral3ForConditionalGeneration"}, {"Ministral3ForCausalLM"}),
    .tensors = {llama_tensors, decoder_tensors},
    .forms = CONFIG_FORMS({"Ministral3ForCausalLM", "ministral3", "key:attention.temperature_scale",
                           CONFIG_TABLES(silu_rows, config_stretched_rows), HALF_NOTE},
                          {"MistralForCausalLM", "mistral", NULL, CONFIG_TABLES(silu_rows, no_window_rows), HALF_NOTE}),
    .keys = {base_keys, llama_keys, KEYS({.emit = emit_stretching})},
    .vocabs = {&spm_vocab, &llama_hf_vocab, &bpe_vocab, &tekken_vocab},
    .add_extras = add_rope_freqs,
    .before_vocab = llama_before_vocab,
    .after_vocab = llama_after_vocab,
};
