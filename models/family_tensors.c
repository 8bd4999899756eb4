#include "models/family_tensors.h"

#include "base/text.h"
#include "models/factors.h"
#include "models/nvfp4_order.h"
#include "models/packings/packing.h"
#include "models/pattern.h"
#include "quant/convert.h"

#include <stdlib.h>
#include <string.h>

/* Names of the parts of multimodal models that are not its text model: at the beginning, and anywhere. */
static const char *const foreign_prefixes[] = {
    "mlp",     "vit.",       "vpm.",           "siglip2.",          "conformer.",
    "merger.", "resampler.", "sound_encoder.", "sound_projection.", "speech_embeddings."};
static const char *const foreign_parts[] = {
    "visual.",          "vision.",         "audio.",      "talker.",         "vision_",
    "audio_",           "token2wav.",      "code2wav.",   "projector.",      "pre_mm_projector_norm",
    "image_newline",    "view_seperator",  "patch_embed", "patch_embedding", "patch_merger.",
    "patch_merge_mlp.", "model.connector."};

/* Buffers that old checkpoints stored. */
static const char *const skipped_suffixes[] = {".attention.masked_bias", ".attention.bias", ".rotary_emb.inv_freq"};

#define COUNT(array) (sizeof(array) / sizeof *(array))

bool tower_has(const struct tower *tower, const char *name)
{
    for (const char *const *part = tower->parts; *part != NULL; part++)
        if (text_starts_with(name, *part))
            return true;
    return false;
}

static bool is_foreign(const char *name)
{
    for (size_t i = 0; i < COUNT(foreign_prefixes); i++)
        if (text_starts_with(name, foreign_prefixes[i]))
            return true;
    for (size_t i = 0; i < COUNT(foreign_parts); i++)
        if (strstr(name, foreign_parts[i]) != NULL)
            return true;
    return false;
}

/* The name without any occurrence of `part`. */
static const char *without(struct arena *arena, const char *name, const char *part)
{
    const char *found = strstr(name, part);
    if (found == NULL)
        return name;
    char *shorter = arena_strdup(arena, name), *at = shorter + (found - name);
    do
        memmove(at, at + strlen(part), strlen(at + strlen(part)) + 1);
    while ((at = strstr(at, part)) != NULL);
    return shorter;
}

static bool is_borrowed(const struct tower *tower, const char *name)
{
    for (const char *const *borrowed = tower->borrowed; borrowed != NULL && *borrowed != NULL; borrowed++)
        if (strcmp(name, *borrowed) == 0)
            return true;
    return false;
}

/* Whether it is the name of a model that was saved without its head, and "model." with it, though by its class it has
 * one: Qwen3-Embedding, say. */
static bool is_bare(const struct family *family, const char *name)
{
    bool usual = false;
    for (size_t i = 0; i < FAMILY_MAX_TABLES && family->tensors[i] != NULL; i++)
        usual |= family->tensors[i] == decoder_tensors;
    return usual && (text_starts_with(name, "embed_tokens.") || text_starts_with(name, "layers.") ||
                     text_starts_with(name, "norm."));
}

const char *family_tensor_name(const struct family *family, const struct family_name *hf, const struct facts *facts,
                               const char *name, struct arena *arena)
{
    if (family->tower != NULL && !tower_has(family->tower, name) && !is_borrowed(family->tower, name))
        return NULL;
    for (const char *const *prefix = family->dropped_prefixes; prefix != NULL && *prefix != NULL; prefix++)
        if (text_starts_with(name, *prefix))
            name += strlen(*prefix);
    for (const char *const *part = family->dropped_parts; part != NULL && *part != NULL; part++)
        name = without(arena, name, *part);
    if (family->tower == NULL && is_foreign(name))
        return NULL;
    for (size_t i = 0; i < COUNT(skipped_suffixes); i++)
        if (text_ends_with(name, skipped_suffixes[i]))
            return NULL;
    name = without(arena, name, "language_model.");
    if (family->rename != NULL)
        name = family->rename(arena, facts, FORWARD, name);
    if (name == NULL)
        return NULL;
    if (hf->prepended != NULL)
        return arena_printf(arena, "%s%s", hf->prepended, name);
    return is_bare(family, name) ? arena_printf(arena, "model.%s", name) : name;
}

static const char *family_name(const struct draft *draft, const struct tensor *tensor, struct arena *arena)
{
    return family_tensor_name(draft->family, draft->hf, &draft->facts, tensor->name, arena);
}

/* The order of the converter, in which it takes the tensors of each safetensors file by name: their order in the header
 * means nothing, while that of a pickled dictionary is kept. */
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

static bool decides(const struct draft *draft, const struct tensor *tensor, struct arena *arena)
{
    const struct tower *tower = draft->family->tower;
    if (tower != NULL && tower->type_of_all)
        return strstr(tensor->name, "language_model.") == NULL;
    return family_name(draft, tensor, arena) != NULL;
}

/* --outtype auto: the first matrix in one of the two types decides, as stored. */
static const struct dtype *guess_type(const struct draft *draft, const struct tensor_set *set, const uint32_t *order,
                                      struct arena *arena)
{
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[order != NULL ? order[i] : i];
        bool is_sixteen = tensor->dtype == &bf16_dtype || tensor->dtype == &f16_dtype;
        if (tensor->rank >= 2 && is_sixteen && decides(draft, tensor, arena))
            return tensor->dtype;
    }
    return &f16_dtype;
}

/* The tensors under the names that the family's rows are about. */
struct renamed {
    struct tensor_set *set;           /* not sealed: several may have one name */
    const char **shown_names;         /* of each, as the user knows it */
    const struct unpacked **unpacked; /* of each; NULL: it was plain */
};

static struct renamed rename_tensors(const struct draft *draft, const struct plain_set *plain, struct arena *arena)
{
    const struct tensor_set *set = plain->set;
    struct renamed renamed = {tensor_set_new(arena), arena_array(arena, set->n_tensors + 1, sizeof(char *)),
                              arena_array(arena, set->n_tensors + 1, sizeof(struct unpacked *))};
    for (size_t i = 0; i < set->n_tensors; i++) {
        struct tensor tensor = set->tensors[i];
        tensor.name = family_name(draft, &set->tensors[i], arena);
        if (tensor.name == NULL)
            continue;
        tensor.name_length = (uint32_t)strlen(tensor.name);
        renamed.shown_names[renamed.set->n_tensors] = set->tensors[i].name;
        renamed.unpacked[renamed.set->n_tensors] = plain->unpacked != NULL ? plain->unpacked[i] : NULL;
        tensor_set_add(renamed.set, &tensor);
    }
    return renamed;
}

void draft_add_tensor(struct draft *draft, const char *name, const struct view *view, const struct dtype *forced)
{
    struct gguf_model *model = draft->model;
    if (model->tensors->n_tensors == draft->forced_capacity) {
        draft->forced_capacity = draft->forced_capacity * 2 + 64;
        model->forced = memory_resize(model->forced, draft->forced_capacity * sizeof *model->forced);
    }
    model->forced[model->tensors->n_tensors] = forced;
    tensor_set_add_view(model->tensors, name, view);
}

void draft_insert_tensor(struct draft *draft, size_t place, const char *name, const struct view *view)
{
    draft_add_tensor(draft, name, view, NULL);
    struct tensor *tensors = draft->model->tensors->tensors;
    const struct dtype **forced = draft->model->forced;
    size_t last = draft->model->tensors->n_tensors - 1;
    struct tensor added = tensors[last];
    memmove(&tensors[place + 1], &tensors[place], (last - place) * sizeof added);
    memmove(&forced[place + 1], &forced[place], (last - place) * sizeof *forced);
    tensors[place] = added;
    forced[place] = NULL;
}

struct relating {
    struct draft *draft;
    const struct factors *factors;
    size_t n_first; /* tensors up to the last of NVFP4 */
};

/* The view of a tensor, in a dtype that can be computed with. Blocks are those of a packing. */
static const struct view *read_tensor(void *context, const struct tensor *tensor, const char *shown,
                                      struct error *error)
{
    const struct relating *relating = context;
    struct arena *arena = relating->draft->model->arena;
    if (tensor->refusal != NULL) {
        error_set(error, "tensor '%.200s': %s", shown, tensor->refusal);
        return NULL;
    }
    if (dtype_kernels(tensor->dtype).decode == NULL) {
        error_set(error, "tensor '%.200s' is %s, which the converter cannot read", shown, tensor->dtype->name);
        return NULL;
    }
    const struct view *view = tensor_view(tensor, arena);
    bool is_kept = tensor->dtype->block_elements == 1 || tensor->dtype->kind == DTYPE_BLOCK;
    return is_kept ? view : view_convert(arena, view, &f32_dtype);
}

static void add_factor(void *context, const char *name, const struct view *view)
{
    draft_add_tensor(context, name, view, NULL);
}

/* The type that a tensor has in every output; NULL: as the output's rules say. Blocks that come through stay. */
static const struct dtype *stored_type(const struct family *family, const char *name, const struct view *view)
{
    uint64_t numbers[PATTERN_NUMBERS];
    if (view->dtype->block_elements > 1)
        return view->dtype;
    const struct stored_type *type = family->tower != NULL && view->rank > 1 ? family->tower->stored_types : NULL;
    for (; type != NULL && type->name != NULL; type++)
        if (pattern_match(type->name, name, strlen(name), numbers))
            return type->dtype;
    return NULL;
}

static void write_tensor(void *context, const char *name, const struct view *view)
{
    struct relating *relating = context;
    const uint64_t one = 1;
    if (view->rank == 0 && relating->draft->family->tower != NULL)
        view = view_reshape(relating->draft->model->arena, view, 1, &one);
    draft_add_tensor(relating->draft, name, view, stored_type(relating->draft->family, name, view));
    if (strcmp(view->dtype->name, "NVFP4") != 0)
        return;
    factors_beside(relating->factors, name, add_factor, relating->draft);
    relating->n_first = relating->draft->model->tensors->n_tensors;
}

/* Puts tensors [n_before, n_first) before all others: the converter writes NVFP4 even before what is in no file. */
static void put_first(struct gguf_model *model, size_t n_before, size_t n_first)
{
    struct tensor *tensors = model->tensors->tensors;
    struct tensor *moved = memory_alloc((n_before + 1) * sizeof *moved);
    const struct dtype **forced = memory_alloc((n_before + 1) * sizeof *forced);
    memcpy(moved, tensors, n_before * sizeof *moved);
    memcpy(forced, model->forced, n_before * sizeof *forced);
    memmove(tensors, tensors + n_before, (n_first - n_before) * sizeof *tensors);
    memmove(model->forced, model->forced + n_before, (n_first - n_before) * sizeof *forced);
    memcpy(tensors + n_first - n_before, moved, n_before * sizeof *moved);
    memcpy(model->forced + n_first - n_before, forced, n_before * sizeof *forced);
    free(moved);
    free(forced);
}

/* The place of a tensor among those of the names: by its layer, and by the number of its name in a layer. */
struct place {
    uint64_t layer;
    size_t which, at;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->layer != y->layer)
        return x->layer < y->layer ? -1 : 1;
    return (x->which > y->which) - (x->which < y->which);
}

static size_t find_places(const struct tensor_set *set, const char *const *names, struct place *places)
{
    size_t n_places = 0;
    for (size_t i = 0; i < set->n_tensors; i++)
        for (size_t which = 0; names[which] != NULL; which++) {
            uint64_t numbers[PATTERN_NUMBERS];
            const struct tensor *tensor = &set->tensors[i];
            if (!pattern_match(names[which], tensor->name, tensor->name_length, numbers))
                continue;
            places[n_places++] = (struct place){numbers[0], which, i};
            break;
        }
    return n_places;
}

void draft_put_first(struct draft *draft, const char *const *names)
{
    struct gguf_model *model = draft->model;
    size_t n = model->tensors->n_tensors, n_done;
    struct tensor *tensors = memory_alloc((n + 1) * sizeof *tensors);
    const struct dtype **forced = memory_alloc((n + 1) * sizeof *forced);
    struct place *places = memory_alloc((n + 1) * sizeof *places);
    bool *is_placed = memory_alloc(n + 1);
    memset(is_placed, 0, n + 1);
    size_t n_places = find_places(model->tensors, names, places);
    qsort(places, n_places, sizeof *places, compare_places);
    for (n_done = 0; n_done < n_places; n_done++) {
        tensors[n_done] = model->tensors->tensors[places[n_done].at];
        forced[n_done] = model->forced[places[n_done].at];
        is_placed[places[n_done].at] = true;
    }
    for (size_t i = 0; i < n; i++)
        if (!is_placed[i]) {
            tensors[n_done] = model->tensors->tensors[i];
            forced[n_done++] = model->forced[i];
        }
    memcpy(model->tensors->tensors, tensors, n * sizeof *tensors);
    memcpy(model->forced, forced, n * sizeof *forced);
    free(tensors);
    free(forced);
    free(places);
    free(is_placed);
}

static void order_nvfp4(struct draft *draft, size_t first, size_t end)
{
    uint64_t n_experts = 0;
    json_u64(hparams_find(draft->model->hparams, "num_local_experts|num_experts"), &n_experts);
    nvfp4_order(draft->model, first, end, n_experts == 0);
}

void draft_put_last(struct draft *draft, const char *name)
{
    struct gguf_model *model = draft->model;
    size_t n = model->tensors->n_tensors, at = 0;
    while (at < n && strcmp(model->tensors->tensors[at].name, name) != 0)
        at++;
    if (at == n)
        return;
    struct tensor tensor = model->tensors->tensors[at];
    const struct dtype *forced = model->forced[at];
    memmove(&model->tensors->tensors[at], &model->tensors->tensors[at + 1], (n - at - 1) * sizeof tensor);
    memmove(&model->forced[at], &model->forced[at + 1], (n - at - 1) * sizeof(struct dtype *));
    model->tensors->tensors[n - 1] = tensor;
    model->forced[n - 1] = forced;
}

static bool relate(struct draft *draft, const struct renamed *renamed, struct error *error)
{
    struct arena *arena = draft->model->arena;
    const struct family *family = draft->family;
    struct relating relating = {.draft = draft};
    size_t n_before = draft->model->tensors->n_tensors;
    const struct relation_job job = {
        .relation = relation_new(arena, family->name, family->prefix, family->tensors, error),
        .direction = FORWARD,
        .facts = &draft->facts,
        .facts_name = "config.json",
        .set = renamed->set,
        .shown = renamed->shown_names,
        .arena = arena,
        .context = &relating,
        .is_partial = draft->is_partial,
        .read = read_tensor,
        .write = write_tensor,
    };
    struct factors *factors = job.relation != NULL ? factors_read(&job, renamed->unpacked, error) : NULL;
    relating.factors = factors;
    bool related = factors != NULL && relation_apply(&job, error);
    if (related && relating.n_first > 0) {
        order_nvfp4(draft, n_before, relating.n_first);
        put_first(draft->model, n_before, relating.n_first);
    }
    factors_free(factors);
    if (related && family->arrange != NULL)
        family->arrange(draft);
    return related;
}

/* Says what the converter would have refused: what is here is what it would write of the model as it was before. */
static void note_beyond(const struct checkpoint *checkpoint, const struct plain_set *plain)
{
    if (plain->beyond != NULL)
        checkpoint_note(checkpoint, "model.gguf: the converter refuses %s; this is %s", plain->beyond,
                        plain->is_saved_again ? "of the weights unpacked" : "what it makes of weights that it takes");
}

/* general.file_type of a file whose blocks are of one type, as a rule; 0 where there are none. */
static uint32_t file_type_of_blocks(const struct gguf_model *model)
{
    static const struct {
        const char *dtype;
        uint32_t file_type;
    } types[] = {{"Q4_0", 2}, {"Q4_1", 3}, {"Q8_0", 7}, {"MXFP4", 38}, {"NVFP4", 39}};
    for (size_t i = 0; i < model->tensors->n_tensors; i++)
        for (size_t j = 0; j < COUNT(types); j++)
            if (model->forced[i] != NULL && strcmp(model->forced[i]->name, types[j].dtype) == 0)
                return types[j].file_type;
    return 0;
}

static bool add_unpacked(struct draft *draft, struct arena *scratch, struct error *error)
{
    enum { FILE_TYPE_MXFP4 = 38, FILE_TYPE_NVFP4 = 39 };
    struct gguf_model *model = draft->model;
    const struct tensor_set *stored = model->checkpoint->tensors;
    const struct packed_weights *packed = packings_of(model->checkpoint);
    const struct plain_wish wish = {
        .arena = model->arena,
        .order = converter_order(stored, scratch),
        .keeps_blocks = model->is_repacked,
        .keeps_mxfp4 = draft->family->keeps_mxfp4,
    };
    struct plain_set plain;
    if (packed->unread != NULL)
        return error_set(error, "%s", packed->unread);
    if (!packings_unpack(packed, &wish, scratch, &plain, error))
        return false;
    model->auto_type = plain.is_saved_again ? guess_type(draft, plain.set, NULL, scratch)
                                            : guess_type(draft, stored, wish.order, scratch);
    if (strcmp(packed->method, "mxfp4") == 0)
        model->packed_file_type = FILE_TYPE_MXFP4;
    else if (packed->is_nvfp4)
        model->packed_file_type = FILE_TYPE_NVFP4;
    if (!model->is_repacked)
        note_beyond(model->checkpoint, &plain);
    struct renamed renamed = rename_tensors(draft, &plain, scratch);
    if (!relate(draft, &renamed, error))
        return false;
    if (model->is_repacked)
        model->packed_file_type = file_type_of_blocks(model);
    return true;
}

bool tensors_add(struct draft *draft, struct error *error)
{
    struct arena *scratch = arena_new();
    bool added = add_unpacked(draft, scratch, error);
    arena_free(scratch);
    return added || error_prefix(error, draft->family->tower != NULL ? "mmproj.gguf" : "model.gguf");
}

bool tensors_relate(struct draft *draft, const struct tensor_set *set, struct error *error)
{
    struct arena *scratch = arena_new();
    const struct plain_set plain = {.set = set};
    struct renamed renamed = rename_tensors(draft, &plain, scratch);
    bool related = relate(draft, &renamed, error);
    arena_free(scratch);
    return related;
}
