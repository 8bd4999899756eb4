#include "formats/torch/legacy.h"

#include "base/checked.h"
#include "base/sort.h"
#include "base/text.h"
#include "formats/torch/tensors.h"
#include "sources/source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PROTOCOL = 1001, FIRST_READ = 1024 * 1024, READ_GROWTH = 4, COUNT_BYTES = 8 };
enum { STORAGE_FIRST_READ = 1024 }; /* the pickles of a storage alone take half of that */

static const unsigned char magic[10] = {0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};
static const char magic_digits[] = "119547037146038801333356";

enum part { MAGIC, VERSION, SYSTEM, OBJECT, KEYS, N_PARTS };

struct legacy {
    const struct source *source;
    struct arena *scratch;
    struct torch_container container;
    struct pickle pickles[N_PARTS];
    uint64_t position; /* of the next byte to read */
    struct torch_storage *storages;

    /* The storages as a whole, sorted by key. */
    struct root {
        struct torch_storage_id id;
        const struct pickle_node *node;
        uint64_t offset; /* 0: not found yet */
    } * roots;
    size_t n_roots;
};

bool legacy_probe(const unsigned char *head, size_t length)
{
    const unsigned char *at = head, *end = head + length;
    if (length > 2 && head[0] == 0x80) /* PROTO */
        at += 2;
    if (end - at > 9 && *at == 0x95) /* FRAME, of protocols 4 and 5 */
        at += 9;
    size_t left = (size_t)(end - at), n_digits = sizeof magic_digits - 1;
    bool binary =
        left > 2 + sizeof magic && at[0] == 0x8a && at[1] == sizeof magic && memcmp(at + 2, magic, sizeof magic) == 0;
    return binary || (left > 1 + n_digits && at[0] == 'L' && memcmp(at + 1, magic_digits, n_digits) == 0);
}

/* Reads the five pickles from the start of the file. */
static bool read_pickles(struct legacy *legacy, const unsigned char *bytes, size_t length, bool *ret_truncated,
                         struct error *error)
{
    static const char *const names[N_PARTS] = {"magic number", "protocol", "system", "object", "storage keys"};
    size_t at = 0;
    for (int i = 0; i < N_PARTS; i++) {
        if (!pickle_read(&legacy->pickles[i], bytes + at, length - at, legacy->scratch, ret_truncated, error))
            return error_prefix(error, "%s: %s pickle at %zu", source_name(legacy->source), names[i], at);
        if (i == OBJECT) {
            legacy->container.pickle_bytes = (const char *)bytes + at;
            legacy->container.pickle_offset = at;
        }
        at += legacy->pickles[i].length;
    }
    legacy->position = at;
    return true;
}

/* Reads ever more of the file until all five pickles are complete: their length is not known before. Begins
 * with `wanted` bytes. The caller frees `*ret_bytes`. */
static bool find_pickles(struct legacy *legacy, uint64_t wanted, unsigned char **ret_bytes, struct error *error)
{
    uint64_t file_size = source_size(legacy->source);
    for (;; wanted *= READ_GROWTH) {
        size_t length = (size_t)(wanted < file_size ? wanted : file_size);
        length = length < PICKLE_MAX_BYTES ? length : PICKLE_MAX_BYTES;
        unsigned char *bytes = memory_alloc(length);
        bool truncated = false;
        legacy->scratch = arena_new();
        if (source_read(legacy->source, 0, length, bytes, error) &&
            read_pickles(legacy, bytes, length, &truncated, error)) {
            *ret_bytes = bytes;
            return true;
        }
        free(bytes);
        if (!truncated || length == file_size || length == PICKLE_MAX_BYTES)
            return false;
        arena_free(legacy->scratch);
    }
}

static bool check_head(const struct legacy *legacy, struct error *error)
{
    const struct pickle_node *number = legacy->pickles[MAGIC].root;
    int64_t protocol;
    bool binary = pickle_is(number, PICKLE_BIG_INTEGER) && !number->old && number->text.length == sizeof magic &&
                  memcmp(number->text.bytes, magic, sizeof magic) == 0;
    bool text = pickle_is(number, PICKLE_BIG_INTEGER) && number->old &&
                number->text.length == sizeof magic_digits - 1 &&
                memcmp(number->text.bytes, magic_digits, sizeof magic_digits - 1) == 0;
    if (!binary && !text)
        return error_set(error, "%s: not torch's legacy format: wrong magic number", source_name(legacy->source));
    if (!pickle_integer(legacy->pickles[VERSION].root, &protocol) || protocol != PROTOCOL)
        return error_set(error, "%s: legacy format: the protocol is not %d", source_name(legacy->source), PROTOCOL);
    if (!pickle_is(legacy->pickles[SYSTEM].root, PICKLE_DICT))
        return error_set(error, "%s: legacy format: the type sizes are missing", source_name(legacy->source));
    return true;
}

static int compare_roots(const void *a, const void *b)
{
    const struct root *x = a, *y = b;
    int order = text_compare(x->id.key, x->id.key_length, y->id.key, y->id.key_length);
    return order != 0 ? order : (x->node->offset > y->node->offset) - (x->node->offset < y->node->offset);
}

/* Collects the object's ids of each storage, which must agree on its size. */
static bool collect_roots(struct legacy *legacy, struct error *error)
{
    const struct pickle_items *persistent = &legacy->pickles[OBJECT].persistent;
    legacy->roots = arena_array(legacy->scratch, persistent->n, sizeof *legacy->roots);
    for (uint32_t i = 0; i < persistent->n; i++) {
        struct root *root = &legacy->roots[legacy->n_roots];
        bool is_storage;
        if (!torch_storage_id(&legacy->container, persistent->nodes[i], &root->id, &is_storage, error))
            return false;
        root->node = persistent->nodes[i];
        legacy->n_roots += is_storage;
    }
    qsort(legacy->roots, legacy->n_roots, sizeof *legacy->roots, compare_roots);
    size_t kept = 0;
    for (size_t i = 0; i < legacy->n_roots; i++) {
        const struct root *root = &legacy->roots[i], *last = kept > 0 ? &legacy->roots[kept - 1] : NULL;
        if (last == NULL || text_compare(last->id.key, last->id.key_length, root->id.key, root->id.key_length) != 0)
            legacy->roots[kept++] = *root;
        else if (last->id.n_bytes != root->id.n_bytes)
            return torch_refuse(&legacy->container, root->node, error,
                                "storage '%.*s' has %" PRIu64 " bytes here and %" PRIu64 " bytes at offset %" PRIu64,
                                (int)root->id.key_length, root->id.key, root->id.n_bytes, last->id.n_bytes,
                                (uint64_t)last->node->offset);
    }
    legacy->n_roots = kept;
    return true;
}

struct wanted_root {
    const struct legacy *legacy;
    const char *key;
    size_t length;
};

static bool root_comes_before(const void *context, size_t index)
{
    const struct wanted_root *wanted = context;
    const struct root *root = &wanted->legacy->roots[index];
    return text_compare(root->id.key, root->id.key_length, wanted->key, wanted->length) < 0;
}

static struct root *find_root(const struct legacy *legacy, const char *key, size_t length)
{
    const struct wanted_root wanted = {legacy, key, length};
    size_t found = search_first(legacy->n_roots, root_comes_before, &wanted);
    if (found == legacy->n_roots)
        return NULL;
    struct root *root = &legacy->roots[found];
    return text_compare(root->id.key, root->id.key_length, key, length) == 0 ? root : NULL;
}

static bool place_root(struct legacy *legacy, const struct pickle_node *key, struct error *error)
{
    const char *file = source_name(legacy->source);
    if (!pickle_is(key, PICKLE_TEXT))
        return error_set(error, "%s: the list of storage keys contains an element that is not text", file);
    int shown = (int)(key->text.length < 64 ? key->text.length : 64);
    struct root *root = find_root(legacy, key->text.bytes, key->text.length);
    if (root == NULL || root->offset != 0)
        return error_set(error, "%s: storage '%.*s' is %s", file, shown, key->text.bytes,
                         root == NULL ? "listed, but not referenced" : "listed twice");
    unsigned char bytes[COUNT_BYTES];
    if (!source_read(legacy->source, legacy->position, COUNT_BYTES, bytes, error))
        return error_prefix(error, "storage '%.*s'", shown, key->text.bytes);
    uint64_t count = read_le(bytes, COUNT_BYTES), start = legacy->position + COUNT_BYTES;
    if (count != root->id.n_elements)
        return error_set(error, "%s: storage '%.*s' has %" PRId64 " elements, the pickle says %" PRIu64, file, shown,
                         key->text.bytes, (int64_t)count, root->id.n_elements);
    if (root->id.n_bytes > source_size(legacy->source) - start)
        return error_set(error,
                         "%s: storage '%.*s' [%" PRIu64 ", +%" PRIu64 ") goes past the end of the file at %" PRIu64,
                         file, shown, key->text.bytes, start, root->id.n_bytes, source_size(legacy->source));
    root->offset = start;
    legacy->position = start + root->id.n_bytes;
    return true;
}

static bool place_roots(struct legacy *legacy, bool allow_trailing, struct error *error)
{
    const struct pickle_node *keys = legacy->pickles[KEYS].root;
    const char *file = source_name(legacy->source);
    if (!pickle_is(keys, PICKLE_LIST))
        return error_set(error, "%s: the storage keys are not a list", file);
    for (uint32_t i = 0; i < pickle_count(keys); i++)
        if (!place_root(legacy, pickle_at(keys, i), error))
            return false;
    for (size_t i = 0; i < legacy->n_roots; i++)
        if (legacy->roots[i].offset == 0)
            return torch_refuse(&legacy->container, legacy->roots[i].node, error, "storage '%.*s' is not in the file",
                                (int)legacy->roots[i].id.key_length, legacy->roots[i].id.key);
    if (legacy->position != source_size(legacy->source) && !allow_trailing)
        return error_set(error, "%s: %" PRIu64 " extra bytes after the last storage", file,
                         source_size(legacy->source) - legacy->position);
    return true;
}

/* Resolves a window (key, offset, number of elements) of a root, or a whole root. */
static bool resolve_storage(struct legacy *legacy, const struct pickle_node *node, struct torch_storage *storage,
                            struct error *error)
{
    struct torch_storage_id id;
    bool is_storage;
    if (!torch_storage_id(&legacy->container, node, &id, &is_storage, error) || !is_storage)
        return is_storage == false;
    const struct root *root = find_root(legacy, id.key, id.key_length);
    *storage = (struct torch_storage){
        .source = legacy->container.file,
        .offset = root->offset,
        .n_bytes = id.n_bytes,
        .stored = {legacy->container.file, root->offset, root->id.n_bytes},
        .dtype = id.dtype,
        .untyped = id.untyped,
    };
    if (id.view == NULL)
        return true;
    int64_t first, count;
    if (!pickle_integer(pickle_at(id.view, 1), &first) || !pickle_integer(pickle_at(id.view, 2), &count) || first < 0 ||
        count < 0 || (uint64_t)first > id.n_elements || (uint64_t)count > id.n_elements - (uint64_t)first)
        return torch_refuse(&legacy->container, node, error, "a view outside its storage of %" PRIu64 " elements",
                            id.n_elements);
    uint64_t unit = dtype_by_name(id.dtype->dtype)->block_bytes;
    storage->offset += (uint64_t)first * unit;
    storage->n_bytes = (uint64_t)count * unit;
    return true;
}

static bool resolve_storages(struct legacy *legacy, struct error *error)
{
    const struct pickle_items *persistent = &legacy->pickles[OBJECT].persistent;
    legacy->storages = arena_array(legacy->scratch, persistent->n, sizeof *legacy->storages);
    for (uint32_t i = 0; i < persistent->n; i++)
        if (!resolve_storage(legacy, persistent->nodes[i], &legacy->storages[i], error))
            return false;
    legacy->container.storages = legacy->storages;
    return true;
}

bool legacy_read(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                 const struct open_options *options, struct error *error)
{
    struct legacy legacy = {.source = file};
    char place[256];
    snprintf(place, sizeof place, "%s: object pickle", source_name(file));
    legacy.container = (struct torch_container){
        .checkpoint = checkpoint,
        .tensors = tensors,
        .file = file,
        .place = place,
        .pickle_mapped = true,
    };
    unsigned char *bytes = NULL;
    bool good = find_pickles(&legacy, FIRST_READ, &bytes, error) && check_head(&legacy, error) &&
                collect_roots(&legacy, error) && place_roots(&legacy, options->allow_trailing, error) &&
                resolve_storages(&legacy, error) &&
                torch_add_tensors(&legacy.container, &legacy.pickles[OBJECT], legacy.scratch, error);
    arena_free(legacy.scratch);
    free(bytes);
    return good;
}

/* Storages in bytes of a pickle. Source: TypedStorage.__reduce__() in torch/storage.py of torch 2.9. */

/* Reads a legacy file that holds only a storage; sets its place in the file, dtype and size. */
static bool read_storage_file(struct checkpoint *checkpoint, struct source *file, struct torch_storage *ret_storage,
                              struct error *error)
{
    struct legacy legacy = {.source = file};
    legacy.container = (struct torch_container){.checkpoint = checkpoint, .file = file, .place = "its nested storage"};
    unsigned char *bytes = NULL;
    bool good = find_pickles(&legacy, STORAGE_FIRST_READ, &bytes, error) && check_head(&legacy, error) &&
                collect_roots(&legacy, error) && place_roots(&legacy, false, error) && resolve_storages(&legacy, error);
    const struct pickle_node *root = good ? legacy.pickles[OBJECT].root : NULL;
    if (good && (!pickle_is(root, PICKLE_PERSISTENT) || legacy.storages[root->persistent.index].dtype == NULL))
        good = error_set(error, "it is no storage");
    if (good)
        *ret_storage = legacy.storages[root->persistent.index];
    arena_free(legacy.scratch);
    free(bytes);
    return good;
}

static void close_source(void *source)
{
    source_close(source);
}

/* Reads a storage whose bytes lie in the file. */
static bool read_in_place(const struct torch_container *container, const struct pickle_node *bytes,
                          struct torch_storage *storage, struct error *error)
{
    uint64_t offset = container->pickle_offset + (uint64_t)(bytes->text.bytes - container->pickle_bytes);
    struct source *range = source_range_new(container->file, source_name(container->file), offset, bytes->text.length);
    bool good = read_storage_file(container->checkpoint, range, storage, error);
    source_close(range);
    storage->source = container->file;
    storage->offset += offset;
    storage->stored.offset += offset;
    return good;
}

/* Reads a storage whose bytes were decoded; the checkpoint keeps them. */
static bool read_decoded(const struct torch_container *container, struct pickle_node *bytes,
                         struct torch_storage *storage, struct error *error)
{
    struct arena *arena = container->checkpoint->arena;
    size_t length;
    const void *decoded = torch_bytes(arena, bytes, &length);
    if (decoded == NULL)
        return error_set(error, "it is not in bytes");
    struct source *source = source_of_text(container->file, source_name(container->file), decoded, length);
    arena_on_free(arena, close_source, source);
    bool good = read_storage_file(container->checkpoint, source, storage, error);
    storage->stored.offset = bytes->offset; /* tells it from other decoded storages */
    return good;
}

static bool read_storage(const struct torch_container *container, struct pickle_node *bytes,
                         struct torch_storage *storage, struct error *error)
{
    bool in_place = container->pickle_mapped && pickle_is(bytes, PICKLE_BYTES) && !(bytes->mark & TORCH_COPIED);
    bool good =
        in_place ? read_in_place(container, bytes, storage, error) : read_decoded(container, bytes, storage, error);
    storage->stored.source = container->file;
    return good;
}

const struct torch_storage *torch_nested_storage(const struct torch_container *container, struct pickle_node *node,
                                                 struct error *error)
{
    struct torch_nested *nested = container->nested;
    struct pickle_node *bytes = pickle_at(node->object->arguments, 0);
    struct torch_storage storage = {0};
    if (node->object->nested == 0) {
        if (bytes == NULL || !read_storage(container, bytes, &storage, error))
            return NULL;
        nested->storages = memory_grow(nested->storages, nested->n, sizeof *nested->storages);
        nested->storages[nested->n++] = storage;
        node->object->nested = nested->n;
    }
    return &nested->storages[node->object->nested - 1];
}

/* Explains a pickle that cannot be read: any file may begin with the two bytes of a pickle. */
static bool explain_pickle(const struct pickle *pickle, const char *place, struct error *error)
{
    struct error reason = *error;
    if (pickle->harmful)
        return error_prefix(error, "%s", place);
    return error_set(error, "%s: starts like a pickle, but cannot be read: %s; is it a complete checkpoint?", place,
                     reason.message);
}

struct part_reader {
    const struct source *file;
    uint64_t offset; /* of the pickle */
    bool failed;
};

static bool bring_part(void *context, uint64_t from, size_t length, unsigned char *out, struct error *error)
{
    struct part_reader *reader = context;
    reader->failed = !source_read(reader->file, reader->offset + from, length, out, error);
    return !reader->failed;
}

static bool add_plain(struct torch_container *container, const struct pickle_parts *parts, struct arena *scratch,
                      const struct open_options *options, struct error *error)
{
    struct pickle pickle;
    const struct part_reader *reader = parts->context;
    if (!pickle_read_parts(&pickle, parts, scratch, error))
        return !reader->failed && explain_pickle(&pickle, container->place, error);
    if (pickle.persistent.n > 0)
        return torch_refuse(container, pickle.persistent.nodes[0], error, "a persistent id in a plain pickle");
    if (pickle.length != parts->length && !options->allow_trailing)
        return error_set(error, "%s: %" PRIu64 " extra bytes after the pickle", container->place,
                         parts->length - pickle.length);
    return torch_add_tensors(container, &pickle, scratch, error);
}

/* Returns memory without pages. */
static unsigned char *reserve(size_t length)
{
    void *pages = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return pages != MAP_FAILED ? pages : NULL;
}

bool plain_pickle_add(struct checkpoint *checkpoint, const struct plain_pickle *pickle, struct tensor_set *tensors,
                      const struct open_options *options, struct error *error)
{
    struct part_reader reader = {.file = pickle->source, .offset = pickle->offset};
    struct pickle_parts parts = {
        .bytes = reserve((size_t)pickle->length),
        .length = pickle->length,
        .bring = bring_part,
        .context = &reader,
    };
    if (parts.bytes == NULL)
        return error_set(error, "%s: no address space for %" PRIu64 " bytes", pickle->place, parts.length);
    struct torch_container container = {
        .checkpoint = checkpoint,
        .tensors = tensors,
        .file = pickle->source,
        .place = pickle->place,
        .prefix = pickle->prefix,
        .pickle_bytes = (const char *)parts.bytes,
        .pickle_mapped = true,
        .pickle_offset = pickle->offset,
    };
    struct arena *scratch = arena_new();
    bool good = add_plain(&container, &parts, scratch, options, error);
    arena_free(scratch);
    munmap(parts.bytes, (size_t)parts.length);
    return good;
}

bool plain_pickle_read(struct checkpoint *checkpoint, struct source *file, struct tensor_set *tensors,
                       const struct open_options *options, struct error *error)
{
    size_t n_before = tensors->n_tensors;
    const struct plain_pickle pickle = {.source = file, .length = source_size(file), .place = source_name(file)};
    return plain_pickle_add(checkpoint, &pickle, tensors, options, error) &&
           (tensors->n_tensors > n_before || error_set(error, "%s: the pickle contains no tensors", source_name(file)));
}
