#include "base/arrival.h"
#include "base/report.h"
#include "formats/components.h"
#include "formats/location_local.h"
#include "fs/cli/background.h"
#include "fs/cli/command.h"
#include "fs/cli/command_sandbox.h"
#include "fs/cli/library.h"
#include "fs/cli/server_sandbox.h"
#include "fs/mount/fuse_session.h"
#include "fs/mount/mountpoint.h"
#include "fs/mount/unmounter.h"
#include "fs/tree/subjects.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { FLAG_FOREGROUND, FLAG_REPLACE, FLAG_VERBOSE };

enum { NOTES_TRIES = 10 * 1000, TRY_NANOSECONDS = 100 * 1000 }; /* a second in all */

struct mounting {
    struct background background;
    struct mountpoint mountpoint;
    struct unmounter *unmounter;
    const struct own_mount *own;
    bool verbose, is_library;
    struct tree *tree;
    const struct checkpoint *checkpoint;
    unsigned n_signals;
};

/* Waits, but not long, for the plans of files at the top, which note the files that are left out. */
static void await_notes(struct tree *tree)
{
    for (int i = 0; i < NOTES_TRIES && !tree_prepare(tree, TREE_ROOT, NULL); i++)
        nanosleep(&(struct timespec){.tv_nsec = TRY_NANOSECONDS}, NULL);
}

static void ready(void *context)
{
    struct mounting *mounting = context;
    await_notes(mounting->tree);
    for (size_t i = 0, n_notes = checkpoint_notes(mounting->checkpoint); i < n_notes; i++) {
        struct note note = checkpoint_note_at(mounting->checkpoint, i);
        if (!note.is_hint)
            report_unnamed("note: %s%s", subject_paths(note.subject), note.text);
    }
    if (mounting->verbose && mounting->is_library)
        report_unnamed("%s is mounted at %s", mounting->checkpoint->path, mounting->mountpoint.path);
    else if (mounting->verbose && mounting->checkpoint->n_sources == 0)
        report_unnamed("%s is mounted at %s: %s, %zu components", mounting->checkpoint->path, mounting->mountpoint.path,
                       mounting->checkpoint->format, mounting->checkpoint->components->count);
    else if (mounting->verbose)
        report_unnamed("%s is mounted at %s: %s, %zu tensors", mounting->checkpoint->path, mounting->mountpoint.path,
                       mounting->checkpoint->format, mounting->checkpoint->tensors->n_tensors);
    background_ready(&mounting->background, mounting->verbose);
}

/* Handles signals: the first ends the mount when its last user has left, the second ends the process at once. */
static void signalled(void *context, const siginfo_t *info)
{
    struct mounting *mounting = context;
    struct error error;
    if (info->si_signo == SIGCHLD || info->si_signo == SIGUSR1 || info->si_signo == SIGUSR2)
        return;
    if (mounting->n_signals++ == 0) {
        arrival_give_up(); /* else a user that waits for a network may never leave */
        if (mountpoint_is_descriptor(mounting->mountpoint.path))
            _exit(EXIT_SUCCESS);
        if (unmounter_detach(mounting->unmounter, mounting->own, DETACH_LAZY, &error))
            return;
        report("%s; a second signal ends this server at once", error.message);
        return;
    }
    mountpoint_release(&mounting->mountpoint);
    _exit(128 + info->si_signo);
}

/* Prepares the mount point and mounts. Tries again if the previous wfs has removed the directory in between. */
static struct session *mount_session(struct mounting *mounting, const struct served *served,
                                     const struct session_options *options, const struct invocation *invocation,
                                     struct error *error)
{
    const struct mountpoint_options mountpoint_options = {
        .nonempty = invocation->options->mount.nonempty,
        .replace = invocation->flags[FLAG_REPLACE],
    };
    struct session *session = NULL;
    for (int attempt = 0; session == NULL && attempt < 3; attempt++) {
        if (!mountpoint_prepare(&mounting->mountpoint, invocation->arguments[invocation->n_arguments - 1],
                                &mountpoint_options, error))
            return NULL;
        session = session_new(served, mounting->mountpoint.path, options, error);
        bool vanished = session == NULL && mountpoint_vanished(&mounting->mountpoint);
        if (session == NULL)
            mountpoint_release(&mounting->mountpoint);
        if (!vanished)
            break;
    }
    return session;
}

static bool serve(struct mounting *mounting, struct tree *tree, const struct invocation *invocation,
                  struct error *error)
{
    const struct options *options = invocation->options;
    const char *path = tree_checkpoint(tree)->path;
    struct arena *arena = arena_new();
    const char *source = local_real_path(path, arena);
    struct served served = {tree, options->mount.uid, options->mount.gid, options->mount.umask, options->mount.only};
    struct session_options session_options = options->mount.session;
    if (session_options.source == NULL)
        session_options.source = source != NULL ? source : path;
    /* the models of a library open when somebody looks into them */
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    int paths = mounting->is_library ? 0 : open_command_paths(&checkpoint, 1, options, NULL);
    struct session *session = mount_session(mounting, &served, &session_options, invocation, error);
    bool done = false;
    if (session != NULL) {
        struct error unused;
        mounting->own = session_mount(session);
        report_name(mounting->mountpoint.path);
        if (mounting->unmounter != NULL)
            enter_server_sandbox(paths, options, mounting->mountpoint.path, 0);
        done = session_serve(session, &(struct session_events){ready, signalled, mounting}, error);
        if (!done)
            unmounter_detach(mounting->unmounter, mounting->own, DETACH_LAZY, &unused);
        session_free(session);
    }
    arena_free(arena);
    return done;
}

static int run(const struct invocation *invocation)
{
    struct mounting mounting = {.background.ready = -1};
    int status = invocation->flags[FLAG_FOREGROUND] ? -1 : background_start(&mounting.background);
    if (mounting.background.was_killed)
        mountpoint_clear_dead(invocation->arguments[invocation->n_arguments - 1]);
    if (status >= 0)
        return status;
    size_t n_sources = invocation->n_arguments - 1;
    const char *const *sources = (const char *const *)invocation->arguments;
    mounting.is_library = n_sources > 1 || invocation->options->library;
    mounting.unmounter = unmounter_start();
    struct tree *tree = mounting.is_library ? library_open(sources, n_sources, invocation->options)
                                            : command_open(sources[0], invocation->options);
    if (tree == NULL) {
        unmounter_free(mounting.unmounter);
        return EXIT_BAD_INPUT;
    }
    struct error error;
    const char *log = invocation->options->mount.log;
    mounting.tree = tree;
    mounting.checkpoint = tree_checkpoint(tree);
    mounting.verbose = invocation->flags[FLAG_VERBOSE];
    bool logged = log == NULL || report_to_file(log, &error) || error_prefix(&error, "option log");
    background_close_inherited(&mounting.background, (const char *const *)invocation->arguments);
    bool done = logged && session_has_descriptors(&error) && serve(&mounting, tree, invocation, &error);
    if (!done)
        report("%s", error.message);
    command_close(tree);
    mountpoint_release(&mounting.mountpoint);
    unmounter_free(mounting.unmounter);
    return done ? EXIT_SUCCESS : EXIT_BAD_INPUT;
}

const struct command mount_command = {
    .name = "mount",
    .usage = "SOURCE... MOUNTPOINT",
    .summary = "Show SOURCE as files at MOUNTPOINT",
    .text = "Several sources, or a directory of models with -o library, are shown as models/PUBLISHER/NAME/ and "
            "ollama/.\nThe "
            "command returns when the files are available. If MOUNTPOINT does not exist, wfs creates it, and "
            "removes it at the\nend. MOUNTPOINT can be /dev/fd/N, a descriptor of /dev/fuse that is mounted already. "
            "SIGTERM and SIGINT unmount and\nlet readers finish, except those that wait for a network; a second signal "
            "ends at once. For /etc/fstab: SOURCE\nMOUNTPOINT fuse.wfs defaults 0 0. A user can read a file if the "
            "user can read every source file it is computed from;\nnobody can write.",
    .flags =
        (const struct flag[]){
            {'f', "foreground", "stay in the foreground and log to standard error"},
            {0, "replace", "first unmount a wfs that is mounted there, alive or dead"},
            {'v', "verbose", "print what is mounted, and log to standard error even from the background"},
            {0},
        },
    .examples =
        (const struct example[]){
            {"wfs mount model.safetensors /mnt/m", "show every tensor below /mnt/m/tensors, until `wfs umount /mnt/m`"},
            {"wfs mount -o allow_other,umask=007 Qwen/Qwen2.5-0.5B /mnt/m",
             "mount a model from the hub cache for your group"},
            {"wfs mount -o library ~/models /mnt/m", "show a directory of models as programs look for them"},
            {"wfs mount -f ~/models/Llama-3.2-1B /mnt/m", "stay in the foreground until ^C"},
            {0},
        },
    .min_arguments = 2,
    .max_arguments = SIZE_MAX,
    .takes_options = true,
    .mounts = true,
    .enters_sandbox_itself = true,
    .run = run,
};
