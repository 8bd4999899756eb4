#include "models/packings/packing.h"

#include "base/text.h"

#include <string.h>

const char *packing_label(const struct unpacked *weight, struct arena *arena)
{
    const char *title = weight->packing->titles[weight->title], *dtype = weight->parts[0]->dtype->name;
    if (title == NULL)
        return arena_printf(arena, "%s%u", text_starts_with(dtype, "F") ? "FP" : "INT", weight->bits);
    bool has_bits = strpbrk(title, "0123456789") != NULL;
    return has_bits ? title : arena_printf(arena, "%s %u bit", title, weight->bits);
}

bool packing_has_suffix(const struct tensor *tensor, const char *suffix)
{
    size_t length = strlen(suffix);
    return tensor->name_length >= length && memcmp(tensor->name + tensor->name_length - length, suffix, length) == 0;
}

const struct tensor *packing_partner(const struct tensor_set *set, const struct tensor *tensor, const char *own,
                                     const char *suffix)
{
    char name[1024];
    size_t kept = tensor->name_length - strlen(own), length = strlen(suffix);
    if (kept + length > sizeof name)
        return NULL;
    memcpy(name, tensor->name, kept);
    memcpy(name + kept, suffix, length);
    return tensor_set_find_near(set, tensor, name, kept + length);
}

const char *packed_part_name(struct arena *arena, const char *weight, const char *suffix)
{
    static const char own[] = ".weight";
    size_t stem = strlen(weight) - (text_ends_with(weight, own) ? strlen(own) : 0);
    return strcmp(suffix, own) == 0 ? weight : arena_printf(arena, "%.*s%s", (int)stem, weight, suffix);
}
