#include "fs/cli/copy_total.h"

#include "base/arena.h"
#include "fs/cli/progress.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

struct adding {
    struct copy_total *total;
    struct tree *tree;
    const char *destination;
};

static bool add_entry(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    const struct adding *adding = context;
    struct arena *arena = arena_new();
    copy_total_add(adding->total, adding->tree, attributes, arena_printf(arena, "%s/%s", adding->destination, name));
    arena_free(arena);
    return true;
}

void copy_total_add(struct copy_total *total, struct tree *tree, const struct node_attributes *attributes,
                    const char *destination)
{
    struct stat status;
    if (attributes->directory) {
        tree_list(tree, attributes->id, 0, add_entry, &(struct adding){total, tree, destination});
        return;
    }
    total->n_files++;
    total->n_bytes += attributes->size;
    if (stat(destination, &status) != 0 || !S_ISREG(status.st_mode))
        return;
    uint64_t n_replaced = (uint64_t)status.st_blocks * 512;
    total->replaced += n_replaced;
    total->largest_replaced = n_replaced > total->largest_replaced ? n_replaced : total->largest_replaced;
}

/* Gets the room for this user where a path is, or will be; false: nobody says. */
static bool find_room(const char *path, uint64_t *ret_room)
{
    struct statvfs status;
    struct arena *arena = arena_new();
    char *place = arena_strdup(arena, path);
    bool found = statvfs(place, &status) == 0;
    for (char *slash; !found && (slash = strrchr(place, '/')) != NULL && slash != place;) {
        *slash = '\0';
        found = statvfs(place, &status) == 0;
    }
    found = found || (*path != '/' && statvfs(".", &status) == 0);
    arena_free(arena);
    *ret_room = found ? (uint64_t)status.f_bavail * status.f_frsize : 0;
    return found && status.f_blocks > 0;
}

bool copy_total_fits(const struct copy_total *total, const char *directory, struct error *error)
{
    char needed_text[SIZE_TEXT], room_text[SIZE_TEXT];
    uint64_t room, with_old = total->n_bytes + total->largest_replaced,
                   needed = with_old > total->replaced ? with_old - total->replaced : 0;
    if (!find_room(directory, &room) || needed <= room)
        return true;
    return error_set(error, "%s: %zu files need %s, and there is room for %s; nothing was copied", directory,
                     total->n_files, size_text(needed, needed_text), size_text(room, room_text));
}
