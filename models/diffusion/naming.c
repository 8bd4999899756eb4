#include "models/diffusion/naming.h"

#include "base/text.h"
#include "formats/documents.h"

#include <stdlib.h>
#include <string.h>

static const char last[] = "last.";

static const struct diffusion_naming namings[] = {
    {"FluxTransformer2DModel", "flux", flux_names, "img_in.weight", {NULL}, {NULL}},
    {"SD3Transformer2DModel",
     "sd3",
     sd3_names,
     "context_embedder.weight",
     {"transformer_blocks.", "joint_blocks."},
     {"norm1_context.linear.", "context_block.adaLN_modulation.1."}},
};

const struct diffusion_naming *diffusion_naming_for(const char *architecture)
{
    for (size_t i = 0; i < sizeof namings / sizeof *namings; i++)
        if (strcmp(namings[i].architecture, architecture) == 0)
            return &namings[i];
    return NULL;
}

const struct diffusion_naming *diffusion_naming_of(const struct checkpoint *checkpoint)
{
    struct document *config = NULL;
    struct error unused;
    const struct diffusion_naming *found = NULL;
    if (!document_open(checkpoint, "config.json", &config, &unused) || config == NULL)
        return NULL;
    const char *class_name = json_string(json_get(document_root(config), "_class_name"), NULL);
    for (size_t i = 0; class_name != NULL && i < sizeof namings / sizeof *namings; i++)
        if (strcmp(namings[i].class_name, class_name) == 0)
            found = &namings[i];
    document_close(config);
    return found;
}

/* Returns the highest number of a block. */
static uint64_t last_block(const struct tensor_set *set, const char *blocks)
{
    uint64_t highest = 0;
    for (size_t i = 0; i < set->n_tensors; i++) {
        const char *name = set->tensors[i].name;
        uint64_t number = text_starts_with(name, blocks) ? strtoull(name + strlen(blocks), NULL, 10) : 0;
        highest = number > highest ? number : highest;
    }
    return highest;
}

/* Returns the tensors with "last." before the module of the last block, not sealed. */
static const struct tensor_set *mark_last(const struct diffusion_naming *naming, enum direction side,
                                          const struct tensor_set *set, struct arena *arena)
{
    const char *blocks = naming->blocks[side];
    struct tensor_set *marked = tensor_set_new(arena);
    if (blocks == NULL)
        return set;
    const char *block = arena_printf(arena, "%s%llu.", blocks, (unsigned long long)last_block(set, blocks));
    const char *module = arena_printf(arena, "%s%s", block, naming->last_module[side]);
    for (size_t i = 0; i < set->n_tensors; i++) {
        struct tensor tensor = set->tensors[i];
        if (text_starts_with(tensor.name, module)) {
            tensor.name = arena_printf(arena, "%s%s%s", block, last, tensor.name + strlen(block));
            tensor.name_length = (uint32_t)strlen(tensor.name);
        }
        tensor_set_add(marked, &tensor);
    }
    return marked;
}

struct renaming {
    struct arena *arena;
    struct tensor_set *to;
};

static const struct view *read_tensor(void *context, const struct tensor *tensor, const char *shown,
                                      struct error *error)
{
    const struct renaming *renaming = context;
    if (tensor->refusal == NULL)
        return tensor_view(tensor, renaming->arena);
    error_set(error, "tensor '%.200s': %s", shown, tensor->refusal);
    return NULL;
}

/* Adds a tensor, without the mark of the last block. */
static void write_tensor(void *context, const char *name, const struct view *view)
{
    const struct renaming *renaming = context;
    const char *mark = strstr(name, last);
    if (mark != NULL)
        name = arena_printf(renaming->arena, "%.*s%s", (int)(mark - name), name, mark + strlen(last));
    tensor_set_add_view(renaming->to, name, view);
}

struct tensor_set *diffusion_rename(const struct diffusion_naming *naming, enum direction direction,
                                    const struct tensor_set *set, struct arena *arena, struct error *error)
{
    const struct relation_row *const tables[] = {naming->rows, NULL};
    struct renaming renaming = {arena, tensor_set_new(arena)};
    struct dimensions dimensions = {.n_layers = UINT64_MAX};
    const struct tensor *width = direction == BACKWARD ? tensor_set_find_text(set, naming->width) : NULL;
    for (size_t i = 0; width != NULL && width->rank > 0 && i < 3; i++)
        dimensions_set(&dimensions, (const char *const[]){"q", "k", "v"}[i], width->shape[0]);
    const struct relation_job job = {
        .relation = relation_new(arena, naming->class_name, NULL, tables, error),
        .direction = direction,
        .dimensions = &dimensions,
        .dimensions_name = "the model",
        .set = mark_last(naming, direction, set, arena),
        .arena = arena,
        .context = &renaming,
        .read = read_tensor,
        .write = write_tensor,
    };
    if (job.relation != NULL && relation_apply(&job, error))
        return renaming.to;
    error_prefix(error, "a model of the class %s", naming->class_name);
    return NULL;
}

#define FLUX_NAMES_JOINED  "q ..., k ..., v ... -> (q + k + v) ..."
#define JOINED_MLP         "q ..., k ..., v ..., mlp ... -> (q + k + v + mlp) ..."
#define FLUX_NAMES_SWAPPED "(scale + shift) ... -> (shift + scale) ..."
#define FLUX_NAMES_BLOCK   "transformer_blocks.{}."
#define SINGLE             "single_transformer_blocks.{}."

/* clang-format off */
const struct relation_row flux_names[] = {
    {"x_embedder", "img_in"},
    {"context_embedder", "txt_in"},
    {"time_text_embed.timestep_embedder.linear_1", "time_in.in_layer"},
    {"time_text_embed.timestep_embedder.linear_2", "time_in.out_layer"},
    {"time_text_embed.guidance_embedder.linear_1", "guidance_in.in_layer"},
    {"time_text_embed.guidance_embedder.linear_2", "guidance_in.out_layer"},
    {"time_text_embed.text_embedder.linear_1", "vector_in.in_layer"},
    {"time_text_embed.text_embedder.linear_2", "vector_in.out_layer"},
    {"norm_out.linear", "final_layer.adaLN_modulation.1", FLUX_NAMES_SWAPPED},
    {"proj_out", "final_layer.linear"},

    {FLUX_NAMES_BLOCK "attn.to_q, " FLUX_NAMES_BLOCK "attn.to_k, " FLUX_NAMES_BLOCK "attn.to_v", "double_blocks.{}.img_attn.qkv", FLUX_NAMES_JOINED},
    {FLUX_NAMES_BLOCK "attn.add_q_proj, " FLUX_NAMES_BLOCK "attn.add_k_proj, " FLUX_NAMES_BLOCK "attn.add_v_proj", "double_blocks.{}.txt_attn.qkv",
     FLUX_NAMES_JOINED},
    {FLUX_NAMES_BLOCK "attn.norm_q.weight", "double_blocks.{}.img_attn.norm.query_norm.scale"},
    {FLUX_NAMES_BLOCK "attn.norm_k.weight", "double_blocks.{}.img_attn.norm.key_norm.scale"},
    {FLUX_NAMES_BLOCK "attn.norm_added_q.weight", "double_blocks.{}.txt_attn.norm.query_norm.scale"},
    {FLUX_NAMES_BLOCK "attn.norm_added_k.weight", "double_blocks.{}.txt_attn.norm.key_norm.scale"},
    {FLUX_NAMES_BLOCK "attn.to_out.0", "double_blocks.{}.img_attn.proj"},
    {FLUX_NAMES_BLOCK "attn.to_add_out", "double_blocks.{}.txt_attn.proj"},
    {FLUX_NAMES_BLOCK "norm1.linear", "double_blocks.{}.img_mod.lin"},
    {FLUX_NAMES_BLOCK "norm1_context.linear", "double_blocks.{}.txt_mod.lin"},
    {FLUX_NAMES_BLOCK "ff.net.0.proj", "double_blocks.{}.img_mlp.0"},
    {FLUX_NAMES_BLOCK "ff.net.2", "double_blocks.{}.img_mlp.2"},
    {FLUX_NAMES_BLOCK "ff_context.net.0.proj", "double_blocks.{}.txt_mlp.0"},
    {FLUX_NAMES_BLOCK "ff_context.net.2", "double_blocks.{}.txt_mlp.2"},

    {SINGLE "attn.to_q, " SINGLE "attn.to_k, " SINGLE "attn.to_v, " SINGLE "proj_mlp", "single_blocks.{}.linear1",
     JOINED_MLP},
    {SINGLE "attn.norm_q.weight", "single_blocks.{}.norm.query_norm.scale"},
    {SINGLE "attn.norm_k.weight", "single_blocks.{}.norm.key_norm.scale"},
    {SINGLE "norm.linear", "single_blocks.{}.modulation.lin"},
    {SINGLE "proj_out", "single_blocks.{}.linear2"},
    {0},
};
/* clang-format on */

#define SD3_NAMES_JOINED  "q ..., k ..., v ... -> (q + k + v) ..."
#define SD3_NAMES_SWAPPED "(scale + shift) ... -> (shift + scale) ..."
#define SD3_NAMES_BLOCK   "transformer_blocks.{}."
#define IMAGE             "joint_blocks.{}.x_block."
#define TEXT              "joint_blocks.{}.context_block."

/* clang-format off */
const struct relation_row sd3_names[] = {
    {"pos_embed.pos_embed", "pos_embed"},
    {"pos_embed.proj", "x_embedder.proj"},
    {"context_embedder", "context_embedder"},
    {"time_text_embed.timestep_embedder.linear_1", "t_embedder.mlp.0"},
    {"time_text_embed.timestep_embedder.linear_2", "t_embedder.mlp.2"},
    {"time_text_embed.text_embedder.linear_1", "y_embedder.mlp.0"},
    {"time_text_embed.text_embedder.linear_2", "y_embedder.mlp.2"},
    {"norm_out.linear", "final_layer.adaLN_modulation.1", SD3_NAMES_SWAPPED},
    {"proj_out", "final_layer.linear"},

    {SD3_NAMES_BLOCK "attn.to_q, " SD3_NAMES_BLOCK "attn.to_k, " SD3_NAMES_BLOCK "attn.to_v", IMAGE "attn.qkv", SD3_NAMES_JOINED},
    {SD3_NAMES_BLOCK "attn.norm_q", IMAGE "attn.ln_q"},
    {SD3_NAMES_BLOCK "attn.norm_k", IMAGE "attn.ln_k"},
    {SD3_NAMES_BLOCK "attn.to_out.0", IMAGE "attn.proj"},
    {SD3_NAMES_BLOCK "attn2.to_q, " SD3_NAMES_BLOCK "attn2.to_k, " SD3_NAMES_BLOCK "attn2.to_v", IMAGE "attn2.qkv", SD3_NAMES_JOINED},
    {SD3_NAMES_BLOCK "attn2.norm_q", IMAGE "attn2.ln_q"},
    {SD3_NAMES_BLOCK "attn2.norm_k", IMAGE "attn2.ln_k"},
    {SD3_NAMES_BLOCK "attn2.to_out.0", IMAGE "attn2.proj"},
    {SD3_NAMES_BLOCK "norm1.linear", IMAGE "adaLN_modulation.1"},
    {SD3_NAMES_BLOCK "ff.net.0.proj", IMAGE "mlp.fc1"},
    {SD3_NAMES_BLOCK "ff.net.2", IMAGE "mlp.fc2"},

    {SD3_NAMES_BLOCK "attn.add_q_proj, " SD3_NAMES_BLOCK "attn.add_k_proj, " SD3_NAMES_BLOCK "attn.add_v_proj", TEXT "attn.qkv", SD3_NAMES_JOINED},
    {SD3_NAMES_BLOCK "attn.norm_added_q", TEXT "attn.ln_q"},
    {SD3_NAMES_BLOCK "attn.norm_added_k", TEXT "attn.ln_k"},
    {SD3_NAMES_BLOCK "attn.to_add_out", TEXT "attn.proj"},
    /* the last block has no more than a scale and a shift for the text, like the final layer */
    {SD3_NAMES_BLOCK "last.norm1_context.linear", "joint_blocks.{}.last.context_block.adaLN_modulation.1", SD3_NAMES_SWAPPED},
    {SD3_NAMES_BLOCK "norm1_context.linear", TEXT "adaLN_modulation.1"},
    {SD3_NAMES_BLOCK "ff_context.net.0.proj", TEXT "mlp.fc1"},
    {SD3_NAMES_BLOCK "ff_context.net.2", TEXT "mlp.fc2"},
    {0},
};
/* clang-format on */
