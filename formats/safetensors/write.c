#include "base/arena.h"
#include "base/checked.h"
#include "base/text.h"
#include "formats/safetensors/safetensors.h"
#include "formats/shape.h"
#include "text/json_write.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 8, WRITE_LENGTH_BYTES = 8, MAX_HEADER_BYTES = 100 * 1000 * 1000 };

static const char metadata_key[] = "__metadata__";

/* The format's dtypes in the order of its tensors: the most aligned first. */
static const char *const dtype_names[] = {
    "U64",         "I64",         "F64",     "C64",     "F32",     "U32", "I32", "BF16",    "F16",     "U16", "I16",
    "F8_E5M2FNUZ", "F8_E4M3FNUZ", "F8_E8M0", "F8_E4M3", "F8_E5M2", "I8",  "U8",  "F6_E3M2", "F6_E2M3", "F4",  "BOOL",
};

enum { N_DTYPES = sizeof dtype_names / sizeof *dtype_names };

static unsigned dtype_order(const struct dtype *type)
{
    unsigned order = 0;
    while (order < N_DTYPES && strcmp(dtype_names[order], type->name) != 0)
        order++;
    return order;
}

const char *safetensors_refusal(const char *name, size_t name_length, const struct dtype *type)
{
    if (dtype_order(type) == N_DTYPES)
        return "safetensors has no such dtype";
    if (text_valid_prefix(name, name_length) != name_length)
        return "its name is not UTF-8";
    if (name_length == strlen(metadata_key) && memcmp(name, metadata_key, name_length) == 0)
        return "its name is reserved in safetensors";
    return NULL;
}

int safetensors_compare(const struct artifact_tensor *a, const struct artifact_tensor *b)
{
    const struct tensor *left = a->tensor, *right = b->tensor;
    if (a->encoding.dtype != b->encoding.dtype)
        return dtype_order(a->encoding.dtype) < dtype_order(b->encoding.dtype) ? -1 : 1;
    return text_compare(left->name, left->name_length, right->name, right->name_length);
}

/* The place of a tensor in the file. */
struct place {
    const struct tensor *tensor;
    const struct dtype *dtype; /* of the written values */
    uint64_t offset;           /* from the start of the data */
};

/* The tensors' entries in the header. Their text is longer than what it is made from, and is made when it is read. */
struct entries {
    size_t n;
    uint64_t size;  /* of the data */
    bool has_first; /* metadata is the header's first entry */
    struct place places[];
};

static int compare_written(const void *a, const void *b)
{
    return safetensors_compare(*(const struct artifact_tensor *const *)a, *(const struct artifact_tensor *const *)b);
}

static bool put_metadata(struct json_writer *writer, const struct gguf_kvs *metadata, struct error *error)
{
    struct arena *arena = arena_new();
    bool good = true;
    size_t length;
    json_begin_object(writer, metadata_key);
    for (size_t i = 0; i < metadata->n_kvs && good; i++) {
        const char *text = gguf_get_string(metadata, metadata->kvs[i].key, arena, &length, error);
        good = text != NULL;
        if (good)
            json_put_text(writer, metadata->kvs[i].key, text);
    }
    json_end(writer);
    arena_free(arena);
    return good;
}

static void put_place(struct json_writer *writer, const struct place *place, uint64_t end)
{
    const struct tensor *tensor = place->tensor;
    json_put_key(writer, tensor->name, tensor->name_length);
    json_begin_object(writer, NULL);
    json_put_text(writer, "dtype", place->dtype->name);
    json_begin_array(writer, "shape");
    for (unsigned i = 0; i < tensor->rank; i++)
        json_put_number(writer, NULL, tensor->shape[i]);
    json_end(writer);
    json_begin_array(writer, "data_offsets");
    json_put_number(writer, NULL, place->offset);
    json_put_number(writer, NULL, end);
    json_end(writer);
    json_end(writer);
}

enum { ENTRIES_A_TEXT = 32 };

/* Appends entries, with the bracket or the comma before the first. */
static void entries_text(const void *context, size_t index, struct buffer *out)
{
    const struct entries *entries = context;
    struct json_writer writer = {.out = out, .letters = JSON_UTF8, .compact = true};
    size_t first = index * ENTRIES_A_TEXT, n = entries->n, start = out->length;
    json_begin_object(&writer, NULL);
    if (first > 0 || entries->has_first)
        out->bytes[start] = ',';
    for (size_t i = first; i < n && i - first < ENTRIES_A_TEXT; i++)
        put_place(&writer, &entries->places[i], i + 1 < n ? entries->places[i + 1].offset : entries->size);
}

/* Sets the places of tensors that are in the order of the file. */
static bool write_place_tensors(const struct artifact_tensor *const *sorted, struct entries *entries,
                                struct error *error)
{
    uint64_t n_elements, n_bytes;
    for (size_t i = 0; i < entries->n; i++) {
        const struct tensor *tensor = sorted[i]->tensor;
        const struct dtype *dtype = sorted[i]->encoding.dtype;
        const char *refusal = safetensors_refusal(tensor->name, tensor->name_length, dtype);
        if (refusal != NULL)
            return error_set(error, "'%.200s': %s", tensor->name, refusal);
        entries->places[i] = (struct place){tensor, dtype, entries->size};
        if (!shape_size(dtype, tensor->shape, tensor->rank, &n_elements, &n_bytes, NULL) ||
            !checked_add(entries->size, n_bytes, &entries->size))
            return error_set(error, "tensor '%.200s': its %s elements do not fit in a file", tensor->name, dtype->name);
    }
    return true;
}

/* Returns the bytes of each text of entries, and their sum; the caller frees the array. */
static size_t *measure_entries(const struct entries *entries, size_t *ret_length)
{
    size_t n_texts = (entries->n + ENTRIES_A_TEXT - 1) / ENTRIES_A_TEXT, *lengths;
    struct buffer text = {0};
    lengths = memory_alloc(n_texts * sizeof *lengths);
    *ret_length = 0;
    for (size_t i = 0; i < n_texts; i++) {
        text.length = 0;
        entries_text(entries, i, &text);
        *ret_length += lengths[i] = text.length;
    }
    buffer_free(&text);
    return lengths;
}

/* Begins the header: its length, which is still 0, and the metadata. */
static bool begin_header(const struct artifact *artifact, struct buffer *head, struct error *error)
{
    struct json_writer writer = {.out = head, .letters = JSON_UTF8, .compact = true};
    buffer_append_zeros(head, WRITE_LENGTH_BYTES);
    if (artifact->n_tensors == 0 || artifact->metadata.n_kvs > 0)
        json_begin_object(&writer, NULL);
    return artifact->metadata.n_kvs == 0 || put_metadata(&writer, &artifact->metadata, error);
}

static bool add_header(const struct artifact *artifact, const struct entries *entries, struct span_list *spans,
                       struct error *error)
{
    static const char tail[ALIGNMENT] = "}       ";
    struct buffer head = {0};
    size_t length, *lengths = measure_entries(entries, &length);
    bool good = begin_header(artifact, &head, error);
    length += head.length - WRITE_LENGTH_BYTES;
    size_t n_tail = ALIGNMENT - length % ALIGNMENT;
    length += n_tail;
    if (good && length > MAX_HEADER_BYTES)
        good = error_set(error, "the header of %zu tensors would have %zu bytes, but readers accept at most %d",
                         entries->n, length, MAX_HEADER_BYTES);
    for (size_t i = 0; i < WRITE_LENGTH_BYTES && good; i++)
        head.bytes[i] = (unsigned char)((uint64_t)length >> (8 * i));
    if (good) {
        size_t n_texts = (entries->n + ENTRIES_A_TEXT - 1) / ENTRIES_A_TEXT;
        spans_reserve(spans, entries->n + n_texts + 2);
        spans_add_buffer(spans, &head);
        for (size_t i = 0; i < n_texts; i++)
            spans_add_text(spans, entries_text, entries, i, lengths[i]);
        spans_add_literal(spans, tail, n_tail);
    }
    buffer_free(&head);
    free(lengths);
    return good;
}

static bool write_lay_out(const struct artifact *artifact, struct span_list *spans, struct error *error)
{
    size_t n = artifact->n_tensors;
    const struct artifact_tensor **sorted = memory_alloc(n * sizeof *sorted);
    struct entries *entries = arena_alloc(spans->arena, sizeof *entries + n * sizeof *entries->places);
    entries->n = n;
    entries->has_first = artifact->metadata.n_kvs > 0;
    for (size_t i = 0; i < n; i++)
        sorted[i] = &artifact->tensors[i];
    if (n > 0)
        qsort(sorted, n, sizeof *sorted, compare_written);
    bool good = write_place_tensors(sorted, entries, error) && add_header(artifact, entries, spans, error);
    for (size_t i = 0; i < n && good; i++)
        spans_add_tensor(spans, sorted[i]->tensor, sorted[i]->encoding);
    free(sorted);
    return good;
}

const struct container safetensors_container = {.name = "safetensors", .lay_out = write_lay_out};

/* As mlx writes it. */

enum { MLX_LENGTH_BYTES = 8 };

/* By tensor of the artifact. */
struct layout {
    const struct artifact *artifact;
    uint32_t *order;             /* of the data */
    uint64_t *offsets, *n_bytes; /* of the data of each tensor */
};

static bool find_order(struct layout *layout, struct error *error)
{
    const struct artifact *artifact = layout->artifact;
    size_t n = artifact->n_tensors;
    struct hash_name *names = memory_alloc((n + 1) * sizeof *names);
    bool good = n <= HASH_ORDER_MAX || error_set(error, "%zu tensors are too many", n);
    for (size_t i = 0; i < n && good; i++) {
        const struct tensor *tensor = artifact->tensors[i].tensor;
        const char *refusal =
            safetensors_refusal(tensor->name, tensor->name_length, artifact->tensors[i].encoding.dtype);
        good = refusal == NULL || error_set(error, "'%.200s': %s", tensor->name, refusal);
        names[i] = (struct hash_name){tensor->name, tensor->name_length};
    }
    if (good)
        hash_order(names, n, layout->order);
    free(names);
    return good;
}

static bool mlx_place_tensors(struct layout *layout, struct error *error)
{
    uint64_t size = 0, n_elements;
    if (!find_order(layout, error))
        return false;
    for (size_t i = 0; i < layout->artifact->n_tensors; i++) {
        uint32_t at = layout->order[i];
        const struct artifact_tensor *written = &layout->artifact->tensors[at];
        layout->offsets[at] = size;
        if (!shape_size(written->encoding.dtype, written->tensor->shape, written->tensor->rank, &n_elements,
                        &layout->n_bytes[at], NULL) ||
            !checked_add(size, layout->n_bytes[at], &size))
            return error_set(error, "tensor '%.200s': its %s elements do not fit in a file", written->tensor->name,
                             written->encoding.dtype->name);
    }
    return true;
}

static void put_tensor(struct json_writer *writer, const struct layout *layout, uint32_t at)
{
    const struct artifact_tensor *written = &layout->artifact->tensors[at];
    const struct tensor *tensor = written->tensor;
    json_put_key(writer, tensor->name, tensor->name_length);
    json_put_template(writer, "{'data_offsets': [%u, %u], 'dtype': %s, 'shape': [", layout->offsets[at],
                      layout->offsets[at] + layout->n_bytes[at], written->encoding.dtype->name);
    for (unsigned i = 0; i < tensor->rank; i++)
        json_put_number(writer, NULL, tensor->shape[i]);
    json_end(writer);
    json_end(writer);
}

static void write_header(const struct layout *layout, struct buffer *header)
{
    struct json_writer writer = {.out = header, .letters = JSON_UTF8, .compact = true};
    size_t n = layout->artifact->n_tensors;
    struct tensor *tensors = memory_alloc((n + 1) * sizeof *tensors);
    for (size_t i = 0; i < n; i++)
        tensors[i] = *layout->artifact->tensors[i].tensor;
    uint32_t *by_name = tensors_by_name(tensors, n);
    buffer_append_zeros(header, MLX_LENGTH_BYTES);
    json_put_template(&writer, "{'__metadata__': {'format': 'mlx'}");
    for (size_t i = 0; i < n; i++)
        put_tensor(&writer, layout, by_name[i]);
    json_end(&writer);
    uint64_t length = header->length - MLX_LENGTH_BYTES;
    for (size_t i = 0; i < MLX_LENGTH_BYTES; i++)
        header->bytes[i] = (unsigned char)(length >> (8 * i));
    free(by_name);
    free(tensors);
}

static bool mlx_lay_out(const struct artifact *artifact, struct span_list *spans, struct error *error)
{
    size_t n = artifact->n_tensors;
    struct layout layout = {.artifact = artifact,
                            .order = memory_alloc((n + 1) * sizeof *layout.order),
                            .offsets = memory_alloc((n + 1) * sizeof *layout.offsets),
                            .n_bytes = memory_alloc((n + 1) * sizeof *layout.n_bytes)};
    struct buffer header = {0};
    bool good = mlx_place_tensors(&layout, error);
    if (good) {
        write_header(&layout, &header);
        spans_add_buffer(spans, &header);
        spans_reserve(spans, n);
        for (size_t i = 0; i < n; i++)
            spans_add_tensor(spans, artifact->tensors[layout.order[i]].tensor,
                             artifact->tensors[layout.order[i]].encoding);
    }
    buffer_free(&header);
    free(layout.order);
    free(layout.offsets);
    free(layout.n_bytes);
    return good;
}

const struct container mlx_container = {.name = "safetensors of mlx", .lay_out = mlx_lay_out};

/* The order of mlx's hash tables. */

/* Numbers of nodes; before the first one is a node that stands for the head of the list. */
enum { HEAD = 0 };
#define NONE UINT32_MAX

struct table {
    uint64_t *hashes;   /* by node */
    uint32_t *next;     /* by node */
    uint32_t *before;   /* by bucket: the node before its first one; NONE: empty */
    uint32_t n_buckets; /* one of the sizes below */
};

/* MurmurHash64A. */
static uint64_t hash_bytes(const char *bytes, size_t length)
{
    static const uint64_t multiplier = 0xc6a4a7935bd1e995, seed = 0xc70f6907;
    enum { WORD = 8, SHIFT = 47 };
    uint64_t hash = seed ^ (length * multiplier);
    for (; length > 0; bytes += WORD, length -= WORD) {
        uint64_t word = 0;
        size_t n = length < WORD ? length : WORD;
        for (size_t i = 0; i < n; i++)
            word |= (uint64_t)(unsigned char)bytes[i] << 8 * i;
        if (n == WORD) {
            word *= multiplier;
            word = (word ^ word >> SHIFT) * multiplier;
        }
        hash = (hash ^ word) * multiplier;
        if (n < WORD)
            break;
    }
    hash = (hash ^ hash >> SHIFT) * multiplier;
    return hash ^ hash >> SHIFT;
}

static uint32_t bucket_of(const struct table *table, uint32_t node)
{
    return (uint32_t)(table->hashes[node] % table->n_buckets);
}

/* The node becomes the first of its bucket; if that was empty, the first of the list. */
static void insert(struct table *table, uint32_t node)
{
    uint32_t bucket = bucket_of(table, node), before = table->before[bucket];
    if (before == NONE) {
        before = HEAD;
        table->before[bucket] = HEAD;
        if (table->next[HEAD] != NONE)
            table->before[bucket_of(table, table->next[HEAD])] = node;
    }
    table->next[node] = table->next[before];
    table->next[before] = node;
}

/* Inserts all nodes anew, in the order of the list. */
static void grow(struct table *table, uint32_t n_buckets)
{
    uint32_t node = table->next[HEAD];
    free(table->before);
    table->n_buckets = n_buckets;
    table->before = memory_alloc(n_buckets * sizeof *table->before);
    memset(table->before, 0xff, n_buckets * sizeof *table->before);
    table->next[HEAD] = NONE;
    while (node != NONE) {
        uint32_t next = table->next[node];
        insert(table, node);
        node = next;
    }
}

void hash_order(const struct hash_name *names, size_t n, uint32_t *ret_order)
{
    static const uint32_t sizes[] = {13,     29,     59,      127,     257,     541,      1109,
                                     2357,   5087,   10273,   20753,   42043,   85229,    172933,
                                     351061, 712697, 1447153, 2938679, 5967347, 12117689, 24607243};
    struct table table = {.hashes = memory_alloc((n + 1) * sizeof *table.hashes),
                          .next = memory_alloc((n + 1) * sizeof *table.next)};
    size_t size = 0;
    table.next[HEAD] = NONE;
    grow(&table, 1);
    for (size_t i = 0; i < n; i++) {
        uint32_t node = (uint32_t)i + 1;
        table.hashes[node] = hash_bytes(names[i].name, names[i].length);
        if (i == 0 || i == table.n_buckets)
            grow(&table, sizes[size++]);
        insert(&table, node);
    }
    for (uint32_t node = table.next[HEAD]; node != NONE; node = table.next[node])
        *ret_order++ = node - 1;
    free(table.hashes);
    free(table.next);
    free(table.before);
}
