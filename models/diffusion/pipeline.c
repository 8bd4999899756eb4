#include "models/diffusion/pipeline.h"

#include "base/text.h"
#include "models/diffusion/component.h"
#include "models/facts.h"
#include "models/packings/packings.h"

#include <stdio.h>
#include <string.h>

struct making {
    const struct pipeline_part *part;
    const struct single_file_names *names;
    struct arena *arena;
    struct tensor_set *to;
    struct error *error;
};

/* Returns the tensor by which a component is recognized, or NULL. */
static const struct tensor *find_mark(const struct checkpoint *checkpoint, const struct pipeline_part *part,
                                      struct arena *arena)
{
    return tensor_set_find_text(checkpoint->tensors, arena_printf(arena, "%s%s", part->prefix, part->mark));
}

/* Reports whether a U-Net's first convolution reads nothing but a picture: models that complete or change a picture
 * read more, and have other pipelines. */
static bool makes_pictures(const struct tensor *convolution)
{
    enum { CHANNELS = 4 };
    return convolution->rank == 4 && convolution->shape[1] == CHANNELS;
}

static bool has_all_parts(const struct checkpoint *checkpoint, const struct pipeline_kind *kind, struct arena *arena)
{
    for (const struct pipeline_part *part = kind->parts; part->folder != NULL; part++) {
        const struct tensor *mark = part->prefix != NULL ? find_mark(checkpoint, part, arena) : NULL;
        if (part->prefix != NULL && (mark == NULL || (part->part == SINGLE_FILE_UNET && !makes_pictures(mark))))
            return false;
    }
    return true;
}

static const void *find_kind(const struct checkpoint *checkpoint, struct arena *arena)
{
    for (const struct pipeline_kind *kind = pipeline_kinds; kind->class_name != NULL; kind++)
        if (has_all_parts(checkpoint, kind, arena))
            return kind;
    return NULL;
}

const struct pipeline_kind *pipeline_kind_of(const struct checkpoint *checkpoint)
{
    return facts_of(checkpoint).has_class_names ? checkpoint_once(checkpoint, find_kind) : NULL;
}

const char *pipeline_weights_name(const struct pipeline_part *part)
{
    return strcmp(part->package, "diffusers") == 0 ? "diffusion_pytorch_model.safetensors" : "model.safetensors";
}

/* Returns the values of a tensor if they can be cut and turned; NULL on failure. */
static const struct view *plain_view(const struct making *making, const struct tensor *tensor)
{
    if (tensor->refusal != NULL)
        error_set(making->error, "tensor '%.200s': %s", tensor->name, tensor->refusal);
    else if (tensor->dtype->block_elements != 1)
        error_set(making->error, "tensor '%.200s' is quantized (%s)", tensor->name, tensor->dtype->name);
    else
        return tensor_view(tensor, making->arena);
    return NULL;
}

/* Returns a convolution of 1 by 1, or of 1, as a matrix; NULL on failure. */
static const struct view *matrix(const struct making *making, const char *name, const struct view *view)
{
    for (unsigned axis = 2; axis < view->rank; axis++)
        if (axis > 3 || view->shape[axis] != 1) {
            error_set(making->error, "tensor '%.200s' is no convolution of 1 by 1", name);
            return NULL;
        }
    return view->rank > 2 ? view_reshape(making->arena, view, 2, view->shape) : view;
}

/* Adds a tensor that holds queries, keys and values as three. */
static bool add_thirds(const struct making *making, const char *module, const char *suffix, const struct view *view)
{
    static const char *const thirds[] = {"q_proj", "k_proj", "v_proj"};
    if (view->rank == 0 || view->shape[0] % 3 != 0)
        return error_set(making->error, "tensor '%.200s.in_proj_%s' does not hold queries, keys and values of one size",
                         module, suffix);
    uint64_t n = view->shape[0] / 3;
    for (size_t i = 0; i < 3; i++)
        tensor_set_add_view(making->to, arena_printf(making->arena, "%s.%s.%s", module, thirds[i], suffix),
                            view_slice(making->arena, view, 0, i * n, n, 1));
    return true;
}

/* Returns the module of a tensor that holds queries, keys and values, and gets its suffix, "weight" or "bias"; NULL if
 * the tensor of that name in the file is none. */
static const char *joined_module(const struct making *making, const char *name, const char **ret_suffix)
{
    static const char joined[] = ".in_proj_";
    const char *place = strstr(name, joined);
    *ret_suffix = place != NULL ? place + strlen(joined) : "";
    if (making->part->part != SINGLE_FILE_OPEN_CLIP ||
        (strcmp(*ret_suffix, "weight") != 0 && strcmp(*ret_suffix, "bias") != 0))
        return NULL;
    const char *module = arena_strndup(making->arena, name, (size_t)(place - name));
    return single_file_component_name(making->names, SINGLE_FILE_OPEN_CLIP, module);
}

static bool has_projection(const struct pipeline_part *part)
{
    return strcmp(part->class_name, "CLIPTextModelWithProjection") == 0;
}

/* Adds OpenCLIP's projection, if the component has one. */
static bool add_projection(const struct making *making, const struct tensor *tensor)
{
    if (!has_projection(making->part))
        return true;
    const struct view *view = plain_view(making, tensor);
    if (view == NULL)
        return false;
    if (view->rank != 2)
        return error_set(making->error, "tensor '%.200s' is no matrix", tensor->name);
    tensor_set_add_view(making->to, "text_projection.weight", view_transpose(making->arena, view));
    return true;
}

/* Adds what the component has of a tensor of the file; `name` is without the prefix. */
static bool add_tensor(const struct making *making, const struct tensor *tensor, const char *name)
{
    const char *suffix;
    if (making->part->left_out != NULL && text_starts_with(name, making->part->left_out))
        return true;
    if (making->part->part == SINGLE_FILE_OPEN_CLIP && strcmp(name, "text_projection") == 0)
        return add_projection(making, tensor);
    const char *module = joined_module(making, name, &suffix);
    const char *renamed = single_file_component_name(making->names, making->part->part, name);
    if (module == NULL && renamed == NULL)
        return true; /* diffusers leaves out what it does not know */
    const struct view *view = plain_view(making, tensor);
    if (view != NULL && making->part->part == SINGLE_FILE_VAE && single_file_is_convolved(name))
        view = matrix(making, name, view);
    if (view == NULL)
        return false;
    if (module != NULL)
        return add_thirds(making, module, suffix, view);
    tensor_set_add_view(making->to, renamed, view);
    return true;
}

/* Returns the sealed tensors of a component, in the arena; NULL on failure. */
static const struct tensor_set *make_tensors(const struct pipeline_kind *kind, const struct pipeline_part *part,
                                             const struct checkpoint *checkpoint, struct arena *arena,
                                             struct error *error)
{
    const struct plain_tensors *plain = packings_plain(checkpoint);
    if (plain->set == NULL) {
        error_set(error, "%s", plain->refusal);
        return NULL;
    }
    const struct tensor_set *from = plain->set;
    const struct making making = {part, single_file_names_new(arena, kind->is_xl), arena, tensor_set_new(arena), error};
    size_t length = strlen(part->prefix);
    for (size_t i = 0; i < from->n_tensors; i++) {
        const struct tensor *tensor = &from->tensors[i];
        bool is_text = strlen(tensor->name) == tensor->name_length;
        if (is_text && text_starts_with(tensor->name, part->prefix) &&
            !add_tensor(&making, tensor, tensor->name + length))
            return NULL;
    }
    if (!tensor_set_seal(making.to, error))
        return NULL;
    const char *missing = part->part == SINGLE_FILE_UNET ? single_file_missing_name(making.names, making.to) : NULL;
    if (missing == NULL)
        return making.to;
    error_set(error, "tensor '%s' is missing", missing);
    return NULL;
}

bool pipeline_artifact(const struct pipeline_kind *kind, const struct pipeline_part *part,
                       const struct checkpoint *checkpoint, struct arena *arena, struct artifact *ret_artifact,
                       struct error *error)
{
    const struct tensor_set *tensors = make_tensors(kind, part, checkpoint, arena, error);
    if (tensors != NULL)
        component_weights(tensors, ret_artifact);
    return tensors != NULL;
}

bool pipeline_write_config(const struct pipeline_kind *kind, const struct pipeline_part *part,
                           const struct checkpoint *checkpoint, struct buffer *out, struct error *error)
{
    struct arena *arena = arena_new();
    struct json_writer writer = {.out = out};
    struct describing describing = {make_tensors(kind, part, checkpoint, arena, error), &writer, error, false};
    bool is_made = describing.set != NULL;
    if (is_made) {
        json_begin_object(&writer, NULL);
        part->describe(&describing, kind);
        json_end(&writer);
        buffer_append_text(out, "\n");
    }
    arena_free(arena);
    return is_made && !describing.failed;
}

void pipeline_write_index(const struct pipeline_kind *kind, struct buffer *out)
{
    struct json_writer writer = {.out = out};
    json_begin_object(&writer, NULL);
    json_put_text(&writer, "_class_name", kind->class_name);
    if (kind->settings != NULL)
        json_put_template(&writer, kind->settings);
    for (const struct pipeline_part *part = kind->parts; part->folder != NULL; part++) {
        json_begin_array(&writer, part->folder);
        json_put_text(&writer, NULL, part->package);
        json_put_text(&writer, NULL, part->class_name);
        json_end(&writer);
    }
    json_end(&writer);
    buffer_append_text(out, "\n");
}

void pipeline_write_scheduler(const struct pipeline_kind *kind, struct buffer *out)
{
    struct json_writer writer = {.out = out};
    json_begin_object(&writer, NULL);
    json_put_template(&writer, kind->scheduler);
    json_end(&writer);
    buffer_append_text(out, "\n");
}

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
