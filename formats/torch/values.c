#include "formats/torch/values.h"

#include "formats/zip/zip.h"

#include <string.h>

bool torch_values_read(struct pickle *pickle, const struct source *source, struct arena *arena, struct error *error)
{
    struct zip_directory zip;
    if (!zip_directory_read(&zip, source, arena, error))
        return false;
    const char *first = zip.n_members > 0 ? zip.members[0].name : "", *slash = strchr(first, '/');
    const char *name = arena_printf(arena, "%.*sdata.pkl", slash != NULL ? (int)(slash - first) + 1 : 0, first);
    const struct zip_member *member = zip_directory_find(&zip, name, strlen(name));
    if (member == NULL || member->method != ZIP_STORED)
        return error_set(error, "%s: %s is missing, or compressed", source_name(source), name);
    char *bytes = zip_member_read(&zip, member, PICKLE_MAX_BYTES, error);
    if (bytes == NULL)
        return false;
    arena_adopt(arena, bytes, (size_t)member->size);
    return pickle_read(pickle, bytes, (size_t)member->size, arena, NULL, error) ||
           error_prefix(error, "%s: %s", source_name(source), name);
}
