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
