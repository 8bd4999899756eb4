#include "models/diffusion/single_file.h"

#include "base/text.h"
#include "formats/safetensors/write.h"
#include "quant/convert.h"
#include "quant/half.h"

#include <string.h>

const char *const single_file_parts[] = {"unet", "vae", "text_encoder", NULL, NULL};
const char *const single_file_xl_parts[] = {"unet", "vae", "text_encoder", "text_encoder_2", NULL};

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

struct making {
    struct arena *arena;
    struct tensor_set *tensors;
    bool is_xl;
    struct error *error;
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

static const char *replace(struct arena *arena, const char *name, const struct replacement *rule)
{
    size_t length = strlen(rule->from);
    const char *replaced = "";
    if (strstr(name, rule->from) == NULL)
        return name;
    for (const char *next; (next = strstr(name, rule->from)) != NULL; name = next + length)
        replaced = arena_printf(arena, "%s%.*s%s", replaced, (int)(next - name), name, rule->to);
    return arena_printf(arena, "%s%s", replaced, name);
}

static const char *replace_all(struct arena *arena, const char *name, const struct replacement *rules)
{
    for (; rules->from != NULL; rules++)
        name = replace(arena, name, rules);
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
             arena_printf(arena, "output_blocks.%u.%u.", 3 * level + 2, level == 0 ? 1 : 2));
}

static const struct replacement *unet_rules(struct arena *arena, bool is_xl)
{
    enum { MOST_RULES = 80 };
    struct rules rules = {arena, arena_array(arena, MOST_RULES, sizeof(struct replacement)), 0};
    for (unsigned level = 0; level < (is_xl ? 3 : 4); level++)
        add_unet_level(&rules, level, is_xl);
    if (is_xl)
        add_rule(&rules, "output_blocks.2.1.conv.", "output_blocks.2.2.conv.");
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

/* Adds a view under the prefix of its component. */
static void add(const struct making *making, const char *prefix, const char *name, const struct view *view)
{
    tensor_set_add_view(making->tensors, arena_printf(making->arena, "%s%s", prefix, name), view);
}

/* Returns the name by the first row that has it whole. */
static const char *whole_name(const char *name, const struct replacement *rows)
{
    for (; rows->from != NULL; rows++)
        if (strcmp(rows->from, name) == 0)
            return rows->to;
    return name;
}

static bool has_all(const struct tensor_set *set, const struct replacement *rows, const char *part, struct error *error)
{
    for (; rows->from != NULL; rows++)
        if (tensor_set_find_text(set, rows->from) == NULL)
            return error_set(error, "%s: tensor '%s' is missing, without which diffusers' script writes no file", part,
                             rows->from);
    return true;
}

static bool add_unet(const struct making *making, const struct tensor_set *set)
{
    const struct replacement *rules = unet_rules(making->arena, making->is_xl);
    if (!has_all(set, unet_names, "unet", making->error) ||
        (making->is_xl && !has_all(set, unet_xl_names, "unet", making->error)))
        return false;
    for (size_t i = 0; i < set->n_tensors; i++) {
        const char *name = set->tensors[i].name, *renamed = whole_name(name, unet_names);
        if (making->is_xl)
            renamed = whole_name(renamed, unet_xl_names);
        if (strstr(name, "resnets") != NULL)
            renamed = replace_all(making->arena, renamed, resnet_rules);
        add(making, "model.diffusion_model.", replace_all(making->arena, renamed, rules),
            tensor_view(&set->tensors[i], making->arena));
    }
    return true;
}

/* Reports whether a matrix of the VAE becomes a convolution of one element. */
static bool is_convolved(const char *name)
{
    static const char *const parts[] = {"mid.attn_1.q.weight", "mid.attn_1.k.weight", "mid.attn_1.v.weight",
                                        "mid.attn_1.proj_out.weight"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(name, parts[i]) != NULL)
            return true;
    return false;
}

static const struct view *convolved(struct arena *arena, const struct view *view)
{
    uint64_t shape[VIEW_MAX_RANK];
    if (view->rank == 1 || view->rank + 2 > VIEW_MAX_RANK)
        return view;
    memcpy(shape, view->shape, view->rank * sizeof *shape);
    shape[view->rank] = shape[view->rank + 1] = 1;
    return view_reshape(arena, view, view->rank + 2, shape);
}

static void add_vae(const struct making *making, const struct tensor_set *set)
{
    const struct replacement *rules = vae_rules(making->arena);
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct view *view = tensor_view(&set->tensors[i], making->arena);
        const char *name = replace_all(making->arena, set->tensors[i].name, rules);
        if (strstr(set->tensors[i].name, "attentions") != NULL) {
            if (!making->is_xl)
                name = replace_all(making->arena, name, vae_older_attention_rules);
            name = replace_all(making->arena, name, vae_attention_rules);
        }
        add(making, "first_stage_model.", name, is_convolved(name) ? convolved(making->arena, view) : view);
    }
}

static void add_clip(const struct making *making, const char *prefix, const struct tensor_set *set)
{
    for (size_t i = 0; i < set->n_tensors; i++)
        add(making, prefix, set->tensors[i].name, tensor_view(&set->tensors[i], making->arena));
}

/* Returns OpenCLIP's name. */
static const char *open_clip_name(const struct making *making, const char *name)
{
    if (!making->is_xl)
        name = arena_printf(making->arena, "transformer.%s", name);
    name = replace_all(making->arena, name, making->is_xl ? open_clip_xl_rules : open_clip_2_rules);
    return replace_all(making->arena, name, open_clip_rules);
}

/* Adds the queries, keys and values of one layer as one tensor; `queries` is the first. */
static bool add_joined(const struct making *making, const char *prefix, const struct tensor_set *set,
                       const struct tensor *queries, const char *suffix)
{
    static const char *const parts[] = {"q_proj", "k_proj", "v_proj"};
    const struct view *views[3];
    size_t length = queries->name_length - strlen("q_proj") - strlen(suffix);
    const char *module = arena_strndup(making->arena, queries->name, length);
    for (size_t i = 0; i < 3; i++) {
        const char *name = arena_printf(making->arena, "%s%s%s", module, parts[i], suffix);
        const struct tensor *tensor = tensor_set_find_text(set, name);
        if (tensor == NULL)
            return error_set(making->error, "tensor '%.200s' is missing", name);
        views[i] = tensor_view(tensor, making->arena);
        bool is_alike = views[i]->dtype == views[0]->dtype && views[i]->rank == views[0]->rank && views[i]->rank > 0;
        for (unsigned axis = 1; is_alike && axis < views[i]->rank; axis++)
            is_alike = views[i]->shape[axis] == views[0]->shape[axis];
        if (!is_alike)
            return error_set(making->error, "tensor '%.200s' and its queries have different types or shapes", name);
    }
    const char *name = open_clip_name(making, arena_strndup(making->arena, module, length - 1));
    add(making, prefix, arena_printf(making->arena, "%s.in_proj_%s", name, suffix + 1),
        view_concatenate(making->arena, views, 3, 0));
    return true;
}

/* Returns the suffix of a query, key or value, ".weight" or ".bias", with the letter of its kind; NULL: it is none. */
static const char *attention_suffix(const char *name, char *ret_kind)
{
    static const char *const endings[] = {".self_attn.q_proj", ".self_attn.k_proj", ".self_attn.v_proj"};
    static const char *const suffixes[] = {".weight", ".bias"};
    for (size_t i = 0; i < 6; i++) {
        const char *suffix = suffixes[i % 2];
        size_t length = strlen(name), whole = strlen(endings[i / 2]) + strlen(suffix);
        if (length >= whole && text_ends_with(name, suffix) &&
            strncmp(name + length - whole, endings[i / 2], strlen(endings[i / 2])) == 0) {
            *ret_kind = "qkv"[i / 2];
            return suffix;
        }
    }
    return NULL;
}

/* Adds an OpenCLIP text encoder. */
static bool add_open_clip(const struct making *making, const char *prefix, const struct tensor_set *set)
{
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        char kind;
        const char *suffix = attention_suffix(tensor->name, &kind);
        if (suffix != NULL && kind != 'q')
            continue;
        if (suffix != NULL) {
            if (!add_joined(making, prefix, set, tensor, suffix))
                return false;
            continue;
        }
        const struct view *view = tensor_view(tensor, making->arena);
        const char *name = open_clip_name(making, tensor->name);
        if (making->is_xl && strcmp(tensor->name, "text_projection.weight") == 0 && view->rank == 2)
            add(making, prefix, "text_projection", view_transpose(making->arena, view));
        else
            add(making, prefix, name, view);
    }
    return true;
}

static bool add_text_encoders(const struct making *making, const struct tensor_set *const *parts)
{
    if (!making->is_xl && tensor_set_find_text(parts[2], "text_model.encoder.layers.22.layer_norm2.bias") != NULL)
        return add_open_clip(making, "cond_stage_model.model.", parts[2]);
    add_clip(making, making->is_xl ? "conditioner.embedders.0.transformer." : "cond_stage_model.transformer.",
             parts[2]);
    if (!making->is_xl)
        return true;
    if (tensor_set_find_text(parts[3], "text_projection.weight") == NULL)
        return error_set(making->error, "text_encoder_2: tensor 'text_projection.weight' is missing");
    return add_open_clip(making, "conditioner.embedders.1.model.", parts[3]);
}

static bool are_readable(const struct tensor_set *const *parts, const char *const *folders, struct error *error)
{
    for (size_t part = 0; folders[part] != NULL; part++)
        for (size_t i = 0; i < parts[part]->n_tensors; i++) {
            const struct tensor *tensor = &parts[part]->tensors[i];
            if (tensor->refusal != NULL)
                return error_set(error, "%s: tensor '%.200s': %s", folders[part], tensor->name, tensor->refusal);
            if (strlen(tensor->name) != tensor->name_length)
                return error_set(error, "%s: tensor '%.200s': its name contains a NUL byte", folders[part],
                                 tensor->name);
        }
    return true;
}

const struct tensor_set *single_file_new(const struct tensor_set *const *parts, bool is_xl, struct arena *arena,
                                         struct error *error)
{
    const struct making making = {arena, tensor_set_new(arena), is_xl, error};
    if (!are_readable(parts, is_xl ? single_file_xl_parts : single_file_parts, error) || !add_unet(&making, parts[0]))
        return NULL;
    add_vae(&making, parts[1]);
    return add_text_encoders(&making, parts) && tensor_set_seal(making.tensors, error) ? making.tensors : NULL;
}

bool single_file_artifact(const struct tensor_set *tensors, bool is_half, struct arena *arena,
                          struct artifact *ret_artifact, struct error *error)
{
    struct artifact artifact = {.container = &safetensors_container};
    struct tensor *written = arena_array(arena, tensors->n_tensors + 1, sizeof *written);
    artifact_reserve(&artifact, tensors->n_tensors);
    for (size_t i = 0; i < tensors->n_tensors; i++) {
        const struct view *view = tensor_view(&tensors->tensors[i], arena);
        const char *reason;
        if (is_half && !convert_possible(view, encoding_of(&f16_dtype), &reason)) {
            artifact_free(&artifact);
            return error_set(error, "tensor '%.200s' (%s): %s", tensors->tensors[i].name, view->dtype->name, reason);
        }
        written[i] = tensor_of_view(tensors->tensors[i].name, is_half ? view_half(arena, view) : view);
        artifact.tensors[i] = (struct artifact_tensor){&written[i], encoding_of(written[i].dtype)};
    }
    *ret_artifact = artifact;
    return true;
}
