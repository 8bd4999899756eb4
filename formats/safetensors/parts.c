/* Parts of tensors in safetensors files, one or more for each process that saved them: what
 * torch.distributed.checkpoint's HuggingFaceStorageWriter(save_distributed=True) leaves without consolidation.
 *
 * A file is named shard-RANK-..., RANK from 1 on. DCP_SHARDING_INFO in its header tells at which element of the whole
 * each part begins; in a file without it, each begins at its first. The size of a whole is where its last part ends, so
 * nothing tells whether the last ranks are missing: the files of one rank alone are taken for a part of the model. Any
 * other gap is an error. A rank may have several files, ...-model-FILE-of-FILES.safetensors, each with other tensors;
 * some rank has each of them. Tensors are in the order of their names.
 * Source: torch/distributed/checkpoint/_hf_utils.py, hf_storage.py. */
#include "base/checked.h"
#include "base/text.h"
#include "formats/checkpoint_builder.h"
#include "formats/format.h"
#include "formats/safetensors/safetensors.h"
#include "formats/shape.h"
#include "text/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILES = 65536, SHOWN_NAME = 200 };

static const char beginning[] = "shard-", ending[] = ".safetensors";

struct reader {
    struct checkpoint *checkpoint;
    const struct input *input;
    const struct open_options *options;
    struct tensor_set *parts;
    const uint64_t **firsts; /* on the heap: of each part, where it begins in the whole */
};

/* Returns the rank in a file's name, from 1 on; 0: the name has none. */
static unsigned long rank_of(const char *name)
{
    char *end;
    if (!text_starts_with(name, beginning) || !text_ends_with(name, ending) ||
        strspn(name + strlen(beginning), "0123456789") == 0)
        return 0;
    unsigned long rank = strtoul(name + strlen(beginning), &end, 10);
    return *end == '-' && rank <= MAX_FILES ? rank : 0;
}

/* Reads the number after a text at *at, and moves *at to its end; 0: there is none. */
static unsigned long number_after(const char **at, const char *text)
{
    char *end;
    if (!text_starts_with(*at, text) || strspn(*at + strlen(text), "0123456789") == 0)
        return 0;
    unsigned long number = strtoul(*at + strlen(text), &end, 10);
    *at = end;
    return number <= MAX_FILES ? number : 0;
}

/* Reports whether some rank has each of the files that the names count; names without such numbers count one. */
static bool check_files(struct reader *reader, struct error *error)
{
    unsigned long n_files = 0, missing = 0;
    bool *has = memory_alloc((MAX_FILES + 1) * sizeof *has), agree = true;
    memset(has, 0, (MAX_FILES + 1) * sizeof *has);
    for (size_t i = 0; i < reader->input->list.count; i++) {
        const char *at = reader->input->list.entries[i].name;
        if (rank_of(at) == 0 || number_after(&at, beginning) == 0)
            continue;
        unsigned long file = number_after(&at, "-model-"), files = file > 0 ? number_after(&at, "-of-") : 0;
        agree = agree && (n_files == 0 || files == n_files) && file <= files;
        n_files = files;
        has[file] = true;
    }
    for (unsigned long file = n_files; file > 0; file--)
        missing = has[file] ? missing : file;
    free(has);
    if (!agree)
        return error_set(error,
                         "%s: the numbers in the files' names (-model-N-of-M) contradict each other; keep the files of "
                         "one save",
                         reader->input->path);
    if (missing > 0)
        checkpoint_lacks(reader->checkpoint, reader->options,
                         "no process has file %lu of %lu (shard-*-model-%05lu-of-%05lu.safetensors)", missing, n_files,
                         missing, n_files);
    return true;
}

static enum probe parts_probe(const struct input *input)
{
    bool any = false;
    for (size_t i = 0; input->file == NULL && i < input->list.count; i++) {
        const char *name = input->list.entries[i].name;
        if (text_ends_with(name, ".safetensors.index.json") || (text_ends_with(name, ending) && rank_of(name) == 0))
            return PROBE_NO;
        any |= rank_of(name) > 0;
    }
    return any ? PROBE_SURE : PROBE_NO;
}

static bool refuse(const struct tensor *tensor, const char *reason, struct error *error)
{
    char shown[SHOWN_NAME];
    text_printable(tensor->name, tensor->name_length, shown, sizeof shown);
    return error_set(error, "tensor '%s': %s", shown, reason);
}

/* Returns where a part begins, by its entry {"saved_offsets": [...]}; NULL, with an error, if that is not valid.
 * `places` NULL: it begins at the first element. */
static const uint64_t *first_of(const struct tensor *part, const struct json *places, struct arena *arena,
                                struct error *error)
{
    const struct json *entry = json_get_n(places, part->name, part->name_length);
    uint64_t *first = arena_array(arena, part->rank + 1U, sizeof *first);
    memset(first, 0, (part->rank + 1U) * sizeof *first);
    if (places == NULL)
        return first;
    if (entry == NULL) {
        refuse(part, "DCP_SHARDING_INFO does not tell where it begins", error);
        return NULL;
    }
    const struct json *offsets = json_get(entry, "saved_offsets");
    bool valid = json_is(offsets, JSON_ARRAY) && json_count(offsets) == part->rank;
    size_t i = 0;
    for (const struct json *offset = json_first(offsets); valid && offset != NULL; offset = json_next(offset))
        valid = json_u64(offset, &first[i++]);
    if (!valid)
        refuse(part, "its saved_offsets are not a number for each dimension", error);
    return valid ? first : NULL;
}

bool safetensors_part_firsts(const struct tensor_set *parts, size_t start, const char *places, struct arena *arena,
                             const uint64_t **firsts, struct error *error)
{
    struct json_document *document = places != NULL ? json_parse(places, strlen(places), error) : NULL;
    if (places != NULL && document == NULL)
        return error_prefix(error, "DCP_SHARDING_INFO");
    const struct json *root = document != NULL ? json_root(document) : NULL;
    bool good = true;
    for (size_t i = start; good && i < parts->n_tensors; i++) {
        firsts[i] = first_of(&parts->tensors[i], root, arena, error);
        good = firsts[i] != NULL;
    }
    json_free(document);
    return good;
}

static bool read_file(struct reader *reader, const char *name, struct error *error)
{
    size_t start = reader->parts->n_tensors;
    const char *places;
    struct source *file = location_source(reader->input->location, name, error);
    if (file == NULL)
        return false;
    checkpoint_add_source(reader->checkpoint, file);
    if (!safetensors_read_parts(reader->checkpoint, file, reader->parts, reader->options, &places, error))
        return false;
    reader->firsts = memory_resize(reader->firsts, (reader->parts->n_tensors + 1) * sizeof *reader->firsts);
    return safetensors_part_firsts(reader->parts, start, places, reader->checkpoint->arena, reader->firsts, error) ||
           error_prefix(error, "%s", name);
}

/* Reads the files in the order of their names, and checks that no rank before the last one is missing. */
static bool read_files(struct reader *reader, struct error *error)
{
    unsigned long last = 0;
    for (size_t i = 0; i < reader->input->list.count; i++) {
        const char *name = reader->input->list.entries[i].name;
        unsigned long rank = rank_of(name);
        if (rank == 0)
            continue;
        if (rank > last + 1)
            return error_set(error, "%s: the files of rank %lu are missing (%s%05lu-...)", reader->input->path,
                             last + 1, beginning, last + 1);
        last = rank;
        if (!read_file(reader, name, error))
            return false;
    }
    if (!check_files(reader, error))
        return false;
    if (last == 1)
        checkpoint_lacks(reader->checkpoint, reader->options,
                         "the parts of tensors that one process saved; nothing tells whether there were more");
    else
        checkpoint_note(reader->checkpoint, SUBJECT_SOURCE,
                        "the parts of tensors that %lu processes saved are joined; nothing tells whether there were "
                        "more",
                        last);
    return true;
}

static bool is_empty(const uint64_t *shape, unsigned rank)
{
    bool any = false;
    for (unsigned i = 0; i < rank; i++)
        any = any || shape[i] == 0;
    return any;
}

/* Returns the shape of the whole, whose parts those of the indices are; NULL, with an error, if they disagree. */
static const uint64_t *whole_shape(struct reader *reader, const uint32_t *indices, size_t n, struct error *error)
{
    const struct tensor *parts = reader->parts->tensors, *one = &parts[indices[0]];
    uint64_t *shape = arena_array(reader->checkpoint->arena, one->rank + 1U, sizeof *shape), n_elements, n_bytes;
    memset(shape, 0, (one->rank + 1U) * sizeof *shape);
    for (size_t i = 0; i < n; i++) {
        const struct tensor *part = &parts[indices[i]];
        if (part->dtype != one->dtype || part->rank != one->rank) {
            refuse(one, "its parts differ in dtype or number of dimensions", error);
            return NULL;
        }
        for (unsigned k = 0; k < one->rank; k++) {
            uint64_t end;
            if (!checked_add(reader->firsts[indices[i]][k], part->shape[k], &end))
                end = UINT64_MAX;
            shape[k] = end > shape[k] ? end : shape[k];
        }
    }
    if (!shape_size(one->dtype, shape, one->rank, &n_elements, &n_bytes, NULL) || n_bytes > INT64_MAX) {
        refuse(one, "the size of the whole overflows", error);
        return NULL;
    }
    return shape;
}

/* Adds a tensor, whose parts are those of the `n` indices. */
static bool add_whole(struct reader *reader, const uint32_t *indices, size_t n, struct error *error)
{
    struct arena *arena = reader->checkpoint->arena;
    struct tensor whole = reader->parts->tensors[indices[0]];
    const uint64_t *shape = whole_shape(reader, indices, n, error);
    if (shape == NULL)
        return false;
    bool is_stored = n == 1 && memcmp(shape, whole.shape, whole.rank * sizeof *shape) == 0;
    if (!is_stored) {
        struct tile *tiles = memory_alloc(n * sizeof *tiles);
        const char *reason = "its parts have no elements";
        const struct view *view = NULL;
        size_t n_tiles = 0;
        for (size_t i = 0; i < n; i++) {
            const struct tensor *part = &reader->parts->tensors[indices[i]];
            if (!is_empty(part->shape, part->rank))
                tiles[n_tiles++] = (struct tile){tensor_view(part, arena), reader->firsts[indices[i]]};
        }
        if (n_tiles > 0)
            view = tiles_join(arena, tiles, n_tiles, whole.rank, shape, &reason);
        else if (is_empty(shape, whole.rank))
            view = view_literal(arena, whole.dtype, whole.rank, shape, "");
        free(tiles);
        if (view == NULL)
            return refuse(&whole, reason, error);
        whole = (struct tensor){.name = whole.name,
                                .name_length = whole.name_length,
                                .rank = whole.rank,
                                .dtype = whole.dtype,
                                .shape = shape,
                                .view = view};
    }
    tensor_set_add(reader->checkpoint->unsealed, &whole);
    return true;
}

static bool join(struct reader *reader, struct error *error)
{
    const struct tensor *parts = reader->parts->tensors;
    size_t n_parts = reader->parts->n_tensors;
    uint32_t *by_name = tensors_by_name(parts, n_parts);
    bool good = true;
    for (size_t start = 0, end; good && start < n_parts; start = end) {
        const struct tensor *first = &parts[by_name[start]];
        for (end = start + 1; end < n_parts; end++) {
            const struct tensor *next = &parts[by_name[end]];
            if (text_compare(first->name, first->name_length, next->name, next->name_length) != 0)
                break;
        }
        good = add_whole(reader, by_name + start, end - start, error);
    }
    free(by_name);
    return good || error_prefix(error, "%s", reader->input->path);
}

static bool parts_open(struct checkpoint *checkpoint, const struct input *input, const struct open_options *options,
                       struct error *error)
{
    struct reader reader = {checkpoint, input, options, tensor_set_new(checkpoint->arena), NULL};
    bool good = read_files(&reader, error) && join(&reader, error);
    free(reader.firsts);
    if (!good)
        return false;
    format_add_side_files(checkpoint, input);
    return true;
}

const struct format parts_format = {
    .name = "safetensors-parts",
    .summary = "what each process saved by torch's HuggingFaceStorageWriter: shard-00001-*.safetensors ...",
    .probe = parts_probe,
    .open = parts_open,
};
