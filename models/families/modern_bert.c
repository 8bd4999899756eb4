/* ModernBERT. conversion/bert.py, ModernBertModel. */
#include "base/text.h"
#include "models/families/bert.h"

#include <string.h>

static const struct family_name names[] = {
    {"ModernBertModel"}, {"ModernBertForMaskedLM"}, {"ModernBertForSequenceClassification"}, {0}};

static const struct relation_row tensors[] = {
    {"embeddings.tok_embeddings", "token_embd", .parallel = "row"},
    {"embeddings.norm", "token_embd_norm"},
    {"final_norm", "output_norm"},
    {"layers.{}.attn_norm", "blk.{}.attn_norm"},
    {"layers.{}.attn.Wqkv", "blk.{}.attn_qkv", "(part head d) ...", "head"},
    {"layers.{}.attn.Wo", "blk.{}.attn_output", .parallel = "column"},
    {"layers.{}.mlp_norm", "blk.{}.ffn_norm"},
    {"layers.{}.mlp.Wi", "blk.{}.ffn_up", "(gate + up) ...", "gate up"},
    {"layers.{}.mlp.Wo", "blk.{}.ffn_down", .parallel = "column"},
    {"head.dense", "cls"},
    {"head.norm", "cls.norm"},
    {"classifier", "cls.output"},
    {"decoder*", NULL},
    {0},
};

static const struct key_row keys[] = {
    {"attention.sliding_window", GGUF_U32, REQUIRED, "local_attention"},
    {"attention.sliding_window_pattern", GGUF_U32, IF_PRESENT, "global_attn_every_n_layers"},
    {"rope.scaling.type", GGUF_STRING, ALWAYS, .text = "none"},
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"hidden_activation", GGUF_STRING, IF_PRESENT, "hidden_activation"},
    {0},
};

static const char *rename_tensor(struct arena *arena, const struct facts *facts, enum direction direction,
                                 const char *name)
{
    return text_starts_with(name, "head.") ? name : bert_rename(arena, facts, direction, name, "model.");
}

#define CONFIG_ROWS                                                                                                    \
    {"global_rope_theta", FROM_KEY, "rope.freq_base"}, {"local_rope_theta", FROM_KEY, "rope.freq_base_swa"},           \
        {"rope_theta", FROM_NOWHERE}, {"cls_token_id", FROM_KEY, ".tokenizer.ggml.bos_token_id"},                      \
        {"sep_token_id", FROM_KEY, ".tokenizer.ggml.eos_token_id"}, {"norm_bias", FROM_TENSOR, "output_norm.bias"},    \
        {"attention_bias", FROM_TENSOR, "blk.0.attn_qkv.bias"},                                                        \
    {                                                                                                                  \
        "mlp_bias", FROM_TENSOR, "blk.0.ffn_up.bias"                                                                   \
    }

static const struct config_row config_rows[] = {CONFIG_ROWS, {0}};

static const struct config_row config_head_rows[] = {
    CONFIG_ROWS,
    BERT_LABEL_ROWS,
    {"classifier_bias", FROM_TENSOR, "cls.bias"},
    {0},
};

static const struct config_form forms[] = {
    {"ModernBertForSequenceClassification", "modernbert", "tensor:cls.output.weight", config_head_rows},
    {"ModernBertModel", "modernbert", NULL, config_rows},
    {0},
};

static const char *const prefixes[] = {"model.", NULL};

/* What predicts masked words is left out; the converter fails on it. */
static bool note_head(struct draft *draft, struct error *error)
{
    const struct checkpoint *checkpoint = draft->model->checkpoint;
    (void)error;
    for (size_t i = 0; i < checkpoint->tensors->n_tensors; i++)
        if (text_starts_with(checkpoint->tensors->tensors[i].name, "decoder.")) {
            checkpoint_note(checkpoint, "model.gguf: the head for masked words is left out; the converter fails on it");
            break;
        }
    return true;
}

static bool frame_texts(struct draft *draft, const struct vocab_input *input, struct error *error)
{
    (void)input, (void)error;
    gguf_set_bool(&draft->model->kvs, "tokenizer.ggml.add_bos_token", true);
    gguf_set_bool(&draft->model->kvs, "tokenizer.ggml.add_eos_token", true);
    gguf_set_bool(&draft->model->kvs, "tokenizer.ggml.add_sep_token", true);
    return true;
}

const struct family modern_bert_family = {
    .name = "modern-bert",
    .summary = "ModernBERT",
    .hf = names,
    .tensors = {tensors},
    .forms = forms,
    .keys = {base_keys, bert_keys, keys},
    .vocabs = {&bpe_vocab},
    .dropped_prefixes = prefixes,
    .add_facts = bert_add_facts,
    .rename = rename_tensor,
    .adjust = note_head,
    .before_vocab = frame_texts,
};
