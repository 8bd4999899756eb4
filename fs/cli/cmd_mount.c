#include "base/arrival.h"
#include "base/opener.h"
#include "base/report.h"
#include "fs/cli/background.h"
#include "fs/cli/command.h"
#include "fs/cli/sandbox.h"
#include "fs/lib/info/profile.h"
#include "fs/lib/library.h"
#include "fs/mount/fuse_session.h"
#include "sources/paths.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FLAG_FOREGROUND, FLAG_REPLACE, FLAG_VERBOSE };

enum { NOTES_TRIES = 10 * 1000, TRY_NANOSECONDS = 100 * 1000 }; /* a second in all */

struct mounting {
    struct background background;
    const char *mountpoint; /* as it was named; without links once it is mounted */
    struct mounter *mounter;
    int hold; /* on the directory below the mount, or -1 */
    bool verbose, is_library;
    struct tree *tree;
    const struct checkpoint *checkpoint;
    struct arena *arena; /* of serve(): the thread that calls ready() and signalled() can end anywhere */
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
            report_unnamed("note: %s", note_line(note, mounting->arena));
    }
    if (mounting->verbose && mounting->is_library)
        report_unnamed("%s is mounted at %s", mounting->checkpoint->path, mounting->mountpoint);
    else if (mounting->verbose && mounting->checkpoint->n_sources == 0)
        report_unnamed("%s is mounted at %s: %s, %zu components", mounting->checkpoint->path, mounting->mountpoint,
                       mounting->checkpoint->format, profile_components(mounting->tree));
    else if (mounting->verbose)
        report_unnamed("%s is mounted at %s: %s, %zu tensors", mounting->checkpoint->path, mounting->mountpoint,
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
        if (mountpoint_is_descriptor(mounting->mountpoint))
            _exit(EXIT_SUCCESS);
        if (mounter_detach(mounting->mounter, DETACH_LAZY, &error))
            return;
        report("%s; a second signal ends this server at once", error.message);
        return;
    }
    mounter_free(mounting->mounter);
    _exit(128 + info->si_signo);
}

/* Mounts, or takes over the descriptor that the mount point names. */
static bool mount_now(struct mounting *mounting, const char *source, struct session_mount *ret_mount,
                      struct error *error)
{
    struct mounter_device device = {.hold = -1};
    session_block_signals();
    if (mountpoint_is_descriptor(mounting->mountpoint))
        device.device = atoi(mounting->mountpoint + strlen("/dev/fd/"));
    else if (!mounter_mount(mounting->mounter, source, &device, error))
        return false;
    if (device.made != NULL)
        mounting->mountpoint = device.made->path;
    mounting->hold = device.hold;
    *ret_mount = (struct session_mount){device.device, mounting->mountpoint, device.made, mounting->mounter};
    return true;
}

static bool serve(struct mounting *mounting, struct tree *tree, const struct invocation *invocation,
                  struct error *error)
{
    const struct options *options = invocation->options;
    const char *path = tree_checkpoint(tree)->path;
    struct arena *arena = mounting->arena = arena_new_shared();
    const char *source = local_real_path(path, arena);
    struct served served = {tree, options->mount.uid, options->mount.gid, options->mount.umask, options->mount.only};
    struct session_options session_options = options->mount.session;
    struct session_mount mount;
    if (session_options.source == NULL)
        session_options.source = source != NULL ? source : path;
    struct error unused;
    bool mounted = mount_now(mounting, session_options.source, &mount, error);
    struct session *session = mounted ? session_new(&served, &mount, &session_options, error) : NULL;
    if (session != NULL) {
        report_name(mounting->mountpoint);
        tree_prepare(tree, TREE_ROOT, NULL); /* await_notes() waits for these plans, whose errors have the name */
    }
    bool done = session != NULL && session_serve(session, &(struct session_events){ready, signalled, mounting}, error);
    if (mounted && !done)
        mounter_detach(mounting->mounter, DETACH_LAZY, &unused);
    if (session != NULL)
        session_free(session);
    arena_free(arena);
    return done;
}

/* Starts the process that mounts. Its mount point is fixed from then on. */
static bool start_mounter(struct mounting *mounting, const struct invocation *invocation, struct error *error)
{
    const struct options *options = invocation->options;
    const struct mounter_plan plan = {
        .path = mounting->mountpoint,
        .checks = {.nonempty = options->mount.nonempty, .replace = invocation->flags[FLAG_REPLACE]},
        .options = options->mount.session,
        .passes_files = !options->mount.session.no_passthrough,
    };
    mounting->mounter = mounter_start(&plan, error);
    return mounting->mounter != NULL;
}

/* Gives rights away, before the first byte of a source or of an option's file is read. What needs them comes first. */
static bool confine(struct mounting *mounting, const struct invocation *invocation, struct error *error)
{
    const char *log = invocation->options->mount.log;
    const char *const *sources = (const char *const *)invocation->arguments;
    background_close_inherited(&mounting->background, sources);
    if (log != NULL && !report_to_file(log, error))
        return error_prefix(error, "option log");
    session_load();
    return start_mounter(mounting, invocation, error) &&
           enter_server_sandbox(sources, invocation->n_arguments - 1, invocation->options, error);
}

/* Opens the sources. Returns an exit status, or -1. */
static int open_sources(struct mounting *mounting, const struct invocation *invocation)
{
    const char *const *sources = (const char *const *)invocation->arguments;
    size_t n_sources = invocation->n_arguments - 1;
    struct error error;
    if (!options_read_files(invocation->options, &error)) {
        report("%s", error.message);
        return invocation->options->has_bad_file ? EXIT_BAD_INPUT : EXIT_MISUSE;
    }
    mounting->is_library = n_sources > 1 || invocation->options->library;
    mounting->tree = n_sources > 1 ? library_open(sources, n_sources, invocation->options, &error)
                                   : command_open(sources[0], invocation->options);
    if (mounting->tree == NULL && n_sources > 1)
        report("%s", error.message);
    if (mounting->tree == NULL)
        return EXIT_BAD_INPUT;
    mounting->checkpoint = tree_checkpoint(mounting->tree);
    return -1;
}

static int open_and_serve(struct mounting *mounting, const struct invocation *invocation)
{
    struct error error;
    bool done = confine(mounting, invocation, &error);
    int status = done ? open_sources(mounting, invocation) : -1;
    if (status >= 0)
        return status;
    done = done && session_has_descriptors(&error) && serve(mounting, mounting->tree, invocation, &error);
    if (!done)
        report("%s", error.message);
    if (mounting->tree != NULL)
        command_close(mounting->tree);
    return done ? EXIT_SUCCESS : EXIT_BAD_INPUT;
}

static int run(const struct invocation *invocation)
{
    struct mounting mounting = {.background.ready = -1, .hold = -1};
    int status = invocation->flags[FLAG_FOREGROUND] ? -1 : background_start(&mounting.background);
    if (mounting.background.vanished)
        mountpoint_clear_dead(invocation->arguments[invocation->n_arguments - 1]);
    if (status >= 0)
        return status;
    mounting.mountpoint = invocation->arguments[invocation->n_arguments - 1];
    mounting.verbose = invocation->flags[FLAG_VERBOSE];
    status = open_and_serve(&mounting, invocation);
    opener_end();
    mounter_free(mounting.mounter);
    if (mounting.hold >= 0)
        close(mounting.hold);
    background_end(&mounting.background);
    return status;
}

const struct command mount_command = {
    .name = "mount",
    .usage = "SOURCE... MOUNTPOINT",
    .summary = "Show SOURCE as files at MOUNTPOINT",
    .group = MOUNT_COMMAND,
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
            {"wfs mount model.safetensors ~/m", "show every tensor below ~/m/tensors, until `wfs umount ~/m`"},
            {"wfs mount -o allow_other,umask=007 Qwen/Qwen2.5-0.5B ~/m",
             "mount a model from the hub cache for your group"},
            {"wfs mount -o library ~/models ~/m", "show a directory of models as programs look for them"},
            {"wfs mount -f ~/models/Llama-3.2-1B ~/m", "stay in the foreground until ^C"},
            {0},
        },
    .min_arguments = 2,
    .max_arguments = SIZE_MAX,
    .takes_options = true,
    .mounts = true,
    .enters_sandbox_itself = true,
    .run = run,
};
