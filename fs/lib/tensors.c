/* The tensors of a model. */
#include "base/arena.h"
#include "fs/lib/lib.h"
#include "fs/tree/tensor_views.h"
#include "quant/views/convert.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

size_t wfs_tensor_count(wfs_model *model)
{
    return shown_tensors_count(tree_shown(model->tree));
}

struct describing {
    wfs_model *model;
    size_t index;
    struct wfs_tensor tensor;
};

static bool check_index(wfs_model *model, size_t index, struct error *error)
{
    size_t count = wfs_tensor_count(model);
    return index < count || lib_misuse(error, "tensor %zu does not exist: the model has %zu", index, count);
}

static bool describe(void *context, struct error *error)
{
    struct describing *call = context;
    struct tensor room;
    if (!check_index(call->model, call->index, error))
        return false;
    const struct tensor *tensor = shown_tensors_at(tree_shown(call->model->tree), call->index, &room);
    call->tensor = (struct wfs_tensor){
        .name = tensor->name,
        .name_length = tensor->name_length,
        .dtype = tensor->dtype->name,
        .shape = tensor->shape,
        .n_elements = tensor_elements(tensor),
        .refusal = tensor->refusal,
        .rank = tensor->rank,
    };
    return true;
}

bool wfs_tensor_at(wfs_model *model, size_t index, struct wfs_tensor *ret_tensor, struct wfs_error *ret_error)
{
    struct describing call = {.model = model, .index = index};
    bool done = lib_call(model->context, describe, &call, ret_error);
    if (done)
        *ret_tensor = call.tensor;
    return done;
}

struct finding {
    wfs_model *model;
    const char *name;
    size_t length, index;
};

static bool find(void *context, struct error *error)
{
    struct finding *call = context;
    if (shown_tensors_find(tree_shown(call->model->tree), call->name, call->length, &call->index))
        return true;
    error_set(error, "there is no tensor '%.*s'", (int)(call->length < 500 ? call->length : 500), call->name);
    return error_set_code(error, ENOENT);
}

bool wfs_tensor_find(wfs_model *model, const char *name, size_t length, size_t *ret_index, struct wfs_error *ret_error)
{
    struct finding call = {.model = model, .name = name, .length = length};
    bool found = lib_call(model->context, find, &call, ret_error);
    if (found)
        *ret_index = call.index;
    return found;
}

/* Values of a tensor: what is asked for, and the file of tensors/NAME/ that has them. */
struct selection {
    wfs_model *model;
    size_t index;
    const char *dtype;
    const struct wfs_slice *slices; /* NULL: the whole tensor */
    void *out;
    uint64_t size;

    struct tensor_file file;
    uint64_t n_elements;
    bool is_run;    /* the elements follow each other in the whole tensor, and are whole blocks */
    uint64_t first; /* if so: the first of them */
};

/* Returns the tensor in its own type as a file of tensors/NAME/, which has none of that name for F64, say. */
static struct tensor_file own_file(const struct tensor *tensor)
{
    return (struct tensor_file){
        .tensor = *tensor,
        .encoding = encoding_of(tensor->dtype),
        .stored = tensor_is_stored(tensor),
        .size = dtype_bytes(tensor->dtype, tensor_elements(tensor)),
    };
}

/* Finds the file of tensors/NAME/ in a type other than the tensor's own: lower-case names are the files'. */
static bool find_other(struct selection *selection, const char *dtype, struct error *error)
{
    char name[32] = "";
    for (size_t i = 0; dtype[i] != '\0' && i + 1 < sizeof name; i++)
        name[i] = (char)tolower((unsigned char)dtype[i]);
    if (strchr(dtype, '.') != NULL || strlen(dtype) >= sizeof name)
        return error_set(error, "no type has this name");
    return tensor_file_named(tree_shown(selection->model->tree), selection->index, tree_options(selection->model->tree),
                             name, &selection->file, error);
}

/* Finds the values in the type that is asked for. */
static bool find_file(struct selection *selection, struct error *error)
{
    struct tensor room;
    const struct shown_tensors *shown = tree_shown(selection->model->tree);
    const char *dtype = selection->dtype;
    if (!check_index(selection->model, selection->index, error))
        return false;
    const struct tensor *tensor = shown_tensors_at(shown, selection->index, &room);
    if (dtype == NULL)
        return lib_misuse(error, "%s: no type is given", tensor->name);
    bool is_own = strcasecmp(dtype, tensor->dtype->name) == 0 && tensor->refusal == NULL;
    if (is_own)
        selection->file = own_file(tensor);
    if (!is_own && !find_other(selection, dtype, error)) {
        error_prefix(error, "%s as %s", tensor->name, dtype);
        return error_set_code(error, EINVAL);
    }
    if (selection->slices != NULL && strcasecmp(dtype, "raw") == 0 &&
        shown_tensors_unpacked(shown, selection->index) != NULL)
        return lib_misuse(error, "%s as raw: a packed weight can be read only as a whole", tensor->name);
    return true;
}

/* Checks a slice of an axis of `length` indices. */
static bool check_slice(const struct tensor *tensor, unsigned axis, const struct wfs_slice *slice, struct error *error)
{
    uint64_t length = tensor->shape[axis], last, span;
    bool inside = slice->step > 0 && slice->start <= length &&
                  (slice->count == 0 || (!__builtin_mul_overflow(slice->count - 1, slice->step, &span) &&
                                         !__builtin_add_overflow(slice->start, span, &last) && last < length));
    return inside || lib_misuse(error, "%s: axis %u: %llu indices from %llu on in steps of %llu do not fit its %llu",
                                tensor->name, axis, (unsigned long long)slice->count, (unsigned long long)slice->start,
                                (unsigned long long)slice->step, (unsigned long long)length);
}

/* Finds how many elements the slices select, the first of them, and whether they follow each other: then every axis
 * after one that is cut is whole, and every axis before has one index. */
static bool measure(struct selection *selection, struct error *error)
{
    const struct tensor *tensor = &selection->file.tensor;
    const unsigned block = selection->file.encoding.dtype->block_elements;
    uint64_t stride = 1;
    bool is_run = true, is_cut = false;
    selection->n_elements = selection->slices != NULL ? 1 : tensor_elements(tensor);
    for (unsigned axis = selection->slices != NULL ? tensor->rank : 0; axis-- > 0;) {
        const struct wfs_slice *slice = &selection->slices[axis];
        if (!check_slice(tensor, axis, slice, error))
            return false;
        is_run &= (slice->step == 1 || slice->count <= 1) && (!is_cut || slice->count <= 1);
        is_cut |= slice->count != tensor->shape[axis];
        selection->n_elements *= slice->count; /* at most the tensor's */
        selection->first += slice->start * stride;
        stride *= tensor->shape[axis];
    }
    selection->is_run = is_run && selection->first % block == 0 && selection->n_elements % block == 0;
    return selection->is_run || block == 1 || selection->n_elements == 0 ||
           lib_misuse(error, "%s as %s: a slice must be whole blocks of %u elements that follow each other",
                      tensor->name, selection->file.encoding.dtype->name, block);
}

static bool select_values(struct selection *selection, struct error *error)
{
    return find_file(selection, error) && measure(selection, error);
}

static uint64_t selected_bytes(const struct selection *selection)
{
    return dtype_bytes(selection->file.encoding.dtype, selection->n_elements);
}

static bool find_size(void *context, struct error *error)
{
    return select_values(context, error);
}

bool wfs_tensor_size(wfs_model *model, size_t index, const char *dtype, const struct wfs_slice *slices,
                     uint64_t *ret_size, struct wfs_error *ret_error)
{
    struct selection selection = {.model = model, .index = index, .dtype = dtype, .slices = slices};
    bool done = lib_call(model->context, find_size, &selection, ret_error);
    if (done)
        *ret_size = selected_bytes(&selection);
    return done;
}

/* Returns a view of the selected elements. Values of blocks are decoded before they are cut. */
static const struct view *sliced_view(const struct selection *selection, struct arena *arena)
{
    const struct tensor *tensor = &selection->file.tensor;
    const struct view *view = tensor_view(tensor, arena);
    if (view->dtype->block_elements > 1)
        view = view_convert(arena, view, selection->file.encoding.dtype);
    for (unsigned axis = 0; axis < tensor->rank; axis++) {
        const struct wfs_slice *slice = &selection->slices[axis];
        if (slice->count != tensor->shape[axis])
            view = view_slice(arena, view, axis, slice->start, slice->count, slice->step);
    }
    return view;
}

/* Returns the inputs of a tensor's values: its source, or whatever may take part in a computed one. */
static struct origin origin_of(const struct tensor *tensor, const wfs_model *model)
{
    bool is_stored = tensor->view == NULL && tensor->source != NULL;
    return is_stored ? (struct origin){&tensor->source, 1} : tree_origin_of_packed(model->tree);
}

static bool read_selection(const struct selection *selection, struct arena *arena, struct error *error)
{
    struct span_list spans = {.arena = arena};
    const struct dtype *dtype = selection->file.encoding.dtype;
    if (selection->is_run)
        spans_add_tensor(&spans, &selection->file.tensor, selection->file.encoding);
    else
        spans_add_view(&spans, sliced_view(selection, arena), selection->file.encoding);
    const struct vfile file = vfile_of_spans(&spans, (struct origin){0});
    uint64_t offset = selection->is_run ? dtype_bytes(dtype, selection->first) : 0;
    return vfile_wait(&file, offset, selection->size, error) &&
           vfile_read(&file, offset, selection->size, selection->out, error);
}

static bool read_values(void *context, struct error *error)
{
    struct selection *selection = context;
    if (!select_values(selection, error))
        return false;
    if (selection->size != selected_bytes(selection))
        return lib_misuse(error, "%s as %s: the memory has %llu bytes, the values %llu", selection->file.tensor.name,
                          selection->dtype, (unsigned long long)selection->size,
                          (unsigned long long)selected_bytes(selection));
    if (selection->size == 0)
        return true;
    struct origin origin = origin_of(&selection->file.tensor, selection->model);
    if (!lib_check_unchanged(&origin, error))
        return false;
    struct arena *arena = arena_new();
    bool done = read_selection(selection, arena, error);
    arena_free(arena);
    return done;
}

bool wfs_tensor_read(wfs_model *model, size_t index, const char *dtype, const struct wfs_slice *slices, void *out,
                     uint64_t size, struct wfs_error *ret_error)
{
    struct selection selection = {model, index, dtype, slices, out, size};
    return lib_call(model->context, read_values, &selection, ret_error);
}

struct mapping {
    struct selection selection;
    void *bytes;
};

/* Returns the offset in its page. */
static size_t offset_in_page(uint64_t address)
{
    return (size_t)(address % (uint64_t)sysconf(_SC_PAGESIZE));
}

/* Maps a range of a source that is a regular file; NULL: it is none, has changed, or cannot be mapped. */
static void *map_range(const struct source *source, uint64_t offset, uint64_t length)
{
    int descriptor = source_descriptor(source);
    uint64_t size = source_size(source);
    if (descriptor < 0 || offset > size || length > size - offset || source_verify(source))
        return NULL;
    size_t before = offset_in_page(offset);
    void *pages = mmap(NULL, (size_t)length + before, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, descriptor,
                       (off_t)(offset - before));
    return pages != MAP_FAILED ? (char *)pages + before : NULL;
}

static bool map_values(void *context, struct error *error)
{
    struct mapping *mapping = context;
    const struct selection *selection = &mapping->selection;
    if (!select_values(&mapping->selection, error))
        return false;
    const struct tensor_file *file = &selection->file;
    uint64_t offset = dtype_bytes(file->encoding.dtype, selection->first), size = selected_bytes(selection);
    if (file->stored && selection->is_run && size > 0)
        mapping->bytes = map_range(file->tensor.source, file->tensor.offset + offset, size);
    return mapping->bytes != NULL;
}

void *wfs_tensor_map(wfs_model *model, size_t index, const char *dtype, const struct wfs_slice *slices,
                     uint64_t *ret_size)
{
    struct mapping mapping = {.selection = {.model = model, .index = index, .dtype = dtype, .slices = slices}};
    if (!lib_call(model->context, map_values, &mapping, NULL))
        return NULL;
    *ret_size = selected_bytes(&mapping.selection);
    return mapping.bytes;
}

void wfs_unmap(void *bytes, uint64_t size)
{
    size_t before = offset_in_page((uintptr_t)bytes);
    munmap((char *)bytes - before, (size_t)size + before);
}
