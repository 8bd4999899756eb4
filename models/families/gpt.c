/* GPT-2 and its relatives: layer norms, biases, most with queries, keys and values in one tensor. */
#include "models/families/shared.h"
#include "models/tokenizers/tokenizer_files.h"
#include "quant/views/convert.h"
#include "text/json_write.h"

#include <math.h>

/* GPT-2. conversion/gpt2.py. Its linear layers are stored transposed (Conv1D). */

static const struct relation_row gpt2_tensors[] = {
    {"^wte", "token_embd", .parallel = "row"},
    {"^wpe", "position_embd"},
    {"^ln_f", "output_norm"},
    {"lm_head", "output", .parallel = "row"},
    {"^h.{}.attn.bias", NULL}, /* masks, not biases; the converter fails on them */
    {"^h.{}.attn.masked_bias", NULL},
    {"^h.{}.ln_1", "blk.{}.attn_norm"},
    {"^h.{}.attn.c_attn.weight", "blk.{}.attn_qkv.weight", "i (part head d) -> (part head d) i", "head"},
    {"^h.{}.attn.c_attn.bias", "blk.{}.attn_qkv.bias", "(part head d) -> (part head d)", "head"},
    {"^h.{}.attn.c_proj.weight", "blk.{}.attn_output.weight", "i o -> o i", "i"},
    {"^h.{}.attn.c_proj.bias", "blk.{}.attn_output.bias"},
    {"^h.{}.ln_2", "blk.{}.ffn_norm"},
    {"^h.{}.mlp.c_fc.weight", "blk.{}.ffn_up.weight", "i o -> o i", "o"},
    {"^h.{}.mlp.c_fc.bias", "blk.{}.ffn_up.bias", .parallel = "row"},
    {"^h.{}.mlp.c_proj.weight", "blk.{}.ffn_down.weight", "i o -> o i", "i"},
    {"^h.{}.mlp.c_proj.bias", "blk.{}.ffn_down.bias"},
    {0},
};

static const struct key_row gpt2_keys[] = {
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"context_length", GGUF_U32, REQUIRED, "n_ctx|n_positions"},
    {"embedding_length", GGUF_U32, REQUIRED, "n_embd"},
    {"feed_forward_length", GGUF_U32, REQUIRED, "n_embd", .times = 4},
    {"attention.head_count", GGUF_U32, REQUIRED, "n_head"},
    {"attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "layer_norm_epsilon"},
    FILE_TYPE_KEY,
    {0},
};

static const struct config_row gpt2_config_rows[] = {
    {"activation_function", FROM_TEXT, .text = "'gelu_new'"},
    {"n_positions", FROM_KEY, "context_length"},
    {"n_inner", FROM_KEY, "feed_forward_length"},
    {0},
};

const struct family gpt2_family = {
    .name = "gpt2",
    .summary = "GPT-2",
    .hf = FAMILY_NAMES({"GPT2LMHeadModel"}),
    .tensors = {gpt2_tensors},
    .forms = CONFIG_FORMS({"GPT2LMHeadModel", "gpt2", NULL, CONFIG_TABLES(gpt2_config_rows)}),
    .keys = {gpt2_keys},
    .vocabs = {&bpe_vocab},
    .prefix = "transformer.",
    .dropped_prefixes = TEXTS("transformer."),
};

/* GPT-NeoX, Pythia. conversion/gptneox.py. */

static const struct relation_row gptneox_tensors[] = {
    {"gpt_neox.embed_in", "token_embd", .parallel = "row"},
    {"gpt_neox.final_layer_norm", "output_norm"},
    {"embed_out", "output", .parallel = "row"},
    {"lm_head", "output", .parallel = "row", .forward_only = true}, /* a live model of transformers 5 */
    {"gpt_neox.layers.{}.input_layernorm", "blk.{}.attn_norm"},
    {"gpt_neox.layers.{}.attention.query_key_value", "blk.{}.attn_qkv", "(head part d) ... -> (part head d) ...",
     "head"},
    {"gpt_neox.layers.{}.attention.dense", "blk.{}.attn_output", .parallel = "column"},
    {"gpt_neox.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm"},
    {"gpt_neox.layers.{}.mlp.dense_h_to_4h", "blk.{}.ffn_up", .parallel = "row"},
    {"gpt_neox.layers.{}.mlp.dense_4h_to_h", "blk.{}.ffn_down", .parallel = "column"},
    {0},
};

/* The converter takes the class's rotary_pct if config.json has none, as transformers 5 saves it. */
static bool compute_rotary(const struct model_builder *builder, double *ret_value, struct error *error)
{
    const struct hparams *hparams = builder->model->hparams;
    double converters, share;
    if (!compute_rotary_of_head(builder, ret_value, error))
        return false;
    if (json_get(hparams_raw(hparams), "rotary_pct") != NULL ||
        !json_double(hparams_rope(hparams, "partial_rotary_factor"), &share))
        return true;
    converters = *ret_value;
    *ret_value = trunc(share * (double)(dimensions_get(&builder->dimensions, "hidden") /
                                        dimensions_get(&builder->dimensions, "head")));
    if (*ret_value != converters)
        checkpoint_note(builder->model->checkpoint, SUBJECT_GGUF,
                        "config.json has partial_rotary_factor %g in rope_parameters instead of rotary_pct; the "
                        "converter overlooks it and writes rope.dimension_count %g, wfs writes %g",
                        share, converters, *ret_value);
    return true;
}

/* Without general.file_type. */
static const struct key_row gptneox_keys[] = {
    {"context_length", GGUF_U32, REQUIRED, "max_position_embeddings"},
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size"},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"feed_forward_length", GGUF_U32, REQUIRED, "intermediate_size"},
    {"rope.dimension_count", GGUF_U32, .compute = compute_rotary},
    {"attention.head_count", GGUF_U32, REQUIRED, "num_attention_heads"},
    {"use_parallel_residual", GGUF_BOOL, OR_DEFAULT, "use_parallel_residual", 1},
    {"attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "layer_norm_eps"},
    {.emit = note_lost_rope},
    {0},
};

static const struct config_row gptneox_config_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'gelu'"},
    {"rotary_pct", FROM_HEAD_SHARE, "rope.dimension_count"},
    {"rotary_emb_base", FROM_TEXT, .text = "10000"},
    {"attention_bias", FROM_TENSOR, "blk.0.attn_qkv.bias"},
    {0},
};

const struct family gptneox_family = {
    .name = "gptneox",
    .summary = "GPT-NeoX, Pythia",
    .hf = FAMILY_NAMES({"GPTNeoXForCausalLM"}),
    .tensors = {gptneox_tensors},
    .forms = CONFIG_FORMS({"GPTNeoXForCausalLM", "gpt_neox", NULL, CONFIG_TABLES(gptneox_config_rows)}),
    .keys = {gptneox_keys},
    .vocabs = {&bpe_vocab},
};

/* Bloom. conversion/bloom.py. */

static const struct relation_row bloom_tensors[] = {
    {"^word_embeddings", "token_embd", .parallel = "row"},
    {"^word_embeddings_layernorm", "token_embd_norm"},
    {"^ln_f", "output_norm"},
    {"lm_head", "output", .parallel = "row"},
    {"^h.{}.input_layernorm", "blk.{}.attn_norm"},
    {"^h.{}.self_attention.query_key_value", "blk.{}.attn_qkv", "(head part d) ... -> (part head d) ...", "head"},
    {"^h.{}.self_attention.dense", "blk.{}.attn_output", .parallel = "column"},
    {"^h.{}.post_attention_layernorm", "blk.{}.ffn_norm"},
    {"^h.{}.mlp.dense_h_to_4h", "blk.{}.ffn_up", .parallel = "row"},
    {"^h.{}.mlp.dense_4h_to_h", "blk.{}.ffn_down", .parallel = "column"},
    {0},
};

static const struct key_row bloom_keys[] = {
    {"context_length", GGUF_U32, REQUIRED, "seq_length|hidden_size|n_embed"},
    {"embedding_length", GGUF_U32, REQUIRED, "hidden_size|n_embed"},
    {"feed_forward_length", GGUF_U32, REQUIRED, "hidden_size|n_embed", .times = 4},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"attention.head_count", GGUF_U32, REQUIRED, "n_head|num_attention_heads"},
    {"attention.head_count_kv", GGUF_U32, REQUIRED, "n_head|num_attention_heads"},
    {"attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "layer_norm_epsilon"},
    FILE_TYPE_KEY,
    {0},
};

static const struct config_row bloom_config_rows[] = {
    {"n_head", FROM_KEY, "attention.head_count"},
    {"seq_length", FROM_KEY, "context_length"},
    {"apply_residual_connection_post_layernorm", FROM_TEXT, .text = "false"},
    {0},
};

const struct family bloom_family = {
    .name = "bloom",
    .summary = "Bloom",
    .hf = FAMILY_NAMES({"BloomForCausalLM"}, {"BloomModel"}),
    .tensors = {bloom_tensors},
    .forms = CONFIG_FORMS({"BloomForCausalLM", "bloom", NULL, CONFIG_TABLES(bloom_config_rows)}),
    .keys = {bloom_keys},
    .vocabs = {&bpe_vocab},
    .prefix = "transformer.",
    .dropped_parts = TEXTS("transformer."),
};

/* MPT. conversion/mpt.py. */

static const struct relation_row mpt_tensors[] = {
    {"transformer.norm_f", "output_norm"},
    {"transformer.blocks.{}.norm_1", "blk.{}.attn_norm"},
    {"transformer.blocks.{}.attn.Wqkv", "blk.{}.attn_qkv", "(head d + kv_head k + kv_head v) ...", "head kv_head"},
    {"transformer.blocks.{}.attn.q_ln", "blk.{}.attn_q_norm"},
    {"transformer.blocks.{}.attn.k_ln", "blk.{}.attn_k_norm"},
    {"transformer.blocks.{}.attn.out_proj", "blk.{}.attn_output", .parallel = "column"},
    {"transformer.blocks.{}.norm_2", "blk.{}.ffn_norm"},
    {"transformer.blocks.{}.ffn.up_proj", "blk.{}.ffn_up", .parallel = "row"},
    {"transformer.blocks.{}.ffn.down_proj", "blk.{}.ffn_down", .parallel = "column"},
    {"transformer.blocks.{}.ffn.act.scales", "blk.{}.ffn.act.scales", .parallel = "row"},
    {0},
};

static bool compute_alibi_bias(const struct model_builder *builder, double *ret_value, struct error *error)
{
    *ret_value = 0;
    if (!json_bool(hparams_get(builder->model->hparams, "attn_config.alibi"), false))
        return true;
    return builder_number(builder, "attn_config.alibi_bias_max", 0, ret_value, error);
}

/* Without general.file_type. */
static const struct key_row mpt_keys[] = {
    {"context_length", GGUF_U32, REQUIRED, "max_seq_len"},
    {"embedding_length", GGUF_U32, REQUIRED, "d_model"},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"feed_forward_length", GGUF_U32, REQUIRED, "d_model", .times = 4},
    {"attention.head_count", GGUF_U32, REQUIRED, "n_heads"},
    {"attention.head_count_kv", GGUF_U32, IF_TRUE, "attn_config.kv_n_heads"},
    {"attention.layer_norm_epsilon", GGUF_F32, ALWAYS, .value = 1e-5},
    {"attention.clamp_kqv", GGUF_F32, IF_PRESENT, "attn_config.clip_qkv"},
    {"attention.max_alibi_bias", GGUF_F32, .compute = compute_alibi_bias},
    {0},
};

/* Adds SEA-LION's special tokens: it has only a SentencePiece model, and no file names them. */
static bool after_vocab(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    struct gguf_kvs *kvs = &builder->model->kvs;
    if (checkpoint_side_file(input->checkpoint, "tokenizer.json") != NULL)
        return true;
    gguf_set_bool(kvs, "tokenizer.ggml.add_bos_token", false);
    gguf_set_u32(kvs, "tokenizer.ggml.padding_token_id", 3);
    gguf_set_u32(kvs, "tokenizer.ggml.eos_token_id", 1);
    gguf_set_u32(kvs, "tokenizer.ggml.unknown_token_id", 0);
    return true;
}

/* Returns the bias as a whole number, which the class requires. */
static const char *make_alibi_bias(const struct config_material *material)
{
    char digits[JSON_FLOAT_TEXT];
    double bias;
    if (!gguf_get_f64(material->kvs, "mpt.attention.max_alibi_bias", &bias) || !isfinite(bias))
        return NULL;
    if (bias == trunc(bias))
        return arena_printf(material->arena, "%.0f", bias);
    return arena_strdup(material->arena, json_f32_text((float)bias, digits));
}

static const struct config_row mpt_config_rows[] = {
    {"expansion_ratio", FROM_QUOTIENT, "feed_forward_length", "embedding_length"},
    {"attn_config", FROM_TEXT,
     .text = "{\n    'alibi': true,\n    'clip_qkv': <attention.clamp_kqv>,"
             "\n    'kv_n_heads': <attention.head_count_kv>\n  }"},
    {"attn_config.alibi_bias_max", .make = make_alibi_bias},
    {0},
};

static const struct config_row config_learned_rows[] = {
    {"expansion_ratio", FROM_QUOTIENT, "feed_forward_length", "embedding_length"},
    {"attn_config", FROM_TEXT,
     .text = "{'alibi': false, 'clip_qkv': <attention.clamp_kqv>, 'kv_n_heads': <attention.head_count_kv>}"},
    {0},
};

const struct family mpt_family = {
    .name = "mpt",
    .summary = "MPT",
    .hf = FAMILY_NAMES({"MPTForCausalLM"}, {"MptForCausalLM"}),
    .tensors = {mpt_tensors, gpt_tensors},
    .forms = CONFIG_FORMS({"MPTForCausalLM", "mpt", "tensor:position_embd.weight", CONFIG_TABLES(config_learned_rows)},
                          {"MPTForCausalLM", "mpt", NULL, CONFIG_TABLES(mpt_config_rows)}),
    .keys = {mpt_keys},
    .vocabs = {&bpe_vocab, &spm_vocab},
    .dimensions = {DIMENSIONS({"kv_head", "attn_config.kv_n_heads", .kept = true})},
    .after_vocab = after_vocab,
};

/* GPTBigCode: SantaCoder, StarCoder; StarCoder 2; and CodeShell. conversion/starcoder.py, codeshell.py. */

static const struct key_row starcoder_keys[] = {
    {"context_length", GGUF_U32, REQUIRED, "n_positions"},
    {"embedding_length", GGUF_U32, REQUIRED, "n_embd"},
    {"feed_forward_length", GGUF_U32, REQUIRED, "n_embd", .times = 4},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"attention.head_count", GGUF_U32, REQUIRED, "n_head"},
    {"attention.head_count_kv", GGUF_U32, OR_DEFAULT, "num_query_groups", 1},
    {"attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "layer_norm_epsilon"},
    FILE_TYPE_KEY,
    {0},
};

static const struct config_row starcoder_config_rows[] = {
    {"activation_function", FROM_TEXT, .text = "'gelu_pytorch_tanh'"},
    {"num_query_groups", FROM_NOWHERE},
    {"multi_query", FROM_TEXT, .text = "true"},
    {"n_inner", FROM_KEY, "feed_forward_length"},
    {0},
};

const struct family starcoder_family = {
    .name = "starcoder",
    .summary = "GPTBigCode: SantaCoder, StarCoder",
    .hf = FAMILY_NAMES({"GPTBigCodeForCausalLM"}),
    .tensors = {TENSORS({"transformer.h.{}.attn.c_attn", "blk.{}.attn_qkv", "(head d + kv_head k + kv_head v) ...",
                         "head kv_head", .when = "multi_query"},
                        {"transformer.h.{}.attn.c_attn", "blk.{}.attn_qkv", "(head part d) ...", "head",
                         .when = "!multi_query"}),
                gpt_tensors},
    .forms = CONFIG_FORMS({"GPTBigCodeForCausalLM", "gpt_bigcode", NULL, CONFIG_TABLES(starcoder_config_rows)}),
    .keys = {starcoder_keys},
    .vocabs = {&bpe_vocab},
    .dimensions = {DIMENSIONS({"multi_query", "multi_query", 1}, {"kv_head", NULL, 1})},
};

const struct family codeshell_family = {
    .name = "codeshell",
    .summary = "CodeShell",
    .hf = FAMILY_NAMES({"CodeShellForCausalLM"}),
    .tensors = {TENSORS({"transformer.h.{}.attn.c_attn", "blk.{}.attn_qkv", "(head d + kv_head k + kv_head v) ...",
                         "head kv_head"}),
                gpt_tensors},
    .keys = {starcoder_keys, KEYS({"rope.freq_base", GGUF_F32, ALWAYS, .value = 10000},
                                  {"rope.scaling.type", GGUF_STRING, ALWAYS, .text = "linear"},
                                  {"rope.scaling.factor", GGUF_F32, ALWAYS, .value = 1})},
    .vocabs = {&bpe_vocab},
    .dimensions = {DIMENSIONS({"kv_head", "num_query_groups", 1})},
};

static const struct config_row starcoder2_config_rows[] = {
    {"hidden_act", FROM_TEXT, .text = "'gelu_pytorch_tanh'"},
    {"use_bias", FROM_TENSOR, "blk.0.attn_q.bias"},
    {"sliding_window", FROM_TEXT, .text = "null"},
    {0},
};

const struct family starcoder2_family = {
    .name = "starcoder2",
    .summary = "StarCoder 2",
    .hf = FAMILY_NAMES({"Starcoder2ForCausalLM"}),
    .tensors = {TENSORS({"model.layers.{}.mlp.c_fc", "blk.{}.ffn_up", .parallel = "row"},
                        {"model.layers.{}.mlp.c_proj", "blk.{}.ffn_down", .parallel = "column"}),
                decoder_tensors},
    .forms = CONFIG_FORMS({"Starcoder2ForCausalLM", "starcoder2", NULL, CONFIG_TABLES(starcoder2_config_rows)}),
    .keys = {base_keys},
    .vocabs = {&bpe_vocab},
};

/* Refact. conversion/refact.py. */

/* All heads share one key and one value: "kv_head" is 1. */
static const struct relation_row refact_tensors[] = {
    {"transformer.h.{}.attn.q", "blk.{}.attn_q", "(head d) ...", "head"},
    {"transformer.h.{}.attn.kv", "blk.{}.attn_k, blk.{}.attn_v", "(kv_head (k + v)) c -> (kv_head k) c, (kv_head v) c",
     "kv_head"},
    {"transformer.h.{}.mlp.gate_up_proj", "blk.{}.ffn_gate, blk.{}.ffn_up", GATE_UP, "gate up"},
    {0},
};

/* Computes two thirds of four times the width, rounded up to a multiple. */
static bool compute_feed_forward(const struct model_builder *builder, double *ret_value, struct error *error)
{
    enum { MULTIPLE = 256 };
    double width;
    if (!builder_number(builder, "n_embd", 0, &width, error))
        return false;
    *ret_value = ceil(trunc(8 * width / 3) / MULTIPLE) * MULTIPLE;
    return true;
}

static const struct key_row refact_keys[] = {
    {"context_length", GGUF_U32, REQUIRED, "n_positions"},
    {"embedding_length", GGUF_U32, REQUIRED, "n_embd"},
    {"feed_forward_length", GGUF_U32, .compute = compute_feed_forward},
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"attention.head_count", GGUF_U32, REQUIRED, "n_head"},
    {"attention.head_count_kv", GGUF_U32, ALWAYS, .value = 1},
    {"attention.layer_norm_rms_epsilon", GGUF_F32, REQUIRED, "layer_norm_epsilon"},
    FILE_TYPE_KEY,
    {0},
};

/* Adds the end of a turn after all other keys. */
static bool add_turn_end(struct model_builder *builder, const struct vocab_input *input, struct error *error)
{
    static const char *const types[] = {"eot", NULL};
    const struct special_vocab_options options = {.more_types = types};
    struct tokenizer_files files;
    if (!tokenizer_files_load(input->checkpoint, &files, error))
        return false;
    bool written = special_vocab_write(&builder->model->kvs, input, &files, &options, error);
    tokenizer_files_free(&files);
    return written;
}

const struct family refact_family = {
    .name = "refact",
    .summary = "Refact",
    .hf = FAMILY_NAMES({"GPTRefactForCausalLM"}),
    .tensors = {refact_tensors, gpt_tensors},
    .keys = {refact_keys},
    .vocabs = {&bpe_vocab},
    .dimensions = {DIMENSIONS({"kv_head", NULL, 1})},
    .after_vocab = add_turn_end,
};

/* Jais 1 and 2. conversion/jais.py. The linear layers of Jais 1 are stored transposed (Conv1D); a GGUF's weights
 * include the factors of the embedding and of the output. */

static const struct view *scale_embedding(struct arena *arena, const struct dimensions *dimensions,
                                          enum direction direction, const struct view *view)
{
    static const char *const factors[] = {"embeddings_scale"};
    return elementwise_multiply(arena, dimensions, direction, view, factors, 1);
}

static const struct view *scale_output(struct arena *arena, const struct dimensions *dimensions,
                                       enum direction direction, const struct view *view)
{
    static const char *const factors[] = {"width_scale"};
    return elementwise_multiply(arena, dimensions, direction, view, factors, 1);
}

static const struct elementwise times_embeddings_scale = {
    .forward_text = "x * embeddings_scale",
    .backward_text = "x / embeddings_scale",
    .apply = scale_embedding,
    .exactness = "one unit in the last place",
};

static const struct elementwise times_width_scale = {
    .forward_text = "x * width_scale",
    .backward_text = "x / width_scale",
    .apply = scale_output,
    .exactness = "one unit in the last place",
};

#define LAYER "transformer.h.{}."

static const struct relation_row jais_tensors[] = {
    {"transformer.wte", "token_embd", .parallel = "row", .map = &times_embeddings_scale},
    {"transformer.ln_f", "output_norm"},
    {"lm_head", "output", .parallel = "row", .map = &times_width_scale},
    {"transformer.relative_pe.slopes", NULL}, /* max_alibi_bias has the same */
    {LAYER "attn.bias", NULL},
    {LAYER "ln_1", "blk.{}.attn_norm"},
    {LAYER "attn.c_attn.weight", "blk.{}.attn_qkv.weight", "i (part head d) -> (part head d) i", "head"},
    {LAYER "attn.c_attn.bias", "blk.{}.attn_qkv.bias", "(part head d) -> (part head d)", "head"},
    {LAYER "attn.c_proj.weight", "blk.{}.attn_output.weight", "i o -> o i", "i"},
    {LAYER "attn.c_proj.bias", "blk.{}.attn_output.bias"},
    {LAYER "ln_2", "blk.{}.ffn_norm"},
    {LAYER "mlp.c_fc.weight", "blk.{}.ffn_up.weight", "i o -> o i", "o"},
    {LAYER "mlp.c_fc.bias", "blk.{}.ffn_up.bias", .parallel = "row"},
    {LAYER "mlp.c_fc2.weight", "blk.{}.ffn_gate.weight", "i o -> o i", "o"},
    {LAYER "mlp.c_fc2.bias", "blk.{}.ffn_gate.bias", .parallel = "row"},
    {LAYER "mlp.c_proj.weight", "blk.{}.ffn_down.weight", "i o -> o i", "i"},
    {LAYER "mlp.c_proj.bias", "blk.{}.ffn_down.bias"},
    {0},
};

static const struct key_row jais_keys[] = {
    {"block_count", GGUF_U32, REQUIRED, BLOCK_COUNT},
    {"context_length", GGUF_U32, REQUIRED, "n_positions"},
    {"embedding_length", GGUF_U32, REQUIRED, "n_embd"},
    {"feed_forward_length", GGUF_U32, REQUIRED, "n_inner"},
    {"attention.head_count", GGUF_U32, REQUIRED, "n_head"},
    {"attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "layer_norm_epsilon"},
    FILE_TYPE_KEY,
    {0},
};

/* Sets max_alibi_bias from the slope of the first head, the only weight that a key depends on. */
static bool add_alibi_bias(struct model_builder *builder, struct error *error)
{
    static const char slopes[] = "transformer.relative_pe.slopes";
    struct gguf_model *model = builder->model;
    const struct tensor *tensor = tensor_set_find_text(model->checkpoint->tensors, slopes);
    uint64_t closest = 1, n_heads = dimensions_get(&builder->dimensions, "head");
    double bias = 8;
    float first;
    while (closest * 2 <= n_heads)
        closest *= 2;
    if (tensor != NULL) {
        const struct view *view = tensor_view(tensor, model->arena);
        if (view == NULL || view->n_elements == 0 || !convert_values(view, 0, 1, &first, error))
            return error_set(error, "tensor '%s': it has no numbers to read", slopes);
        bias = -nearbyint(log2((double)first) * (double)closest);
        if (!isfinite(bias))
            return error_set(error, "tensor '%s': the first slope is %.9g, which has no logarithm", slopes,
                             (double)first);
    }
    gguf_set_f32(&model->kvs, builder_key(builder, "attention.max_alibi_bias"), bias);
    return true;
}

/* Finds the class's multipliers, under the names of either release. */
static bool find_scales(struct model_builder *builder, struct error *error)
{
    double embeddings, alpha, width;
    const struct hparams *hparams = builder->model->hparams;
    if (!json_string_is(hparams_get(hparams, "activation_function"), "swiglu") ||
        !json_string_is(hparams_get(hparams, "position_embedding_type"), "alibi"))
        return error_set(error, "config.json: activation_function is not swiglu, or position_embedding_type not alibi");
    if (!builder_number(builder, "mup_embeddings_scale|embeddings_scale", NAN, &embeddings, error) ||
        !builder_number(builder, "mup_output_alpha", NAN, &alpha, error) ||
        !builder_number(builder, isnan(alpha) ? "width_scale" : "mup_width_scale", NAN, &width, error))
        return false;
    if (isnan(embeddings) || isnan(width))
        return error_set(error, "config.json: %s is missing", isnan(width) ? "width_scale" : "embeddings_scale");
    dimensions_set_factor(&builder->dimensions, "embeddings_scale", (float)embeddings);
    dimensions_set_factor(&builder->dimensions, "width_scale", (float)(isnan(alpha) ? width : alpha * width));
    return true;
}

const struct family jais_family = {
    .name = "jais",
    .summary = "Jais 1",
    .hf = FAMILY_NAMES({"JAISLMHeadModel"}),
    .tensors = {jais_tensors},
    .keys = {jais_keys},
    .vocabs = {&bpe_vocab},
    .adjust = find_scales,
    .add_extras = add_alibi_bias,
};

const struct family jais2_family = {
    .name = "jais2",
    .summary = "Jais 2",
    .hf = FAMILY_NAMES({"Jais2ForCausalLM"}),
    .tensors = {decoder_tensors},
    .keys = {base_keys, KEYS({"rope.dimension_count", GGUF_U32, .compute = compute_head_dim})},
    .vocabs = {&bpe_vocab},
};
