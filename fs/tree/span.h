/* Spans: the pieces a virtual file is made of, sorted by offset and without gaps. */
#pragma once

#include "base/buffer.h"
#include "quant/encoding.h"
#include "quant/view.h"

/* Appends the text of piece `index`: the same bytes every time, as many as were counted when the file was planned. */
typedef void text_function(const void *context, size_t index, struct buffer *out);

enum span_kind { SPAN_LITERAL, SPAN_ZEROS, SPAN_VIEW, SPAN_TEXT };

struct span {
    uint64_t offset, length; /* bytes of the file */
    enum span_kind kind;
    union {
        const void *literal;
        struct {
            const struct view *view;
            struct encoding encoding; /* of the view's values */
        };
        struct {
            text_function *text;
            const void *context;
            size_t index;
        };
    };
};
