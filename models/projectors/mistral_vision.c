/* Pixtral and its successors in Mistral's own format. conversion/pixtral.py, llava.py. */
#include "formats/documents.h"
#include "models/projectors/projector.h"

/* No rows are permuted: the rotary halves are pairs already. */
static const struct relation_row tensors[] = {
    {"vision_encoder.patch_conv", "v.patch_embd"},
    {"vision_encoder.ln_pre", "v.pre_ln"},
    {"vision_encoder.transformer.layers.{}.attention_norm", "v.blk.{}.ln1"},
    {"vision_encoder.transformer.layers.{}.ffn_norm", "v.blk.{}.ln2"},
    {"vision_encoder.transformer.layers.{}.attention.wq", "v.blk.{}.attn_q"},
    {"vision_encoder.transformer.layers.{}.attention.wk", "v.blk.{}.attn_k"},
    {"vision_encoder.transformer.layers.{}.attention.wv", "v.blk.{}.attn_v"},
    {"vision_encoder.transformer.layers.{}.attention.wo", "v.blk.{}.attn_out"},
    {"vision_encoder.transformer.layers.{}.feed_forward.w1", "v.blk.{}.ffn_gate"},
    {"vision_encoder.transformer.layers.{}.feed_forward.w2", "v.blk.{}.ffn_down"},
    {"vision_encoder.transformer.layers.{}.feed_forward.w3", "v.blk.{}.ffn_up"},
    {"vision_language_adapter.w_in", "mm.1"},
    {"vision_language_adapter.w_out", "mm.2"},
    {"pre_mm_projector_norm", "mm.input_norm"},
    {"patch_merger.merging_layer", "mm.patch_merger"},
    {"tok_embeddings.weight", "v.token_embd.img_break", "token c -> c", .when = "token", .forward_only = true},
    {"tok_embeddings.weight", NULL, .when = "!token"},
    {0},
};

/* Finds the number of a token in tekken.json, for a params.json that lacks it. */
static bool find_token(const struct checkpoint *checkpoint, const char *text, uint64_t *ret_id, struct error *error)
{
    struct document *document;
    if (!document_open(checkpoint, "tekken.json", &document, error))
        return false;
    const struct json *token = json_first(json_get(document_root(document), "special_tokens"));
    while (token != NULL && !json_string_is(json_get(token, "token_str"), text))
        token = json_next(token);
    bool found = json_u64(json_get(token, "rank"), ret_id);
    document_close(document);
    return found || error_set(error, "tekken.json does not have the token %s", text);
}

static bool adjust(struct model_builder *builder, struct error *error)
{
    const struct gguf_model *model = builder->model;
    uint64_t id;
    if (hparams_get(model->hparams, "image_break_token_id") == NULL)
        return error_set(error, "params.json: image_break_token_id is missing");
    if (!json_u64(hparams_get(model->hparams, "image_break_token_id"), &id) &&
        !find_token(model->checkpoint, "[IMG_BREAK]", &id, error))
        return false;
    return projector_take_break(builder, "tok_embeddings.weight", id, error);
}

static bool emit_merge_size(struct model_builder *builder, struct error *error)
{
    static const struct key_row rows[] = {{"vision.spatial_merge_size", GGUF_U32, REQUIRED, "spatial_merge_size"}, {0}};
    bool merges = json_string_is(hparams_get(builder->model->hparams, "mm_projector_id"), "patch_merge");
    return !merges || builder_emit(builder, rows, error);
}

/* Sets CLIP's numbers: the format has no file for others. */
static bool emit_normalization(struct model_builder *builder, struct error *error)
{
    set_normalization(builder, clip_mean, clip_deviation);
    return true;
}

static const struct key_row keys[] = {
    {.emit = emit_normalization},
    PROJECTOR_TYPE("pixtral"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, REQUIRED, "outer.norm_eps"},
    {"rope.freq_base", GGUF_F32, REQUIRED, "rope_theta"},
    FLAG("use_silu"),
    {.emit = emit_merge_size},
    {0},
};

const struct family mistral_vision_projector = {
    .name = "pixtral, Mistral's own format",
    .summary = "Mistral's own format (vision encoder)",
    .hf = FAMILY_NAMES({"MistralModel"}, {"MistralMoeModel"}),
    .tensors = {tensors},
    .keys = {tower_keys, vision_size_keys, keys},
    .tower =
        TOWER(.config = {.vision = "vision_encoder"},
              .parts = TEXTS("vision_encoder.", "vision_language_adapter.", "patch_merger.", "pre_mm_projector_norm"),
              .borrowed = TEXTS("tok_embeddings.weight"), .type_of_all = true),
    .adjust = adjust,
};
