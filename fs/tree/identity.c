#include "fs/tree/identity.h"

#include <string.h>

/* Must change whenever wfs hashes inputs and requests otherwise; the build changes with the bytes that are made of
 * them.
 */
static const char format_version[] = "wfs identity 3 " WFS_VERSION;

void file_identity(const struct origin *origin, const char *model, const char *request, const char *path,
                   char identity[SHA256_HEX + 1])
{
    struct buffer hashed = {0};
    buffer_append(&hashed, format_version, sizeof format_version);
    buffer_append(&hashed, wfs_build, strlen(wfs_build) + 1);
    buffer_append_le(&hashed, origin->n_sources, 8);
    for (size_t i = 0; i < origin->n_sources; i++)
        source_append_identity(origin->sources[i], &hashed);
    buffer_append(&hashed, model, strlen(model) + 1);
    if (request != NULL)
        buffer_append_text(&hashed, request);
    buffer_append(&hashed, "", 1);
    buffer_append(&hashed, path, strlen(path) + 1);
    sha256_hex(hashed.bytes, hashed.length, identity);
    buffer_free(&hashed);
}
