#include "models/family/tensors.h"

#include "base/text.h"
#include "models/family/nvfp4.h"
#include "models/packings/packings.h"
#include "models/relation/pattern.h"
#include "quant/views/convert.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Returns the name of a tensor for the family's rows; NULL: the model's part leaves it out. */
static const char *tensors_family_name(const struct model_builder *builder, const struct tensor *tensor,
                                       struct arena *arena)
{
    const char *name = family_tensor_name(builder->family, builder->hf, &builder->dimensions, tensor->name, arena);
    return name != NULL && part_has(builder, name) ? name : NULL;
}

/* Returns the converter's order, which sorts the tensors of each safetensors file by name, ignoring their order in the
 * header, but keeps the order of a pickled dictionary. */
static uint32_t *converter_order(const struct tensor_set *stored, struct arena *arena)
{
    const struct tensor *tensors = stored->tensors;
    size_t n_tensors = stored->n_tensors;
    uint32_t *order = arena_array(arena, n_tensors, sizeof *order), *next = arena_array(arena, n_tensors, sizeof *next);
    uint32_t *first_of = arena_array(arena, n_tensors, sizeof *first_of);
    for (size_t i = 0; i < n_tensors; i++) {
        const struct source *source = tensors[i].source;
        bool is_named = source != NULL && text_ends_with(source_name(source), ".safetensors");
        first_of[i] = i > 0 && is_named && source == tensors[i - 1].source ? first_of[i - 1] : (uint32_t)i;
        next[i] = (uint32_t)i;
    }
    for (size_t i = 0; i < n_tensors; i++) {
        uint32_t index = stored->by_name[i];
        order[next[first_of[index]]++] = index;
    }
    return order;
}

static bool decides(const struct model_builder *builder, const struct tensor *tensor, struct arena *arena)
{
    const struct tower *tower = builder->family->tower;
    if (tower != NULL && tower->type_of_all)
        return strstr(tensor->name, "language_model.") == NULL;
    return tensors_family_name(builder, tensor, arena) != NULL;
}

/* Guesses the type of --outtype auto: that of the first matrix stored in one of the two types. */
static const struct dtype *guess_type(const struct model_builder *builder, const struct tensor_set *set,
                                      const uint32_t *order, struct arena *arena)
{
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[order != NULL ? order[i] : i];
        bool is_sixteen = tensor->dtype == &bf16_dtype || tensor->dtype == &f16_dtype;
        if (tensor->rank >= 2 && is_sixteen && decides(builder, tensor, arena))
            return tensor->dtype;
    }
    return &f16_dtype;
}

/* The tensors under the names of the family's rows. */
struct renamed {
    struct tensor_set *set;           /* not sealed: names may repeat */
    const char **shown_names;         /* by tensor, as the user knows it */
    const struct unpacked **unpacked; /* by tensor; NULL: stored plain */
};

/* Reports whether a tensor is of the value head that TRL adds to a model for training. */
static bool is_of_value_head(const struct tensor *tensor)
{
    return text_starts_with(tensor->name, "v_head.");
}

static void note_value_head(const struct model_builder *builder, size_t n_tensors)
{
    if (n_tensors > 0)
        checkpoint_note(builder->model->checkpoint, SUBJECT_GGUF,
                        "%zu %s of TRL's value head (v_head), which only training uses, %s left out", n_tensors,
                        n_tensors == 1 ? "tensor" : "tensors", n_tensors == 1 ? "is" : "are");
}

static struct renamed rename_tensors(const struct model_builder *builder, const struct plain_set *plain,
                                     struct arena *arena)
{
    const struct tensor_set *set = plain->set;
    size_t n_of_value_head = 0;
    struct renamed renamed = {tensor_set_new(arena), arena_array(arena, set->n_tensors + 1, sizeof(char *)),
                              arena_array(arena, set->n_tensors + 1, sizeof(struct unpacked *))};
    for (size_t i = 0; i < set->n_tensors; i++) {
        struct tensor tensor = set->tensors[i];
        bool is_of_head = builder->family->tower == NULL && is_of_value_head(&tensor);
        n_of_value_head += is_of_head;
        tensor.name = is_of_head ? NULL : tensors_family_name(builder, &set->tensors[i], arena);
        if (tensor.name == NULL)
            continue;
        tensor.name_length = (uint32_t)strlen(tensor.name);
        renamed.shown_names[renamed.set->n_tensors] = set->tensors[i].name;
        renamed.unpacked[renamed.set->n_tensors] = plain->unpacked != NULL ? plain->unpacked[i] : NULL;
        tensor_set_add(renamed.set, &tensor);
    }
    note_value_head(builder, n_of_value_head);
    return renamed;
}

struct relating {
    struct model_builder *builder;
    const struct renamed *renamed;
    const struct nvfp4_scales *factors;
    size_t n_first;     /* tensors up to the last of NVFP4 */
    bool is_fp8_newest; /* the tensor read last is stored as FP8 with scales */
};

static bool is_fp8(const struct unpacked *weight)
{
    return weight != NULL && weight->packing == &scaled_packing && weight->n_parts > 1 &&
           (strcmp(weight->parts[0]->dtype->name, "F8_E4M3") == 0 ||
            strcmp(weight->parts[0]->dtype->name, "F8_E5M2") == 0);
}

/* Returns the view of a tensor in a dtype that can be computed with, or a packing's blocks. */
static const struct view *read_tensor(void *context, const struct tensor *tensor, const char *shown,
                                      struct error *error)
{
    struct relating *relating = context;
    struct arena *arena = relating->builder->model->arena;
    relating->is_fp8_newest = is_fp8(relating->renamed->unpacked[tensor - relating->renamed->set->tensors]);
    if (tensor->refusal != NULL) {
        error_set(error, "tensor '%.200s': %s", shown, tensor->refusal);
        return NULL;
    }
    if (dtype_kernels(tensor->dtype).decode == NULL) {
        error_set(error, "tensor '%.200s' has the type %s, which the converter cannot read", shown,
                  tensor->dtype->name);
        return NULL;
    }
    const struct view *view = tensor_view(tensor, arena);
    bool is_kept = tensor->dtype->block_elements == 1 || tensor->dtype->kind == DTYPE_BLOCK;
    return is_kept ? view : view_convert(arena, view, &f32_dtype);
}

static void add_factor(void *set, const char *name, const struct view *view)
{
    tensor_set_add_view(set, name, view);
}

static void write_tensor(void *context, const char *name, const struct view *view)
{
    struct relating *relating = context;
    struct tensor_set *set = relating->builder->model->tensors;
    const uint64_t one = 1;
    if (view->rank == 0 && relating->builder->family->tower != NULL)
        view = view_reshape(relating->builder->model->arena, view, 1, &one);
    tensor_set_add_view(set, name, view);
    tensor_set_edit(set)[set->n_tensors - 1].was_fp8 = relating->is_fp8_newest;
    if (strcmp(view->dtype->name, "NVFP4") != 0)
        return;
    nvfp4_scales_beside(relating->factors, name, add_factor, set);
    relating->n_first = set->n_tensors;
}

/* Puts tensors [n_before, n_first) before all others: the converter writes NVFP4 even before tensors of no file. */
static void put_first(struct tensor *tensors, size_t n_before, size_t n_first)
{
    struct tensor *moved = memory_alloc((n_before + 1) * sizeof *moved);
    memcpy(moved, tensors, n_before * sizeof *moved);
    memmove(tensors, tensors + n_before, (n_first - n_before) * sizeof *tensors);
    memcpy(tensors + n_first - n_before, moved, n_before * sizeof *moved);
    free(moved);
}

static void order_nvfp4(struct model_builder *builder, size_t first, size_t end)
{
    uint64_t n_experts = 0;
    json_u64(hparams_find(builder->model->hparams, "num_local_experts|num_experts"), &n_experts);
    nvfp4_order(builder->model->tensors, first, end, n_experts == 0);
}

static bool relate(struct model_builder *builder, const struct renamed *renamed, struct error *error)
{
    struct arena *arena = builder->model->arena;
    const struct family *family = builder->family;
    struct relating relating = {.builder = builder, .renamed = renamed};
    size_t n_before = builder->model->tensors->n_tensors;
    const struct relation_job job = {
        .relation = family_relation(family, error),
        .direction = FORWARD,
        .dimensions = &builder->dimensions,
        .dimensions_name = "config.json",
        .set = renamed->set,
        .shown = renamed->shown_names,
        .arena = arena,
        .context = &relating,
        .is_partial = builder->is_partial,
        .read = read_tensor,
        .write = write_tensor,
    };
    struct nvfp4_scales *factors = job.relation != NULL ? nvfp4_scales_read(&job, renamed->unpacked, error) : NULL;
    relating.factors = factors;
    bool related = factors != NULL && nvfp4_find_weights_only(builder, &job, renamed->unpacked, error) &&
                   relation_apply(&job, error);
    if (related && relating.n_first > 0) {
        order_nvfp4(builder, n_before, relating.n_first);
        put_first(tensor_set_edit(builder->model->tensors), n_before, relating.n_first);
    }
    nvfp4_scales_free(factors);
    if (related) {
        const struct fusible fusible = fusion_find(builder, &job);
        related = fusion_apply(builder, &fusible, error);
    }
    if (related && family->arrange != NULL)
        family->arrange(builder);
    return related;
}

/* Notes a packing that the converter would have refused. */
static void note_beyond(const struct checkpoint *checkpoint, const struct plain_set *plain)
{
    if (plain->beyond != NULL)
        checkpoint_note(checkpoint, SUBJECT_GGUF, "the converter refuses %s; wfs writes the model %s", plain->beyond,
                        plain->is_saved_again ? "from dequantized weights" : "as if the converter accepted it");
}

/* Returns the usual general.file_type of a file with blocks of one type; 0: no blocks. */
static uint32_t file_type_of_blocks(const struct gguf_model *model)
{
    static const struct {
        const char *dtype;
        uint32_t file_type;
    } types[] = {{"Q4_0", 2}, {"Q4_1", 3}, {"Q8_0", 7}, {"MXFP4", 38}, {"NVFP4", 39}};
    for (size_t i = 0; i < model->tensors->n_tensors; i++)
        for (size_t j = 0; j < COUNT(types); j++)
            if (strcmp(model->tensors->tensors[i].view->dtype->name, types[j].dtype) == 0)
                return types[j].file_type;
    return 0;
}

/* Refuses FP8 beside NVFP4 that only later converters tell apart. */
static bool check_mixture(const struct model_builder *builder, const struct packed_weights *packed, struct error *error)
{
    bool is_compressed = strcmp(packed->method, "compressed-tensors") == 0;
    for (size_t i = 0; packed->is_nvfp4 && i < packed->found.n_weights; i++) {
        const struct unpacked *weight = &packed->found.weights[i];
        if (weight->packing == &scaled_packing && weight->n_parts > 1 && (is_compressed || weight->parts[1]->rank >= 2))
            return follows_or_refuse(&builder->model->references, MIXED_NVFP4, error);
    }
    return true;
}

static bool add_unpacked(struct model_builder *builder, struct arena *scratch, struct error *error)
{
    enum { FILE_TYPE_MXFP4 = 38, FILE_TYPE_NVFP4 = 39 };
    struct gguf_model *model = builder->model;
    const struct tensor_set *stored = model->checkpoint->tensors;
    const struct packed_weights *packed = packings_of(model->checkpoint);
    const struct plain_wish wish = {
        .arena = model->arena,
        .order = converter_order(stored, scratch),
        .keeps_blocks = model->is_repacked,
        .keeps_mxfp4 = builder->family->keeps_mxfp4,
        .references = &model->references,
    };
    struct plain_set plain;
    if (packed->unread != NULL)
        return error_set(error, "%s", packed->unread);
    if (!check_mixture(builder, packed, error) || !packings_unpack(packed, &wish, scratch, &plain, error))
        return false;
    model->auto_type = plain.is_saved_again ? guess_type(builder, plain.set, NULL, scratch)
                                            : guess_type(builder, stored, wish.order, scratch);
    if (strcmp(packed->method, "mxfp4") == 0)
        model->packed_file_type = FILE_TYPE_MXFP4;
    else if (packed->is_nvfp4)
        model->packed_file_type = FILE_TYPE_NVFP4;
    if (!model->is_repacked)
        note_beyond(model->checkpoint, &plain);
    struct renamed renamed = rename_tensors(builder, &plain, scratch);
    if (!relate(builder, &renamed, error))
        return false;
    if (model->is_repacked)
        model->packed_file_type = file_type_of_blocks(model);
    return true;
}

bool tensors_add(struct model_builder *builder, struct error *error)
{
    struct arena *scratch = arena_new();
    bool added = add_unpacked(builder, scratch, error);
    arena_free(scratch);
    return added || error_prefix(error, builder->family->tower != NULL ? "mmproj.gguf" : "model.gguf");
}

bool tensors_relate(struct model_builder *builder, const struct tensor_set *set, struct error *error)
{
    struct arena *scratch = arena_new();
    const struct plain_set plain = {.set = set};
    struct renamed renamed = rename_tensors(builder, &plain, scratch);
    bool related = relate(builder, &renamed, error);
    arena_free(scratch);
    return related;
}

/* Tensors that the layers share with the model. */
static const char *const shared[] = {
    "model.embed_tokens.weight",
    "model.norm.weight",
    "lm_head.weight",
    "model.word_embeddings.weight",
    "backbone.embeddings.weight",
    "backbone.norm_f.weight",
    "embed.weight",
    "norm.weight",
    "head.weight",
    "hc_head_fn",
    "hc_head_base",
    "hc_head_scale",
};

uint64_t part_layer_of(const char *name)
{
    static const char layers[] = "layers.";
    uint64_t numbers[PATTERN_NUMBERS];
    const char *at = strstr(name, layers);
    const char *number = at != NULL ? at + strlen(layers) : "";
    size_t digits = strspn(number, "0123456789");
    return number[digits] == '.' && pattern_match("{}", number, digits, numbers) ? numbers[0] : UINT64_MAX;
}

static bool is_shared(const char *name)
{
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        if (strcmp(shared[i], name) == 0)
            return true;
    return false;
}

bool part_has(const struct model_builder *builder, const char *name)
{
    const struct dimensions *dimensions = &builder->dimensions;
    uint64_t layer = part_layer_of(name), first = dimensions->n_layers - dimensions_get(dimensions, "nextn");
    bool predicts = text_starts_with(name, "mtp.") || text_starts_with(name, "model.mtp.") ||
                    (layer >= first && layer != UINT64_MAX);
    switch (builder->model->part) {
    case PART_WITHOUT_MTP:
        return !predicts;
    case PART_MTP:
        return predicts || is_shared(name);
    default:
        return true;
    }
}

bool part_is_offered(const struct family *family, const struct family_name *hf, const struct references *references)
{
    return family->exports_mtp && !hf->without_mtp && follows(references, family->mtp_since);
}
