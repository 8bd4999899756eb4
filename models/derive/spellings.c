/* Sources: transformers 4.57, modeling_flax_pytorch_utils.py (rename_key_and_reshape_tensor),
 * modeling_tf_pytorch_utils.py (convert_tf_weight_name_to_pt_weight_name), load_tf_weights_in_bert() and
 * load_tf_weights_in_gpt2(); torchtitan's Llama (models/llama3/model/state_dict_adapter.py). */
#include "base/buffer.h"
#include "base/text.h"
#include "models/derive/foreign_names.h"

#include <string.h>

static const char *const encoder_types[] = {"bert", "roberta", "distilbert", "gpt2", "t5", NULL};

/* Flax: the modules' own names, joined by '.'. */

static bool is_flax(const char *name)
{
    return strchr(name, '/') == NULL && (text_ends_with(name, ".kernel") || text_ends_with(name, ".embedding"));
}

static bool split_flax(struct arena *arena, const char *name, const char **ret_path, const char **ret_leaf)
{
    static const char root[] = "params.";
    name += text_starts_with(name, root) ? strlen(root) : 0;
    const char *dot = strrchr(name, '.');
    *ret_path = dot != NULL ? arena_strndup(arena, name, (size_t)(dot - name)) : "";
    *ret_leaf = dot != NULL ? dot + 1 : name;
    return true;
}

static const struct leaf flax_leaves[] = {
    {"kernel", 2, "weight", "i o -> o i"},
    {"kernel", 3, "weight", "k i o -> o i k"},
    {"kernel", 4, "weight", "h w i o -> o i h w"},
    {"scale", 0, "weight", NULL},
    {"embedding", 0, "weight", NULL},
    {0},
};

const struct spelling flax_spelling = {
    .framework = "Flax",
    .model_types = encoder_types,
    .is_marked = is_flax,
    .split = split_flax,
    .leaves = flax_leaves,
};

/* transformers' tf_model.h5: LAYER/CLASS/module/.../kernel:0. "_._" stands for a '/', and of "a___b" the end counts. */

static bool is_keras(const char *name)
{
    return text_ends_with(name, ":0");
}

/* Returns the place after the next '/'; NULL: there is none. */
static const char *after_slash(const char *name)
{
    const char *slash = name != NULL ? strchr(name, '/') : NULL;
    return slash != NULL ? slash + 1 : NULL;
}

/* Appends a part of a path with '.' before it, unless it is the first or empty. */
static void append_part(struct buffer *path, const char *part, size_t length)
{
    for (size_t i = 0; i + 3 <= length; i++)
        if (memcmp(part + i, "___", 3) == 0) {
            length -= i + 3;
            part += i + 3;
            i = (size_t)-1;
        }
    if (length == 0)
        return;
    if (path->length > 0)
        buffer_append_text(path, ".");
    buffer_append(path, part, length);
}

static bool split_keras(struct arena *arena, const char *name, const char **ret_path, const char **ret_leaf)
{
    const char *in_layer = after_slash(name), *in_class = after_slash(in_layer);
    if (in_class == NULL || !is_keras(name))
        return false;
    if (after_slash(in_class) == NULL) /* a shared embedding has no class */
        in_class = in_layer;
    struct buffer path = {0};
    const char *end = name + strlen(name) - strlen(":0"), *leaf = end;
    while (leaf > in_class && leaf[-1] != '/')
        leaf--;
    for (const char *part = in_class; part < leaf;) {
        const char *slash = memchr(part, '/', (size_t)(leaf - part)), *joint = strstr(part, "_._");
        bool is_joint = joint != NULL && joint < slash;
        append_part(&path, part, (size_t)((is_joint ? joint : slash) - part));
        part = is_joint ? joint + strlen("_._") : slash + 1;
    }
    *ret_path = arena_strndup(arena, path.bytes != NULL ? (const char *)path.bytes : "", path.length);
    *ret_leaf = arena_strndup(arena, leaf, (size_t)(end - leaf));
    buffer_free(&path);
    return true;
}

static const struct leaf keras_leaves[] = {
    {"kernel", 2, "weight", "i o -> o i"},
    {"kernel", 3, "weight", "k i o -> o i k"},
    {"kernel", 4, "weight", "h w i o -> o i h w"},
    {"embeddings", 0, "weight", NULL},
    {"gamma", 0, "weight", NULL},
    {"beta", 0, "bias", NULL},
    {0},
};

const struct spelling keras_spelling = {
    .framework = "TensorFlow (Keras)",
    .model_types = encoder_types,
    .is_marked = is_keras,
    .split = split_keras,
    .leaves = keras_leaves,
};

/* google-research's bert_model.ckpt: bert/encoder/layer_0/attention/self/query/kernel. */

static const char *const bert_types[] = {"bert", NULL};

static bool is_tensorflow_bert(const char *name)
{
    return text_starts_with(name, "bert/");
}

/* Reports whether a part of the path means that a tensor is of the optimizer. */
static bool is_of_optimizer(const char *name)
{
    static const char *const marks[] = {"adam_", "Adam", "global_step"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (strstr(name, marks[i]) != NULL)
            return true;
    return false;
}

/* Copies a path with '.' for '/', and for '_' between "layer" and its number. */
static char *dotted(struct arena *arena, const char *name, size_t length)
{
    char *path = arena_strndup(arena, name, length);
    for (char *c = path; *c != '\0'; c++)
        if (*c == '/' || (*c == '_' && c - path >= 5 && memcmp(c - 5, "layer", 5) == 0 && c[1] >= '0' && c[1] <= '9'))
            *c = '.';
    return path;
}

static bool split_tensorflow_bert(struct arena *arena, const char *name, const char **ret_path, const char **ret_leaf)
{
    const char *slash = strrchr(name, '/');
    if (is_of_optimizer(name) || slash == NULL)
        return false;
    bool is_embedding = text_ends_with(name, "_embeddings");
    *ret_path = dotted(arena, name, is_embedding ? strlen(name) : (size_t)(slash - name));
    *ret_leaf = is_embedding ? "weight" : slash + 1;
    return true;
}

static const struct leaf tensorflow_bert_leaves[] = {
    {"kernel", 2, "weight", "i o -> o i"}, {"gamma", 0, "weight", NULL},     {"beta", 0, "bias", NULL},
    {"output_weights", 0, "weight", NULL}, {"output_bias", 0, "bias", NULL}, {0},
};

const struct spelling tensorflow_bert_spelling = {
    .framework = "TensorFlow (google-research/bert)",
    .model_types = bert_types,
    .is_marked = is_tensorflow_bert,
    .split = split_tensorflow_bert,
    .leaves = tensorflow_bert_leaves,
};

/* OpenAI's model.ckpt of GPT-2: model/h0/attn/c_attn/w. */

static const char *const gpt2_types[] = {"gpt2", NULL};

static bool is_tensorflow_gpt2(const char *name)
{
    return text_starts_with(name, "model/") && text_ends_with(name, "/w");
}

static bool split_tensorflow_gpt2(struct arena *arena, const char *name, const char **ret_path, const char **ret_leaf)
{
    static const char root[] = "model/";
    if (!text_starts_with(name, root) || is_of_optimizer(name))
        return false;
    name += strlen(root);
    const char *slash = strrchr(name, '/'); /* an embedding has no last part */
    size_t length = slash != NULL ? (size_t)(slash - name) : strlen(name);
    bool is_layer = *name == 'h' && name[1] >= '0' && name[1] <= '9';
    *ret_path = is_layer ? arena_printf(arena, "transformer.h.%s", dotted(arena, name + 1, length - 1))
                         : arena_printf(arena, "transformer.%s", dotted(arena, name, length));
    *ret_leaf = slash != NULL ? slash + 1 : "weight";
    return true;
}

/* Matrices have an axis of one convolution step. transformers' Conv1D has rows of inputs, too. */
static const struct leaf tensorflow_gpt2_leaves[] = {{"w", 3, "weight", "1 i o -> i o"},
                                                     {"w", 0, "weight", NULL},
                                                     {"g", 0, "weight", NULL},
                                                     {"b", 0, "bias", NULL},
                                                     {0}};

const struct spelling tensorflow_gpt2_spelling = {
    .framework = "TensorFlow (openai/gpt-2)",
    .model_types = gpt2_types,
    .is_marked = is_tensorflow_gpt2,
    .split = split_tensorflow_gpt2,
    .leaves = tensorflow_gpt2_leaves,
};

/* torchtitan's Llama: Meta's names and order of rotary rows. */

static const char *const llama_types[] = {"llama", NULL};

static bool is_torchtitan(const char *name)
{
    return strcmp(name, "layers.0.attention.wq.weight") == 0;
}

static const struct relation_row torchtitan_rows[] = {
    {"model.embed_tokens", "tok_embeddings"},
    {"model.norm", "norm"},
    {"lm_head", "output"},
    {"model.layers.{}.input_layernorm", "layers.{}.attention_norm"},
    {"model.layers.{}.post_attention_layernorm", "layers.{}.ffn_norm"},
    {"model.layers.{}.self_attn.q_proj", "layers.{}.attention.wq", QUERY_ROTARY},
    {"model.layers.{}.self_attn.k_proj", "layers.{}.attention.wk", KEY_ROTARY},
    {"model.layers.{}.self_attn.v_proj", "layers.{}.attention.wv"},
    {"model.layers.{}.self_attn.o_proj", "layers.{}.attention.wo"},
    {"model.layers.{}.mlp.gate_proj", "layers.{}.feed_forward.w1"},
    {"model.layers.{}.mlp.down_proj", "layers.{}.feed_forward.w2"},
    {"model.layers.{}.mlp.up_proj", "layers.{}.feed_forward.w3"},
    {0},
};

const struct spelling torchtitan_spelling = {
    .framework = "torchtitan",
    .model_types = llama_types,
    .is_marked = is_torchtitan,
    .relation = {torchtitan_rows},
};

/* Megatron-Core's GPT models, as its distributed checkpoints (torch_dist) and model_optim_rng.pt name them. Sources:
 * sharded_state_dict() of transformer_block.py, mlp.py, moe/experts.py and extensions/transformer_engine.py in
 * Megatron-Core 0.14; the pairs of names in Megatron-Bridge's llama, mistral, qwen2, qwen3 and qwen3_moe.
 *
 * Layers are stacked on a first axis, unless each has a number. The rows of a key head's queries, its key and its value
 * follow each other. Embeddings have rows of padding beyond the vocabulary. A norm before a linear layer is a part of
 * that layer with Transformer Engine, and a module without it. */

#define HERE    "model.layers.{}."
#define THERE   "decoder.layers.{}."
#define EXPERT  "mlp.experts.experts."
#define HALVES  "gate ..., up ... -> (gate + up) ..."
#define STACKED "gate ..., up ... -> expert (gate + up) ..."
#define PADDED  "token c -> (token + padding) c"
#define GROUPS                                                                                                         \
    "(kv_head share d) ..., (kv_head key d) ..., (kv_head value d) ... -> (kv_head (share d + key d + value d)) ..."

/* clang-format off */

/* Gate and up are one tensor, or two if its parts are saved apart. */
#define GATED(here, gate, up, there)                             \
    {here gate ", " here up, there "linear_fc1", HALVES},        \
    {here gate ".weight", there "linear_fc1.weight_w"},          \
    {here up ".weight", there "linear_fc1.weight_v"}

/* Experts are stacked on an axis, or each has a number. */
#define EXPERTS(here, gate, up, down)                                       \
    {here gate ", " here up, THERE EXPERT "linear_fc1", STACKED},           \
    {here down, THERE EXPERT "linear_fc2"},                                 \
    GATED(here, gate, up, THERE EXPERT "{expert}."),                        \
    {here down, THERE EXPERT "{expert}.linear_fc2"},                        \
    GATED(here, gate, up, THERE "mlp.experts.local_experts.{expert}."),     \
    {here down, THERE "mlp.experts.local_experts.{expert}.linear_fc2"}

/* clang-format on */

static const struct relation_row rows[] = {
    {"model.embed_tokens", "embedding.word_embeddings", PADDED},
    {"lm_head", "output_layer", PADDED},
    {"model.norm", "decoder.final_layernorm"},
    {HERE "self_attn.q_proj, " HERE "self_attn.k_proj, " HERE "self_attn.v_proj", THERE "self_attention.linear_qkv",
     GROUPS},
    {HERE "self_attn.o_proj", THERE "self_attention.linear_proj"},
    {HERE "self_attn.q_norm", THERE "self_attention.q_layernorm"},
    {HERE "self_attn.k_norm", THERE "self_attention.k_layernorm"},
    {HERE "input_layernorm", THERE "input_layernorm"},
    {HERE "input_layernorm.weight", THERE "self_attention.linear_qkv.layer_norm_weight"},
    {HERE "post_attention_layernorm", THERE "pre_mlp_layernorm"},
    {HERE "post_attention_layernorm.weight", THERE "mlp.linear_fc1.layer_norm_weight"},
    GATED(HERE "mlp.", "gate_proj", "up_proj", THERE "mlp."),
    {HERE "mlp.down_proj", THERE "mlp.linear_fc2"},
    {0},
};

static const struct relation_row mixtral_rows[] = {
    {HERE "block_sparse_moe.gate", THERE "mlp.router"},
    EXPERTS(HERE "block_sparse_moe.experts.{expert}.", "w1", "w3", "w2"),
    {0},
};

static const struct relation_row qwen_rows[] = {
    {HERE "mlp.gate", THERE "mlp.router"},
    EXPERTS(HERE "mlp.experts.{expert}.", "gate_proj", "up_proj", "down_proj"),
    {0},
};

static bool is_megatron(const char *name)
{
    return strcmp(name, "decoder.final_layernorm.weight") == 0;
}

static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    static const struct dimension_row more[] = {{"token", "vocab_size"}, {"key", NULL, 1}, {"value", NULL, 1}, {0}};
    dimensions_add(dimensions, more, hparams);
    uint64_t head = dimensions_get(dimensions, "head"), kv_head = dimensions_get(dimensions, "kv_head");
    if (head != 0 && kv_head != 0)
        dimensions_set(dimensions, "share", head / kv_head);
}

static const char *const dense_types[] = {"llama", "mistral", "qwen2", "qwen3", NULL},
                         *const mixtral_types[] = {"mixtral", NULL}, *const qwen_types[] = {"qwen3_moe", NULL};

#define MEGATRON                                                                                                       \
    .framework = "Megatron-Core", .is_marked = is_megatron, .stacked = "decoder.layers.",                              \
    .add_dimensions = add_dimensions

const struct spelling megatron_spelling = {MEGATRON, .model_types = dense_types, .relation = {rows}};
const struct spelling megatron_mixtral_spelling = {MEGATRON, .model_types = mixtral_types,
                                                   .relation = {rows, mixtral_rows}};
const struct spelling megatron_qwen_spelling = {MEGATRON, .model_types = qwen_types, .relation = {rows, qwen_rows}};
