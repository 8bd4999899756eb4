/* Any text as the body of a PROPFIND.
 *
 * Holds for one that is read: each property has a name, there are no more than the limit, and none unless they are
 * named. */
#include "fs/http/dav_request.h"

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error = {""};
    struct dav_request request;
    struct arena *arena = arena_new();
    if (dav_request_read((const char *)data, size, arena, &request, &error)) {
        require(request.n_names <= DAV_MOST_PROPERTIES);
        require(request.n_names == 0 || request.kind == DAV_NAMED);
        for (size_t i = 0; i < request.n_names; i++)
            require(request.names[i].space != NULL && *request.names[i].name != '\0');
    } else {
        require_one_line(&error);
    }
    arena_free(arena);
    return 0;
}
