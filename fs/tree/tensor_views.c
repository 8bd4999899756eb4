#include "fs/tree/tensor_views.h"

#include "base/text.h"
#include "formats/numpy/numpy.h"
#include "formats/shape.h"
#include "fs/tree/content_options.h"
#include "fs/tree/name.h"
#include "quant/views/convert.h"
#include "text/json_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The longest path of a tensor's directory, below tensors/. */
enum { DIRECTORY_MAX = NAME_MAX_BYTES + 32 };

unsigned tensor_slots(void)
{
    unsigned n_dtypes = 0;
    while (dtypes[n_dtypes] != NULL)
        n_dtypes++;
    return SLOT_FIRST_DTYPE + 2 * n_dtypes;
}

/* Returns a view with the type and shape that quant/views/convert.h needs to find out what is possible; it cannot be
 * read. */
static struct view outline(const struct tensor *tensor)
{
    return (struct view){
        .dtype = tensor->dtype,
        .rank = tensor->rank,
        .shape = tensor->shape,
        .n_elements = tensor_elements(tensor),
    };
}

static bool wants_importance(const struct dtype *dtype)
{
    struct kernels kernels = dtype_kernels(dtype);
    return kernels.encode == NULL && kernels.encode_weighted != NULL;
}

/* Fills in the file of a slot and returns NULL, or returns the reason why the tensor has no such file. */
static const char *fill_in(const struct shown_tensors *shown, size_t index, const struct content_options *options,
                           unsigned slot, struct tensor_file *ret_file)
{
    const char *reason;
    struct tensor room;
    const struct tensor *tensor =
        slot < SLOT_FIRST_DTYPE ? shown_tensors_stored(shown, index) : shown_tensors_at(shown, index, &room);
    if (tensor == NULL)
        return "the weight is packed: no tensor is stored under its name";
    if (tensor->refusal != NULL)
        return tensor->refusal;
    struct tensor_file file = {*tensor, "raw", encoding_of(tensor->dtype), .numpy = slot == SLOT_RAW_NPY};
    if (slot >= SLOT_FIRST_DTYPE) {
        file.encoding.dtype = dtypes[(slot - SLOT_FIRST_DTYPE) / 2];
        file.numpy = (slot - SLOT_FIRST_DTYPE) % 2 == 1;
        file.name = file.encoding.dtype->view_name;
        if (file.encoding.dtype == &q4_0_dtype)
            file.encoding.rule = options->request.quantize.q4_0_rule;
        if (shown->importances != NULL)
            file.encoding.importance = shown->importances[index].columns;
    }
    struct view view = outline(tensor);
    if (file.name == NULL)
        return "this type is not supported";
    if (!convert_possible(&view, file.encoding, &reason))
        return options->request.quantize.imatrix == NULL && wants_importance(file.encoding.dtype)
                   ? "it needs an importance matrix: -o imatrix=FILE"
                   : reason;
    if (file.numpy && file.encoding.dtype->numpy == NULL)
        return "numpy has no such type";
    char header[NUMPY_HEADER_MAX];
    file.stored = file.encoding.dtype == tensor->dtype && tensor_is_stored(tensor);
    file.size = convert_bytes(&view, file.encoding.dtype);
    if (file.numpy)
        file.size += numpy_header(file.encoding.dtype, tensor->shape, tensor->rank, header);
    *ret_file = file;
    return NULL;
}

bool tensor_file_at(const struct shown_tensors *shown, size_t index, const struct content_options *options,
                    unsigned slot, struct tensor_file *ret_file)
{
    return fill_in(shown, index, options, slot, ret_file) == NULL;
}

/* Returns the slot that files of that name have in every tensor; SLOT_METADATA if no view has that name. */
static unsigned slot_of_name(const char *name)
{
    size_t length = strlen(name);
    bool numpy = text_ends_with(name, ".npy");
    length -= numpy ? strlen(".npy") : 0;
    if (length == strlen("raw") && memcmp(name, "raw", length) == 0)
        return numpy ? SLOT_RAW_NPY : SLOT_RAW;
    for (unsigned i = 0; dtypes[i] != NULL; i++) {
        const char *view_name = dtypes[i]->view_name;
        if (view_name != NULL && strlen(view_name) == length && memcmp(view_name, name, length) == 0)
            return SLOT_FIRST_DTYPE + 2 * i + numpy;
    }
    return SLOT_METADATA;
}

bool tensor_file_named(const struct shown_tensors *shown, size_t index, const struct content_options *options,
                       const char *name, struct tensor_file *ret_file, struct error *error)
{
    unsigned slot = slot_of_name(name);
    const char *refusal =
        slot != SLOT_METADATA ? fill_in(shown, index, options, slot, ret_file) : "no type has this name";
    return refusal == NULL || error_set(error, "%s", refusal);
}

const char *tensor_file_refusal(const struct shown_tensors *shown, size_t index, const struct content_options *options,
                                const char *name)
{
    struct tensor_file unused;
    unsigned slot = slot_of_name(name);
    return slot != SLOT_METADATA ? fill_in(shown, index, options, slot, &unused) : NULL;
}

static void put_list(struct json_writer *writer, const char *key, const uint64_t *values, unsigned n_values)
{
    json_begin_array(writer, key);
    for (unsigned i = 0; i < n_values; i++)
        json_put_number(writer, NULL, values[i]);
    json_end(writer);
}

/* Returns the length of a text without its quotes, as JSON has it. */
static size_t json_length(const char *text)
{
    struct buffer out = {0};
    buffer_append_json_text(&out, text, strlen(text), JSON_UTF8);
    size_t length = out.length - strlen("\"\"");
    buffer_free(&out);
    return length;
}

/* Returns the number of files. */
static size_t put_views(const struct shown_tensors *shown, size_t index, const struct content_options *options,
                        const char *directory, struct json_writer *writer)
{
    size_t n_files = 0;
    json_begin_array(writer, "views");
    for (unsigned slot = SLOT_RAW, n_slots = tensor_slots(); slot < n_slots; slot++) {
        struct tensor_file file = {.name = ""};
        if (!tensor_file_at(shown, index, options, slot, &file))
            continue;
        char path[DIRECTORY_MAX + 64];
        snprintf(path, sizeof path, "tensors/%s/%s%s", directory, file.name, file.numpy ? ".npy" : "");
        json_put_template(writer, "{'path': %s, 'dtype': %s, 'size': %u, 'stored': %b}", path,
                          file.encoding.dtype->name, file.size, file.stored);
        n_files++;
    }
    json_end(writer);
    return n_files;
}

/* Writes a weight's packing, parts and result. */
static void put_packing(const struct tensor *tensor, const struct unpacked *unpacked, struct json_writer *writer)
{
    json_begin_object(writer, "packing");
    json_put_text(writer, "name", unpacked->packing->name);
    if (tensor->refusal == NULL) {
        json_put_number(writer, "bits", unpacked->bits);
        json_put_text(writer, "dtype", tensor->dtype->name);
        put_list(writer, "shape", tensor->shape, tensor->rank);
    }
    json_begin_array(writer, "parts");
    for (unsigned i = 0; i < unpacked->n_parts; i++)
        json_put_text_n(writer, NULL, unpacked->parts[i]->name, unpacked->parts[i]->name_length);
    json_end(writer);
    json_end(writer);
}

/* Writes the place of the tensor that is stored under the name; the packing describes the result. */
static void put_place(const struct tensor *stored, struct json_writer *writer)
{
    uint64_t row_major[SHAPE_MAX_RANK];
    struct view view = outline(stored);
    shape_row_major_strides(stored->shape, stored->rank, row_major);
    json_put_text(writer, "dtype", stored->dtype->name);
    put_list(writer, "shape", stored->shape, stored->rank);
    put_list(writer, "strides", stored->strides ? stored->strides : row_major, stored->rank);
    json_put_number(writer, "elements", view.n_elements);
    json_put_number(writer, "bytes", view_bytes(&view));
    if (stored->view == NULL && stored->source != NULL)
        json_put_template(writer, "'source': %s, 'offset': %u, 'length': %u", source_name(stored->source),
                          stored->offset, stored->length);
    else
        json_put_template(writer, "'source': null, 'offset': null, 'length': null");
}

/* Writes everything except the files, and gets the path of the directory. `expert` is NULL or an expert's number. */
static void put_tensor(const struct shown_tensors *shown, size_t index, const uint64_t *expert,
                       char directory[DIRECTORY_MAX + 1], struct json_writer *writer)
{
    struct tensor room;
    const struct tensor *tensor = shown_tensors_at(shown, index, &room), *stored = shown_tensors_stored(shown, index);
    const struct unpacked *unpacked = shown_tensors_unpacked(shown, index);
    name_escape(tensor->name, tensor->name_length, directory);
    if (expert != NULL)
        snprintf(directory + strlen(directory), DIRECTORY_MAX - NAME_MAX_BYTES, "/experts/%" PRIu64, *expert);
    json_put_text_n(writer, "name", tensor->name, tensor->name_length);
    json_put_text(writer, "directory", directory);
    if (expert != NULL)
        json_put_number(writer, "expert", *expert);
    else if (tensor_experts(shown, index) > 0)
        json_put_number(writer, "experts", tensor_experts(shown, index));
    put_place(stored != NULL ? stored : tensor, writer);
    if (unpacked != NULL)
        put_packing(tensor, unpacked, writer);
    if (tensor->refusal != NULL)
        json_put_text(writer, "refused", tensor->refusal);
}

static void put_metadata(const struct shown_tensors *shown, size_t index, const uint64_t *expert,
                         const struct content_options *options, struct buffer *out)
{
    struct json_writer writer = {.out = out, .letters = JSON_UTF8, .compact = true};
    char directory[DIRECTORY_MAX + 1];
    json_begin_object(&writer, NULL);
    put_tensor(shown, index, expert, directory, &writer);
    put_views(shown, index, options, directory, &writer);
    json_end(&writer);
}

void tensor_metadata(const struct shown_tensors *shown, size_t index, const struct content_options *options,
                     struct buffer *out)
{
    put_metadata(shown, index, NULL, options, out);
}

void expert_metadata(const struct shown_tensors *expert, uint64_t number, const struct content_options *options,
                     struct buffer *out)
{
    put_metadata(expert, 0, &number, options, out);
}

/* Reports whether two tensors have the same files. */
static bool is_alike(const struct tensor *a, const struct tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank && a->refusal == NULL && b->refusal == NULL &&
           tensor_is_stored(a) == tensor_is_stored(b) &&
           (a->rank == 0 || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0);
}

/* Returns the cache entry of a tensor with the same files, or a new one. With importances, no two tensors count as
 * alike. */
static struct metadata_length *find_length(struct metadata_lengths *lengths, const struct shown_tensors *shown,
                                           size_t index)
{
    enum { MOST = sizeof lengths->known / sizeof *lengths->known };
    struct tensor room, nothing = {0};
    const struct tensor *tensor = shown_tensors_at(shown, index, &room), *stored = shown_tensors_stored(shown, index);
    stored = stored != NULL ? stored : &nothing;
    for (size_t i = 0; i < lengths->n_known && i < MOST && shown->importances == NULL; i++)
        if (is_alike(&lengths->known[i].tensor, tensor) && is_alike(&lengths->known[i].stored, stored))
            return &lengths->known[i];
    struct metadata_length *length = &lengths->known[lengths->n_known++ % MOST];
    *length = (struct metadata_length){.tensor = *tensor, .stored = *stored};
    return length;
}

void tensor_first_files(const struct shown_tensors *shown, const struct content_options *options, size_t *firsts)
{
    struct metadata_lengths kinds = {.n_known = 0}; /* a length of 1 marks those that were looked at */
    struct tensor_file unused;
    unsigned n_slots = tensor_slots();
    for (unsigned slot = 0; slot < n_slots; slot++)
        firsts[slot] = SIZE_MAX;
    for (size_t i = 0; i < shown_tensors_count(shown); i++) {
        struct metadata_length *kind = find_length(&kinds, shown, i);
        for (unsigned slot = SLOT_RAW; slot < n_slots && kind->length == 0; slot++)
            if (firsts[slot] == SIZE_MAX && tensor_file_at(shown, i, options, slot, &unused))
                firsts[slot] = i;
        kind->length = 1;
    }
}

size_t tensor_metadata_length(const struct shown_tensors *shown, size_t index, const struct content_options *options,
                              struct metadata_lengths *lengths)
{
    struct json_writer writer = {.out = &lengths->text, .letters = JSON_UTF8, .compact = true};
    char directory[DIRECTORY_MAX + 1];
    struct metadata_length *views = find_length(lengths, shown, index);
    lengths->text.length = 0;
    json_begin_object(&writer, NULL);
    put_tensor(shown, index, NULL, directory, &writer);
    size_t length = lengths->text.length, directory_length = json_length(directory);
    if (views->length == 0) {
        views->n_paths = put_views(shown, index, options, directory, &writer);
        views->length = lengths->text.length - length - views->n_paths * directory_length;
    }
    return length + views->length + views->n_paths * directory_length + strlen("}");
}
