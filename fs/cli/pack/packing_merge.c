#include "fs/cli/pack/packing_index.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

struct merging {
    struct files *merged;
    const struct files *from; /* of the two lists, the one that is copied now ... */
    uint32_t *first;          /* ... and for its entries the number in the merged list, or UINT32_MAX */
    const uint32_t *packs;    /* their numbers in the packing; NULL: they are these */
};

static void copy_entry(struct merging *merging, size_t index)
{
    const struct files *from = merging->from;
    struct files *merged = merging->merged;
    struct files_entry entry = from->entries[index];
    uint32_t *first = &merging->first[entry.same], number = (uint32_t)merged->n_entries;
    bool is_second = *first != UINT32_MAX;
    if (!is_second)
        *first = number;
    files_add(merged, &entry);
    struct files_entry *added = &merged->entries[number];
    added->same = *first;
    for (size_t i = 0; !is_second && i < entry.n_segments; i++) {
        struct files_segment segment = from->segments[entry.first_segment + i];
        if (segment.pack != FILES_ZEROS && merging->packs != NULL)
            segment.pack = merging->packs[segment.pack];
        files_add_segment(merged, number, &segment);
    }
}

/* Reports whether a path of the old list stays: nothing is new in its place, or in that of a folder above it. */
static bool stays(const struct files *fresh, const char *path)
{
    bool found;
    size_t length = strlen(path);
    files_find(fresh, path, length, &found);
    if (found)
        return false;
    while (length > 0) {
        while (length > 0 && path[--length] != '/')
            ;
        size_t index = files_find(fresh, path, length, &found);
        if (found && fresh->entries[index].kind != FILES_FOLDER)
            return false;
    }
    return true;
}

uint32_t *merge_numbers(size_t count)
{
    uint32_t *numbers = memory_alloc((count + 1) * sizeof *numbers);
    memset(numbers, 0xff, (count + 1) * sizeof *numbers);
    return numbers;
}

/* Gives a folder the mode and time that it has in the archive. */
static void keep_folder(struct files_entry *added, const struct files_entry *old)
{
    if (added->kind != FILES_FOLDER || old->kind != FILES_FOLDER)
        return;
    added->mode = old->mode;
    added->seconds = old->seconds;
    added->nanoseconds = old->nanoseconds;
}

struct files *merge_lists(const struct files *old, const uint32_t *packs, const struct files *fresh, bool keeps_folders)
{
    struct files *merged = files_new();
    struct merging from_old = {merged, old, merge_numbers(old->n_entries), packs},
                   from_new = {merged, fresh, merge_numbers(fresh->n_entries), NULL};
    for (size_t i = 0, j = 0; i < old->n_entries || j < fresh->n_entries;) {
        bool is_new =
            i == old->n_entries || (j < fresh->n_entries && strcmp(fresh->entries[j].path, old->entries[i].path) <= 0);
        bool is_both =
            i < old->n_entries && j < fresh->n_entries && strcmp(fresh->entries[j].path, old->entries[i].path) == 0;
        if (is_new)
            copy_entry(&from_new, j++);
        if (is_both && keeps_folders)
            keep_folder(&merged->entries[merged->n_entries - 1], &old->entries[i]);
        if (is_new)
            continue;
        if (stays(fresh, old->entries[i++].path))
            copy_entry(&from_old, i - 1);
    }
    free(from_old.first);
    free(from_new.first);
    return merged;
}
