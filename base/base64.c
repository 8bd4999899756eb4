#include "base/encodings.h"

#include "base/arena.h"

#include <nettle/base64.h>

void *base64_decode(struct arena *arena, const char *text, size_t length, size_t *ret_length)
{
    struct base64_decode_ctx context;
    *ret_length = BASE64_DECODE_LENGTH(length);
    uint8_t *bytes = arena_alloc(arena, *ret_length);
    base64_decode_init(&context);
    bool good = base64_decode_update(&context, ret_length, bytes, length, text) && base64_decode_final(&context);
    return good && *ret_length > 0 ? bytes : NULL;
}

char *base64_encode(struct arena *arena, const void *bytes, size_t length)
{
    size_t text_length = BASE64_ENCODE_RAW_LENGTH(length);
    char *text = arena_alloc(arena, text_length + 1);
    base64_encode_raw(text, length, bytes);
    text[text_length] = '\0';
    return text;
}
