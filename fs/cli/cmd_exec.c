#include "base/arrival.h"
#include "base/opener.h"
#include "base/report.h"
#include "base/system.h"
#include "fs/cli/command.h"
#include "fs/cli/sandbox.h"
#include "fs/mount/fuse_session.h"
#include "fs/mount/mountpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_CANNOT_EXECUTE = 126, EXIT_NOT_FOUND = 127 };

struct execution {
    struct mountpoint mountpoint;
    struct mounter *mounter;
    bool hidden; /* no other process sees the mount, which ends with this one */
    pid_t child;
    int go; /* pipe to the child, which waits there for the mount */
    int status;
};

static bool write_map(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return written;
}

/* Enters a user namespace where this process has the same user and group, and may mount. */
static bool enter_user_namespace(void)
{
    char uid_map[64], gid_map[64];
    snprintf(uid_map, sizeof uid_map, "%u %u 1", geteuid(), geteuid());
    snprintf(gid_map, sizeof gid_map, "%u %u 1", getegid(), getegid());
    return access("/dev/fuse", R_OK | W_OK) == 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
           write_map("/proc/self/setgroups", "deny") && write_map("/proc/self/uid_map", uid_map) &&
           write_map("/proc/self/gid_map", gid_map);
}

/* Hides later mounts from other processes, and ends them with the last process that sees them. Returns false if that is
 * impossible; then the mount is an ordinary one that ends with the program. */
static bool hide_mounts(void)
{
    if (unshare(CLONE_NEWNS) != 0 && !enter_user_namespace())
        return false;
    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
    return true;
}

/* Returns the arguments with {} replaced by the mount point, in the arena. */
static char **expand(struct arena *arena, char **program, const char *mountpoint)
{
    size_t count = 0;
    while (program[count] != NULL)
        count++;
    char **expanded = arena_array(arena, count + 1, sizeof *expanded);
    for (size_t i = 0; i < count; i++) {
        const char *from = program[i];
        expanded[i] = arena_strdup(arena, "");
        for (const char *place; (place = strstr(from, "{}")) != NULL; from = place + 2)
            expanded[i] = arena_printf(arena, "%s%.*s%s", expanded[i], (int)(place - from), from, mountpoint);
        expanded[i] = arena_printf(arena, "%s%s", expanded[i], from);
    }
    return expanded;
}

static _Noreturn void become(char **program, int go)
{
    char byte;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* the program cannot go on without the mount */
    if (read(go, &byte, 1) != 1)
        _exit(EXIT_BAD_INPUT); /* the mount failed, and the parent has reported it */
    execvp(program[0], program);
    int reason = errno;
    report("%s: %s", program[0], strerror(reason));
    _exit(reason == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXECUTE);
}

static bool start(struct execution *execution, char **program, struct error *error)
{
    int ends[2];
    execution->child = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
    if (execution->child < 0)
        return error_set_errno(error, errno, "%s: cannot start", program[0]);
    if (execution->child == 0) {
        close(ends[1]);
        become(program, ends[0]);
    }
    close(ends[0]);
    execution->go = ends[1];
    return true;
}

static void ready(void *context)
{
    const struct execution *execution = context;
    if (write(execution->go, "", 1) != 1)
        mounter_signal(execution->mounter, SIGTERM);
}

/* Passes on signals that were sent to wfs alone; a terminal's signals have reached the program already. */
static void signalled(void *context, const siginfo_t *info)
{
    struct execution *execution = context;
    struct error error;
    int status;
    if (info->si_signo != SIGCHLD) {
        if (info->si_code != SI_KERNEL)
            mounter_signal(execution->mounter, info->si_signo);
        return;
    }
    if (waitpid(execution->child, &status, WNOHANG) != execution->child)
        return;
    arrival_give_up();
    execution->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (mounter_detach(execution->mounter, DETACH_FORCE, &error))
        return;
    report("%s", error.message);
    exit(execution->status);
}

static bool serve(struct execution *execution, struct tree *tree, const struct invocation *invocation,
                  struct error *error)
{
    const struct options *options = invocation->options;
    struct served served = {tree, options->mount.uid, options->mount.gid, options->mount.umask, options->mount.only};
    const char *name = options->mount.session.source;
    struct session_options session_options = options->mount.session;
    struct mounter_device device;
    session_options.source = name != NULL ? name : tree_checkpoint(tree)->path;
    session_block_signals();
    if (!mounter_mount(execution->mounter, session_options.source, &device, error))
        return false;
    const struct session_mount mount = {device.device, device.made->path, device.made, execution->mounter};
    struct session *session = session_new(&served, &mount, &session_options, error);
    struct error unused;
    bool done = session != NULL && session_serve(session, &(struct session_events){ready, signalled, execution}, error);
    if (!done)
        mounter_detach(execution->mounter, DETACH_FORCE, &unused);
    if (session != NULL)
        session_free(session);
    return done;
}

/* Reports why a file that an argument names is absent, since the program cannot know the reason. Ignores arguments with
 * characters for a shell. */
static void explain_absences(struct tree *tree, char **program)
{
    struct node_attributes unused;
    struct error error;
    for (; *program != NULL; program++) {
        const char *place = strstr(*program, "{}/");
        if (place != NULL && strpbrk(place, " \t\n*?[$|;&<>()'\"`\\,:") == NULL &&
            !tree_walk(tree, place + 3, &unused, &error))
            report("note: %s", error.message);
    }
}

static bool start_mounter(struct execution *execution, const struct options *options, struct error *error)
{
    struct mounter_plan plan = {
        .path = execution->mountpoint.path,
        .prepared = &execution->mountpoint,
        .options = options->mount.session,
        .passes_files = !options->mount.session.no_passthrough,
        .program = execution->child,
    };
    if (execution->hidden) /* fusermount3 has no rights in a user namespace, and a hidden mount ends with this process
                              anyway */
        plan.options.auto_unmount = false;
    execution->mounter = mounter_start(&plan, error);
    return execution->mounter != NULL;
}

/* Makes the mount point and starts the program, which waits for the mount. Then gives rights away. */
static bool prepare(struct execution *execution, const struct invocation *invocation, struct error *error)
{
    const char *parent = getenv("TMPDIR"), *log = invocation->options->mount.log;
    execution->hidden = hide_mounts();
    if (!mountpoint_make_temporary(&execution->mountpoint, parent != NULL && *parent == '/' ? parent : "/tmp", error))
        return false;
    struct arena *arena = arena_new();
    bool started = start(execution, expand(arena, invocation->program, execution->mountpoint.path), error);
    arena_free(arena);
    if (started && log != NULL && !report_to_file(log, error))
        return error_prefix(error, "option log");
    session_load();
    return started && start_mounter(execution, invocation->options, error) &&
           enter_server_sandbox((const char *const *)invocation->arguments, 1, invocation->options, error);
}

static void open_and_serve(struct execution *execution, const struct invocation *invocation)
{
    struct error error;
    if (!options_read_files(invocation->options, &error)) {
        report("%s", error.message);
        execution->status = invocation->options->has_bad_file ? EXIT_BAD_INPUT : EXIT_MISUSE;
        return;
    }
    struct tree *tree = command_open(invocation->arguments[0], invocation->options);
    if (tree == NULL)
        return;
    explain_absences(tree, invocation->program);
    if (!session_has_descriptors(&error) || !serve(execution, tree, invocation, &error))
        report("%s", error.message);
    command_close(tree);
}

/* Enters a namespace and starts the program before it opens the source. A process with threads, such as those for a
 * network, cannot enter a user namespace; and the program inherits no descriptors of the source, no blocked signals. */
static int run(const struct invocation *invocation)
{
    struct execution execution = {.status = EXIT_BAD_INPUT, .mountpoint.hold = -1};
    struct error error;
    char program[PATH_MAX];
    system_program_path(program); /* for layouts, before the namespace changes it */
    if (prepare(&execution, invocation, &error))
        open_and_serve(&execution, invocation);
    else
        report("%s", error.message);
    opener_end();
    if (execution.mounter != NULL) {
        mounter_free(execution.mounter); /* removes the directory */
        close(execution.mountpoint.hold);
        free(execution.mountpoint.path);
    } else {
        mountpoint_release(&execution.mountpoint);
    }
    return execution.status;
}

const struct command exec_command = {
    .name = "exec",
    .usage = "SOURCE -- CMD ...",
    .summary = "Run a program with SOURCE mounted for that program only",
    .group = MOUNT_COMMAND,
    .text = "In the arguments of CMD, {} stands for the mount point. The exit status is that of CMD, 128 + N if signal "
            "N ended it, 126 if CMD cannot be run, 127\nif CMD does not exist. The mount ends with CMD. Where users "
            "can create namespaces and open /dev/fuse, neither root\nnor fusermount3 is needed.",
    .examples =
        (const struct example[]){
            {"wfs exec ~/models/Llama-3.2-1B -- llama-cli -m {}/model.gguf -p Hello",
             "run a model without converting it"},
            {"wfs exec ~/Qwen2.5-VL -- llama-server -m {}/model.gguf --mmproj {}/mmproj.gguf", "serve a vision model"},
            {"wfs exec model.safetensors -- sh -c 'ls {}/tensors | wc -l'", "count the tensors"},
            {0},
        },
    .min_arguments = 1,
    .max_arguments = 1,
    .takes_options = true,
    .mounts = true,
    .takes_program = true,
    .enters_sandbox_itself = true,
    .run = run,
};
