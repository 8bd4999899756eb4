/* What an artifact becomes: spans, and how containers lay them out. */
#include "formats/artifact.h"

#include "quant/views/convert.h"

#include <stdlib.h>
#include <string.h>

/* Spans. */

void spans_reserve(struct span_list *list, size_t n)
{
    struct span *larger = arena_array(list->arena, list->n_spans + n, sizeof *larger);
    if (list->n_spans != 0)
        memcpy(larger, list->spans, list->n_spans * sizeof *larger);
    list->spans = larger;
    list->capacity = list->n_spans + n;
}

static struct span *add_span(struct span_list *list, enum span_kind kind, uint64_t length)
{
    if (list->n_spans == list->capacity)
        spans_reserve(list, list->capacity + 4);
    struct span *span = &list->spans[list->n_spans++];
    *span = (struct span){.offset = list->size, .length = length, .kind = kind};
    list->size += length;
    return span;
}

void spans_add_buffer(struct span_list *list, struct buffer *buffer)
{
    buffer->bytes = memory_resize(buffer->bytes, buffer->length);
    arena_adopt(list->arena, buffer->bytes, buffer->length);
    spans_add_literal(list, buffer->bytes, buffer->length);
    *buffer = (struct buffer){0};
}

void spans_add_literal(struct span_list *list, const void *bytes, uint64_t length)
{
    if (length != 0)
        add_span(list, SPAN_LITERAL, length)->literal = bytes;
}

void spans_add_zeros(struct span_list *list, uint64_t length)
{
    if (length != 0)
        add_span(list, SPAN_ZEROS, length);
}

void spans_add_view(struct span_list *list, const struct view *view, struct encoding encoding)
{
    uint64_t length = convert_bytes(view, encoding.dtype);
    if (length == 0)
        return;
    struct span *span = add_span(list, SPAN_VIEW, length);
    span->view = view;
    span->encoding = encoding;
}

void spans_add_tensor(struct span_list *list, const struct tensor *tensor, struct encoding encoding)
{
    encoding.tensor = tensor->name;
    if (tensor_elements(tensor) != 0)
        spans_add_view(list, tensor_view(tensor, list->arena), encoding);
}

void spans_add_text(struct span_list *list, text_function *text, const void *context, size_t index, uint64_t length)
{
    if (length == 0)
        return;
    struct span *span = add_span(list, SPAN_TEXT, length);
    span->text = text;
    span->context = context;
    span->index = index;
}

void spans_add_all(struct span_list *list, const struct span *spans, size_t n_spans)
{
    spans_reserve(list, n_spans);
    for (size_t i = 0; i < n_spans; i++) {
        list->spans[list->n_spans] = spans[i];
        list->spans[list->n_spans++].offset = list->size;
        list->size += spans[i].length;
    }
}

/* Artifacts. */

void artifact_reserve(struct artifact *artifact, size_t n)
{
    artifact->tensors = memory_alloc((n + 1) * sizeof *artifact->tensors);
    artifact->n_tensors = n;
}

uint64_t artifact_tensor_bytes(const struct artifact_tensor *written)
{
    return dtype_bytes(written->encoding.dtype, tensor_elements(written->tensor));
}

static bool lay_out_raw(const struct artifact *artifact, struct span_list *spans, struct error *error)
{
    spans_add_tensor(spans, artifact->tensors[0].tensor, artifact->tensors[0].encoding);
    return true;
}

const struct container raw_container = {.name = "raw", .lay_out = lay_out_raw};

void artifact_free(struct artifact *artifact)
{
    gguf_kvs_free(&artifact->metadata);
    free(artifact->tensors);
    arena_free(artifact->arena);
    *artifact = (struct artifact){0};
}
