#include "models/families/drafts/nextn.h"

#include "base/text.h"
#include "models/family/tensors.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_PREDICTED = 1 << 10 };

const struct relation_row nextn_tensors[] = {
    {"model.layers.{}.eh_proj", "blk.{}.nextn.eh_proj"},
    {"model.layers.{}.embed_tokens", "blk.{}.nextn.embed_tokens", .parallel = "row"},
    {"model.layers.{}.enorm", "blk.{}.nextn.enorm"},
    {"model.layers.{}.hnorm", "blk.{}.nextn.hnorm"},
    {"model.layers.{}.shared_head.head", "blk.{}.nextn.shared_head_head", .parallel = "row"},
    {"model.layers.{}.shared_head.norm", "blk.{}.nextn.shared_head_norm"},
    {0},
};

void nextn_set(struct dimensions *dimensions, uint64_t n)
{
    dimensions->n_layers += n - dimensions_get(dimensions, "nextn");
    dimensions_set(dimensions, "nextn", n);
}

void nextn_add_dimensions(struct dimensions *dimensions, const struct hparams *hparams)
{
    struct error error;
    uint64_t n;
    if (hparams_count(hparams, "num_nextn_predict_layers", 0, MAX_PREDICTED, &n, &error))
        nextn_set(dimensions, n);
}

/* Returns how many of the layers that predict the checkpoint has: up to the last one with a tensor. */
static uint64_t count_present(const struct model_builder *builder)
{
    const struct tensor_set *set = builder->model->checkpoint->tensors;
    uint64_t n_layers = builder->dimensions.n_layers, first = n_layers - dimensions_get(&builder->dimensions, "nextn"),
             end = first;
    struct arena *scratch = arena_new();
    for (size_t i = 0; i < set->n_tensors; i++) {
        const char *name =
            family_tensor_name(builder->family, builder->hf, &builder->dimensions, set->tensors[i].name, scratch);
        uint64_t layer = name != NULL ? part_layer_of(name) : UINT64_MAX;
        if (layer >= end && layer < n_layers)
            end = layer + 1;
    }
    arena_free(scratch);
    return end - first;
}

bool nextn_keep_present(struct model_builder *builder, struct error *error)
{
    const struct gguf_model *model = builder->model;
    uint64_t promised = dimensions_get(&builder->dimensions, "nextn");
    if (model->part == PART_WITHOUT_MTP)
        nextn_set(&builder->dimensions, promised = 0);
    if (promised == 0 || model->checkpoint->tensors == NULL || model->checkpoint->tensors->n_tensors == 0)
        return true;
    uint64_t present = count_present(builder);
    if (present == promised || (present > 0 && json_bool(hparams_get(model->hparams, "mtp_share_layers"), false)))
        return true;
    nextn_set(&builder->dimensions, present);
    checkpoint_note(model->checkpoint, SUBJECT_GGUF,
                    "config.json promises %" PRIu64 " %s of multi-token prediction (MTP), the checkpoint has %" PRIu64
                    ": wfs counts those; the converter counts all, and llama.cpp refuses its file",
                    promised, promised == 1 ? "layer" : "layers", present);
    return hparams_override(model->hparams, "num_nextn_predict_layers", present, error);
}

bool nextn_count_blocks(struct model_builder *builder, struct error *error)
{
    if (!nextn_keep_present(builder, error))
        return false;
    if (dimensions_get(&builder->dimensions, "nextn") == 0)
        return true;
    return hparams_override(builder->model->hparams, "n_layers", builder->dimensions.n_layers, error);
}

bool nextn_emit(struct model_builder *builder, struct error *error)
{
    uint64_t n = dimensions_get(&builder->dimensions, "nextn");
    if (n != 0)
        gguf_set_u32(&builder->model->kvs, builder_key(builder, "nextn_predict_layers"), (uint32_t)n);
    return true;
}

bool nextn_emit_stated(struct model_builder *builder, struct error *error)
{
    static const struct key_row rows[] = {{"nextn_predict_layers", GGUF_U32, IF_PRESENT, "num_nextn_predict_layers"},
                                          {0}};
    return builder->model->part == PART_WITHOUT_MTP || builder_emit(builder, rows, error);
}

void nextn_repeat(struct model_builder *builder, bool all)
{
    struct arena *arena = builder->model->arena;
    uint64_t n = dimensions_get(&builder->dimensions, "nextn"), first = builder->dimensions.n_layers - n;
    const char *prefix = arena_printf(arena, all ? "blk.%" PRIu64 "." : "blk.%" PRIu64 ".nextn.", first);
    for (size_t i = 0; i < builder->model->tensors->n_tensors; i++) {
        const struct tensor original = builder->model->tensors->tensors[i];
        if (!text_starts_with(original.name, prefix))
            continue;
        for (uint64_t layer = first + 1; layer < first + n; layer++) {
            const char *rest = strchr(original.name + strlen("blk."), '.');
            builder_insert_tensor(builder, ++i, arena_printf(arena, "blk.%" PRIu64 "%s", layer, rest), original.view);
        }
    }
}

/* Tensors shared by all layers below "mtp.", and their names in the first of these layers. */
static const struct {
    const char *mtp, *of_layer;
} shared[] = {
    {"fc", "eh_proj"},
    {"pre_fc_norm_embedding", "enorm"},
    {"pre_fc_norm_hidden", "hnorm"},
    {"norm", "shared_head.norm"},
};

enum { N_SHARED = sizeof shared / sizeof *shared };

/* Returns the rest of a name after `prefix` and a '.'; NULL if the name has another beginning. */
static const char *after(const char *name, const char *prefix)
{
    size_t length = strlen(prefix);
    return strncmp(name, prefix, length) == 0 && name[length] == '.' ? name + length + 1 : NULL;
}

static const char *to_layers(struct arena *arena, uint64_t first, const char *name)
{
    uint64_t numbers[PATTERN_NUMBERS];
    const char *whole = after(name, "model") != NULL ? after(name, "model") : name, *rest = after(whole, "mtp");
    if (rest == NULL)
        return name;
    const char *layer = after(rest, "layers");
    size_t digits = layer != NULL ? strspn(layer, "0123456789") : 0;
    if (layer != NULL && layer[digits] == '.' && pattern_match("{}", layer, digits, numbers))
        return arena_printf(arena, "model.layers.%" PRIu64 "%s", first + numbers[0], layer + digits);
    for (size_t i = 0; i < N_SHARED; i++)
        if (after(rest, shared[i].mtp) != NULL)
            return arena_printf(arena, "model.layers.%" PRIu64 ".%s.%s", first, shared[i].of_layer,
                                after(rest, shared[i].mtp));
    return name;
}

static const char *from_layers(struct arena *arena, uint64_t first, const char *name)
{
    uint64_t numbers[PATTERN_NUMBERS];
    const char *layer = after(name, "model.layers");
    size_t digits = layer != NULL ? strspn(layer, "0123456789") : 0;
    if (layer == NULL || layer[digits] != '.' || !pattern_match("{}", layer, digits, numbers) || numbers[0] < first)
        return name;
    const char *rest = layer + digits + 1;
    for (size_t i = 0; i < N_SHARED; i++)
        if (after(rest, shared[i].of_layer) != NULL)
            return numbers[0] > first
                       ? NULL
                       : arena_printf(arena, "mtp.%s.%s", shared[i].mtp, after(rest, shared[i].of_layer));
    return arena_printf(arena, "mtp.layers.%" PRIu64 ".%s", numbers[0] - first, rest);
}

const char *nextn_rename(struct arena *arena, const struct dimensions *dimensions, enum direction direction,
                         const char *name)
{
    uint64_t first = dimensions->n_layers - dimensions_get(dimensions, "nextn");
    return direction == FORWARD ? to_layers(arena, first, name) : from_layers(arena, first, name);
}
