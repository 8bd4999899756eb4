/* Any bytes as a tar archive, compressed by gzip or not.
 *
 * Holds: members are inside the file and one after the other; what is refused is refused with one line. */
#include "formats/nemo/tar.h"
#include "formats/zip/deflate_index.h"

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tar_member member;
    struct error error = {""};
    struct source *file = source_of_bytes(data, size, "input.nemo");
    struct source *inflated = gzip_begins(data, size) ? gzip_source_new(file, &error) : NULL;
    struct tar tar = {.source = inflated != NULL ? inflated : file};
    uint64_t end = source_size(tar.source);
    bool good = true, more = true;
    while (good && more) {
        uint64_t before = tar.at;
        good = tar_next(&tar, &member, &more, &error);
        if (good && more)
            require(tar.at > before && member.offset <= end && member.size <= end - member.offset &&
                    strlen(member.name) <= TAR_MAX_NAME);
    }
    if (!good)
        require_one_line(&error);
    source_close(inflated);
    source_close(file);
    return 0;
}
