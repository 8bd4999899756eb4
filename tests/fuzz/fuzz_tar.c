/* Any bytes as a tar archive.
 *
 * Holds: members are inside the file and one after the other; what is refused is refused with one line. */
#include "formats/nemo/tar.h"

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tar_member member;
    struct error error = {""};
    struct source *file = source_of_bytes(data, size, "input.nemo");
    struct tar tar = {.source = file};
    bool good = true, more = true;
    while (good && more) {
        uint64_t before = tar.at;
        good = tar_next(&tar, &member, &more, &error);
        if (good && more)
            require(tar.at > before && member.offset <= size && member.size <= size - member.offset &&
                    strlen(member.name) <= TAR_MAX_NAME);
    }
    if (!good)
        require_one_line(&error);
    source_close(file);
    return 0;
}
