#include "models/quantize/imatrix.h"

#include "base/checked.h"
#include "base/little_endian.h"
#include "base/text.h"
#include "formats/format.h"
#include "models/convert/model.h"
#include "models/facts.h"
#include "models/family/tensors.h"
#include "quant/views/convert.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NAME = 64 * 1024, MOST_DATASET = 1 << 20 };

/* An importance matrix being read, with entries in the order of the file. */
struct reading {
    struct imatrix *imatrix;
    struct arena *arena;
    const char *path;
};

static void add_entry(struct reading *reading, const char *name, const float *values, uint64_t n_values)
{
    struct imatrix *imatrix = reading->imatrix;
    bool finite = true;
    for (uint64_t i = 0; i < n_values; i++)
        finite &= isfinite(values[i]) != 0;
    imatrix->entries = arena_grow(reading->arena, imatrix->entries, imatrix->n_entries, sizeof *imatrix->entries);
    imatrix->entries[imatrix->n_entries++] = (struct imatrix_entry){name, values, n_values, finite};
}

/* GGUF: two F32 tensors for each matrix: sums of squares, and for each expert the number of squares in a sum. */

static const char sums_suffix[] = ".in_sum2", counts_suffix[] = ".counts";

/* Returns the tensor's name without the suffix, in the arena; NULL: it has another end. */
static char *without_suffix(struct reading *reading, const struct tensor *tensor, const char *suffix)
{
    if (!text_ends_with(tensor->name, suffix))
        return NULL;
    return arena_strndup(reading->arena, tensor->name, strlen(tensor->name) - strlen(suffix));
}

static float *read_values(struct reading *reading, const struct tensor *tensor, struct error *error)
{
    uint64_t n_values = tensor_elements(tensor);
    float *values = arena_array(reading->arena, n_values, sizeof *values);
    if (tensor->refusal != NULL || tensor->dtype != &f32_dtype) {
        error_set(error, "tensor '%s' is not F32", tensor->name);
        return NULL;
    }
    return convert_values(tensor_view(tensor, reading->arena), 0, n_values, values, error) ? values : NULL;
}

/* Turns sums into means, like the tool, which takes 1 for an expert without inputs. */
static bool take_means(struct reading *reading, const char *name, const struct tensor *sums,
                       const struct tensor *counts, struct error *error)
{
    uint64_t n_values = tensor_elements(sums), n_counts = tensor_elements(counts);
    float *values = read_values(reading, sums, error),
          *numbers = values != NULL ? read_values(reading, counts, error) : NULL;
    if (numbers == NULL)
        return false;
    if (n_counts == 0 || n_values == 0)
        return error_set(error, "'%s' has no values", name);
    uint64_t n_columns = n_values / n_counts;
    for (uint64_t i = 0; i < n_counts; i++) {
        float count = (float)lroundf(numbers[i]);
        reading->imatrix->n_unseen += count > 0 ? 0 : 1;
        for (uint64_t j = i * n_columns; j < (i + 1) * n_columns; j++)
            values[j] = count > 0 ? values[j] / count : 1;
    }
    memset(values + n_counts * n_columns, 0, (n_values - n_counts * n_columns) * sizeof *values);
    add_entry(reading, name, values, n_values);
    return true;
}

static bool read_keys(struct reading *reading, const struct gguf_kvs *kvs, struct error *error)
{
    uint64_t chunk_size;
    struct gguf_array datasets;
    size_t length = 0;
    if (!gguf_get_u64(kvs, "imatrix.chunk_count", &reading->imatrix->n_chunks) ||
        !gguf_get_u64(kvs, "imatrix.chunk_size", &chunk_size) ||
        !gguf_get_array(kvs, "imatrix.datasets", reading->arena, &datasets, error))
        return error_set(
            error, "not an importance matrix: imatrix.datasets, imatrix.chunk_count or imatrix.chunk_size is missing");
    const char *first = datasets.count > 0 ? gguf_array_string(&datasets, 0, &length) : NULL;
    if (first != NULL)
        reading->imatrix->dataset = arena_strndup(reading->arena, first, length);
    return true;
}

static bool read_gguf(struct reading *reading, const struct checkpoint *file, struct error *error)
{
    const struct tensor_set *set = file->tensors;
    if (!read_keys(reading, &file->metadata, error))
        return false;
    for (size_t i = 0; i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        char *name = without_suffix(reading, tensor, sums_suffix);
        bool is_sums = name != NULL;
        if (!is_sums && (name = without_suffix(reading, tensor, counts_suffix)) == NULL)
            continue;
        const char *suffix = is_sums ? counts_suffix : sums_suffix;
        const struct tensor *other = tensor_set_find_text(set, arena_printf(reading->arena, "%s%s", name, suffix));
        if (other == NULL)
            return error_set(error, "'%s' has no '%s%s'", tensor->name, name, suffix);
        if (is_sums && !take_means(reading, name, tensor, other, error))
            return false;
    }
    return reading->imatrix->n_entries != 0 || error_set(error, "it contains no importance matrix tensors");
}

static bool open_gguf(struct reading *reading, struct error *error)
{
    static const struct format *const gguf_alone[] = {&gguf_format, NULL};
    const struct checkpoint *file =
        checkpoint_open(reading->path, gguf_alone, &(struct open_options){.format = "gguf"}, error);
    if (file == NULL)
        return false;
    bool is_read = read_gguf(reading, file, error) || error_prefix(error, "%s", reading->path);
    checkpoint_close(file);
    return is_read;
}

/* The older form: a sequence of numbers of four bytes, and texts. */

struct walk {
    struct source *file;
    uint64_t offset;
};

static bool take(struct walk *walk, uint64_t length, void *out, const char *what, struct error *error)
{
    uint64_t left = source_size(walk->file) - walk->offset;
    if (length > left)
        return error_set(error, "truncated: %s at byte %" PRIu64 " has %" PRIu64 " bytes, but %" PRIu64 " are left",
                         what, walk->offset, length, left);
    if (!source_read(walk->file, walk->offset, length, out, error))
        return false;
    walk->offset += length;
    return true;
}

static bool take_i32(struct walk *walk, int32_t least, int32_t *ret_number, const char *what, struct error *error)
{
    unsigned char bytes[4];
    uint64_t offset = walk->offset;
    if (!take(walk, sizeof bytes, bytes, what, error))
        return false;
    *ret_number = (int32_t)read_le(bytes, sizeof bytes);
    return *ret_number >= least || error_set(error, "%s at byte %" PRIu64 " is %" PRId32 ", and not at least %" PRId32,
                                             what, offset, *ret_number, least);
}

static bool take_floats(struct walk *walk, uint64_t count, float *values, struct error *error)
{
    if (!take(walk, count * sizeof *values, values, "values", error))
        return false;
    little_endian(values, count, sizeof *values);
    return true;
}

static bool read_entry(struct reading *reading, struct walk *walk, struct error *error)
{
    int32_t name_length, n_calls, n_values;
    if (!take_i32(walk, 0, &name_length, "the length of a name", error))
        return false;
    if (name_length > MOST_NAME)
        return error_set(error, "name too long: %" PRId32 " bytes, the limit is %d", name_length, MOST_NAME);
    char *name = arena_alloc(reading->arena, (size_t)name_length + 1);
    if (!take(walk, (uint64_t)name_length, name, "a name", error) ||
        !take_i32(walk, INT32_MIN, &n_calls, "the number of calls", error) ||
        !take_i32(walk, 1, &n_values, "the number of values", error))
        return false;
    if ((uint64_t)n_values > (source_size(walk->file) - walk->offset) / sizeof(float))
        return error_set(error, "truncated: '%s' has %" PRId32 " values, but only %" PRIu64 " bytes follow", name,
                         n_values, source_size(walk->file) - walk->offset);
    float *values = arena_array(reading->arena, (size_t)n_values, sizeof *values);
    if (!take_floats(walk, (uint64_t)n_values, values, error))
        return false;
    for (int32_t i = 0; n_calls > 0 && i < n_values; i++)
        values[i] /= (float)n_calls;
    add_entry(reading, name, values, (uint64_t)n_values);
    return true;
}

/* Reads the end of newer files, after the entries: the number of chunks, and the name of the text. */
static bool read_trailer(struct reading *reading, struct walk *walk, struct error *error)
{
    int32_t n_chunks, length;
    if (walk->offset == source_size(walk->file))
        return true;
    if (!take_i32(walk, INT32_MIN, &n_chunks, "the number of chunks", error))
        return false;
    reading->imatrix->n_chunks = n_chunks > 0 ? (uint64_t)n_chunks : 0;
    if (walk->offset == source_size(walk->file))
        return true;
    if (!take_i32(walk, INT32_MIN, &length, "the length of the dataset's name", error))
        return false;
    if (length <= 0)
        return true;
    if (length > MOST_DATASET)
        return error_set(error, "the dataset's name is too long: %" PRId32 " bytes, the limit is %d", length,
                         MOST_DATASET);
    char *dataset = arena_alloc(reading->arena, (size_t)length + 1);
    reading->imatrix->dataset = dataset;
    return take(walk, (uint64_t)length, dataset, "the dataset's name", error);
}

static bool read_older(struct reading *reading, struct source *file, struct error *error)
{
    struct walk walk = {.file = file};
    int32_t n_entries;
    if (!take_i32(&walk, 1, &n_entries, "the number of entries", error))
        return false;
    for (int32_t i = 0; i < n_entries; i++)
        if (!read_entry(reading, &walk, error))
            return false;
    return read_trailer(reading, &walk, error);
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct imatrix_entry *)a)->name, ((const struct imatrix_entry *)b)->name);
}

/* Sorts the entries by name; of two with the same name, the later one stays. */
static void sort_entries(struct imatrix *imatrix)
{
    size_t n_kept = 0;
    struct text_index seen = {0};
    for (size_t i = 0; i < imatrix->n_entries; i++) {
        size_t at, length = strlen(imatrix->entries[i].name);
        if (!text_index_find(&seen, imatrix->entries[i].name, length, &at)) {
            at = n_kept++;
            text_index_add(&seen, imatrix->entries[i].name, length, at);
        }
        imatrix->entries[at] = imatrix->entries[i];
    }
    text_index_free(&seen);
    imatrix->n_entries = n_kept;
    qsort(imatrix->entries, n_kept, sizeof *imatrix->entries, compare_entries);
}

const struct imatrix *imatrix_open(const char *path, struct arena *arena, struct error *error)
{
    struct imatrix *imatrix = arena_alloc(arena, sizeof *imatrix);
    struct reading reading = {.imatrix = imatrix, .arena = arena, .path = path};
    unsigned char head[4] = {0};
    imatrix->file = path;
    struct source *file = location_open_file(path, error);
    if (file == NULL)
        return NULL;
    bool is_read = source_size(file) < sizeof head || source_read(file, 0, sizeof head, head, error);
    if (is_read && memcmp(head, "GGUF", sizeof head) == 0)
        is_read = open_gguf(&reading, error);
    else if (is_read)
        is_read = read_older(&reading, file, error) || error_prefix(error, "%s: not an importance matrix", path);
    source_close(file);
    if (!is_read)
        return NULL;
    sort_entries(imatrix);
    return imatrix;
}

static bool holds_one_of(const char *name, const char *const *parts)
{
    for (; *parts != NULL; parts++)
        if (strstr(name, *parts) != NULL)
            return true;
    return false;
}

static bool counts(const struct imatrix_entry *entry, const struct imatrix_filter *filter)
{
    if (filter->exclude != NULL && holds_one_of(entry->name, filter->exclude))
        return false;
    return filter->include == NULL || holds_one_of(entry->name, filter->include);
}

size_t imatrix_count(const struct imatrix *imatrix, const struct imatrix_filter *filter)
{
    size_t count = 0;
    for (size_t i = 0; imatrix != NULL && i < imatrix->n_entries; i++)
        count += counts(&imatrix->entries[i], filter);
    return count;
}

bool imatrix_check(const struct imatrix *imatrix, const struct imatrix_filter *filter, struct error *error)
{
    for (size_t i = 0; imatrix != NULL && i < imatrix->n_entries; i++)
        if (counts(&imatrix->entries[i], filter) && !imatrix->entries[i].finite)
            return error_set(error, "%s: '%s' has a value that is not finite", imatrix->file, imatrix->entries[i].name);
    return true;
}

const struct imatrix_entry *imatrix_find(const struct imatrix *imatrix, const struct imatrix_filter *filter,
                                         const char *name)
{
    struct imatrix_entry wanted = {.name = name};
    if (imatrix == NULL)
        return NULL;
    const struct imatrix_entry *entry =
        bsearch(&wanted, imatrix->entries, imatrix->n_entries, sizeof wanted, compare_entries);
    return entry != NULL && counts(entry, filter) ? entry : NULL;
}

struct importance imatrix_importance(const struct imatrix_entry *entry, const struct tensor *tensor)
{
    struct importance importance = {
        .n_columns = tensor->rank > 0 ? tensor->shape[tensor->rank - 1] : 1,
        .n_matrices = tensor->rank >= 3 ? tensor->shape[tensor->rank - 3] : 1,
    };
    uint64_t n_values;
    if (entry != NULL && checked_multiply(importance.n_columns, importance.n_matrices, &n_values) &&
        n_values == entry->n_values)
        importance.columns = entry->values;
    return importance;
}

/* The relation of a checkpoint's names to GGUF names. */
struct naming {
    struct relation_job job;
    struct model_builder builder;
    struct gguf_model model;
};

/* Reports whether a tensor's columns stay columns in the GGUF. */
static bool keeps_columns(const struct relation_match *match)
{
    const struct relation_entry *entry = match->entry;
    const struct rearrangement *axes = entry->axes[FORWARD];
    if (entry->row->map != NULL || entry->n_names[BACKWARD] != 1)
        return false;
    if (axes == NULL || axes->is_identity)
        return true;
    const struct factor *here = axes->sides[FORWARD][match->which].last, *there = axes->sides[BACKWARD][0].last;
    return here->kind == there->kind &&
           (here->kind == FACTOR_REST || (here->kind == FACTOR_AXIS && here->number == there->number));
}

/* Returns the entry of the matrix that a tensor becomes, and its member in it; UINT64_MAX: it is the whole matrix. */
static const struct imatrix_entry *find_entry(const struct naming *naming, const struct tensor *tensor,
                                              const struct imatrix *imatrix, const struct imatrix_filter *filter,
                                              uint64_t *ret_member)
{
    struct relation_match match;
    const char *name = family_tensor_name(naming->builder.family, naming->builder.hf, naming->job.dimensions,
                                          tensor->name, naming->job.arena);
    if (name == NULL || !relation_find(naming->job.relation, FORWARD, naming->job.dimensions, NULL, name, &match) ||
        match.entry->row->there == NULL || !keeps_columns(&match))
        return NULL;
    return imatrix_find(imatrix, filter, relation_target(&naming->job, &match, ret_member));
}

static struct importance related(const struct naming *naming, const struct tensor *tensor,
                                 const struct imatrix *imatrix, const struct imatrix_filter *filter)
{
    uint64_t member = UINT64_MAX;
    const struct imatrix_entry *entry = find_entry(naming, tensor, imatrix, filter, &member);
    struct importance importance = imatrix_importance(member == UINT64_MAX ? entry : NULL, tensor);
    if (entry == NULL || member == UINT64_MAX || tensor->rank != 2 || importance.n_columns == 0 ||
        entry->n_values % importance.n_columns != 0 || member >= entry->n_values / importance.n_columns)
        return importance;
    importance.columns = entry->values + member * importance.n_columns;
    return importance;
}

/* Returns false if the family is unknown, or its rows cannot be used. */
static bool begin(struct naming *naming, const struct checkpoint *checkpoint, struct arena *arena)
{
    struct error error;
    struct model_builder *builder = &naming->builder;
    naming->model = (struct gguf_model){.arena = arena, .checkpoint = checkpoint};
    const struct config_facts *config = facts_of(checkpoint).keys == NULL ? config_facts_of(checkpoint, &error) : NULL;
    const struct family *family = config != NULL ? config->family : NULL;
    naming->model.hparams = family != NULL ? hparams_of(checkpoint, &error) : NULL;
    if (naming->model.hparams == NULL)
        return false;
    builder->hf = config->family_class;
    builder->model = &naming->model;
    builder->family = naming->model.family = family;
    dimensions_read(&builder->dimensions, naming->model.hparams);
    family_add_dimensions(family, &builder->dimensions, naming->model.hparams);
    if (!builder_adjust(builder, &error))
        return false;
    naming->job = (struct relation_job){
        .relation = family_relation(family, &error),
        .direction = FORWARD,
        .dimensions = &builder->dimensions,
        .arena = arena,
    };
    return naming->job.relation != NULL;
}

const struct importance *importances_of(const struct checkpoint *checkpoint, const struct shown_tensors *shown,
                                        const struct imatrix *imatrix, const struct imatrix_filter *filter,
                                        struct arena *arena)
{
    if (imatrix == NULL)
        return NULL;
    struct naming naming = {.job = {.relation = NULL}};
    struct arena *scratch = arena_new();
    size_t n_tensors = shown_tensors_count(shown);
    struct importance *importances = arena_array(arena, n_tensors + 1, sizeof *importances);
    bool is_named = begin(&naming, checkpoint, scratch);
    for (size_t i = 0; i < n_tensors; i++) {
        struct tensor room;
        const struct tensor *tensor = shown_tensors_at(shown, i, &room);
        importances[i] = imatrix_importance(imatrix_find(imatrix, filter, tensor->name), tensor);
        if (is_named && importances[i].columns == NULL)
            importances[i] = related(&naming, tensor, imatrix, filter);
    }
    gguf_kvs_free(&naming.model.kvs);
    hparams_free(naming.model.hparams);
    arena_free(scratch);
    return importances;
}
