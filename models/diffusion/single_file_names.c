#include "models/diffusion/single_file.h"

#include "base/buffer.h"
#include "base/text.h"

#include <string.h>

/* Replaces a text wherever a name contains it. Tables end with a row without `from`. */
struct replacement {
    const char *from, *to;
};

/* Rules that are made for the numbers of blocks. */
struct rules {
    struct arena *arena;
    struct replacement *rows;
    size_t n_rows;
};

struct single_file_names {
    struct arena *arena;
    bool is_xl;
    const struct replacement *unet, *vae;
};

/* Whole names, which a U-Net must have. */
static const struct replacement unet_names[] = {
    {"time_embedding.linear_1.weight", "time_embed.0.weight"},
    {"time_embedding.linear_1.bias", "time_embed.0.bias"},
    {"time_embedding.linear_2.weight", "time_embed.2.weight"},
    {"time_embedding.linear_2.bias", "time_embed.2.bias"},
    {"conv_in.weight", "input_blocks.0.0.weight"},
    {"conv_in.bias", "input_blocks.0.0.bias"},
    {"conv_norm_out.weight", "out.0.weight"},
    {"conv_norm_out.bias", "out.0.bias"},
    {"conv_out.weight", "out.2.weight"},
    {"conv_out.bias", "out.2.bias"},
    {NULL, NULL},
};
static const struct replacement unet_xl_names[] = {
    {"add_embedding.linear_1.weight", "label_emb.0.0.weight"},
    {"add_embedding.linear_1.bias", "label_emb.0.0.bias"},
    {"add_embedding.linear_2.weight", "label_emb.0.2.weight"},
    {"add_embedding.linear_2.bias", "label_emb.0.2.bias"},
    {NULL, NULL},
};

static const struct replacement resnet_rules[] = {
    {"norm1", "in_layers.0"},
    {"conv1", "in_layers.2"},
    {"norm2", "out_layers.0"},
    {"conv2", "out_layers.3"},
    {"time_emb_proj", "emb_layers.1"},
    {"conv_shortcut", "skip_connection"},
    {NULL, NULL},
};

static const struct replacement vae_attention_rules[] = {
    {"group_norm.", "norm."},   {"to_q.", "q."}, {"to_k.", "k."}, {"to_v.", "v."},
    {"to_out.0.", "proj_out."}, {NULL, NULL},
};

/* As diffusers named them at first; the script for XL does not know these. */
static const struct replacement vae_older_attention_rules[] = {
    {"query.", "q."}, {"key.", "k."}, {"value.", "v."}, {"proj_attn.", "proj_out."}, {NULL, NULL},
};

/* Rules for an OpenCLIP text encoder: the script for XL, and the one for Stable Diffusion 2, which first puts
 * "transformer." before every name. */
static const struct replacement open_clip_rules[] = {
    {"layer_norm1", "ln_1"}, {"layer_norm2", "ln_2"}, {".fc1.", ".c_fc."},
    {".fc2.", ".c_proj."},   {".self_attn", ".attn"}, {NULL, NULL},
};
static const struct replacement open_clip_xl_rules[] = {
    {"text_model.encoder.layers.", "transformer.resblocks."},
    {"text_model.final_layer_norm.", "ln_final."},
    {"text_model.embeddings.token_embedding.weight", "token_embedding.weight"},
    {"text_model.embeddings.position_embedding.weight", "positional_embedding"},
    {NULL, NULL},
};
static const struct replacement open_clip_2_rules[] = {
    {"text_model.encoder.layers.", "resblocks."},
    {"transformer.text_model.final_layer_norm.", "ln_final."},
    {"transformer.text_model.embeddings.token_embedding.weight", "token_embedding.weight"},
    {"transformer.text_model.embeddings.position_embedding.weight", "positional_embedding"},
    {NULL, NULL},
};

/* Returns the name with each occurrence of one text replaced, in the arena. */
static const char *replace(struct arena *arena, const char *name, const char *from, const char *to)
{
    const char *next = strstr(name, from);
    struct buffer replaced = {0};
    if (next == NULL)
        return name;
    for (; next != NULL; next = strstr(name, from)) {
        buffer_append(&replaced, name, (size_t)(next - name));
        buffer_append_text(&replaced, to);
        name = next + strlen(from);
    }
    buffer_append(&replaced, name, strlen(name));
    name = arena_strndup(arena, (const char *)replaced.bytes, replaced.length);
    buffer_free(&replaced);
    return name;
}

static const char *replace_all(struct arena *arena, const char *name, const struct replacement *rules)
{
    for (; rules->from != NULL; rules++)
        name = replace(arena, name, rules->from, rules->to);
    return name;
}

/* Undoes replace_all(), for a name in which no rule's `to` occurs for another reason. */
static const char *restore_all(struct arena *arena, const char *name, const struct replacement *rules)
{
    size_t n_rules = 0;
    while (rules[n_rules].from != NULL)
        n_rules++;
    while (n_rules-- > 0)
        name = replace(arena, name, rules[n_rules].to, rules[n_rules].from);
    return name;
}

/* Returns the name by the first row that has it whole. */
static const char *whole_name(const char *name, const struct replacement *rows)
{
    for (; rows->from != NULL; rows++)
        if (strcmp(rows->from, name) == 0)
            return rows->to;
    return name;
}

static const char *restore_whole_name(const char *name, const struct replacement *rows)
{
    for (; rows->from != NULL; rows++)
        if (strcmp(rows->to, name) == 0)
            return rows->from;
    return name;
}

static void add_rule(struct rules *rules, const char *from, const char *to)
{
    rules->rows[rules->n_rows++] = (struct replacement){from, to};
}

/* Adds the rules for the blocks of one level: diffusers counts them by level, the first release through all levels. */
static void add_unet_level(struct rules *rules, unsigned level, bool is_xl)
{
    struct arena *arena = rules->arena;
    bool has_down_attention = is_xl ? level > 0 : level < 3, has_up_attention = is_xl ? level < 2 : level > 0;
    for (unsigned j = 0; j < 2; j++) {
        add_rule(rules, arena_printf(arena, "down_blocks.%u.resnets.%u.", level, j),
                 arena_printf(arena, "input_blocks.%u.0.", 3 * level + j + 1));
        if (has_down_attention)
            add_rule(rules, arena_printf(arena, "down_blocks.%u.attentions.%u.", level, j),
                     arena_printf(arena, "input_blocks.%u.1.", 3 * level + j + 1));
    }
    for (unsigned j = 0; j < (is_xl ? 4 : 3); j++) {
        add_rule(rules, arena_printf(arena, "up_blocks.%u.resnets.%u.", level, j),
                 arena_printf(arena, "output_blocks.%u.0.", 3 * level + j));
        if (has_up_attention)
            add_rule(rules, arena_printf(arena, "up_blocks.%u.attentions.%u.", level, j),
                     arena_printf(arena, "output_blocks.%u.1.", 3 * level + j));
    }
    if (level == 3)
        return;
    add_rule(rules, arena_printf(arena, "down_blocks.%u.downsamplers.0.conv.", level),
             arena_printf(arena, "input_blocks.%u.0.op.", 3 * (level + 1)));
    add_rule(rules, arena_printf(arena, "up_blocks.%u.upsamplers.0.", level),
             arena_printf(arena, "output_blocks.%u.%u.", 3 * level + 2, is_xl || level > 0 ? 2 : 1));
}

static const struct replacement *unet_rules(struct arena *arena, bool is_xl)
{
    enum { MOST_RULES = 80 };
    struct rules rules = {arena, arena_array(arena, MOST_RULES, sizeof(struct replacement)), 0};
    for (unsigned level = 0; level < (is_xl ? 3 : 4); level++)
        add_unet_level(&rules, level, is_xl);
    add_rule(&rules, "mid_block.attentions.0.", "middle_block.1.");
    add_rule(&rules, "mid_block.resnets.0.", "middle_block.0.");
    add_rule(&rules, "mid_block.resnets.1.", "middle_block.2.");
    return rules.rows;
}

static const struct replacement *vae_rules(struct arena *arena)
{
    enum { LEVELS = 4, MOST_RULES = 40 };
    struct rules rules = {arena, arena_array(arena, MOST_RULES, sizeof(struct replacement)), 0};
    add_rule(&rules, "conv_shortcut", "nin_shortcut");
    add_rule(&rules, "conv_norm_out", "norm_out");
    add_rule(&rules, "mid_block.attentions.0.", "mid.attn_1.");
    for (unsigned i = 0; i < LEVELS; i++) {
        for (unsigned j = 0; j < 2; j++)
            add_rule(&rules, arena_printf(arena, "encoder.down_blocks.%u.resnets.%u.", i, j),
                     arena_printf(arena, "encoder.down.%u.block.%u.", i, j));
        if (i + 1 < LEVELS) {
            add_rule(&rules, arena_printf(arena, "down_blocks.%u.downsamplers.0.", i),
                     arena_printf(arena, "down.%u.downsample.", i));
            add_rule(&rules, arena_printf(arena, "up_blocks.%u.upsamplers.0.", i),
                     arena_printf(arena, "up.%u.upsample.", LEVELS - 1 - i));
        }
        for (unsigned j = 0; j < 3; j++)
            add_rule(&rules, arena_printf(arena, "decoder.up_blocks.%u.resnets.%u.", i, j),
                     arena_printf(arena, "decoder.up.%u.block.%u.", LEVELS - 1 - i, j));
    }
    add_rule(&rules, "mid_block.resnets.0.", "mid.block_1.");
    add_rule(&rules, "mid_block.resnets.1.", "mid.block_2.");
    return rules.rows;
}

const struct single_file_names *single_file_names_new(struct arena *arena, bool is_xl)
{
    struct single_file_names *names = arena_alloc(arena, sizeof *names);
    *names = (struct single_file_names){arena, is_xl, unet_rules(arena, is_xl), vae_rules(arena)};
    return names;
}

static const char *unet_name(const struct single_file_names *names, const char *name)
{
    const char *renamed = whole_name(name, unet_names);
    if (names->is_xl)
        renamed = whole_name(renamed, unet_xl_names);
    if (strstr(name, "resnets") != NULL)
        renamed = replace_all(names->arena, renamed, resnet_rules);
    return replace_all(names->arena, renamed, names->unet);
}

static const char *restore_unet_name(const struct single_file_names *names, const char *name)
{
    const char *restored = restore_all(names->arena, name, names->unet);
    if (strstr(restored, "resnets") != NULL)
        restored = restore_all(names->arena, restored, resnet_rules);
    if (names->is_xl)
        restored = restore_whole_name(restored, unet_xl_names);
    restored = restore_whole_name(restored, unet_names);
    return restored != name ? restored : NULL; /* every tensor of a U-Net has another name there */
}

static const char *vae_name(const struct single_file_names *names, const char *name)
{
    const char *renamed = replace_all(names->arena, name, names->vae);
    if (strstr(name, "attentions") == NULL)
        return renamed;
    if (!names->is_xl)
        renamed = replace_all(names->arena, renamed, vae_older_attention_rules);
    return replace_all(names->arena, renamed, vae_attention_rules);
}

/* Reports whether a tensor of the VAE has the same name on both sides. */
static bool is_shared_by_vae(const char *name)
{
    static const char *const modules[] = {"encoder.conv_in.",  "encoder.conv_out.", "decoder.conv_in.",
                                          "decoder.conv_out.", "quant_conv.",       "post_quant_conv."};
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        if (text_starts_with(name, modules[i]))
            return true;
    return false;
}

static const char *restore_vae_name(const struct single_file_names *names, const char *name)
{
    const char *restored = name;
    if (strstr(name, ".mid.attn_1.") != NULL)
        restored = restore_all(names->arena, restored, vae_attention_rules);
    restored = restore_all(names->arena, restored, names->vae);
    return restored != name || is_shared_by_vae(name) ? restored : NULL;
}

/* transformers made this tensor anew in each model, and no longer saves it. */
static const char positions[] = "text_model.embeddings.position_ids";

static const char *restore_clip_name(const char *name)
{
    return text_starts_with(name, "text_model.") && strcmp(name, positions) != 0 ? name : NULL;
}

static const char *open_clip_name(const struct single_file_names *names, const char *name)
{
    if (!names->is_xl)
        name = arena_printf(names->arena, "transformer.%s", name);
    name = replace_all(names->arena, name, names->is_xl ? open_clip_xl_rules : open_clip_2_rules);
    return replace_all(names->arena, name, open_clip_rules);
}

/* The rules for XL lead to the same names as those for 2, without a prefix to take off. */
static const char *restore_open_clip_name(const struct single_file_names *names, const char *name)
{
    const char *restored = restore_all(names->arena, name, open_clip_rules);
    return restore_clip_name(restore_all(names->arena, restored, open_clip_xl_rules));
}

const char *single_file_name(const struct single_file_names *names, enum single_file_part part, const char *name)
{
    switch (part) {
    case SINGLE_FILE_UNET:
        return unet_name(names, name);
    case SINGLE_FILE_VAE:
        return vae_name(names, name);
    case SINGLE_FILE_OPEN_CLIP:
        return open_clip_name(names, name);
    case SINGLE_FILE_CLIP:
        break;
    }
    return name;
}

static const char *restore_name(const struct single_file_names *names, enum single_file_part part, const char *name)
{
    switch (part) {
    case SINGLE_FILE_UNET:
        return restore_unet_name(names, name);
    case SINGLE_FILE_VAE:
        return restore_vae_name(names, name);
    case SINGLE_FILE_OPEN_CLIP:
        return restore_open_clip_name(names, name);
    case SINGLE_FILE_CLIP:
        break;
    }
    return restore_clip_name(name);
}

const char *single_file_component_name(const struct single_file_names *names, enum single_file_part part,
                                       const char *name)
{
    enum { LONGEST = 512 }; /* far more than any name of these models, and little work for each rule */
    if (strlen(name) > LONGEST)
        return NULL;
    const char *restored = restore_name(names, part, name);
    bool is_exact = restored != NULL && strcmp(single_file_name(names, part, restored), name) == 0;
    return is_exact ? restored : NULL;
}

static const char *missing_name(const struct replacement *rows, const struct tensor_set *set)
{
    for (; rows->from != NULL; rows++)
        if (tensor_set_find_text(set, rows->from) == NULL)
            return rows->from;
    return NULL;
}

const char *single_file_missing_name(const struct single_file_names *names, const struct tensor_set *unet)
{
    const char *missing = missing_name(unet_names, unet);
    return missing == NULL && names->is_xl ? missing_name(unet_xl_names, unet) : missing;
}

bool single_file_is_convolved(const char *name)
{
    static const char *const parts[] = {"mid.attn_1.q.weight", "mid.attn_1.k.weight", "mid.attn_1.v.weight",
                                        "mid.attn_1.proj_out.weight"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(name, parts[i]) != NULL)
            return true;
    return false;
}
