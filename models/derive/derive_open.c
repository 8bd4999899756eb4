#include "base/text.h"
#include "models/derive/derive.h"

#include <string.h>

/* Puts a path into an error that begins with the name of the file at the path, or of one in the directory. */
static void name_path(const char *path, struct error *error)
{
    const struct error inner = *error;
    size_t length = strlen(path), n_name = strcspn(inner.message, ":");
    if (text_starts_with(inner.message, path))
        return;
    if (n_name < length && path[length - n_name - 1] == '/' &&
        memcmp(path + length - n_name, inner.message, n_name) == 0)
        error_set(error, "%s%s", path, inner.message + n_name);
    else
        error_prefix(error, "%s", path);
    error_set_code(error, inner.code);
}

const struct checkpoint *derive_open(const char *path, const struct checkpoint *like, struct error *error)
{
    const struct open_options options = {.follow_links = like->follows_links};
    const struct checkpoint *opened = checkpoint_open(path, like->formats, &options, error);
    if (opened == NULL)
        name_path(path, error);
    return opened;
}
