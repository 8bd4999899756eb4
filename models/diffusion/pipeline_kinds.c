#include "models/diffusion/pipeline.h"

#include <stdio.h>

enum { HEAD = 64, NAME = 128 }; /* columns of a head; bytes of a tensor's name */

static void put_pieces(struct json_writer *writer, const char *key, const char *const *texts, unsigned n)
{
    json_begin_array(writer, key);
    for (unsigned i = 0; i < n; i++)
        json_put_text(writer, NULL, texts[i]);
    json_end(writer);
}

/* U-Net. */

enum { MAX_LEVELS = 4 };

struct levels {
    unsigned n;
    uint64_t widths[MAX_LEVELS];
    uint64_t depths[MAX_LEVELS]; /* transformer blocks in each attention; 0: the level has no attention */
};

/* Returns the number of transformer blocks in an attention. */
static uint64_t depth_of(const struct describing *describing, const char *side, unsigned level, unsigned attention)
{
    char beginning[NAME];
    snprintf(beginning, sizeof beginning, "%s_blocks.%u.attentions.%u.transformer_blocks.", side, level, attention);
    return describing_blocks(describing->set, beginning);
}

/* Fails if a level's attentions have different numbers of transformer blocks: these configurations have one number a
 * level, which the attention between the last levels shares; for Stable Diffusion 1 and 2 it is 1. */
static void check_depths(struct describing *describing, const struct pipeline_kind *kind, const struct levels *levels,
                         unsigned level)
{
    uint64_t depth = levels->depths[level];
    bool fits = depth_of(describing, "down", level, 1) == depth && (kind->is_xl || depth <= 1);
    for (unsigned i = 0; i < 3; i++)
        fits = fits && depth_of(describing, "up", levels->n - 1 - level, i) == depth;
    if (level + 1 == levels->n)
        fits = fits && describing_blocks(describing->set, "mid_block.attentions.0.transformer_blocks.") ==
                           (depth > 0 ? depth : 1);
    if (!fits)
        describing_fail(describing, "level %u has attentions with unusual numbers of transformer blocks", level);
}

static struct levels find_levels(struct describing *describing, const struct pipeline_kind *kind)
{
    struct levels levels = {.n = kind->is_xl ? 3 : 4};
    for (unsigned i = 0; i < levels.n; i++) {
        char name[NAME];
        snprintf(name, sizeof name, "down_blocks.%u.resnets.0.conv1.weight", i);
        levels.widths[i] = describing_size(describing, name, 0);
        levels.depths[i] = depth_of(describing, "down", i, 0);
    }
    for (unsigned i = 0; i < levels.n; i++)
        check_depths(describing, kind, &levels, i);
    return levels;
}

/* Returns the number of heads of an attention. Stable Diffusion XL, and all text encoders, have heads of 64 columns; a
 * model of another width is none that diffusers knows, and the shapes of its tensors fit one head, too. */
static uint64_t heads_of(uint64_t width)
{
    return width % HEAD == 0 ? width / HEAD : 1;
}

static void put_heads(const struct describing *describing, const struct pipeline_kind *kind,
                      const struct levels *levels)
{
    if (kind->n_heads > 0) {
        json_put_number(describing->writer, "attention_head_dim", kind->n_heads);
        return;
    }
    json_begin_array(describing->writer, "attention_head_dim");
    for (unsigned i = 0; i < levels->n; i++)
        json_put_number(describing->writer, NULL, heads_of(levels->widths[i]));
    json_end(describing->writer);
}

/* Puts the types of blocks, from the first level or from the last. */
static void put_blocks(struct json_writer *writer, const char *key, const struct levels *levels, bool is_down)
{
    const char *types[MAX_LEVELS];
    for (unsigned i = 0; i < levels->n; i++) {
        bool has_attention = levels->depths[is_down ? i : levels->n - 1 - i] > 0;
        types[i] = is_down         ? has_attention ? "CrossAttnDownBlock2D" : "DownBlock2D"
                   : has_attention ? "CrossAttnUpBlock2D"
                                   : "UpBlock2D";
    }
    put_pieces(writer, key, types, levels->n);
}

static void put_numbers(struct json_writer *writer, const char *key, const uint64_t *numbers, unsigned n,
                        uint64_t least)
{
    json_begin_array(writer, key);
    for (unsigned i = 0; i < n; i++)
        json_put_number(writer, NULL, numbers[i] > least ? numbers[i] : least);
    json_end(writer);
}

static bool is_linear(const struct describing *describing)
{
    const struct tensor *tensor = tensor_set_find_text(describing->set, "mid_block.attentions.0.proj_in.weight");
    return tensor != NULL && tensor->rank == 2;
}

static void describe_unet(struct describing *describing, const struct pipeline_kind *kind)
{
    enum { PIXELS_OF_LATENT = 8 };
    struct json_writer *writer = describing->writer;
    const struct levels levels = find_levels(describing, kind);
    json_put_text(writer, "_class_name", "UNet2DConditionModel");
    if (kind->is_xl)
        json_put_template(writer, "'addition_embed_type': 'text_time', 'addition_time_embed_dim': 256");
    put_heads(describing, kind, &levels);
    put_numbers(writer, "block_out_channels", levels.widths, levels.n, 0);
    describing_put_size(describing, "cross_attention_dim",
                        "mid_block.attentions.0.transformer_blocks.0.attn2.to_k.weight", 1);
    put_blocks(writer, "down_block_types", &levels, true);
    describing_put_size(describing, "in_channels", "conv_in.weight", 1);
    json_put_number(writer, "layers_per_block", 2);
    describing_put_size(describing, "out_channels", "conv_out.weight", 0);
    if (kind->is_xl)
        describing_put_size(describing, "projection_class_embeddings_input_dim", "add_embedding.linear_1.weight", 1);
    json_put_number(writer, "sample_size", kind->pixels / PIXELS_OF_LATENT);
    if (kind->is_xl) /* diffusers wants a number for a level without attention, too */
        put_numbers(writer, "transformer_layers_per_block", levels.depths, levels.n, 1);
    put_blocks(writer, "up_block_types", &levels, false);
    json_put_bool(writer, "upcast_attention", kind->upcasts_attention);
    json_put_bool(writer, "use_linear_projection", is_linear(describing));
}

/* VAE. */

static void describe_vae(struct describing *describing, const struct pipeline_kind *kind)
{
    static const char *const down[] = {"DownEncoderBlock2D", "DownEncoderBlock2D", "DownEncoderBlock2D",
                                       "DownEncoderBlock2D"};
    static const char *const up[] = {"UpDecoderBlock2D", "UpDecoderBlock2D", "UpDecoderBlock2D", "UpDecoderBlock2D"};
    struct json_writer *writer = describing->writer;
    uint64_t widths[MAX_LEVELS];
    for (unsigned i = 0; i < MAX_LEVELS; i++) {
        char name[NAME];
        snprintf(name, sizeof name, "encoder.down_blocks.%u.resnets.0.conv1.weight", i);
        widths[i] = describing_size(describing, name, 0);
    }
    json_put_text(writer, "_class_name", "AutoencoderKL");
    put_numbers(writer, "block_out_channels", widths, MAX_LEVELS, 0);
    put_pieces(writer, "down_block_types", down, MAX_LEVELS);
    describing_put_size(describing, "in_channels", "encoder.conv_in.weight", 1);
    describing_put_size(describing, "latent_channels", "decoder.conv_in.weight", 1);
    json_put_number(writer, "layers_per_block", 2);
    describing_put_size(describing, "out_channels", "decoder.conv_out.weight", 0);
    json_put_number(writer, "sample_size", kind->pixels);
    json_put_raw(writer, "scaling_factor", kind->scaling_factor);
    put_pieces(writer, "up_block_types", up, MAX_LEVELS);
}

/* Text encoders. */

static void describe_text_encoder(struct describing *describing, const char *class_name, const char *activation,
                                  uint64_t projection)
{
    struct json_writer *writer = describing->writer;
    uint64_t width = describing_size(describing, "text_model.embeddings.position_embedding.weight", 1);
    json_put_template(writer, "'architectures': [%s], 'attention_dropout': 0.0, 'bos_token_id': 0, 'dropout': 0.0",
                      class_name);
    json_put_template(writer, "'eos_token_id': 2, 'hidden_act': %s, 'hidden_size': %u", activation, width);
    json_put_template(writer, "'initializer_factor': 1.0, 'initializer_range': 0.02");
    describing_put_size(describing, "intermediate_size", "text_model.encoder.layers.0.mlp.fc1.weight", 0);
    json_put_template(writer, "'layer_norm_eps': 1e-05");
    describing_put_size(describing, "max_position_embeddings", "text_model.embeddings.position_embedding.weight", 0);
    json_put_template(writer, "'model_type': 'clip_text_model', 'num_attention_heads': %u", heads_of(width));
    json_put_number(writer, "num_hidden_layers", describing_blocks(describing->set, "text_model.encoder.layers."));
    json_put_template(writer, "'pad_token_id': 1, 'projection_dim': %u", projection > 0 ? projection : width);
    describing_put_size(describing, "vocab_size", "text_model.embeddings.token_embedding.weight", 0);
}

static void describe_clip(struct describing *describing, const struct pipeline_kind *kind)
{
    describe_text_encoder(describing, "CLIPTextModel", "quick_gelu", 0);
}

static void describe_open_clip(struct describing *describing, const struct pipeline_kind *kind)
{
    enum { DEFAULT_PROJECTION = 512 }; /* transformers', which the model's configuration keeps */
    describe_text_encoder(describing, "CLIPTextModel", "gelu", DEFAULT_PROJECTION);
}

static void describe_projecting_clip(struct describing *describing, const struct pipeline_kind *kind)
{
    describe_text_encoder(describing, "CLIPTextModelWithProjection", "gelu",
                          describing_size(describing, "text_projection.weight", 0));
}

static const char position_embedding[] = "text_model.embeddings.position_embedding.weight";

/* clang-format off */
#define SCALED "'beta_end': 0.012, 'beta_schedule': 'scaled_linear', 'beta_start': 0.00085, 'clip_sample': false, "
#define UNET \
    {"unet", "diffusers", "UNet2DConditionModel", "model.diffusion_model.", "input_blocks.0.0.weight", \
     SINGLE_FILE_UNET, NULL, describe_unet}
#define VAE \
    {"vae", "diffusers", "AutoencoderKL", "first_stage_model.", "decoder.conv_in.weight", SINGLE_FILE_VAE, NULL, \
     describe_vae}
#define TOKENIZER(name) {.folder = name, .package = "transformers", .class_name = "CLIPTokenizer"}

/* Parts in the order of model_index.json. */
const struct pipeline_kind pipeline_kinds[] = {
    {.class_name = "StableDiffusionXLPipeline",
     .settings = "'force_zeros_for_empty_prompt': true",
     .scheduler = "'_class_name': 'EulerDiscreteScheduler', " SCALED
                  "'interpolation_type': 'linear', 'num_train_timesteps': 1000, 'prediction_type': 'epsilon', "
                  "'sample_max_value': 1.0, 'set_alpha_to_one': false, 'skip_prk_steps': true, 'steps_offset': 1, "
                  "'timestep_spacing': 'leading', 'trained_betas': null, 'use_karras_sigmas': false",
     .parts = {{.folder = "scheduler", .package = "diffusers", .class_name = "EulerDiscreteScheduler"},
               {"text_encoder", "transformers", "CLIPTextModel", "conditioner.embedders.0.transformer.",
                position_embedding, SINGLE_FILE_CLIP, NULL, describe_clip},
               {"text_encoder_2", "transformers", "CLIPTextModelWithProjection", "conditioner.embedders.1.model.",
                "positional_embedding", SINGLE_FILE_OPEN_CLIP, NULL, describe_projecting_clip},
               TOKENIZER("tokenizer"), TOKENIZER("tokenizer_2"), UNET, VAE},
     .is_xl = true,
     .pixels = 1024,
     .scaling_factor = "0.13025"},
    {.class_name = "StableDiffusionPipeline",
     .settings = "'requires_safety_checker': false",
     .scheduler = "'_class_name': 'DDIMScheduler', " SCALED
                  "'num_train_timesteps': 1000, 'prediction_type': 'v_prediction', 'set_alpha_to_one': false, "
                  "'skip_prk_steps': true, 'steps_offset': 1, 'trained_betas': null",
     .parts = {{.folder = "feature_extractor"}, {.folder = "safety_checker"},
               {.folder = "scheduler", .package = "diffusers", .class_name = "DDIMScheduler"},
               {"text_encoder", "transformers", "CLIPTextModel", "cond_stage_model.model.", "positional_embedding",
                SINGLE_FILE_OPEN_CLIP, "transformer.resblocks.23.", describe_open_clip},
               TOKENIZER("tokenizer"), UNET, VAE},
     .pixels = 768,
     .upcasts_attention = true,
     .scaling_factor = "0.18215",
     .doubt = "the scheduler is that of Stable Diffusion 2.1 for 768 pixels, as from_single_file() has it; a model for "
              "512 pixels needs prediction_type epsilon"},
    {.class_name = "StableDiffusionPipeline",
     .scheduler = "'_class_name': 'PNDMScheduler', " SCALED
                  "'num_train_timesteps': 1000, 'set_alpha_to_one': false, 'skip_prk_steps': true, 'steps_offset': 1, "
                  "'trained_betas': null",
     .parts = {{.folder = "feature_extractor"}, {.folder = "safety_checker"},
               {.folder = "scheduler", .package = "diffusers", .class_name = "PNDMScheduler"},
               {"text_encoder", "transformers", "CLIPTextModel", "cond_stage_model.transformer.", position_embedding,
                SINGLE_FILE_CLIP, NULL, describe_clip},
               TOKENIZER("tokenizer"), UNET, VAE},
     .pixels = 512,
     .n_heads = 8,
     .scaling_factor = "0.18215"},
    {0},
};
/* clang-format on */
