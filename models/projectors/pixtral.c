/* Pixtral, Mistral Small 3.1 and after, Ministral 3, LightOnOCR: what sees. conversion/llava.py, LlavaVisionModel. */
#include "base/text.h"
#include "formats/documents.h"
#include "models/projectors/projector.h"

#include <stdlib.h>
#include <string.h>

static const struct family_name names[] = {
    {"LlavaForConditionalGeneration"}, {"Mistral3ForConditionalGeneration"}, {0}};

static const struct family_name lighton_names[] = {{"LightOnOCRForConditionalGeneration"}, {0}};

static const struct relation_row tensors[] = {
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

/* The number of a token of that text among `tokens`, whose keys or members "id" are the numbers; UINT64_MAX: none. */
static uint64_t token_of(const struct json *tokens, const char *text)
{
    for (const struct json *token = json_first(tokens); token != NULL; token = json_next(token)) {
        uint64_t id;
        if (!json_string_is(json_get(token, "content"), text))
            continue;
        if (json_u64(json_get(token, "id"), &id))
            return id;
        if (json_key(token, NULL) != NULL)
            return strtoull(json_key(token, NULL), NULL, 10);
    }
    return UINT64_MAX;
}

static bool find_token(const struct checkpoint *checkpoint, const char *text, uint64_t *ret_id, struct error *error)
{
    static const struct {
        const char *file, *tokens;
    } places[] = {{"tokenizer_config.json", "added_tokens_decoder"}, {"tokenizer.json", "added_tokens"}};
    *ret_id = UINT64_MAX;
    for (size_t i = 0; i < sizeof places / sizeof *places && *ret_id == UINT64_MAX; i++) {
        struct document *document;
        if (!document_open(checkpoint, places[i].file, &document, error))
            return false;
        *ret_id = token_of(json_get(document_root(document), places[i].tokens), text);
        document_close(document);
    }
    if (*ret_id == UINT64_MAX)
        return error_set(error, "neither tokenizer_config.json nor tokenizer.json has the token %s", text);
    return true;
}

static bool adjust(struct draft *draft, struct error *error)
{
    uint64_t id;
    return find_token(draft->model->checkpoint, "[IMG_BREAK]", &id, error) &&
           projector_take_break(draft, "model.embed_tokens.weight", id, error);
}

static const struct key_row lighton_keys[] = {PROJECTOR_TYPE("lightonocr"), {0}};
static const struct key_row pixtral_keys[] = {PROJECTOR_TYPE("pixtral"), {0}};
static const struct key_row keys[] = {
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-5},
    {.emit = emit_activation},
    {"vision.spatial_merge_size", GGUF_U32, IF_PRESENT, "outer.spatial_merge_size"},
    {0},
};

static const char *const parts[] = {"multi_modal_projector.", "vision_tower.", "model.multi_modal_projector.",
                                    "model.vision_tower.", NULL};
static const char *const borrowed[] = {"model.embed_tokens.weight", NULL};
static const struct tower tower = {
    .config = {.vision = "vision_config"}, .parts = parts, .borrowed = borrowed, .type_of_all = true};

/* Names that a later transformers gives the same tensors. */
static const char *rename_newer(struct arena *arena, const struct facts *facts, enum direction direction,
                                const char *name)
{
    static const char prefix[] = "model.";
    (void)arena, (void)facts;
    bool is_newer = direction == FORWARD && text_starts_with(name, prefix) && tower_has(&tower, name);
    return is_newer ? name + strlen(prefix) : name;
}

const struct family pixtral_projector = {
    .name = "pixtral",
    .architecture = "clip",
    .summary = "the vision tower of Pixtral and Mistral 3",
    .hf = names,
    .tensors = {tensors},
    .keys = {tower_keys, vision_keys, pixtral_keys, keys},
    .tower = &tower,
    .applies = applies,
    .rename = rename_newer,
    .adjust = adjust,
};

static const char *const lighton_parts[] = {"model.vision_encoder.", "model.vision_projection.", NULL};
static const struct tower lighton_tower = {
    .config = {.vision = "vision_config"}, .parts = lighton_parts, .type_of_all = true};

static const char *rename_lighton(struct arena *arena, const struct facts *facts, enum direction direction,
                                  const char *name)
{
    static const char *const names_there[] = {"vision_tower.", "multi_modal_projector."};
    (void)facts;
    for (size_t i = 0; lighton_parts[i] != NULL; i++)
        if (direction == FORWARD && strncmp(name, lighton_parts[i], strlen(lighton_parts[i])) == 0)
            return arena_printf(arena, "%s%s", names_there[i], name + strlen(lighton_parts[i]));
    return name;
}

const struct family lighton_ocr_projector = {
    .name = "lightonocr",
    .architecture = "clip",
    .summary = "the vision tower of LightOnOCR",
    .hf = lighton_names,
    .tensors = {tensors},
    .keys = {tower_keys, vision_keys, lighton_keys, keys},
    .tower = &lighton_tower,
    .applies = applies,
    .rename = rename_lighton,
};
