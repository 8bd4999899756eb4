/* Any text as a page of an S3 listing, and as a store's failure.
 *
 * Holds for a page that is read: each object has a key, and a continuation is not empty. */
#include "remote/s3_answer.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error = {""};
    struct s3_page page;
    struct arena *arena = arena_new();
    if (s3_page_read((const char *)data, size, arena, &page, &error)) {
        for (size_t i = 0; i < page.n_objects; i++)
            require(page.objects[i].key != NULL && *page.objects[i].key != '\0');
        require(page.next == NULL || *page.next != '\0');
    } else {
        require_one_line(&error);
    }
    s3_failure_read((const char *)data, size, arena);
    arena_free(arena);
    return 0;
}
