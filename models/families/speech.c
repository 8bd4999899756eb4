/* Models of speech: a text model that predicts sound, and a decoder that makes sound. */
#include "base/text.h"
#include "models/families/shared.h"
#include "quant/views/product.h"

#include <string.h>

/* Pocket TTS, the text model: it predicts vectors of sound, not tokens. conversion/pockettts.py.
 *
 * Its config.json is made of shapes (models/derive/architecture.c). After the embedding of text, the table of tokens
 * has the learned vectors that begin a voice and the sound. */

#define LAYER "flow_lm.transformer.layers.{}."

static const struct relation_row pockettts_tensors[] = {
    {"flow_lm.conditioner.embed", "token_embd", .parallel = "row"},
    {"flow_lm.out_norm", "output_norm"},
    {LAYER "norm1", "blk.{}.attn_norm"},
    {LAYER "norm2", "blk.{}.ffn_norm"},
    {LAYER "self_attn.in_proj", "blk.{}.attn_q, blk.{}.attn_k, blk.{}.attn_v",
     "(query head d + key head d + value head d) ... -> (query head d) ..., (key head d) ..., (value head d) ...",
     "head"},
    {LAYER "self_attn.out_proj", "blk.{}.attn_output", .parallel = "column"},
    {LAYER "linear1", "blk.{}.ffn_up", .parallel = "row"},
    {LAYER "linear2", "blk.{}.ffn_down", .parallel = "column"},
    {0},
};

/* Leaves out what mmproj.gguf has, and what arrange() takes from the checkpoint. */
static const char *pockettts_rename_tensor(struct arena *arena, const struct dimensions *dimensions,
                                           enum direction direction, const char *name)
{
    bool is_text = text_starts_with(name, "flow_lm.transformer.") || text_starts_with(name, "flow_lm.out_norm.") ||
                   text_starts_with(name, "flow_lm.conditioner.");
    return direction == BACKWARD || is_text ? name : NULL;
}

static const char voice[] = "flow_lm.bos_before_voice", beginning[] = "flow_lm.bos_emb",
                  projection[] = "flow_lm.input_linear.weight", embedding[] = "flow_lm.conditioner.embed.weight";

static const struct tensor *find(const struct model_builder *builder, const char *name)
{
    const struct tensor *tensor = tensor_set_find_text(builder->model->checkpoint->tensors, name);
    bool is_usable =
        tensor != NULL && tensor->refusal == NULL && (tensor->dtype == &f32_dtype || tensor->dtype == &bf16_dtype);
    return is_usable ? tensor : NULL;
}

/* Checks what arrange() makes the table of. */
static bool check_vectors(struct model_builder *builder, struct error *error)
{
    const struct tensor *table = find(builder, embedding), *vector = find(builder, beginning),
                        *matrix = find(builder, projection),
                        *first = tensor_set_find_text(builder->model->checkpoint->tensors, voice);
    if (table == NULL || vector == NULL || matrix == NULL || (first != NULL && find(builder, voice) == NULL))
        return error_set(error, "one of the tensors '%s', '%s', '%s' and '%s' is missing, or not of F32 or BF16",
                         embedding, beginning, projection, voice);
    bool fits = table->rank == 2 && vector->rank == 1 && matrix->rank == 2 && matrix->shape[0] == table->shape[1] &&
                matrix->shape[1] == vector->shape[0];
    if (fits && first != NULL) {
        uint64_t n = 1;
        for (unsigned i = 0; i < first->rank; i++)
            n = first->shape[i] == 1 || n == 1 ? n * first->shape[i] : UINT64_MAX;
        fits = n == table->shape[1];
    }
    return fits || error_set(error, "the shapes of the tensors '%s', '%s', '%s' and '%s' do not fit each other",
                             embedding, beginning, projection, voice);
}

static const struct view *row_of(struct arena *arena, const struct tensor *tensor)
{
    const struct view *view = view_convert(arena, tensor_view(tensor, arena), &f32_dtype);
    return view_reshape(arena, view, 2, (uint64_t[]){1, view->n_elements});
}

static const struct view *lengthened(struct model_builder *builder, const struct view *table)
{
    struct arena *arena = builder->model->arena;
    const struct view *matrix = tensor_view(find(builder, projection), arena);
    const struct view *parts[3] = {view_convert(arena, table, &f32_dtype)};
    size_t n = 1;
    if (find(builder, voice) != NULL)
        parts[n++] = row_of(arena, find(builder, voice));
    parts[n++] = view_product(arena, row_of(arena, find(builder, beginning)), view_transpose(arena, matrix));
    return view_concatenate(arena, parts, n, 0);
}

static void arrange(struct model_builder *builder)
{
    struct gguf_model *model = builder->model;
    const struct tensor_set *before = model->tensors;
    model->tensors = tensor_set_new(model->arena);
    for (size_t i = 0; i < before->n_tensors; i++) {
        const struct tensor *tensor = &before->tensors[i];
        if (strcmp(tensor->name, "token_embd.weight") == 0)
            tensor_set_add_view(model->tensors, tensor->name, lengthened(builder, tensor_view(tensor, model->arena)));
        else
            tensor_set_add(model->tensors, tensor);
    }
}

const struct family pockettts_family = {
    .name = "pockettts",
    .no_forms = "the two tensors whose product is a row of its token_embd.weight",
    .summary = "Pocket TTS (text model)",
    .hf = FAMILY_NAMES({"PocketTTSModel"}),
    .tensors = {pockettts_tensors},
    .keys = {base_keys},
    .vocabs = {&pocket_vocab},
    .dimensions = {qkv_dimensions},
    .adjust = check_vectors,
    .rename = pockettts_rename_tensor,
    .arrange = arrange,
};

/* The decoder of WavTokenizer, which makes sound from OuteTTS's tokens: convolutions, and one layer of attention.
 * conversion/wavtokenizer.py. */

#define POSNET   "backbone.posnet.{}."
#define CONVNEXT "backbone.convnext.{}."

static const struct relation_row wavtokenizer_tensors[] = {
    {"backbone.embedding", "token_embd", .parallel = "row"},
    {"backbone.norm", "token_embd_norm"},
    {"backbone.embed", "conv1d"},
    {"backbone.final_layer_norm", "output_norm"},
    {"head.out", "output", .parallel = "row"},
    {CONVNEXT "dwconv", "convnext.{}.dw"},
    {CONVNEXT "norm", "convnext.{}.norm"},
    {CONVNEXT "pwconv1", "convnext.{}.pw1"},
    {CONVNEXT "pwconv2", "convnext.{}.pw2"},
    {CONVNEXT "gamma", "convnext.{}.gamma"},
    {POSNET "conv1", "posnet.{}.conv1"},
    {POSNET "conv2", "posnet.{}.conv2"},
    {POSNET "norm", "posnet.{}.attn_norm"},
    {POSNET "norm1", "posnet.{}.norm1"},
    {POSNET "norm2", "posnet.{}.norm2"},
    {POSNET "q", "posnet.{}.attn_q"},
    {POSNET "k", "posnet.{}.attn_k"},
    {POSNET "v", "posnet.{}.attn_v"},
    {POSNET "proj_out", "posnet.{}.attn_output"},
    {0},
};

static const char *wavtokenizer_rename_tensor(struct arena *arena, const struct dimensions *dimensions,
                                              enum direction direction, const char *name)
{
    static const char *const of_training[] = {"codebook.cluster_size", "codebook.embed_avg", "codebook.inited"};
    for (size_t i = 0; direction == FORWARD && i < sizeof of_training / sizeof *of_training; i++)
        if (text_ends_with(name, of_training[i]))
            return NULL;
    return name;
}

static const struct key_row keys[] = {
    {"vocab_size", GGUF_U32, REQUIRED, "vocab_size"},
    {"features_length", GGUF_U32, REQUIRED, "n_embd_features"},
    {"feed_forward_length", GGUF_U32, REQUIRED, "n_ff"},
    {"attention.group_norm_epsilon", GGUF_F32, REQUIRED, "group_norm_epsilon"},
    {"attention.group_norm_groups", GGUF_U32, REQUIRED, "group_norm_groups"},
    {"posnet.embedding_length", GGUF_U32, REQUIRED, "posnet.n_embd"},
    {"posnet.block_count", GGUF_U32, REQUIRED, "posnet.n_layer"},
    {"convnext.embedding_length", GGUF_U32, REQUIRED, "convnext.n_embd"},
    {"convnext.block_count", GGUF_U32, REQUIRED, "convnext.n_layer"},
    {"attention.causal", GGUF_BOOL, ALWAYS, .value = 0},
    {0},
};

const struct family wavtokenizer_dec_family = {
    .name = "wavtokenizer-dec",
    .summary = "WavTokenizer decoder",
    .hf = FAMILY_NAMES({"WavTokenizerDec"}),
    .tensors = {wavtokenizer_tensors},
    .keys = {base_keys, keys},
    .vocabs = {&no_vocab},
    .rename = wavtokenizer_rename_tensor,
};
