/* Any text as a web server's list of a folder, in HTML and in JSON.
 *
 * Holds for every name that is found: it is in the folder. */
#include "remote/libcurl.h"
#include "sources/listing.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const types[] = {"text/html", "application/json"};
    struct error error;
    struct uri folder;
    require(libcurl_load(&error));
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct listing listing = {0};
        struct arena *arena = arena_new();
        const char *text = arena_strndup(arena, (const char *)data, size); /* as answers have it: a NUL comes after */
        require(uri_parse("https://example.org/models/tiny/", arena, &folder, &error));
        if (listing_parse(text, strlen(text), types[i], &folder, arena, &listing))
            for (size_t n = 0; n < listing.count; n++) {
                const char *name = listing.names[n], *slash = strchr(name, '/');
                require(*name != '\0' && *name != '/' && (slash == NULL || slash[1] == '\0'));
            }
        arena_free(arena);
    }
    return 0;
}
