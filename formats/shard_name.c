#include "formats/shard_name.h"

#include <string.h>

enum { DIGITS = 5 };

/* Parses the five digits at `text`. */
static bool parse_number(const char *text, unsigned *ret_number)
{
    unsigned number = 0;
    for (int i = 0; i < DIGITS; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        number = number * 10 + (unsigned)(text[i] - '0');
    }
    *ret_number = number;
    return true;
}

bool shard_name_parse(const char *name, struct shard_name *ret_shard)
{
    static const char between[] = "-of-";
    const char *middle = NULL;
    for (const char *at = strstr(name, between); at != NULL; at = strstr(at + 1, between))
        middle = at;
    if (middle == NULL || middle - name < DIGITS + 1 || middle[-DIGITS - 1] != '-')
        return false;
    const char *count = middle + sizeof between - 1;
    struct shard_name shard = {.stem_length = (size_t)(middle - DIGITS - 1 - name)};
    if (!parse_number(middle - DIGITS, &shard.number) || !parse_number(count, &shard.count))
        return false;
    shard.suffix = count + DIGITS;
    if (*shard.suffix != '.' || shard.number < 1 || shard.number > shard.count)
        return false;
    *ret_shard = shard;
    return true;
}
