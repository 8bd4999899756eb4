/* SentencePiece models for tests: a tokenizer.model of pieces, one after the other. */
#pragma once

#include "base/buffer.h"

#include "tests/unit/files.h"

enum piece_type { PIECE_NORMAL = 1, PIECE_UNKNOWN, PIECE_CONTROL, PIECE_USER, PIECE_UNUSED };

/* Appends a piece with a text of at most 100 bytes. */
static inline void piece_add(struct buffer *model, const char *text, size_t length, float score, enum piece_type type)
{
    uint32_t bits;
    memcpy(&bits, &score, sizeof bits);
    buffer_append_le(model, 0x0a, 1);
    buffer_append_le(model, length + 9, 1);
    buffer_append_le(model, 0x0a, 1);
    buffer_append_le(model, length, 1);
    buffer_append(model, text, length);
    buffer_append_le(model, 0x15, 1);
    buffer_append_le(model, bits, 4);
    buffer_append_le(model, 0x18, 1);
    buffer_append_le(model, type, 1);
}

/* Writes the model, and begins anew. */
static inline void pieces_write(struct buffer *model, const char *path)
{
    files_write(path, model->bytes, model->length);
    buffer_free(model);
}
