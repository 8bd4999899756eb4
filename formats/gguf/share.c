#include "base/checked.h"
#include "formats/gguf/write.h"
#include "sources/source.h"

#include <stdlib.h>

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

static bool lay_out(const struct artifact *artifact, struct span_list *spans, struct error *error)
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

const struct container gguf_sharing_container = {.name = "gguf", .lay_out = lay_out};
