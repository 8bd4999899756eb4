/* The encoders of Granite. conversion/granite.py. */
#include "models/families/granite.h"
#include "base/text.h"
#include "models/families/layers.h"
#include "models/projectors/projector.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Granite 4 Vision: vision encoder, a SigLIP, and a Q-Former for each text layer that gets its results.
 * conversion/granite.py, Granite4VisionMmprojModel. */

/* A checkpoint counts projectors by kind, a GGUF all together: see `rename`. */
static const struct relation_row granite4_vision_tensors[] = {
    {"image_newline", "v.image_newline"},
    {"projectors.{}.image_positions", "v.proj_blk.{}.img_pos"},
    {"projectors.{}.query", "v.proj_blk.{}.query"},
    {"projectors.{}.norm", "v.proj_blk.{}.norm"},
    {"projectors.{}.out_linear", "v.proj_blk.{}.linear"},
    {"projectors.{}.qformer.layernorm", "v.proj_blk.{}.post_norm"},
    {"projectors.{}.qformer.encoder.layer.0.attention.attention.query", "v.proj_blk.{}.self_attn_q"},
    {"projectors.{}.qformer.encoder.layer.0.attention.attention.key", "v.proj_blk.{}.self_attn_k"},
    {"projectors.{}.qformer.encoder.layer.0.attention.attention.value", "v.proj_blk.{}.self_attn_v"},
    {"projectors.{}.qformer.encoder.layer.0.attention.output.dense", "v.proj_blk.{}.self_attn_out"},
    {"projectors.{}.qformer.encoder.layer.0.attention.output.LayerNorm", "v.proj_blk.{}.self_attn_norm"},
    {"projectors.{}.qformer.encoder.layer.0.crossattention.attention.query", "v.proj_blk.{}.cross_attn_q"},
    {"projectors.{}.qformer.encoder.layer.0.crossattention.attention.key", "v.proj_blk.{}.cross_attn_k"},
    {"projectors.{}.qformer.encoder.layer.0.crossattention.attention.value", "v.proj_blk.{}.cross_attn_v"},
    {"projectors.{}.qformer.encoder.layer.0.crossattention.output.dense", "v.proj_blk.{}.cross_attn_out"},
    {"projectors.{}.qformer.encoder.layer.0.crossattention.output.LayerNorm", "v.proj_blk.{}.cross_attn_norm"},
    {"projectors.{}.qformer.encoder.layer.0.intermediate_query.dense", "v.proj_blk.{}.ffn_up"},
    {"projectors.{}.qformer.encoder.layer.0.output_query.dense", "v.proj_blk.{}.ffn_down"},
    {"projectors.{}.qformer.encoder.layer.0.output_query.LayerNorm", "v.proj_blk.{}.ffn_norm"},
    {"^head.*", NULL},
    {0},
};

/* Dimensions with each projector's number in a GGUF plus one, since 0 is unknown. */
static const char *const number_dimensions[GRANITE_VISION_KINDS][GRANITE_VISION_MOST] = {
    {"layerwise 0", "layerwise 1", "layerwise 2", "layerwise 3", "layerwise 4", "layerwise 5", "layerwise 6",
     "layerwise 7"},
    {"spatial 0", "spatial 1", "spatial 2", "spatial 3", "spatial 4", "spatial 5", "spatial 6", "spatial 7"},
};

static void add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    struct granite_projectors projectors;
    struct error unused;
    if (!granite_projectors_read(hparams_raw(hparams), &projectors, &unused))
        return;
    for (unsigned i = 0; i < projectors.n; i++)
        dimensions_set(dimensions, number_dimensions[projectors.list[i].kind][projectors.list[i].number], i + 1);
}

static const char *rename_projector(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                    const char *name)
{
    static const char *const kinds[] = {"layerwise_projectors.", "spatial_projectors."}, all[] = "projectors.";
    for (unsigned kind = 0; kind < GRANITE_VISION_KINDS; kind++)
        for (unsigned i = 0; i < GRANITE_VISION_MOST; i++) {
            char from[40], to[40];
            uint64_t number = dimensions_get(dimensions, number_dimensions[kind][i]);
            if (number == 0)
                continue;
            snprintf(from, sizeof from, "%s%u.", kinds[kind], i);
            snprintf(to, sizeof to, "%s%" PRIu64 ".", all, number - 1);
            const char *old = direction == FORWARD ? from : to;
            if (text_starts_with(name, old))
                return arena_printf(arena, "%s%s", direction == FORWARD ? to : from, name + strlen(old));
        }
    return name;
}

static bool emit_rate(struct model_builder *builder, struct error *error)
{
    const char *rate = json_string(hparams_get(builder->model->hparams, "outer.downsample_rate"), NULL);
    uint32_t query, window;
    char rest;
    if (rate == NULL || sscanf(rate, "%" SCNu32 "/%" SCNu32 "%c", &query, &window, &rest) != 2)
        return error_set(error, "config.json: downsample_rate is not as in \"1/4\"");
    gguf_set_u32(&builder->model->kvs, builder_key(builder, "vision.projector.query_side"), query);
    gguf_set_u32(&builder->model->kvs, builder_key(builder, "vision.projector.window_side"), window);
    return true;
}

static bool emit_layers(struct model_builder *builder, struct error *error)
{
    double vision_layers[GRANITE_VISION_ALL], offsets[GRANITE_VISION_ALL];
    struct granite_projectors projectors;
    if (!granite_projectors_read(hparams_raw(builder->model->hparams), &projectors, error))
        return false;
    for (unsigned i = 0; i < projectors.n; i++) {
        const struct granite_projector *one = &projectors.list[i];
        vision_layers[i] = (double)one->vision_layer;
        offsets[i] = one->kind == GRANITE_SPATIAL ? (double)one->number : -1;
    }
    return layers_set_i32(builder, "vision.feature_layer", &(struct layers){projectors.n, vision_layers}, error) &&
           layers_set_i32(builder, "vision.projector.spatial_offsets", &(struct layers){projectors.n, offsets}, error);
}

/* Sets the sizes of images, which config.json lists with the height first. */
static bool emit_pinpoints(struct model_builder *builder, struct error *error)
{
    const struct json *list = hparams_get(builder->model->hparams, "outer.image_grid_pinpoints");
    struct layers sizes = {.n = 0};
    if (json_count(list) == 0)
        return true;
    sizes.values = arena_array(builder->model->arena, 2 * json_count(list), sizeof *sizes.values);
    for (const struct json *item = json_first(list); item != NULL; item = json_next(item)) {
        uint64_t height, width;
        if (json_count(item) != 2 || !json_u64(json_first(item), &height) ||
            !json_u64(json_next(json_first(item)), &width) || height > INT32_MAX || width > INT32_MAX)
            return error_set(error,
                             "config.json: image_grid_pinpoints has an element that is not a height and a width");
        sizes.values[sizes.n++] = (double)width;
        sizes.values[sizes.n++] = (double)height;
    }
    return layers_set_i32(builder, "vision.image_grid_pinpoints", &sizes, error);
}

static const struct key_row granite4_vision_keys[] = {
    PROJECTOR_TYPE("granite4_vision"),
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "layer_norm_eps", 1e-6},
    FLAG("use_gelu"),
    {"vision.preproc_image_size", GGUF_U32, OR_DEFAULT, "image_size", 384},
    {.emit = emit_rate},
    {.emit = emit_layers},
    {.emit = emit_pinpoints},
    {0},
};

const struct family granite4_vision_projector = {
    .name = "granite4_vision",
    .summary = "Granite 4 Vision (vision encoder)",
    .hf = FAMILY_NAMES({"Granite4VisionForConditionalGeneration"}),
    .tensors = {granite4_vision_tensors, siglip_tensors},
    .keys = {tower_keys, vision_keys, granite4_vision_keys},
    .prefix = "vision_tower.vision_model.",
    .dropped_prefixes = SIGLIP_PREFIXES,
    .tower = TOWER(.config = {.vision = "vision_config"},
                   .parts = TEXTS("model.vision_tower.", "model.layerwise_projectors.", "model.spatial_projectors.",
                                  "model.image_newline")),
    .rename = rename_projector,
    .add_dimensions = add_dimensions,
};

/* Granite Speech: audio encoder, a conformer, and a Q-Former. conversion/granite.py, GraniteSpeechMmprojModel. */

static const struct family_name names[] = {
    {"GraniteSpeechForConditionalGeneration"}, {"GraniteSpeechPlusForConditionalGeneration"}, {0}};

/* The converter names the folded norm conv_norm_var, after another model's statistics. */
static const struct relation_row granite_speech_tensors[] = {
    {"encoder.input_linear", "a.input_projection"},
    {"encoder.out", "a.enc_ctc_out"},
    {"encoder.out_mid", "a.enc_ctc_out_mid"},
    {"encoder.layers.{}.ff1.pre_norm", "a.blk.{}.ffn_norm"},
    {"encoder.layers.{}.ff1.up_proj", "a.blk.{}.ffn_up"},
    {"encoder.layers.{}.ff1.down_proj", "a.blk.{}.ffn_down"},
    {"encoder.layers.{}.ff2.pre_norm", "a.blk.{}.ffn_norm_1"},
    {"encoder.layers.{}.ff2.up_proj", "a.blk.{}.ffn_up_1"},
    {"encoder.layers.{}.ff2.down_proj", "a.blk.{}.ffn_down_1"},
    {"encoder.layers.{}.attn.pre_norm", "a.blk.{}.ln1"},
    {"encoder.layers.{}.attn.to_q", "a.blk.{}.attn_q"},
    {"encoder.layers.{}.attn.to_kv", "a.blk.{}.attn_k, a.blk.{}.attn_v", "(k + v) ... -> k ..., v ..."},
    {"encoder.layers.{}.attn.to_out", "a.blk.{}.attn_out"},
    {"encoder.layers.{}.attn.rel_pos_emb.weight", "a.blk.{}.attn_rel_pos_emb"},
    {"encoder.layers.{}.conv.norm", "a.blk.{}.norm_conv"},
    {"encoder.layers.{}.conv.up_conv.weight", "a.blk.{}.conv_pw1.weight", "o i 1 -> o i"},
    {"encoder.layers.{}.conv.up_conv.bias", "a.blk.{}.conv_pw1.bias"},
    {"encoder.layers.{}.conv.depth_conv.conv.weight", "a.blk.{}.conv_dw.weight", "c 1 k -> c k"},
    BATCH_NORM("encoder.layers.{}.conv.batch_norm"),
    {"encoder.layers.{}.conv.down_conv.weight", "a.blk.{}.conv_pw2.weight", "o i 1 -> o i"},
    {"encoder.layers.{}.conv.down_conv.bias", "a.blk.{}.conv_pw2.bias"},
    {"encoder.layers.{}.post_norm", "a.blk.{}.ln2"},
    {"encoder.layers.{}.attn.attention_dists", NULL},
    {"encoder.attention_dists", NULL},
    {"projector.query", "a.proj_query"},
    {"projector.linear", "a.proj_linear"},
    {"projector.qformer.layernorm", "a.proj_norm"},
    {"projector.qformer.encoder.layer.{}.attention.attention.query", "a.proj_blk.{}.self_attn_q"},
    {"projector.qformer.encoder.layer.{}.attention.attention.key", "a.proj_blk.{}.self_attn_k"},
    {"projector.qformer.encoder.layer.{}.attention.attention.value", "a.proj_blk.{}.self_attn_v"},
    {"projector.qformer.encoder.layer.{}.attention.output.dense", "a.proj_blk.{}.self_attn_out"},
    {"projector.qformer.encoder.layer.{}.attention.output.LayerNorm", "a.proj_blk.{}.self_attn_norm"},
    {"projector.qformer.encoder.layer.{}.crossattention.attention.query", "a.proj_blk.{}.cross_attn_q"},
    {"projector.qformer.encoder.layer.{}.crossattention.attention.key", "a.proj_blk.{}.cross_attn_k"},
    {"projector.qformer.encoder.layer.{}.crossattention.attention.value", "a.proj_blk.{}.cross_attn_v"},
    {"projector.qformer.encoder.layer.{}.crossattention.output.dense", "a.proj_blk.{}.cross_attn_out"},
    {"projector.qformer.encoder.layer.{}.crossattention.output.LayerNorm", "a.proj_blk.{}.cross_attn_norm"},
    {"projector.qformer.encoder.layer.{}.intermediate_query.dense", "a.proj_blk.{}.ffn_up"},
    {"projector.qformer.encoder.layer.{}.output_query.dense", "a.proj_blk.{}.ffn_down"},
    {"projector.qformer.encoder.layer.{}.output_query.LayerNorm", "a.proj_blk.{}.ffn_norm"},
    {0},
};

static bool compute_feed_forward(const struct model_builder *builder, double *ret_value, struct error *error)
{
    uint64_t width, times;
    if (!hparams_count(builder->model->hparams, "hidden_dim", 0, UINT32_MAX, &width, error) ||
        !hparams_count(builder->model->hparams, "feedforward_mult", 0, UINT32_MAX, &times, error))
        return false;
    *ret_value = (double)width * (double)times;
    return true;
}

static bool is_plus(const struct model_builder *builder)
{
    return builder->hf == &names[1];
}

/* Granite Speech Plus: sets the layers whose results the projector gets in addition to the last layer's. */
static bool emit_feature_layers(struct model_builder *builder, struct error *error)
{
    static const struct key_row rows[] = {{"audio.feature_layer", GGUF_U32, IF_PRESENT, "cat_hidden_layers"}, {0}};
    const struct hparams *hparams = builder->model->hparams;
    const struct json *layers = hparams_get(hparams, "cat_hidden_layers");
    uint64_t width, projected;
    if (!is_plus(builder) || json_count(layers) == 0)
        return true;
    if (!hparams_count(hparams, "hidden_dim", 0, UINT32_MAX, &width, error) ||
        !hparams_count(hparams, "outer.projector_config.encoder_hidden_size", 0, UINT32_MAX, &projected, error))
        return false;
    uint64_t joined = width * (json_count(layers) + 1);
    if (projected != joined)
        return error_set(error,
                         "config.json: the projector's encoder_hidden_size is %" PRIu64
                         ", but its input layers have a width of %" PRIu64,
                         projected, joined);
    return builder_emit(builder, rows, error);
}

static const struct key_row granite_speech_keys[] = {
    FLAG("has_audio_encoder"),
    {"audio.projection_dim", GGUF_U32, REQUIRED, "text.hidden_size|text.n_embd"},
    {"audio.embedding_length", GGUF_U32, REQUIRED, "hidden_dim"},
    {"audio.feed_forward_length", GGUF_U32, .compute = compute_feed_forward},
    {"audio.block_count", GGUF_U32, REQUIRED, "num_layers"},
    {"audio.attention.head_count", GGUF_U32, REQUIRED, "num_heads"},
    PROJECTOR_TYPE("granite_speech"),
    {"audio.num_mel_bins", GGUF_U32, REQUIRED, "input_dim"},
    {"audio.attention.layer_norm_epsilon", GGUF_F32, ALWAYS, .value = 1e-5},
    {"audio.chunk_size", GGUF_U32, REQUIRED, "context_size"},
    {"audio.conv_kernel_size", GGUF_U32, REQUIRED, "conv_kernel_size"},
    {"audio.max_pos_emb", GGUF_U32, REQUIRED, "max_pos_emb"},
    {"audio.projector.window_size", GGUF_U32, REQUIRED, "outer.window_size"},
    {"audio.projector.downsample_rate", GGUF_U32, REQUIRED, "outer.downsample_rate"},
    {"audio.projector.head_count", GGUF_U32, OR_DEFAULT, "outer.projector_config.num_attention_heads", 12},
    {.emit = emit_feature_layers},
    {0},
};

const struct family granite_speech_projector = {
    .name = "granite_speech",
    .summary = "Granite Speech (audio encoder)",
    .hf = names,
    .tensors = {granite_speech_tensors},
    .keys = {tower_keys, granite_speech_keys},
    .tower = TOWER(.config = {.audio = "encoder_config"}, .parts = TEXTS("encoder.", "projector.")),
    .stored_types = STORED_TYPES({"a.blk.{}.conv_pw1.weight", &f32_dtype}, {"a.blk.{}.conv_pw2.weight", &f32_dtype},
                                 {"a.blk.{}.conv_dw.weight", &f32_dtype}),
    .note =
        "the norms of convolutions have the name that llama.cpp reads, conv_norm; the converter writes conv_norm_var",
    .arrange = fold_batch_norms,
};
