/* The vision encoders of Mistral's models, in transformers' format and in Mistral's. */
#include "base/text.h"
#include "formats/documents.h"
#include "models/projectors/projector.h"

#include <stdlib.h>
#include <string.h>

/* Pixtral, Mistral Small 3.1 and later, Ministral 3, LightOnOCR: vision encoder. conversion/llava.py, LlavaVisionModel.
 */

static const struct family_name names[] = {
    {"LlavaForConditionalGeneration"}, {"Mistral3ForConditionalGeneration"}, {0}};

static const struct relation_row pixtral_tensors[] = {
    {"vision_tower.patch_conv", "v.patch_embd"},
    {"vision_tower.ln_pre", "v.pre_ln"},
    {"vision_tower.transformer.layers.{}.attention_norm", "v.blk.{}.ln1"},
    {"vision_tower.transformer.layers.{}.ffn_norm", "v.blk.{}.ln2"},
    {"vision_tower.transformer.layers.{}.attention.q_proj", "v.blk.{}.attn_q", QUERY_ROTARY},
    {"vision_tower.transformer.layers.{}.attention.k_proj", "v.blk.{}.attn_k", KEY_ROTARY},
    {"vision_tower.transformer.layers.{}.attention.v_proj", "v.blk.{}.attn_v"},
    {"vision_tower.transformer.layers.{}.attention.o_proj", "v.blk.{}.attn_out"},
    {"vision_tower.transformer.layers.{}.feed_forward.gate_proj", "v.blk.{}.ffn_gate"},
    {"vision_tower.transformer.layers.{}.feed_forward.up_proj", "v.blk.{}.ffn_up"},
    {"vision_tower.transformer.layers.{}.feed_forward.down_proj", "v.blk.{}.ffn_down"},
    {"multi_modal_projector.linear_1", "mm.1"},
    {"multi_modal_projector.linear_2", "mm.2"},
    {"multi_modal_projector.norm", "mm.input_norm"},
    {"multi_modal_projector.patch_merger.merging_layer", "mm.patch_merger"},
    {"model.embed_tokens.weight", "v.token_embd.img_break", "token c -> c", .when = "token", .forward_only = true},
    {"model.embed_tokens.weight", NULL, .when = "!token"},
    {0},
};

static bool applies(const struct hparams *text)
{
    const struct json *type = json_get(json_get(hparams_raw(text), "vision_config"), "model_type");
    return json_string_is(type, "pixtral") ||
           (type == NULL && json_string_is(json_get(hparams_raw(text), "model_type"), "mistral3"));
}

/* Finds a token's number, a key of tokenizer_config.json's added_tokens_decoder, by its text. */
static bool find_in_config(const struct json *config, const char *text, uint64_t *ret_id)
{
    const struct json *decoder = json_get(config, "added_tokens_decoder");
    for (struct json_member token = {0}; json_next_member(decoder, &token);)
        if (json_string_is(json_get(token.value, "content"), text)) {
            *ret_id = strtoull(token.key, NULL, 10);
            return true;
        }
    return false;
}

static bool find_in_tokenizer(const struct json *tokenizer, const char *text, uint64_t *ret_id)
{
    const struct json *token = json_first(json_get(tokenizer, "added_tokens"));
    while (token != NULL && !json_string_is(json_get(token, "content"), text))
        token = json_next(token);
    return json_u64(json_get(token, "id"), ret_id);
}

static bool pixtral_find_token(const struct checkpoint *checkpoint, const char *text, uint64_t *ret_id,
                               struct error *error)
{
    struct document *config = NULL, *tokenizer = NULL;
    bool opened = document_open(checkpoint, "tokenizer_config.json", &config, error) &&
                  document_open(checkpoint, "tokenizer.json", &tokenizer, error);
    bool found = opened && (find_in_config(document_root(config), text, ret_id) ||
                            find_in_tokenizer(document_root(tokenizer), text, ret_id));
    if (opened && !found)
        error_set(error, "neither tokenizer_config.json nor tokenizer.json has the token %s", text);
    document_close(config);
    document_close(tokenizer);
    return found;
}

/* The only name that the converter knows for the embedding of [IMG_BREAK]; without it, it writes no such tensor. */
static const char embeddings[] = "model.embed_tokens.weight";

static bool pixtral_adjust(struct model_builder *builder, struct error *error)
{
    uint64_t id;
    const struct checkpoint *checkpoint = builder->model->checkpoint;
    if (!pixtral_find_token(checkpoint, "[IMG_BREAK]", &id, error) ||
        !projector_take_break(builder, embeddings, id, error))
        return false;
    if (tensor_set_find_text(checkpoint->tensors, embeddings) == NULL)
        checkpoint_note(checkpoint, SUBJECT_PROJECTOR,
                        "llama.cpp refuses this file: it needs v.token_embd.img_break, which the converter"
                        " takes from '%s' alone, and the checkpoint names its embeddings otherwise; rename that tensor",
                        embeddings);
    return true;
}

static const struct key_row lighton_keys[] = {PROJECTOR_TYPE("lightonocr"), {0}};
static const struct key_row pixtral_keys[] = {PROJECTOR_TYPE("pixtral"), {0}};
static const struct key_row pixtral_hf_keys[] = {
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-5},
    {.emit = emit_activation},
    {"vision.spatial_merge_size", GGUF_U32, IF_PRESENT, "outer.spatial_merge_size"},
    {0},
};

static const struct tower tower = {
    .config = {.vision = "vision_config"},
    .parts = TEXTS("multi_modal_projector.", "vision_tower.", "model.multi_modal_projector.", "model.vision_tower."),
    .borrowed = TEXTS(embeddings),
    .type_of_all = true};

/* Replaces the names of later releases of transformers. */
static const char *rename_newer(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                const char *name)
{
    static const char prefix[] = "model.";
    bool is_newer = direction == FORWARD && text_starts_with(name, prefix) && tower_has(&tower, name);
    return is_newer ? name + strlen(prefix) : name;
}

const struct family pixtral_projector = {
    .name = "pixtral",
    .summary = "Pixtral and Mistral 3 (vision encoder)",
    .hf = names,
    .tensors = {pixtral_tensors},
    .keys = {tower_keys, vision_keys, pixtral_keys, pixtral_hf_keys},
    .tower = &tower,
    .applies = applies,
    .rename = rename_newer,
    .adjust = pixtral_adjust,
};

static const char *const lighton_parts[] = {"model.vision_encoder.", "model.vision_projection.", NULL};

static const char *rename_lighton(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                  const char *name)
{
    static const char *const names_there[] = {"vision_tower.", "multi_modal_projector."};
    for (size_t i = 0; lighton_parts[i] != NULL; i++)
        if (direction == FORWARD && strncmp(name, lighton_parts[i], strlen(lighton_parts[i])) == 0)
            return arena_printf(arena, "%s%s", names_there[i], name + strlen(lighton_parts[i]));
    return name;
}

const struct family lighton_ocr_projector = {
    .name = "lightonocr",
    .summary = "LightOnOCR (vision encoder)",
    .hf = FAMILY_NAMES({"LightOnOCRForConditionalGeneration"}),
    .tensors = {pixtral_tensors},
    .keys = {tower_keys, vision_keys, lighton_keys, pixtral_hf_keys},
    .tower = TOWER(.config = {.vision = "vision_config"}, .parts = lighton_parts, .type_of_all = true),
    .applies = applies,
    .rename = rename_lighton,
};

/* Pixtral and its successors in Mistral's own format. conversion/pixtral.py, llava.py. */

/* No rows are permuted: the rotary halves are pairs already. */
static const struct relation_row mistral_vision_tensors[] = {
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
static bool mistral_vision_find_token(const struct checkpoint *checkpoint, const char *text, uint64_t *ret_id,
                                      struct error *error)
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

static bool mistral_vision_adjust(struct model_builder *builder, struct error *error)
{
    const struct gguf_model *model = builder->model;
    uint64_t id;
    if (hparams_get(model->hparams, "image_break_token_id") == NULL)
        return error_set(error, "params.json: image_break_token_id is missing");
    if (!json_u64(hparams_get(model->hparams, "image_break_token_id"), &id) &&
        !mistral_vision_find_token(model->checkpoint, "[IMG_BREAK]", &id, error))
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

static const struct key_row mistral_vision_keys[] = {
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
    .tensors = {mistral_vision_tensors},
    .keys = {tower_keys, vision_size_keys, mistral_vision_keys},
    .tower =
        TOWER(.config = {.vision = "vision_encoder"},
              .parts = TEXTS("vision_encoder.", "vision_language_adapter.", "patch_merger.", "pre_mm_projector_norm"),
              .borrowed = TEXTS("tok_embeddings.weight"), .type_of_all = true),
    .adjust = mistral_vision_adjust,
};
