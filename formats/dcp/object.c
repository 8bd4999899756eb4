#include "formats/dcp/chunk.h"

#include "formats/checkpoint_builder.h"
#include "formats/format.h"
#include "formats/zip/zip.h"
#include "sources/source.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* An archive that cannot be read as one is an object, too: of a torch that stores objects in another way. */
static bool has_storages(const struct source *archive)
{
    struct arena *scratch = arena_new();
    struct zip_directory zip;
    struct error unused;
    bool found = false;
    if (zip_directory_read(&zip, archive, scratch, &unused))
        for (size_t i = 0; i < zip.n_members && !found; i++)
            found = strstr(zip.members[i].name, "/data/") != NULL;
    arena_free(scratch);
    return found;
}

static void add_under(struct checkpoint *checkpoint, const struct tensor_set *set, const char *name)
{
    for (size_t i = 0; i < set->n_tensors; i++) {
        struct tensor tensor = set->tensors[i];
        tensor.name = arena_printf(checkpoint->arena, "%s.%s", name, tensor.name);
        tensor.name_length = (uint32_t)strlen(tensor.name);
        tensor_set_add(checkpoint->unsealed, &tensor);
    }
}

bool dcp_object_read(struct checkpoint *checkpoint, struct source *file, uint64_t offset, uint64_t length,
                     const char *name, bool *ret_found, struct error *error)
{
    static const struct open_options options;
    char place[256];
    snprintf(place, sizeof place, "%.200s, from byte %" PRIu64, source_name(file), offset);
    struct source *archive = source_range_new(file, place, offset, length);
    *ret_found = has_storages(archive);
    if (!*ret_found) {
        source_close(archive);
        return true;
    }
    checkpoint_add_source(checkpoint, archive);
    struct tensor_set *set = tensor_set_new(checkpoint->arena);
    const char *extras = checkpoint->extras;
    if (!torch_format.read_file(checkpoint, archive, set, &options, error))
        return false;
    checkpoint->extras = extras; /* what else is in one of many objects does not describe the checkpoint */
    add_under(checkpoint, set, name);
    return true;
}
