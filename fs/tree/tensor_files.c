/* tensors/NAME/: a directory for every tensor, with a file for every view of it, and with experts/N/ for the experts
 * stacked in it. Computed, not stored. */
#include "base/text.h"
#include "formats/numpy/numpy.h"
#include "formats/shape.h"
#include "fs/tree/content.h"
#include "fs/tree/content_options.h"
#include "fs/tree/name.h"
#include "fs/tree/tensor_views.h"
#include "models/quantize/imatrix.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A tensor whose directory has a cut name. */
struct cut_name {
    const char *name; /* the directory's */
    uint32_t item;
};

struct tensor_files {
    const struct tree *tree;
    const struct shown_tensors *shown;
    const struct content_options *options;
    struct cut_name *cut; /* sorted */
    size_t n_cut;
    struct expert_stacks stacks;
};

/* What an item shows: a tensor, an expert, or nothing but other items (experts/). */
struct item {
    const struct shown_tensors *shown; /* NULL: nothing */
    size_t index;
    uint64_t number; /* of the expert */
    bool is_expert;
    struct shown_expert expert;
};

/* Finds what an item shows; must not move. Without an arena the values of an expert cannot be read. */
static void item_find(const struct tensor_files *files, uint64_t number, struct arena *arena, struct item *ret_item)
{
    const struct expert_stack *stack = expert_stack_of_item(&files->stacks, number);
    ret_item->shown = stack == NULL ? files->shown : NULL;
    ret_item->index = number;
    ret_item->is_expert = stack != NULL && number > stack->first;
    if (!ret_item->is_expert)
        return;
    ret_item->number = number - stack->first - 1;
    shown_expert_init(&ret_item->expert, files->shown, stack->tensor, ret_item->number, arena);
    ret_item->shown = &ret_item->expert.shown;
    ret_item->index = 0;
}

static uint64_t count(const void *context)
{
    return ((const struct tensor_files *)context)->stacks.first;
}

static uint64_t n_items(const void *context)
{
    return ((const struct tensor_files *)context)->stacks.n_items;
}

static uint64_t below(const void *context, uint64_t item, uint64_t *ret_first)
{
    const struct expert_stacks *stacks = &((const struct tensor_files *)context)->stacks;
    const struct expert_stack *of_item = expert_stack_of_item(stacks, item);
    const struct expert_stack *of_tensor = item < stacks->first ? expert_stack_of_tensor(stacks, item) : NULL;
    *ret_first = of_tensor != NULL ? of_tensor->first : item + 1;
    return of_tensor != NULL ? 1 : of_item != NULL && of_item->first == item ? of_item->n_experts : 0;
}

static uint64_t above(const void *context, uint64_t item)
{
    const struct expert_stacks *stacks = &((const struct tensor_files *)context)->stacks;
    const struct expert_stack *stack = expert_stack_of_item(stacks, item);
    if (stack == NULL)
        return ITEM_NONE;
    return item == stack->first ? stack->tensor : stack->first;
}

static void directory_name(const void *context, uint64_t item, char name[TREE_MAX_NAME + 1])
{
    const struct tensor_files *files = context;
    const struct expert_stack *stack = expert_stack_of_item(&files->stacks, item);
    struct tensor room;
    if (stack != NULL && item == stack->first) {
        strcpy(name, "experts");
    } else if (stack != NULL) {
        snprintf(name, TREE_MAX_NAME + 1, "%" PRIu64, item - stack->first - 1);
    } else {
        const struct tensor *tensor = shown_tensors_at(files->shown, item, &room);
        name_escape(tensor->name, tensor->name_length, name);
    }
}

static int compare_cut_names(const void *a, const void *b)
{
    return strcmp(((const struct cut_name *)a)->name, ((const struct cut_name *)b)->name);
}

static bool find_cut(const struct tensor_files *files, const char *name, uint64_t *ret_item)
{
    const struct cut_name wanted = {.name = name}, *found = NULL;
    if (files->n_cut > 0)
        found = bsearch(&wanted, files->cut, files->n_cut, sizeof wanted, compare_cut_names);
    if (found != NULL)
        *ret_item = found->item;
    return found != NULL;
}

/* Finds the expert whose number `name` is as directory_name() writes it. */
static bool find_expert(const struct expert_stack *stack, const char *name, uint64_t *ret_item)
{
    uint64_t number = 0;
    size_t length = strspn(name, "0123456789");
    if (length == 0 || length > 9 || name[length] != '\0' || (*name == '0' && length > 1))
        return false;
    for (size_t i = 0; i < length; i++)
        number = number * 10 + (uint64_t)(name[i] - '0');
    if (number < stack->n_experts)
        *ret_item = stack->first + 1 + number;
    return number < stack->n_experts;
}

static bool find_below(const struct expert_stacks *stacks, uint64_t above, const char *name, uint64_t *ret_item)
{
    const struct expert_stack *stack = expert_stack_of_item(stacks, above);
    if (stack != NULL)
        return above == stack->first && find_expert(stack, name, ret_item);
    stack = strcmp(name, "experts") == 0 ? expert_stack_of_tensor(stacks, above) : NULL;
    if (stack != NULL)
        *ret_item = stack->first;
    return stack != NULL;
}

static bool find(const void *context, uint64_t above, const char *name, uint64_t *ret_item)
{
    const struct tensor_files *files = context;
    if (above != ITEM_NONE)
        return find_below(&files->stacks, above, name, ret_item);
    char raw[NAME_MAX_BYTES + 1];
    size_t length, index;
    if (!name_unescape(name, raw, &length))
        return find_cut(files, name, ret_item);
    if (!shown_tensors_find(files->shown, raw, length, &index))
        return false;
    *ret_item = index;
    return true;
}

static void metadata_text(const void *context, size_t index, struct buffer *out)
{
    const struct tensor_files *files = context;
    struct item item;
    item_find(files, index, NULL, &item);
    if (item.is_expert)
        expert_metadata(item.shown, item.number, files->options, out);
    else
        tensor_metadata(item.shown, item.index, files->options, out);
    buffer_append_text(out, "\n");
}

static uint64_t metadata_size(const struct tensor_files *files, uint64_t item)
{
    struct buffer text = {0};
    metadata_text(files, item, &text);
    uint64_t size = text.length;
    buffer_free(&text);
    return size;
}

static bool file_at(const void *context, uint64_t item, unsigned slot, char name[TREE_MAX_NAME + 1], uint64_t *ret_size)
{
    const struct tensor_files *files = context;
    struct tensor_file file;
    struct item found;
    item_find(files, item, NULL, &found);
    if (found.shown == NULL)
        return false;
    if (slot == SLOT_METADATA) {
        strcpy(name, "metadata.json");
        *ret_size = metadata_size(files, item);
        return true;
    }
    if (!tensor_file_at(found.shown, found.index, files->options, slot, &file))
        return false;
    snprintf(name, TREE_MAX_NAME + 1, "%s%s", file.name, file.numpy ? ".npy" : "");
    *ret_size = file.size;
    return true;
}

static const char *refusal(const void *context, uint64_t item, const char *name)
{
    const struct tensor_files *files = context;
    struct item found;
    item_find(files, item, NULL, &found);
    if (strcmp(name, "experts") == 0)
        return "only tensors that hold the experts of a layer, stacked, have this directory";
    return found.shown != NULL ? tensor_file_refusal(found.shown, found.index, files->options, name) : NULL;
}

/* Returns a tensor's inputs. Unpacked values also depend on the description of the packing in config.json. */
static struct origin origin(const void *context, uint64_t item)
{
    const struct tensor_files *files = context;
    const struct expert_stack *stack = expert_stack_of_item(&files->stacks, item);
    size_t index = stack != NULL ? stack->tensor : item;
    const struct tensor *stored =
        shown_tensors_unpacked(files->shown, index) == NULL ? shown_tensors_stored(files->shown, index) : NULL;
    if (stored == NULL || stored->view != NULL || stored->source == NULL)
        return tree_origin_of_packed(files->tree);
    return (struct origin){.sources = &stored->source, .n_sources = 1};
}

static bool plan(const void *context, uint64_t item, unsigned slot, struct arena *arena, struct vfile *ret_file,
                 struct error *error)
{
    const struct tensor_files *files = context;
    struct span_list spans = {.arena = arena};
    struct tensor_file file;
    struct item found;
    item_find(files, item, arena, &found);
    if (found.shown == NULL)
        return error_set(error, "no such file");
    if (slot == SLOT_METADATA) {
        spans_add_text(&spans, metadata_text, files, item, metadata_size(files, item));
        *ret_file = vfile_of_spans(&spans, origin(files, item));
        return true;
    }
    if (!tensor_file_at(found.shown, found.index, files->options, slot, &file))
        return error_set(error, "tensor '%s' has no such view",
                         shown_tensors_at(found.shown, found.index, &file.tensor)->name);
    if (file.numpy) {
        char header[NUMPY_HEADER_MAX];
        size_t length = numpy_header(file.encoding.dtype, file.tensor.shape, file.tensor.rank, header);
        spans_add_literal(&spans, arena_copy(arena, header, length), length);
    }
    spans_add_tensor(&spans, &file.tensor, file.encoding);
    *ret_file = vfile_of_spans(&spans, origin(files, item));
    return true;
}

static void emit_text(tree_emit_xattr *emit, void *emit_context, const char *name, const char *text)
{
    emit(emit_context, name, text, strlen(text));
}

static void emit_number(tree_emit_xattr *emit, void *emit_context, const char *name, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, number);
    emit_text(emit, emit_context, name, text);
}

static void emit_packing(const struct unpacked *unpacked, tree_emit_xattr *emit, void *emit_context)
{
    struct buffer parts = {0};
    for (unsigned i = 0; i < unpacked->n_parts; i++) {
        buffer_append_text(&parts, i > 0 ? "\n" : "");
        buffer_append(&parts, unpacked->parts[i]->name, unpacked->parts[i]->name_length);
    }
    emit_text(emit, emit_context, "user.wfs.packing", unpacked->packing->name);
    emit(emit_context, "user.wfs.parts", (const char *)parts.bytes, parts.length);
    buffer_free(&parts);
}

static void xattrs(const void *context, uint64_t item, int slot, tree_emit_xattr *emit, void *emit_context)
{
    const struct tensor_files *files = context;
    struct tensor room;
    struct item found;
    item_find(files, item, NULL, &found);
    if (found.shown == NULL)
        return;
    const struct tensor *tensor = shown_tensors_stored(found.shown, found.index);
    const struct unpacked *unpacked = shown_tensors_unpacked(found.shown, found.index);
    struct tensor_file file;
    char shape[SHAPE_MAX_RANK * 22];
    bool view = slot > SLOT_METADATA && tensor_file_at(found.shown, found.index, files->options, (unsigned)slot, &file);
    if (unpacked != NULL)
        emit_packing(unpacked, emit, emit_context);
    if (view)
        tensor = &file.tensor;
    else if (tensor == NULL)
        tensor = shown_tensors_at(found.shown, found.index, &room);
    emit(emit_context, "user.wfs.name", tensor->name, tensor->name_length);
    emit_text(emit, emit_context, "user.wfs.dtype", view ? file.encoding.dtype->name : tensor->dtype->name);
    emit_text(emit, emit_context, "user.wfs.shape", shape_text(tensor->shape, tensor->rank, shape, sizeof shape));
    emit_number(emit, emit_context, "user.wfs.elements", tensor_elements(tensor));
    if (found.is_expert)
        emit_number(emit, emit_context, "user.wfs.expert", found.number);
    if (view)
        emit_text(emit, emit_context, "user.wfs.stored", file.stored ? "true" : "false");
    if (tensor->view != NULL || tensor->source == NULL)
        return;
    emit_text(emit, emit_context, "user.wfs.source", source_name(tensor->source));
    emit_number(emit, emit_context, "user.wfs.offset", tensor->offset);
    emit_number(emit, emit_context, "user.wfs.length", tensor->length);
}

static bool is_cut(const struct tensor *tensor)
{
    char name[NAME_MAX_BYTES + 1];
    return tensor->name_length * 3 > NAME_MAX_BYTES && !name_escape(tensor->name, tensor->name_length, name);
}

/* Finds the cut names. Equal ones are an error: only forged names share a digest. */
static bool collect_cut_names(struct tensor_files *files, const char *path, struct arena *arena, struct error *error)
{
    struct tensor room;
    char name[NAME_MAX_BYTES + 1];
    size_t n_cut = 0;
    for (size_t i = 0, n_tensors = shown_tensors_count(files->shown); i < n_tensors; i++)
        n_cut += is_cut(shown_tensors_at(files->shown, i, &room));
    files->cut = arena_array(arena, n_cut, sizeof *files->cut);
    for (size_t i = 0; files->n_cut < n_cut; i++) {
        if (!is_cut(shown_tensors_at(files->shown, i, &room)))
            continue;
        directory_name(files, i, name);
        files->cut[files->n_cut++] = (struct cut_name){arena_strdup(arena, name), (uint32_t)i};
    }
    if (n_cut > 0)
        qsort(files->cut, n_cut, sizeof *files->cut, compare_cut_names);
    for (size_t i = 1; i < n_cut; i++)
        if (strcmp(files->cut[i - 1].name, files->cut[i].name) == 0)
            return error_set(error, "%s: two tensor names have the same short form '%s'", path, files->cut[i].name);
    return true;
}

static void close_shown(void *shown)
{
    shown_tensors_close(shown);
}

static bool rename_tensors(struct tree *tree, enum shown_names names, struct error *error)
{
    struct shown_tensors *renamed = arena_alloc(tree_arena(tree), sizeof *renamed);
    if (!shown_tensors_renamed(tree_checkpoint(tree), names, &tree_options(tree)->request.references, tree_arena(tree),
                               renamed, error))
        return false;
    tree_on_free(tree, close_shown, renamed);
    tree_show(tree, renamed);
    return true;
}

static void weigh_tensors(struct tree *tree, const struct quantize_options *options)
{
    struct arena *arena = tree_arena(tree);
    struct shown_tensors *weighed = arena_copy(arena, tree_shown(tree), sizeof *weighed);
    weighed->importances = importances_of(tree_checkpoint(tree), weighed, options->imatrix, &options->filter, arena);
    tree_show(tree, weighed);
}

static bool add(struct tree *tree, struct error *error)
{
    static const struct collection collection = {
        .count = count,
        .n_items = n_items,
        .below = below,
        .above = above,
        .name = directory_name,
        .find = find,
        .n_slots = tensor_slots,
        .file = file_at,
        .refusal = refusal,
        .origin = origin,
        .plan = plan,
        .xattrs = xattrs,
    };
    struct tensor_files *files = arena_alloc(tree_arena(tree), sizeof *files);
    files->tree = tree;
    files->options = tree_options(tree);
    if (files->options->names != NAMES_OF_SOURCE && !rename_tensors(tree, files->options->names, error))
        return false;
    weigh_tensors(tree, &files->options->request.quantize);
    files->shown = tree_shown(tree);
    if (!collect_cut_names(files, tree_checkpoint(tree)->path, tree_arena(tree), error))
        return false;
    if (!expert_stacks_find(files->shown, tree_arena(tree), &files->stacks))
        checkpoint_note(tree_checkpoint(tree), SUBJECT_SOURCE,
                        "tensors/ shows single experts only of the first %zu tensors that hold experts",
                        files->stacks.n_stacks);
    tree_add_collection(tree, TREE_ROOT, "tensors", &collection, files);
    return true;
}

const struct content tensor_files_content = {
    .name = "tensors",
    .summary = "tensors/NAME/: every tensor as raw bytes, F32, F16, Q4_0 ..., with and without a numpy header",
    .of_weights = true,
    .of_parts = true,
    .add = add,
};
