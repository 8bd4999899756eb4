/* A list of an archive's files, as the text that its frame holds.
 *
 * Holds: a refusal is one line, and what was taken stays in its folder: paths ascend, each is in a folder of the list,
 * and segments fill their files. */
#include "base/buffer.h"
#include "sources/archive/files.h"
#include "tests/fuzz/fuzz.h"

enum { PACKS = 3 };

static void require_inside(const struct files *files, size_t index)
{
    const char *path = files->entries[index].path, *slash = strrchr(path, '/');
    bool found;
    require(index == 0 || strcmp(files->entries[index - 1].path, path) < 0);
    require(*path != '/' && strstr(path, "//") == NULL && strcmp(path, "..") != 0 && strncmp(path, "../", 3) != 0 &&
            strstr(path, "/../") == NULL);
    if (index == 0)
        return;
    size_t parent = files_find(files, path, slash != NULL ? (size_t)(slash - path) : 0, &found);
    require(found && parent < index && files->entries[parent].kind == FILES_FOLDER);
}

static void require_filled(const struct files *files, const struct files_entry *entry)
{
    const struct files_segment *segments = files->segments + entry->first_segment;
    require(entry->first_segment + entry->n_segments <= files->n_segments);
    require((entry->n_segments == 0) == (entry->size == 0));
    for (size_t i = 0; i < entry->n_segments; i++) {
        uint64_t end;
        require(i == 0 ? segments[i].start == 0 : segments[i].start > segments[i - 1].start);
        require(segments[i].start < entry->size && (segments[i].pack < PACKS || segments[i].pack == FILES_ZEROS));
        require(files_segment_at(files, entry, segments[i].start, &end) == &segments[i] && end <= entry->size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buffer text = {0}, frame = {0};
    struct error error = {""};
    buffer_append(&text, data, size);
    lines_append_frame(&text, &frame);
    struct source *source = source_of_bytes(frame.bytes, frame.length, "list");
    struct files *files = files_read(source, NULL, PACKS, &error);
    if (files == NULL)
        require_one_line(&error);
    for (size_t i = 0; files != NULL && i < files->n_entries; i++) {
        require_inside(files, i);
        if (files->entries[i].kind == FILES_FILE)
            require_filled(files, &files->entries[i]);
    }
    files_free(files);
    source_close(source);
    buffer_free(&text);
    buffer_free(&frame);
    return 0;
}
