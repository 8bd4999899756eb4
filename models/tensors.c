#include "models/tensors.h"

#include "models/mxfp4_view.h"
#include "quant/convert.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Names of the parts of multimodal models that are no text model: at the front, and anywhere. */
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

static bool has_prefix(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool has_suffix(const char *name, const char *suffix)
{
    size_t length = strlen(name), suffix_length = strlen(suffix);
    return length >= suffix_length && strcmp(name + length - suffix_length, suffix) == 0;
}

static bool is_foreign(const char *name)
{
    for (size_t i = 0; i < COUNT(foreign_prefixes); i++)
        if (has_prefix(name, foreign_prefixes[i]))
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

/* The name that the rows are about; NULL for a tensor that is left out. */
static const char *family_name(const struct synthesis *synthesis, const struct tensor *tensor)
{
    const struct family *family = synthesis->family;
    struct arena *arena = synthesis->model->arena;
    const char *name = tensor->name;
    for (const char *const *prefix = family->dropped_prefixes; prefix != NULL && *prefix != NULL; prefix++)
        if (has_prefix(name, *prefix))
            name += strlen(*prefix);
    for (const char *const *part = family->dropped_parts; part != NULL && *part != NULL; part++)
        name = without(arena, name, *part);
    if (family->rename != NULL)
        name = family->rename(synthesis, name);
    if (name == NULL || is_foreign(name))
        return NULL;
    for (size_t i = 0; i < COUNT(skipped_suffixes); i++)
        if (has_suffix(name, skipped_suffixes[i]))
            return NULL;
    name = without(arena, name, "language_model.");
    if (has_suffix(name, "e_score_correction_bias"))
        name = arena_printf(arena, "%.*s.bias", (int)(strlen(name) - strlen("_bias")), name);
    if (synthesis->hf->prepended != NULL)
        name = arena_printf(arena, "%s%s", synthesis->hf->prepended, name);
    return name;
}

static int compare_tensors(const void *a, const void *b)
{
    return strcmp((*(const struct tensor *const *)a)->name, (*(const struct tensor *const *)b)->name);
}

/* Sorts the tensors of each safetensors file by name: their order in the header means nothing, while that of a pickled
 * dictionary is kept. */
static void sort_files(const struct tensor **tensors, size_t n_tensors)
{
    for (size_t first = 0, end; first < n_tensors; first = end) {
        const struct source *source = tensors[first]->source;
        for (end = first + 1; end < n_tensors && tensors[end]->source == source; end++)
            continue;
        if (source != NULL && has_suffix(source_name(source), ".safetensors"))
            qsort(tensors + first, end - first, sizeof *tensors, compare_tensors);
    }
}

struct renamed_tensors tensors_in_order(const struct synthesis *synthesis, struct arena *arena)
{
    const struct tensor_set *stored = synthesis->model->checkpoint->tensors;
    const struct tensor **ordered = arena_array(arena, stored->n_tensors, sizeof *ordered);
    for (size_t i = 0; i < stored->n_tensors; i++)
        ordered[i] = &stored->tensors[i];
    sort_files(ordered, stored->n_tensors);

    struct renamed_tensors renamed = {tensor_set_new(arena), arena_array(arena, stored->n_tensors, sizeof(char *))};
    for (size_t i = 0; i < stored->n_tensors; i++) {
        struct tensor tensor = *ordered[i];
        tensor.name = family_name(synthesis, ordered[i]);
        if (tensor.name == NULL)
            continue;
        tensor.name_length = (uint32_t)strlen(tensor.name);
        renamed.stored_names[renamed.set->n_tensors] = ordered[i]->name;
        tensor_set_add(renamed.set, &tensor);
    }
    return renamed;
}

void synthesis_add_tensor(struct synthesis *synthesis, const char *name, const struct view *view, const struct dtype *forced)
{
    struct gguf_model *model = synthesis->model;
    if (model->tensors->n_tensors == synthesis->forced_capacity) {
        synthesis->forced_capacity = synthesis->forced_capacity * 2 + 64;
        model->forced = memory_resize(model->forced, synthesis->forced_capacity * sizeof *model->forced);
    }
    model->forced[model->tensors->n_tensors] = forced;
    tensor_set_add_view(model->tensors, name, view);
}

/* A row that fits a name: which, the numbers in the name, and the suffix that is carried over. */
struct match {
    const struct tensor_row *row;
    uint64_t numbers[2];
    const char *suffix;
    bool is_scales; /* the name is that of a row's scales */
};

static bool match_row(const struct tensor_row *row, const char *name, struct match *ret_match)
{
    size_t length = strlen(name);
    const char *suffix = has_suffix(name, ".weight") ? ".weight" : has_suffix(name, ".bias") ? ".bias" : "";
    struct match match = {.row = row, .suffix = ""};
    if (!pattern_match(row->hf, name, length, match.numbers)) {
        match.suffix = suffix;
        if (*suffix == '\0' || !pattern_match(row->hf, name, length - strlen(suffix), match.numbers))
            return false;
    }
    *ret_match = match;
    return true;
}

static bool match_scales(const struct tensor_row *row, const char *name, struct match *ret_match)
{
    struct match match = {.row = row, .suffix = "", .is_scales = true};
    if (row->mxfp4_scales == NULL || !pattern_match(row->mxfp4_scales, name, strlen(name), match.numbers))
        return false;
    *ret_match = match;
    return true;
}

static bool find_match(const struct synthesis *synthesis, const char *name, struct match *ret_match)
{
    for (size_t i = 0; i < FAMILY_MAX_TABLES && synthesis->family->tensors[i] != NULL; i++)
        for (const struct tensor_row *row = synthesis->family->tensors[i]; row->hf != NULL; row++)
            if (match_row(row, name, ret_match) || match_scales(row, name, ret_match))
                return true;
    return false;
}

/* Members of stacks that have been met and not yet written: a layer's, for all rows of one stacked arrangement. */
struct stack {
    uint64_t block;
    enum arrangement arrangement;
    size_t n_found;
    const struct view **members; /* [row of the stack][member] */
    struct stack *next;
};

enum { MAX_STACK_ROWS = 8 };

struct adding {
    struct synthesis *synthesis;
    struct stack *stacks;
    uint64_t n_members; /* of all stacks so far: each must be a tensor of its own */
    const struct tensor_row *stack_rows[ONE_KEY_HEAD + 1][MAX_STACK_ROWS]; /* by arrangement, in the order of the rows */
    size_t n_stack_rows[ONE_KEY_HEAD + 1];
};

static void collect_stack_rows(struct adding *adding)
{
    const struct family *family = adding->synthesis->family;
    for (size_t i = 0; i < FAMILY_MAX_TABLES && family->tensors[i] != NULL; i++)
        for (const struct tensor_row *row = family->tensors[i]; row->hf != NULL; row++) {
            size_t *n_rows = &adding->n_stack_rows[row->arrangement];
            if (arrangement_is_stacked(row->arrangement) && *n_rows < MAX_STACK_ROWS)
                adding->stack_rows[row->arrangement][(*n_rows)++] = row;
        }
}

/* The stack of a layer; NULL where there are more members to come than the checkpoint has tensors. */
static struct stack *find_stack(struct adding *adding, uint64_t block, enum arrangement arrangement, uint64_t n_members)
{
    struct stack **link = &adding->stacks;
    for (; *link != NULL; link = &(*link)->next)
        if ((*link)->block == block && (*link)->arrangement == arrangement)
            return *link;
    size_t n_views = adding->n_stack_rows[arrangement] * n_members;
    adding->n_members += n_views;
    if (adding->n_members > adding->synthesis->model->checkpoint->tensors->n_tensors)
        return NULL;
    struct stack *stack = memory_alloc(sizeof *stack);
    *stack = (struct stack){.block = block, .arrangement = arrangement};
    stack->members = memory_alloc(n_views * sizeof *stack->members);
    memset(stack->members, 0, n_views * sizeof *stack->members);
    return *link = stack;
}

static void free_stack(struct adding *adding, struct stack *stack)
{
    struct stack **link = &adding->stacks;
    while (*link != stack)
        link = &(*link)->next;
    *link = stack->next;
    free(stack->members);
    free(stack);
}

static bool same_shape(const struct view *a, const struct view *b)
{
    return a->rank == b->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0;
}

/* Members of one shape, as views of one dtype, one on the other. */
static const struct view *stack_members(struct arena *arena, const struct view **members, size_t n_members, const char *name,
                                        struct error *error)
{
    bool same_dtype = true;
    for (size_t i = 1; i < n_members; i++) {
        same_dtype &= members[i]->dtype == members[0]->dtype;
        if (!same_shape(members[i], members[0]))
            return error_set(error, "model.gguf: number %zu of %s has another shape than the first", i, name), NULL;
    }
    if (members[0]->rank + 1 > VIEW_MAX_RANK)
        return error_set(error, "model.gguf: %s would have too many dimensions", name), NULL;
    for (size_t i = 0; i < n_members && !same_dtype; i++)
        members[i] = view_convert(arena, members[i], &f32_dtype);
    return view_stack(arena, members, n_members);
}

/* Writes the tensors of a stack that is complete. */
static bool write_stack(struct adding *adding, struct stack *stack, uint64_t n_members, const char *suffix, struct error *error)
{
    struct arena *arena = adding->synthesis->model->arena;
    for (size_t i = 0; i < adding->n_stack_rows[stack->arrangement]; i++) {
        const struct tensor_row *row = adding->stack_rows[stack->arrangement][i];
        const char *name = pattern_fill(arena, row->gguf, (const uint64_t[]){stack->block, 0}, suffix);
        const struct view *view = stack_members(arena, stack->members + i * n_members, n_members, name, error);
        if (view == NULL)
            return false;
        synthesis_add_tensor(adding->synthesis, name, view, NULL);
    }
    free_stack(adding, stack);
    return true;
}

static bool add_member(struct adding *adding, const struct match *match, const struct view *view, const char *name,
                       struct error *error)
{
    enum arrangement arrangement = match->row->arrangement;
    size_t n_members = arrangement_members(arrangement, &adding->synthesis->dimensions);
    size_t n_rows = adding->n_stack_rows[arrangement], index = 0;
    if (n_members == 0 || match->numbers[1] >= n_members || n_members > adding->synthesis->model->checkpoint->tensors->n_tensors)
        return error_set(error, "model.gguf: tensor '%s' is number %" PRIu64 " of %zu, by config.json", name, match->numbers[1],
                         n_members);
    while (adding->stack_rows[arrangement][index] != match->row)
        index++;
    struct stack *stack = find_stack(adding, match->numbers[0], arrangement, n_members);
    if (stack == NULL)
        return error_set(error, "model.gguf: there are fewer tensors than config.json counts experts or heads");
    const struct view **member = &stack->members[index * n_members + match->numbers[1]];
    if (*member != NULL)
        return error_set(error, "model.gguf: tensor '%s' is there twice under different names", name);
    *member = view;
    return ++stack->n_found < n_rows * n_members || write_stack(adding, stack, n_members, match->suffix, error);
}

/* The view of a stored tensor, in a dtype of one element a block that can be computed with. */
static const struct view *source_view(const struct synthesis *synthesis, const struct renamed_tensors *tensors, size_t index,
                                      struct error *error)
{
    const struct tensor *tensor = &tensors->set->tensors[index];
    const char *name = tensors->stored_names[index];
    if (tensor->refusal != NULL) {
        error_set(error, "model.gguf: tensor '%s': %s", name, tensor->refusal);
        return NULL;
    }
    if (dtype_kernels(tensor->dtype).decode == NULL) {
        error_set(error, "model.gguf: tensor '%s' is %s, which the converter cannot read", name, tensor->dtype->name);
        return NULL;
    }
    const struct view *view = tensor_view(tensor, synthesis->model->arena);
    return tensor->dtype->block_elements == 1 ? view : view_convert(synthesis->model->arena, view, &f32_dtype);
}

/* Adds what the rows make of one view: the row that fits, and those behind it that are about the same tensor. */
static bool add_arranged(struct synthesis *synthesis, const struct match *match, const struct view *source, const char *name,
                         struct error *error)
{
    struct arena *arena = synthesis->model->arena;
    const struct tensor_row *first = match->row;
    const struct dtype *forced = first->mxfp4_scales != NULL ? source->dtype : NULL;
    for (const struct tensor_row *row = first; row->hf != NULL && strcmp(row->hf, first->hf) == 0; row++) {
        const struct view *view = arrange(arena, source, row->arrangement, &synthesis->dimensions, error);
        if (view == NULL)
            return error_prefix(error, "model.gguf: tensor '%s'", name);
        synthesis_add_tensor(synthesis, pattern_fill(arena, row->gguf, match->numbers, match->suffix), view, forced);
    }
    return true;
}

/* The row of a tensor, or an error. */
static bool find_row(const struct synthesis *synthesis, const struct renamed_tensors *tensors, size_t index,
                     struct match *ret_match, struct error *error)
{
    uint64_t n_blocks = synthesis->dimensions.n_blocks;
    const char *name = tensors->stored_names[index];
    if (!find_match(synthesis, tensors->set->tensors[index].name, ret_match))
        return error_set(error, "model.gguf: tensor '%s' is unknown to the family %s", name, synthesis->family->name);
    if (ret_match->row->gguf != NULL && ret_match->numbers[0] != UINT64_MAX && ret_match->numbers[0] >= n_blocks)
        return error_set(error, "model.gguf: tensor '%s' is of a layer that config.json does not count (%" PRIu64 " layers)",
                         name, n_blocks);
    return true;
}

static bool add_tensor(struct adding *adding, const struct renamed_tensors *tensors, size_t index, struct error *error)
{
    const char *name = tensors->stored_names[index];
    struct match match;
    if (!find_row(adding->synthesis, tensors, index, &match, error))
        return false;
    if (match.row->gguf == NULL || match.row->mxfp4_scales != NULL)
        return true;
    const struct view *source = source_view(adding->synthesis, tensors, index, error);
    if (source == NULL)
        return false;
    if (arrangement_is_stacked(match.row->arrangement))
        return add_member(adding, &match, source, name, error);
    return add_arranged(adding->synthesis, &match, source, name, error);
}

static bool has_mxfp4_rows(const struct family *family)
{
    for (size_t i = 0; i < FAMILY_MAX_TABLES && family->tensors[i] != NULL; i++)
        for (const struct tensor_row *row = family->tensors[i]; row->hf != NULL; row++)
            if (row->mxfp4_scales != NULL)
                return true;
    return false;
}

/* The blocks at `index` with their scales, which are somewhere near. */
static bool add_mxfp4_tensor(struct synthesis *synthesis, const struct match *match, const struct renamed_tensors *tensors,
                             size_t index, struct error *error)
{
    struct arena *arena = synthesis->model->arena;
    const char *name = tensors->stored_names[index],
               *scales_name = pattern_fill(arena, match->row->mxfp4_scales, match->numbers, "");
    size_t n_tensors = tensors->set->n_tensors, found = (index + 1) % n_tensors;
    while (found != index && strcmp(tensors->set->tensors[found].name, scales_name) != 0)
        found = (found + 1) % n_tensors;
    if (found == index)
        return error_set(error, "model.gguf: tensor '%s' has no scales '%s'", name, scales_name);
    const struct view *blocks = source_view(synthesis, tensors, index, error);
    const struct view *scales = blocks ? source_view(synthesis, tensors, found, error) : NULL;
    if (scales == NULL)
        return false;
    const struct view *view = mxfp4_view(arena, blocks, scales, error);
    if (view == NULL)
        return error_prefix(error, "model.gguf: tensor '%s'", name);
    return add_arranged(synthesis, match, view, name, error);
}

static bool add_mxfp4_tensors(struct synthesis *synthesis, const struct renamed_tensors *tensors, struct error *error)
{
    for (size_t i = 0; i < tensors->set->n_tensors; i++) {
        struct match match;
        if (!find_row(synthesis, tensors, i, &match, error))
            return false;
        if (match.row->mxfp4_scales != NULL && !match.is_scales && !add_mxfp4_tensor(synthesis, &match, tensors, i, error))
            return false;
    }
    return true;
}

bool tensors_add(struct synthesis *synthesis, const struct renamed_tensors *tensors, struct error *error)
{
    struct adding adding = {.synthesis = synthesis};
    collect_stack_rows(&adding);
    bool added = !has_mxfp4_rows(synthesis->family) || add_mxfp4_tensors(synthesis, tensors, error);
    for (size_t i = 0; i < tensors->set->n_tensors && added; i++)
        added = add_tensor(&adding, tensors, i, error);
    if (added && adding.stacks != NULL)
        added = error_set(error, "model.gguf: layer %" PRIu64 " has only %zu of the tensors that %s stacks", adding.stacks->block,
                          adding.stacks->n_found, synthesis->family->name);
    while (adding.stacks != NULL)
        free_stack(&adding, adding.stacks);
    return added;
}
