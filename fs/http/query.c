#include "fs/http/query.h"

#include "base/text.h"

#include <string.h>

static const char *decode(const char *text, size_t length, struct arena *arena)
{
    char *decoded = arena_alloc(arena, length + 1), *out = decoded;
    for (size_t i = 0; i < length; i++) {
        int high = text[i] == '%' && i + 2 < length ? text_hex_digit(text[i + 1]) : -1,
            low = high >= 0 ? text_hex_digit(text[i + 2]) : -1;
        *out++ = low >= 0 ? (char)(high * 16 + low) : text[i];
        i += low >= 0 ? 2 : 0;
    }
    *out = '\0';
    return decoded;
}

struct query query_parse(const char *text, struct arena *arena)
{
    size_t most = 1, count = 0;
    for (const char *at = strchr(text, '&'); at != NULL; at = strchr(at + 1, '&'))
        most++;
    struct query_parameter *items = arena_array(arena, most, sizeof *items);
    while (*text != '\0') {
        size_t length = strcspn(text, "&"), name = strcspn(text, "=&");
        size_t skipped = name < length ? name + 1 : name;
        if (length > 0)
            items[count++] =
                (struct query_parameter){decode(text, name, arena), decode(text + skipped, length - skipped, arena)};
        text += length + (text[length] == '&');
    }
    return (struct query){items, count};
}

const char *query_value(const struct query *query, const char *name)
{
    for (size_t i = 0; i < query->count; i++)
        if (strcmp(query->items[i].name, name) == 0)
            return query->items[i].value;
    return NULL;
}
