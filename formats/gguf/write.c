#include "formats/gguf/write.h"

#include "base/checked.h"
#include "base/encodings.h"
#include "sources/source.h"

#include <stdlib.h>
#include <string.h>

enum {
    USUAL_ALIGNMENT = 32,
    VERSION = 3,
    LONG_VALUE = 4096, /* bytes; headers do not copy longer values */
};

/* A file while it is laid out. */
struct writing {
    const struct artifact *artifact;
    struct span_list *spans;
    struct buffer literal; /* bytes to append after the spans so far */
    uint64_t alignment;
    size_t n_data_spans;
    bool trim_ones; /* omits leading dimensions of 1, as ggml does */
    size_t padding; /* the length of GGUF_PADDING_KEY's text; 0: there is no such key */
    struct error *error;
};

static void write_record(struct buffer *out, const struct artifact_tensor *written, uint64_t offset, bool trim_ones)
{
    const struct tensor *tensor = written->tensor;
    unsigned first = 0;
    while (trim_ones && first + 1u < tensor->rank && tensor->shape[first] == 1)
        first++;
    gguf_append_string(out, tensor->name, tensor->name_length);
    buffer_append_le(out, tensor->rank - first, 4);
    for (unsigned i = tensor->rank; i-- > first;)
        buffer_append_le(out, tensor->shape[i], 8);
    buffer_append_le(out, (uint64_t)written->encoding.dtype->ggml_type, 4);
    buffer_append_le(out, offset, 8);
}

/* Gives the buffer enough memory for the records of all tensors and the padding after them. */
static void reserve_records(struct writing *writing)
{
    const struct artifact *artifact = writing->artifact;
    size_t n_bytes = writing->alignment < LONG_VALUE ? (size_t)writing->alignment : 0;
    for (size_t i = 0; i < artifact->n_tensors; i++) {
        const struct tensor *tensor = artifact->tensors[i].tensor;
        n_bytes += GGUF_LENGTH + tensor->name_length + 4 + tensor->rank * 8 + 4 + 8;
    }
    buffer_reserve(&writing->literal, n_bytes);
}

/* Writes every tensor's record; *ret_length is the length of the data section. */
static bool write_records(struct writing *writing, uint64_t *ret_length)
{
    const struct artifact *artifact = writing->artifact;
    uint64_t offset = 0;
    reserve_records(writing);
    for (size_t i = 0; i < artifact->n_tensors; i++) {
        write_record(&writing->literal, &artifact->tensors[i], offset, writing->trim_ones);
        uint64_t n_bytes = artifact_tensor_bytes(&artifact->tensors[i]), end;
        if (!checked_add(offset, n_bytes, &end) || !checked_align(end, writing->alignment, &offset))
            return error_set(writing->error, "tensor '%s' would make the file too large",
                             artifact->tensors[i].tensor->name);
        writing->n_data_spans += (size_t)(n_bytes != 0) + (size_t)(end != offset);
    }
    *ret_length = offset;
    return true;
}

/* Writes an entry. A long value that is kept elsewhere, in memory or in its file, is not copied. */
static bool write_key(struct writing *writing, const struct gguf_kv *kv)
{
    const struct gguf_stored *stored = &kv->stored;
    bool is_stored = stored->source != NULL && stored->canonical && stored->length > LONG_VALUE;
    bool is_lent = stored->source == NULL && kv->is_borrowed && kv->value.length > LONG_VALUE;
    if (!is_stored && !is_lent)
        return gguf_write_kv(&writing->literal, kv, writing->error);
    gguf_append_string(&writing->literal, kv->key, strlen(kv->key));
    buffer_append_le(&writing->literal, (uint64_t)kv->type, 4);
    spans_add_buffer(writing->spans, &writing->literal);
    if (is_stored)
        spans_add_view(
            writing->spans,
            view_of_source(writing->spans->arena, stored->source, stored->offset, &u8_dtype, 1, &stored->length),
            encoding_of(&u8_dtype));
    else
        spans_add_literal(writing->spans, kv->value.bytes, kv->value.length);
    return true;
}

uint64_t gguf_entry_bytes(const struct gguf_kv *kv)
{
    struct buffer written = {0};
    struct error unused;
    uint64_t value = kv->stored.source != NULL ? kv->stored.length : kv->value.length;
    if (value > LONG_VALUE)
        return GGUF_LENGTH + strlen(kv->key) + 4 + value;
    uint64_t n_bytes = gguf_write_kv(&written, kv, &unused) ? written.length : 0;
    buffer_free(&written);
    return n_bytes;
}

static void write_padding(struct writing *writing)
{
    gguf_append_string(&writing->literal, GGUF_PADDING_KEY, strlen(GGUF_PADDING_KEY));
    buffer_append_le(&writing->literal, GGUF_STRING, 4);
    buffer_append_le(&writing->literal, writing->padding, 8);
    for (size_t i = 0; i < writing->padding; i++)
        buffer_append(&writing->literal, " ", 1);
}

static bool write_keys(struct writing *writing)
{
    const struct gguf_kvs *kvs = &writing->artifact->metadata;
    buffer_append(&writing->literal, "GGUF", 4);
    buffer_append_le(&writing->literal, VERSION, 4);
    buffer_append_le(&writing->literal, writing->artifact->n_tensors, 8);
    buffer_append_le(&writing->literal, kvs->n_kvs + (writing->padding != 0), 8);
    for (size_t i = 0; i < kvs->n_kvs; i++)
        if (!write_key(writing, &kvs->kvs[i]))
            return false;
    if (kvs->absent_bytes != 0) {
        spans_add_buffer(writing->spans, &writing->literal);
        spans_add_zeros(writing->spans, kvs->absent_bytes);
        writing->spans->has_size_alone = true;
    }
    if (writing->padding != 0)
        write_padding(writing);
    return true;
}

bool gguf_alignment(const struct gguf_kvs *kvs, uint64_t *alignment, struct error *error)
{
    const struct gguf_kv *kv = gguf_kvs_find(kvs, "general.alignment");
    *alignment = USUAL_ALIGNMENT;
    if (kv != NULL && kv->type != GGUF_U32)
        return error_set(error, "general.alignment is %s, not u32", gguf_type_name(kv->type));
    gguf_get_u64(kvs, "general.alignment", alignment);
    if ((*alignment & (*alignment - 1)) == 0 && *alignment != 0)
        return true;
    return error_set(error, "general.alignment is %llu, not a power of two", (unsigned long long)*alignment);
}

static void add_padding(struct writing *writing, uint64_t data)
{
    uint64_t end = writing->spans->size - data, aligned = end;
    checked_align(end, writing->alignment, &aligned);
    spans_add_zeros(writing->spans, aligned - end);
}

/* Places the tensors' data after the header. The sizes were checked when the records were made, so their sums do not
 * overflow. */
static void lay_out_data(struct writing *writing)
{
    uint64_t data = writing->spans->size;
    spans_reserve(writing->spans, writing->n_data_spans);
    for (size_t i = 0; i < writing->artifact->n_tensors; i++) {
        const struct artifact_tensor *tensor = &writing->artifact->tensors[i];
        spans_add_tensor(writing->spans, tensor->tensor, tensor->encoding);
        add_padding(writing, data);
    }
}

/* Lays out the header with its padding, and the data. */
static bool lay_out_all(struct writing *writing)
{
    uint64_t data_length = 0, data, size;
    if (!write_keys(writing))
        return false;
    uint64_t table = writing->spans->size + writing->literal.length;
    if (!write_records(writing, &data_length))
        return false;
    uint64_t meta = writing->spans->size + writing->literal.length;
    if (!checked_align(meta, writing->alignment, &data) || !checked_add(data, data_length, &size))
        return error_set(writing->error, "the file would be too large");
    buffer_append_zeros(&writing->literal, data - meta);
    spans_add_buffer(writing->spans, &writing->literal);
    writing->spans->header = (struct span_header){data, table, meta - table};
    lay_out_data(writing);
    return true;
}

/* Like lay_out_all(), with a header that is kept. */
static bool lay_out_kept(struct writing *writing)
{
    const struct gguf_kept_header *header = writing->artifact->kept_header;
    uint64_t data_length = 0, size;
    char table[SHA256_HEX + 1];
    if (!write_records(writing, &data_length))
        return false;
    sha256_hex(writing->literal.bytes, writing->literal.length, table);
    if (strcmp(table, header->table) != 0 || header->length % writing->alignment != 0 ||
        header->length > source_size(header->source) || !checked_add(header->length, data_length, &size))
        return error_set(writing->error, "%s: is the header of other tensors", source_name(header->source));
    spans_add_view(writing->spans,
                   view_of_source(writing->spans->arena, header->source, 0, &u8_dtype, 1, &header->length),
                   encoding_of(&u8_dtype));
    lay_out_data(writing);
    return true;
}

static bool write_lay_out(struct writing *writing)
{
    bool good = gguf_alignment(&writing->artifact->metadata, &writing->alignment, writing->error) &&
                (writing->artifact->kept_header != NULL ? lay_out_kept(writing) : lay_out_all(writing));
    buffer_free(&writing->literal);
    return good;
}

static bool lay_out_gguf(const struct artifact *artifact, struct span_list *spans, struct error *error)
{
    return write_lay_out(&(struct writing){.artifact = artifact, .spans = spans, .error = error});
}

static bool lay_out_ggml(const struct artifact *artifact, struct span_list *spans, struct error *error)
{
    return write_lay_out(&(struct writing){.artifact = artifact, .spans = spans, .trim_ones = true, .error = error});
}

bool gguf_lay_out_padded(const struct artifact *artifact, size_t padding, struct span_list *spans, struct error *error)
{
    return write_lay_out(&(struct writing){.artifact = artifact, .spans = spans, .padding = padding, .error = error});
}

const struct container gguf_container = {.name = "gguf", .lay_out = lay_out_gguf};
const struct container ggml_container = {.name = "gguf", .lay_out = lay_out_ggml};

/* An order of tensors in which blocks can be shared. */

/* Remainders in steps of STEP; tensors that cannot be shared are in the queue UNSHARED. */
enum { STEP = 32, N_REMAINDERS = GGUF_SHARED_BLOCK / STEP, UNSHARED = N_REMAINDERS, N_QUEUES };

/* Tensors of the artifact, in its order; `next` has the one after each. */
struct queue {
    size_t n_tensors, first, last;
    uint64_t n_bytes;
};

struct ordering {
    const struct artifact *artifact;
    uint64_t alignment;
    struct queue queues[N_QUEUES];
    size_t *next;
};

/* Returns the queue of a tensor: by its place in a source that holds its bytes as they are written. */
static size_t queue_of(const struct artifact_tensor *written, uint64_t alignment, struct arena *arena)
{
    struct extent extent;
    if (artifact_tensor_bytes(written) < GGUF_SHARED_BLOCK)
        return UNSHARED;
    const struct view *view = tensor_view(written->tensor, arena);
    if (view->dtype != written->encoding.dtype || view_stored(view, 0, &extent) < view_units(view) ||
        source_descriptor(extent.source) < 0 || extent.offset % STEP != 0 || extent.offset % alignment != 0)
        return UNSHARED;
    return (size_t)(extent.offset % GGUF_SHARED_BLOCK / STEP);
}

static void enqueue(struct ordering *ordering, size_t tensor, size_t queue_number)
{
    struct queue *queue = &ordering->queues[queue_number];
    if (queue->n_tensors++ == 0)
        queue->first = tensor;
    else
        ordering->next[queue->last] = tensor;
    queue->last = tensor;
    ordering->next[tensor] = tensor;
    queue->n_bytes += artifact_tensor_bytes(&ordering->artifact->tensors[tensor]);
}

static size_t dequeue(struct ordering *ordering, size_t queue_number)
{
    struct queue *queue = &ordering->queues[queue_number];
    size_t tensor = queue->first;
    queue->first = ordering->next[tensor];
    queue->n_tensors--;
    queue->n_bytes -= artifact_tensor_bytes(&ordering->artifact->tensors[tensor]);
    return tensor;
}

/* Returns the remainder with the most bytes; N_REMAINDERS: there are no shared tensors left. */
static size_t fullest(const struct ordering *ordering)
{
    size_t found = N_REMAINDERS;
    for (size_t i = 0; i < N_REMAINDERS; i++)
        if (ordering->queues[i].n_tensors > 0 &&
            (found == N_REMAINDERS || ordering->queues[i].n_bytes > ordering->queues[found].n_bytes))
            found = i;
    return found;
}

/* Takes the tensor that comes at a place of that remainder. */
static size_t take(struct ordering *ordering, uint64_t remainder)
{
    size_t fitting = (size_t)(remainder / STEP);
    if (remainder % STEP == 0 && ordering->queues[fitting].n_tensors > 0)
        return dequeue(ordering, fitting);
    return dequeue(ordering, ordering->queues[UNSHARED].n_tensors > 0 ? UNSHARED : fullest(ordering));
}

/* Orders the tensors from a place of that remainder on. Returns the length of the data, which gguf_lay_out_padded() has
 * checked. */
static uint64_t put_in_order(struct ordering *ordering, uint64_t remainder, struct artifact_tensor *out)
{
    uint64_t length = 0;
    for (size_t i = 0; i < ordering->artifact->n_tensors; i++) {
        uint64_t end = 0;
        out[i] = ordering->artifact->tensors[take(ordering, (remainder + length) % GGUF_SHARED_BLOCK)];
        checked_align(length + artifact_tensor_bytes(&out[i]), ordering->alignment, &end);
        length = end;
    }
    return length;
}

/* Lays the ordered tensors out so that the data begins at a place of that remainder. A first layout finds where it
 * would begin: a key that is shorter by a multiple of the alignment moves it by as much. */
static bool lay_out_at(const struct artifact *ordered, uint64_t remainder, uint64_t data_length,
                       struct span_list *spans, struct error *error)
{
    struct span_list first = {.arena = arena_new()};
    bool fits = gguf_lay_out_padded(ordered, GGUF_SHARED_BLOCK, &first, error);
    uint64_t data = first.size - data_length;
    size_t padding = GGUF_SHARED_BLOCK - (size_t)((data - remainder) % GGUF_SHARED_BLOCK);
    arena_free(first.arena);
    return fits && gguf_lay_out_padded(ordered, padding, spans, error);
}

static bool lay_out_ordered(struct ordering *ordering, struct span_list *spans, struct error *error)
{
    const struct artifact *artifact = ordering->artifact;
    const uint64_t remainder = fullest(ordering) * STEP;
    struct artifact ordered = *artifact;
    ordered.tensors = memory_alloc(artifact->n_tensors * sizeof *ordered.tensors);
    uint64_t data_length = put_in_order(ordering, remainder, ordered.tensors);
    bool good = lay_out_at(&ordered, remainder, data_length, spans, error);
    free(ordered.tensors);
    return good;
}

static bool share_lay_out(const struct artifact *artifact, struct span_list *spans, struct error *error)
{
    struct ordering ordering = {.artifact = artifact};
    if (!gguf_alignment(&artifact->metadata, &ordering.alignment, error))
        return false;
    ordering.next = memory_alloc((artifact->n_tensors + 1) * sizeof *ordering.next);
    for (size_t i = 0; i < artifact->n_tensors; i++)
        enqueue(&ordering, i, queue_of(&artifact->tensors[i], ordering.alignment, spans->arena));
    bool can_share = fullest(&ordering) != N_REMAINDERS && ordering.alignment <= GGUF_SHARED_BLOCK;
    bool good = can_share ? lay_out_ordered(&ordering, spans, error) : gguf_lay_out_padded(artifact, 0, spans, error);
    free(ordering.next);
    return good;
}

const struct container gguf_sharing_container = {.name = "gguf", .lay_out = share_lay_out};
