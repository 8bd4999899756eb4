#include "base/arrival.h"
#include "base/report.h"
#include "fs/cli/command.h"
#include "fs/cli/command_sandbox.h"
#include "fs/cli/server_sandbox.h"
#include "fs/mount/fuse_session.h"
#include "fs/mount/mountpoint.h"
#include "fs/mount/unmounter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
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
    struct unmounter *unmounter;
    const struct own_mount *own;
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
        kill(execution->child, SIGTERM);
}

/* Passes on signals that were sent to wfs alone; a terminal's signals have reached the program already. */
static void signalled(void *context, const siginfo_t *info)
{
    struct execution *execution = context;
    struct error error;
    int status;
    if (info->si_signo != SIGCHLD) {
        if (info->si_code != SI_KERNEL)
            kill(execution->child, info->si_signo);
        return;
    }
    if (waitpid(execution->child, &status, WNOHANG) != execution->child)
        return;
    arrival_give_up();
    execution->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (unmounter_detach(execution->unmounter, execution->own, DETACH_FORCE, &error))
        return;
    report("%s", error.message);
    exit(execution->status);
}

static bool serve(struct execution *execution, struct tree *tree, const struct invocation *invocation,
                  struct error *error)
{
    const struct options *options = invocation->options;
    struct served served = {tree, options->mount.uid, options->mount.gid, options->mount.umask, options->mount.only};
    struct session_options session_options = options->mount.session;
    if (session_options.source == NULL)
        session_options.source = tree_checkpoint(tree)->path;
    if (execution->hidden) /* fusermount3 has no rights in a user namespace, and a hidden mount ends with this process
                              anyway */
        session_options.auto_unmount = false;
    const struct checkpoint *checkpoint = tree_checkpoint(tree);
    int paths = open_command_paths(&checkpoint, 1, options, NULL);
    struct session *session = session_new(&served, execution->mountpoint.path, &session_options, error);
    if (session == NULL)
        return false;
    struct error unused;
    execution->own = session_mount(session);
    if (execution->unmounter != NULL) /* to kill a program that has another user takes a capability */
        enter_server_sandbox(paths, options, execution->mountpoint.path, 1ULL << CAP_KILL);
    bool done = session_serve(session, &(struct session_events){ready, signalled, execution}, error);
    if (!done)
        unmounter_detach(execution->unmounter, execution->own, DETACH_FORCE, &unused);
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

/* Makes the mount point and starts the program, which waits for the mount. */
static bool prepare(struct execution *execution, char **program, struct error *error)
{
    const char *parent = getenv("TMPDIR");
    execution->hidden = hide_mounts();
    execution->unmounter = unmounter_start();
    if (!mountpoint_make_temporary(&execution->mountpoint, parent != NULL && *parent == '/' ? parent : "/tmp", error))
        return false;
    struct arena *arena = arena_new();
    bool started = start(execution, expand(arena, program, execution->mountpoint.path), error);
    arena_free(arena);
    return started;
}

static void open_and_serve(struct execution *execution, const struct invocation *invocation)
{
    struct tree *tree = command_open(invocation->arguments[0], invocation->options);
    const char *log = invocation->options->mount.log;
    struct error error;
    if (tree == NULL)
        return;
    bool logged = log == NULL || report_to_file(log, &error) || error_prefix(&error, "option log");
    if (logged)
        explain_absences(tree, invocation->program);
    if (!logged || !session_has_descriptors(&error) || !serve(execution, tree, invocation, &error))
        report("%s", error.message);
    command_close(tree);
}

/* Enters a namespace and starts the program before it opens the source. A process with threads, such as those for a
 * network, cannot enter a user namespace; and the program inherits no descriptors of the source, no blocked signals. */
static int run(const struct invocation *invocation)
{
    struct execution execution = {.status = EXIT_BAD_INPUT};
    struct error error;
    if (prepare(&execution, invocation->program, &error))
        open_and_serve(&execution, invocation);
    else
        report("%s", error.message);
    mountpoint_release(&execution.mountpoint);
    unmounter_free(execution.unmounter);
    return execution.status;
}

const struct command exec_command = {
    .name = "exec",
    .usage = "SOURCE -- CMD ...",
    .summary = "Run a program with SOURCE mounted for that program only",
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
