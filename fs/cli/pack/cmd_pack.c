#include "base/report.h"
#include "base/text.h"
#include "fs/cli/command.h"
#include "fs/cli/pack/packing.h"
#include "fs/cli/pack/packing_index.h"
#include "fs/cli/pack/packing_written.h"
#include "fs/cli/terminal.h"
#include "sources/paths.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FLAG_AS, FLAG_REPLACE, FLAG_REMOVE, FLAG_PRUNE };

/* The words of a command, understood. */
struct pack_task {
    const struct invocation *invocation;
    struct arena *arena;
    const char *archive;
    const char **sources, **names;
    size_t n_sources;
};

/* Returns the name under which a source goes into the archive: its last one, for "." and ".." that of the directory. */
static const char *name_of(const char *source, struct arena *arena)
{
    const char *name = text_trimmed_name(arena, source);
    if (*name != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
        return name;
    const char *real = local_real_path(source, arena);
    return real != NULL ? text_trimmed_name(arena, real) : name;
}

static bool check_name(const char *source, const char *name, struct error *error)
{
    static const char *const taken[] = {"", ".", "..", "blobs", ARCHIVE_INDEX_FILE, ARCHIVE_LAYOUT_FILE};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (strcmp(name, taken[i]) == 0)
            return error_set(error, "%s: cannot be called '%s' in an archive; name it: --as NAME", source, name);
    if (strchr(name, '/') != NULL)
        return error_set(error, "--as %s: a name in an archive has no '/'", name);
    return (text_valid_prefix(name, strlen(name)) == strlen(name) && strlen(name) <= FILES_LONGEST_NAME) ||
           error_set(error, "%s: its name is not UTF-8, or longer than %d bytes; name it: --as NAME", source,
                     FILES_LONGEST_NAME);
}

static bool is_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && (path[length] == '\0' || path[length] == '/' || length == 1);
}

/* Returns where a path that may be new is, without links in its folder; NULL if the folder is missing. */
static const char *place_of(const char *path, struct arena *arena)
{
    const char *real = local_real_path(path, arena), *name = text_trimmed_name(arena, path);
    if (real != NULL)
        return real;
    const char *slash = text_last(path, text_trimmed_length(path), '/');
    const char *folder = slash != NULL ? arena_strndup(arena, path, (size_t)(slash - path) + 1) : ".";
    real = local_real_path(folder, arena);
    return real != NULL ? arena_printf(arena, "%s/%s", strcmp(real, "/") == 0 ? "" : real, name) : NULL;
}

static bool check_source(const struct pack_task *task, const char *source, struct error *error)
{
    const char *real = local_real_path(source, task->arena), *archive = place_of(task->archive, task->arena);
    if (real == NULL)
        return error_set(error, "%s: no such file or directory", source);
    if (archive != NULL && is_below(archive, real))
        return error_set(error, "%s: the archive %s is in its source; put it elsewhere", source, task->archive);
    return archive == NULL || !is_below(real, archive) ||
           error_set(error, "%s: is in %s, the directory of the archive; name another directory for it", source,
                     task->archive);
}

static bool check_names(const struct pack_task *task, struct error *error)
{
    for (size_t i = 0; i < task->n_sources; i++) {
        if (!check_name(task->sources[i], task->names[i], error) || !check_source(task, task->sources[i], error))
            return false;
        for (size_t j = 0; j < i; j++)
            if (strcmp(task->names[i], task->names[j]) == 0)
                return error_set(error,
                                 "%s and %s would both be called '%s'; add one of them by itself, with --as NAME",
                                 task->sources[j], task->sources[i], task->names[i]);
    }
    return true;
}

static void print_result(const struct pack_task *task, const struct packing_sums *sums)
{
    char all[SIZE_TEXT], equal[SIZE_TEXT], written[SIZE_TEXT];
    printf("%" PRIu64 " %s, %s: %s in the archive already, %s written, ", sums->n_files,
           sums->n_files == 1 ? "file" : "files", size_text(sums->n_bytes, all), size_text(sums->n_equal_bytes, equal),
           size_text(sums->n_written, written));
    if (sums->n_written < sums->n_bytes)
        printf("%.1f %% saved\n", 100 - 100.0 * (double)sums->n_written / (double)sums->n_bytes);
    else
        puts("nothing saved");
}

/* Opens the archive and scans the sources. The caller closes and frees both, also after a failure. */
static bool open_all(const struct pack_task *task, struct blobs **ret_blobs, struct scan *scans, struct error *error)
{
    struct stat archive;
    *ret_blobs = blobs_open(task->archive, BLOBS_CREATE, error);
    if (*ret_blobs == NULL || !blobs_status(*ret_blobs, &archive, error))
        return false;
    for (size_t i = 0; i < task->n_sources; i++)
        if (!scan_source(&scans[i], task->sources[i], task->names[i], &archive, error))
            return false;
    return true;
}

static bool add(const struct pack_task *task, struct blobs *blobs, struct scan *scans, struct error *error)
{
    struct packing_sums sums;
    if (!packing_run(blobs, task->archive, scans, task->n_sources, task->invocation->flags[FLAG_REPLACE], &sums, error))
        return false;
    print_result(task, &sums);
    return true;
}

/* Replacing: each step is a process, which has the lock on the archive and the scans of this one. */

struct step {
    const struct pack_task *task;
    struct blobs *blobs;
    struct scan *scans;
};

static bool step_pack(const struct step *step, struct error *error)
{
    return add(step->task, step->blobs, step->scans, error);
}

static bool step_check(const struct step *step, struct error *error)
{
    for (size_t i = 0; i < step->task->n_sources; i++)
        if (!replace_check(step->task->archive, &step->scans[i], error))
            return error_prefix(error, "nothing is removed");
    return true;
}

static bool step_remove(const struct step *step, struct error *error)
{
    char size[SIZE_TEXT];
    struct removed removed = {0};
    for (size_t i = 0; i < step->task->n_sources; i++)
        replace_remove(&step->scans[i], &removed);
    printf("%" PRIu64 " %s removed, %s\n", removed.n_files, removed.n_files == 1 ? "file" : "files",
           size_text(removed.n_bytes, size));
    return removed.n_kept == 0 ||
           error_set(error, "%" PRIu64 " %s; the archive has %s, too, as when it was packed", removed.n_kept,
                     removed.n_kept == 1 ? "file stays" : "files stay", removed.n_kept == 1 ? "it" : "each");
}

/* Runs a step in a process of its own, in the sandbox that the needs allow. `what` says what that process does. */
static bool run_step(const struct step *step, const char *what,
                     bool (*work)(const struct step *step, struct error *error), const struct command_needs *needs)
{
    struct error error;
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        status = command_confine(step->task->invocation, needs);
        if (status < 0)
            status = work(step, &error) ? EXIT_SUCCESS : (report("%s", error.message), EXIT_BAD_INPUT);
        _exit(finish_output(status));
    }
    if (child < 0) {
        report("%s", strerror(errno));
        return false;
    }
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    if (WIFSIGNALED(status))
        report("pack: signal %d ended the process that %s; the same command goes on from there", WTERMSIG(status),
               what);
    return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
}

static bool run_steps(const struct step *step)
{
    const struct pack_task *task = step->task;
    struct error error;
    const struct command_needs to_pack = {.sources = task->sources,
                                          .n_sources = task->n_sources,
                                          .destination = task->archive},
                               to_check = {.sources = &task->archive, .n_sources = 1},
                               to_remove = {
                                   .sources = task->sources, .n_sources = task->n_sources, .removed = task->sources};
    if (!run_step(step, "packs", step_pack, &to_pack))
        return false;
    if (!blobs_forget(step->blobs, &error)) {
        report("%s", error.message);
        return false;
    }
    return run_step(step, "reads the archive back", step_check, &to_check) &&
           run_step(step, "removes the originals", step_remove, &to_remove);
}

static int replace(const struct pack_task *task)
{
    struct error error;
    struct step step = {.task = task, .scans = arena_array(task->arena, task->n_sources, sizeof *step.scans)};
    bool good = open_all(task, &step.blobs, step.scans, &error);
    if (!good)
        report("%s", error.message);
    good = good && run_steps(&step);
    for (size_t i = 0; i < task->n_sources; i++)
        scan_free(&step.scans[i]);
    blobs_close(step.blobs);
    return good ? EXIT_SUCCESS : EXIT_BAD_INPUT;
}

/* Removes blobs; then rewrites packs, which takes room, and removes the old ones. */
static bool prune(const struct pack_task *task, struct blobs *blobs, struct error *error)
{
    struct pruned pruned = {0};
    size_t n_rewritten = 0;
    char size[SIZE_TEXT];
    if (!index_prune(blobs, task->archive, &pruned, error))
        return false;
    bool good = packs_rewrite(blobs, task->archive, &n_rewritten, error) &&
                (n_rewritten == 0 || index_prune(blobs, task->archive, &pruned, error));
    if (n_rewritten > 0 && good)
        printf("%zu %s rewritten, ", n_rewritten, n_rewritten == 1 ? "pack" : "packs");
    printf("%zu %s removed, %s\n", pruned.n_blobs, pruned.n_blobs == 1 ? "blob" : "blobs",
           size_text(pruned.n_bytes, size));
    return good;
}

/* Takes a source out of the archive, or prunes it. */
static bool change(const struct pack_task *task, struct blobs *blobs, struct error *error)
{
    const struct invocation *invocation = task->invocation;
    if (invocation->flags[FLAG_REMOVE] && !index_remove(blobs, task->archive, invocation->values[FLAG_REMOVE], error))
        return false;
    return !invocation->flags[FLAG_PRUNE] || prune(task, blobs, error);
}

static int run_change(const struct pack_task *task)
{
    const struct command_needs needs = {.sources = &task->archive, .n_sources = 1, .destination = task->archive};
    int status = command_confine(task->invocation, &needs);
    struct error error;
    if (status >= 0)
        return status;
    struct blobs *blobs =
        blobs_open(task->archive, task->invocation->flags[FLAG_PRUNE] ? BLOBS_PRUNE : BLOBS_CHANGE, &error);
    bool good = blobs != NULL && change(task, blobs, &error);
    if (!good)
        report("%s", error.message);
    blobs_close(blobs);
    return finish_output(good ? EXIT_SUCCESS : EXIT_BAD_INPUT);
}

static int pack(const struct pack_task *task)
{
    const struct command_needs needs = {
        .sources = task->sources, .n_sources = task->n_sources, .destination = task->archive};
    int status = command_confine(task->invocation, &needs);
    if (status >= 0)
        return status;
    struct error error;
    struct blobs *blobs;
    struct scan *scans = arena_array(task->arena, task->n_sources, sizeof *scans);
    bool good = open_all(task, &blobs, scans, &error) && add(task, blobs, scans, &error);
    if (!good)
        report("%s", error.message);
    for (size_t i = 0; i < task->n_sources; i++)
        scan_free(&scans[i]);
    blobs_close(blobs);
    return finish_output(good ? EXIT_SUCCESS : EXIT_BAD_INPUT);
}

/* Understands the operands of a command that adds sources. */
static bool take_sources(struct pack_task *task, struct error *error)
{
    const struct invocation *invocation = task->invocation;
    const char *as = invocation->values[FLAG_AS];
    task->n_sources = invocation->n_arguments - 1;
    task->sources = arena_array(task->arena, task->n_sources + 1, sizeof *task->sources);
    task->names = arena_array(task->arena, task->n_sources + 1, sizeof *task->names);
    for (size_t i = 0; i < task->n_sources; i++) {
        task->sources[i] = invocation->arguments[i + 1];
        task->names[i] = as != NULL ? as : name_of(task->sources[i], task->arena);
    }
    if (task->n_sources == 0)
        return error_set(error, "missing operand; usage: wfs pack ARCHIVE SOURCE...");
    if (as != NULL && task->n_sources > 1)
        return error_set(error, "--as names one source, and %zu are given", task->n_sources);
    return true;
}

static int run(const struct invocation *invocation)
{
    struct pack_task task = {.invocation = invocation, .arena = arena_new(), .archive = invocation->arguments[0]};
    struct error error;
    int status = EXIT_MISUSE;
    const bool *flags = invocation->flags;
    if ((flags[FLAG_REMOVE] || flags[FLAG_PRUNE]) &&
        (invocation->n_arguments > 1 || flags[FLAG_REPLACE] || flags[FLAG_AS]))
        report("pack: --remove and --prune take the archive alone");
    else if (flags[FLAG_REMOVE] || flags[FLAG_PRUNE])
        status = run_change(&task);
    else if (!take_sources(&task, &error))
        report("pack: %s", error.message);
    else if (!check_names(&task, &error))
        report("%s", error.message);
    else
        status = flags[FLAG_REPLACE] ? replace(&task) : pack(&task);
    arena_free(task.arena);
    return status;
}

const struct command pack_command = {
    .name = "pack",
    .usage = "[--replace] ARCHIVE SOURCE... | --remove NAME ARCHIVE | --prune ARCHIVE",
    .summary = "Store models once, in an archive that shows the original files",
    .group = READ_COMMAND,
    .text =
        "An archive is a directory, an OCI image layout. Each SOURCE, a file or a directory, goes in under its last "
        "name, in addition to what the archive has of that name. Equal tensors are stored once, whatever files "
        "they are in. What was coded is decoded and compared before the archive names it. FIFOs, sockets and "
        "devices are refused. With --replace, a fresh process then reads every file back from the disk "
        "through the archive, and only if all are equal the originals are removed; a file stays that has changed, "
        "is open for writing, has a link elsewhere, is on another file system, or is reached by a link.",
    .flags =
        (const struct flag[]){
            {0, "as", "the name of the SOURCE in the archive", "NAME", .needs_argument = true},
            {0, "replace", "then read everything back from the archive, and remove the originals"},
            {0, "remove", "take the source NAME out of the archive", "NAME", .needs_argument = true},
            {0, "prune",
             "remove blobs that no source of the archive needs, and rewrite packs that are needed less than half"},
            {0},
        },
    .examples =
        (const struct example[]){
            {"wfs pack ~/models.wfs ~/.cache/huggingface/hub ~/.ollama/models", "store two caches"},
            {"wfs cp -r ~/models.wfs files/hub /tmp", "get one of them back"},
            {0},
        },
    .min_arguments = 1,
    .max_arguments = SIZE_MAX,
    .enters_sandbox_itself = true,
    .run = run,
};
