/* The file of an artifact, in memory. */
#pragma once

#include "formats/artifact.h"
#include "quant/views/convert.h"

#include "tests/unit/check.h"

static inline void copy_text(const struct span *span, unsigned char *at)
{
    struct buffer text = {0};
    span->text(span->context, span->index, &text);
    CHECK(text.length == span->length);
    memcpy(at, text.bytes, span->length);
    buffer_free(&text);
}

static inline struct buffer laid_out(const struct artifact *artifact)
{
    struct span_list spans = {.arena = arena_new()};
    struct buffer file = {0};
    struct error error = {""};
    CHECK(artifact->container->lay_out(artifact, &spans, &error));
    CHECK_TEXT(error.message, "");
    for (size_t i = 0; i < spans.n_spans; i++) {
        const struct span *span = &spans.spans[i];
        CHECK(span->offset == file.length);
        buffer_append_zeros(&file, span->length);
        unsigned char *at = file.bytes + span->offset;
        if (span->kind == SPAN_LITERAL)
            memcpy(at, span->literal, span->length);
        else if (span->kind == SPAN_TEXT)
            copy_text(span, at);
        else if (span->kind == SPAN_VIEW)
            CHECK(convert_read(span->view, span->encoding, 0,
                               span->view->n_elements / span->encoding.dtype->block_elements, at, &error));
    }
    CHECK(file.length == spans.size);
    arena_free(spans.arena);
    return file;
}

/* Reports whether the file begins with these bytes. */
static inline bool begins_with(const struct buffer *file, const struct buffer *expected)
{
    return file->length >= expected->length && memcmp(file->bytes, expected->bytes, expected->length) == 0;
}
