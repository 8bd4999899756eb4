/* Qwen2.5-Omni, Qwen3-Omni and Qwen3-ASR: vision encoder, and audio encoder, Whisper's with computed positions.
 * conversion/qwenvl.py, Qwen25OmniModel, and conversion/qwen3vl.py, Qwen3OmniMmprojModel.
 *
 * The converter fails for Qwen3-Omni's vision encoder, because of a name that it gives the tensors itself; wfs writes
 * the names of Qwen3-VL. */
#include "base/text.h"
#include "models/projectors/projector.h"
#include "quant/arithmetic/torch_functions.h"

#include <math.h>
#include <string.h>

static const struct relation_row second_tensors[] = {
    {"visual.blocks.{}.attn.q", "v.blk.{}.attn_q"},
    {"visual.blocks.{}.attn.k", "v.blk.{}.attn_k"},
    {"visual.blocks.{}.attn.v", "v.blk.{}.attn_v"},
    {"audio_tower.ln_post", "a.post_ln"},
    {"audio_tower.proj", "mm.a.fc"},
    {"audio_tower.audio_bos_eos_token.*", NULL},
    {0},
};

/* Three convolutions first treat sound as an image. */
static const struct relation_row third_tensors[] = {
    {"audio_tower.conv2d{}.weight", "a.conv2d.{}.weight"},
    {"audio_tower.conv2d{}.bias", "a.conv2d.{}.bias", "c -> c 1 1"},
    {"audio_tower.conv_out", "a.conv_out"},
    {"audio_tower.ln_post", "a.post_ln"},
    {"audio_tower.proj{}", "mm.a.mlp.{}"},
    {0},
};

static const struct stored_type stored_types[] = {
    {"a.conv1d.{}.weight", &f16_dtype},
    {"a.conv2d.{}.weight", &f16_dtype},
    {"a.conv_out.weight", &f16_dtype},
    {0},
};

enum { N_POSITIONS = 1500, LEAST_WIDTH = 4, MOST_WIDTH = 1 << 13 }; /* the largest model has 1280 */

/* Computes the sines of each position and then the cosines, at frequencies from 1 down to 1/10000. Rounds where torch
 * rounds; but torch's sines are MKL's, which differ in the last bit for one value in twenty. */
static void compute_positions(float *positions, uint64_t width)
{
    uint64_t n = width / 2;
    float step = (float)-(log(10000) / (double)(n - 1));
    for (uint64_t i = 0; i < n; i++) {
        float frequency = exponential(step * (float)i);
        for (uint64_t at = 0; at < N_POSITIONS; at++) {
            float angle = (float)at * frequency;
            positions[at * 2 * n + i] = (float)sin((double)angle);
            positions[at * 2 * n + n + i] = (float)cos((double)angle);
        }
    }
}

static bool add_positions(struct model_builder *builder, struct error *error)
{
    struct arena *arena = builder->model->arena;
    uint64_t width;
    if (!hparams_count(builder->model->hparams, "audio.d_model", LEAST_WIDTH, MOST_WIDTH, &width, error))
        return false;
    uint64_t shape[] = {N_POSITIONS, width / 2 * 2};
    float *positions = arena_array(arena, N_POSITIONS * width, sizeof *positions);
    compute_positions(positions, width);
    tensor_set_add_view(builder->model->tensors, "a.position_embd.weight", view_numbers(arena, 2, shape, positions));
    return true;
}

/* Replaces the later models' vision names, which are Qwen2.5-VL's. */
static const char *rename_merger(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                                 const char *name)
{
    static const char *const here[] = {"ln_q.", "mlp.0.", "mlp.2."}, *const there[] = {"norm.", "linear_fc1.",
                                                                                       "linear_fc2."};
    static const char list[] = "visual.merger_list.", merger[] = "visual.merger.";
    if (direction == FORWARD && text_starts_with(name, list))
        name = arena_printf(arena, "visual.deepstack_merger_list.%s", name + strlen(list));
    bool is_merger = text_starts_with(name, merger) || strstr(name, "_merger_list.") != NULL;
    for (size_t i = 0; direction == FORWARD && is_merger && i < sizeof here / sizeof *here; i++) {
        const char *found = strstr(name, here[i]);
        if (found != NULL)
            name = arena_printf(arena, "%.*s%s%s", (int)(found - name), name, there[i], found + strlen(here[i]));
    }
    return rename_deepstack(arena, dimensions, direction, name);
}

static bool adjust_second(struct model_builder *builder, struct error *error)
{
    dimensions_set(&builder->dimensions, "gated", 1);
    return hparams_default(builder->model->hparams, "{'image_size': 560}", error);
}

static bool adjust_third(struct model_builder *builder, struct error *error)
{
    checkpoint_note(builder->model->checkpoint, SUBJECT_PROJECTOR,
                    "the part that sees is written as that of Qwen3-VL is, "
                    "where the converter fails");
    return adjust_image_of_positions(builder, error);
}

static const struct key_row sound_keys[] = {
    {"audio.num_mel_bins", GGUF_U32, REQUIRED, "audio.num_mel_bins"},
    {"audio.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "audio.layer_norm_eps", 1e-5},
    {0},
};

static const struct key_row second_keys[] = {
    PROJECTOR_TYPE("qwen2.5o"),
    FLAG("use_silu"),
    {"vision.n_wa_pattern", GGUF_U32, .compute = compute_window_pattern},
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "outer.rms_norm_eps", 1e-6},
    {0},
};

static const struct key_row third_keys[] = {
    FLAG("use_gelu"),
    {"vision.spatial_merge_size", GGUF_U32, IF_PRESENT, "spatial_merge_size"},
    {"vision.attention.layer_norm_epsilon", GGUF_F32, OR_DEFAULT, "text.rms_norm_eps", 1e-6},
    {.emit = emit_deepstack},
    {"vision.projector_type", GGUF_STRING, ALWAYS, .text = "qwen3vl_merger"},
    {0},
};

static const struct key_row asr_keys[] = {{"audio.projector_type", GGUF_STRING, ALWAYS, .text = "qwen3a"}, {0}};

static const char *const parts[] = {"thinker.visual.", "thinker.audio_tower.", "visual.", "audio_tower.", NULL};
static const char *const dropped_prefixes[] = {"thinker.", NULL};

#define AUDIO_CONFIG "thinker_config.audio_config"
static const struct tower both = {.config = {.vision = "thinker_config.vision_config", .audio = AUDIO_CONFIG},
                                  .parts = parts};

const struct family qwen2_5_omni_projector = {
    .name = "qwen2.5o",
    .summary = "Qwen2.5-Omni (vision and audio encoders)",
    .hf = FAMILY_NAMES({"Qwen2_5OmniModel"}),
    .tensors = {second_tensors, qwen2_vision_tensors, whisper_tensors},
    .keys = {tower_keys, vision_keys, audio_keys, sound_keys, second_keys},
    .dropped_prefixes = dropped_prefixes,
    .tower = &both,
    .stored_types = stored_types,
    .add_extras = add_positions,
    .adjust = adjust_second,
};

const struct family qwen3_omni_projector = {
    .name = "qwen3o",
    .summary = "Qwen3-Omni (vision and audio encoders)",
    .hf = FAMILY_NAMES({"Qwen3OmniMoeForConditionalGeneration"}),
    .tensors = {third_tensors, qwen3_vision_tensors, whisper_tensors},
    .keys = {tower_keys, vision_keys, audio_keys, sound_keys, third_keys, asr_keys},
    .dropped_prefixes = dropped_prefixes,
    .tower = &both,
    .stored_types = stored_types,
    .add_extras = add_positions,
    .add_dimensions = add_deepstack_dimensions,
    .rename = rename_merger,
    .adjust = adjust_third,
};

const struct family qwen3_asr_projector = {
    .name = "qwen3a",
    .summary = "Qwen3-ASR (audio encoder)",
    .hf = FAMILY_NAMES({"Qwen3ASRForConditionalGeneration"}),
    .tensors = {third_tensors, whisper_tensors},
    .keys = {tower_keys, audio_keys, sound_keys, asr_keys},
    .dropped_prefixes = dropped_prefixes,
    .tower = TOWER(.config = {.audio = AUDIO_CONFIG}, .parts = parts),
    .stored_types = stored_types,
    .add_extras = add_positions,
};
