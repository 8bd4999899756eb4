#include "fs/cli/copying.h"

#include "base/arena.h"
#include "fs/cli/terminal.h"
#include "sources/paths.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

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

static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};

static const char *volatile named_temporary;

static void remove_and_die(int number)
{
    const char *path = named_temporary;
    if (path != NULL)
        unlink(path);
    raise(number); /* SA_RESETHAND: the default action */
}

static void guard(const struct output *output)
{
    struct sigaction action = {.sa_handler = remove_and_die, .sa_flags = (int)SA_RESETHAND};
    if (!output->is_file || output->has_no_name)
        return;
    named_temporary = output->temporary;
    for (size_t i = 0; i < sizeof ending_signals / sizeof *ending_signals; i++) {
        struct sigaction before;
        if (sigaction(ending_signals[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(ending_signals[i], &action, NULL);
    }
}

/* A signal waits until the name is guarded. A FIFO has none, and may be waited for. */
bool unfinished_open(struct output *output, const char *path, uint64_t size, mode_t mode, struct error *error)
{
    sigset_t ending, before;
    enum location_kind kind = local_kind(path);
    if (kind != LOCATION_FILE && kind != LOCATION_NOTHING)
        return output_open(output, path, size, mode, error);
    sigemptyset(&ending);
    for (size_t i = 0; i < sizeof ending_signals / sizeof *ending_signals; i++)
        sigaddset(&ending, ending_signals[i]);
    pthread_sigmask(SIG_BLOCK, &ending, &before);
    bool opened = output_open(output, path, size, mode, error);
    if (opened)
        guard(output);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return opened;
}

void unfinished_none(void)
{
    named_temporary = NULL;
}
