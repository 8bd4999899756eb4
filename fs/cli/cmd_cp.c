#include "base/report.h"
#include "base/text.h"
#include "fs/cli/command.h"
#include "fs/cli/copying.h"
#include "fs/cli/part_number.h"
#include "fs/cli/terminal.h"
#include "fs/lib/copy.h"
#include "fs/lib/parts.h"
#include "fs/lib/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FLAG_RECURSIVE, FLAG_REFLINK, FLAG_PART, FLAG_JOIN, FLAG_VERIFY };

/* What --part and --join ask for. */
struct parts_task {
    size_t number, count; /* the part to make; number 0: join `count` parts */
    bool verify;          /* the checksums of parts that are joined */
};

struct copying {
    struct tree *tree;
    bool reflink;
    struct progress *whole; /* of several files; NULL: the file has its own */
    const char *destination;
    bool failed;
};

static void add_progress(void *context, uint64_t n_bytes)
{
    progress_add(context, n_bytes);
}

/* Writes a file that shares what blocks it can with its sources, and says so if that is none. */
static bool write_reflinked(const struct vfile *file, const char *destination, int fd, struct progress *progress,
                            struct error *error)
{
    struct reflinked reflinked;
    if (!reflink_file(file, fd, add_progress, progress, &reflinked, error))
        return false;
    if (reflinked.n_shared == 0 && reflinked.reason != 0)
        report("note: %s: copied, because it cannot share blocks with the source: %s", destination,
               strerror(reflinked.reason));
    else if (reflinked.n_shared == 0 && !reflinked.is_small)
        report("note: %s: copied, because none of it is in a source at the same place of a block", destination);
    return true;
}

/* The mode of a copy of an original, without the bits that would let others act as its owner. It is set when the copy
 * is made, without a umask: the sandbox lets nothing change a mode later. */
enum { KEPT_MODE = 0777 };

/* Opens the output of a copy. */
static bool open_copy(struct output *output, const char *destination, uint64_t size,
                      const struct node_attributes *attributes, struct error *error)
{
    if (!attributes->original)
        return unfinished_open(output, destination, size, OUTPUT_MODE, error);
    mode_t before = umask(0);
    bool opened = unfinished_open(output, destination, size, attributes->permissions & KEPT_MODE, error);
    umask(before);
    return opened;
}

/* Makes the directory of a copy, which its owner may fill. */
static bool make_directory(const char *destination, const struct node_attributes *attributes)
{
    if (!attributes->original)
        return mkdir(destination, 0777) == 0;
    mode_t before = umask(0);
    bool made = mkdir(destination, (attributes->permissions & KEPT_MODE) | S_IRWXU) == 0;
    umask(before);
    return made;
}

static bool fail(const char *destination)
{
    report("%s: %s", destination, strerror(errno));
    return false;
}

static bool copy_to(const struct copying *copying, const struct vfile *file, const char *name, const char *destination,
                    const struct node_attributes *attributes, struct error *error)
{
    struct output output;
    struct progress own, *progress = copying->whole != NULL ? copying->whole : &own;
    if (!open_copy(&output, destination, copying->reflink ? 0 : file->size, attributes, error))
        return false;
    if (copying->whole != NULL)
        progress_rename(progress, name);
    else
        progress_begin(progress, name, file->size);
    bool copied = copying->reflink && output.is_file ? write_reflinked(file, destination, output.fd, progress, error)
                                                     : copy_file(file, output.fd, add_progress, progress, error);
    if (copying->whole == NULL)
        progress_end(progress);
    unfinished_none();
    if (copied)
        return output_finish(&output, error);
    output_discard(&output);
    return error_prefix(error, "%s", destination);
}

static bool copy_node(struct copying *copying, const char *name, const struct node_attributes *attributes,
                      const char *destination);
static bool copy_file_node(struct copying *copying, const char *name, const struct node_attributes *attributes,
                           const char *destination);

static bool copy_entry(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    struct copying *copying = context;
    struct arena *arena = arena_new();
    const char *destination = arena_printf(arena, "%s/%s", copying->destination, name);
    copying->failed |= !copy_node(copying, name, attributes, destination);
    arena_free(arena);
    return true;
}

/* Copies a directory, reporting entries that fail and going on with the rest. */
static bool copy_directory(const struct copying *copying, const struct node_attributes *attributes,
                           const char *destination)
{
    struct copying below = *copying;
    below.destination = destination;
    below.failed = false;
    if (!make_directory(destination, attributes) && errno != EEXIST)
        return fail(destination);
    tree_list(copying->tree, attributes->id, 0, copy_entry, &below);
    return !below.failed;
}

/* Gives a copy the time of its original. */
static bool restore_time(const struct node_attributes *attributes, const char *destination)
{
    const struct timespec times[] = {attributes->mtime, attributes->mtime};
    return utimensat(AT_FDCWD, destination, times, AT_SYMLINK_NOFOLLOW) == 0 || fail(destination);
}

/* Makes a symbolic link; one that is there is replaced. */
static bool copy_link(const char *target, const char *destination)
{
    bool made = symlink(target, destination) == 0 ||
                (errno == EEXIST && unlink(destination) == 0 && symlink(target, destination) == 0);
    return made || fail(destination);
}

static bool copy_node(struct copying *copying, const char *name, const struct node_attributes *attributes,
                      const char *destination)
{
    bool done = attributes->link != NULL ? copy_link(attributes->link, destination)
                : attributes->directory  ? copy_directory(copying, attributes, destination)
                                         : copy_file_node(copying, name, attributes, destination);
    return done && (!attributes->original || restore_time(attributes, destination));
}

static bool copy_file_node(struct copying *copying, const char *name, const struct node_attributes *attributes,
                           const char *destination)
{
    struct vfile file;
    struct error error;
    struct arena *arena = arena_new();
    bool done = tree_file(copying->tree, attributes->id, arena, &file, &error) &&
                copy_to(copying, &file, name, destination, attributes, &error);
    arena_free(arena);
    if (!done && copying->whole != NULL)
        progress_hide(copying->whole);
    if (!done)
        report("%s", error.message);
    return done;
}

static bool is_directory(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Returns the place of the copy of an entry: DEST, or a name in it. */
static const char *place_of(const struct found *found, const char *destination, struct arena *arena)
{
    const char *name = text_trimmed_name(arena, found->path);
    int length = (int)text_trimmed_length(destination);
    return *name != '\0' && is_directory(destination) ? arena_printf(arena, "%.*s/%s", length, destination, name)
                                                      : destination;
}

/* Copies the entries, and goes on after those that cannot be. */
static bool copy_each(struct copying *copying, const struct found_list *list, const char *destination,
                      struct arena *arena)
{
    bool all_copied = true;
    for (size_t i = 0; i < list->n_items; i++) {
        const struct found *found = &list->items[i];
        all_copied &= copy_node(copying, text_trimmed_name(arena, found->path), &found->attributes,
                                place_of(found, destination, arena));
    }
    return all_copied;
}

/* Copies the entries; if they are several files, with one total, and none if there is no room for all. */
static bool copy_list(struct tree *tree, const struct found_list *list, const char *destination, bool reflink,
                      struct arena *arena)
{
    struct error error;
    struct progress progress;
    struct copy_total total = {0};
    struct copying copying = {.tree = tree, .reflink = reflink};
    if (list->n_items == 1 && !list->items[0].attributes.directory)
        return copy_each(&copying, list, destination, arena);
    for (size_t i = 0; i < list->n_items; i++)
        copy_total_add(&total, tree, &list->items[i].attributes, place_of(&list->items[i], destination, arena));
    if (!reflink && !copy_total_fits(&total, destination, &error)) {
        report("%s", error.message);
        return false;
    }
    copying.whole = &progress;
    progress_begin(&progress, "", total.n_bytes);
    bool all_copied = copy_each(&copying, list, destination, arena);
    progress_end(&progress);
    return all_copied;
}

/* Reports the directories, apart from the root, whose weights cannot be made. */
static bool have_weights(struct tree *tree, const struct found_list *list)
{
    bool all_have = true;
    for (size_t i = 0; i < list->n_items; i++) {
        const struct node_attributes *attributes = &list->items[i].attributes;
        struct error error;
        if (!attributes->directory || attributes->id == TREE_ROOT || !tree_lacks_weights(tree, attributes->id, &error))
            continue;
        report("%s", error.message);
        all_have = false;
    }
    return all_have;
}

/* Finds the entries that the arguments except the first and last name; reports those that cannot be copied. */
static bool find_all(struct tree *tree, const struct invocation *invocation, struct found_list *list)
{
    bool all_found = paths_find_all(tree, invocation->arguments + 1, invocation->n_arguments - 2, list);
    for (size_t i = 0; i < list->n_items && !invocation->flags[FLAG_RECURSIVE]; i++)
        if (list->items[i].attributes.directory) {
            report("%s: is a directory; -r copies what is in it",
                   *list->items[i].path != '\0' ? list->items[i].path : "/");
            all_found = false;
        }
    return all_found && have_weights(tree, list);
}

/* Finds everything that the arguments name, and reports what cannot be copied to DEST. */
static bool find_and_check(struct tree *tree, const struct invocation *invocation, struct found_list *list)
{
    const char *destination = invocation->arguments[invocation->n_arguments - 1];
    bool done = find_all(tree, invocation, list);
    size_t n_named = invocation->n_arguments - 2, n_files = n_named > list->n_items ? n_named : list->n_items;
    if (n_files <= 1 || is_directory(destination))
        return done;
    report("%s: is not a directory, and %zu files are to be copied; name a directory that is there", destination,
           n_files);
    return false;
}

static bool run_task(struct parts_copy *copy, const struct parts_task *task, struct error *error)
{
    struct progress progress;
    if (task->number == 0)
        return parts_join(copy, task->verify, error);
    copy->progress = add_progress;
    copy->context = &progress;
    progress_begin(&progress, copy->destination, parts_length(copy, task->number));
    bool made = parts_make(copy, task->number, error);
    progress_end(&progress);
    return made;
}

/* Returns the status for a failure, which is reported. A server that did not answer may answer later. */
static int failed(const struct error *error, bool is_final)
{
    report("%s", error->message);
    return is_final ? EXIT_BAD_INPUT : EXIT_TRY_AGAIN;
}

/* Makes the part of one file or directory that was found, or joins its parts. Returns the exit status, and reports
 * failures. */
static int copy_part(struct tree *tree, const struct found *found, const char *destination,
                     const struct options *options, const struct parts_task *task)
{
    struct arena *arena = arena_new();
    struct parts_copy copy;
    struct error error;
    uint64_t n_unreached = source_unreached();
    int status = EXIT_SUCCESS;
    if (!parts_contents_find(tree, found, destination, options, task->count, arena, &copy, &error))
        status = failed(&error, source_unreached() == n_unreached);
    else if (!run_task(&copy, task, &error))
        status = failed(&error, parts_is_refusal(&error));
    arena_free(arena);
    return status;
}

/* Copies everything that the arguments name; returns the exit status. Writes nothing until all is found. */
static int copy_all(struct tree *tree, const struct invocation *invocation, const struct parts_task *task)
{
    const char *destination = invocation->arguments[invocation->n_arguments - 1];
    struct found_list list = {0};
    struct arena *arena = arena_new();
    uint64_t n_unreached = source_unreached();
    int status = EXIT_SUCCESS;
    if (!find_and_check(tree, invocation, &list))
        status = task != NULL && source_unreached() != n_unreached ? EXIT_TRY_AGAIN : EXIT_BAD_INPUT;
    for (size_t i = 0; status == EXIT_SUCCESS && i < list.n_items && task != NULL; i++)
        status = copy_part(tree, &list.items[i], destination, invocation->options, task);
    if (status == EXIT_SUCCESS && task == NULL &&
        !copy_list(tree, &list, destination, invocation->flags[FLAG_REFLINK], arena))
        status = EXIT_BAD_INPUT;
    found_free(&list);
    arena_free(arena);
    return status;
}

static bool refuse(struct error *error, const char *why)
{
    return error_set(error, "%s", why);
}

/* Finds out what --part and --join ask for; *ret_task is NULL for a copy as a whole. Reads the environment, which the
 * sandbox clears. */
static bool find_task(const struct invocation *invocation, struct parts_task *task, const struct parts_task **ret_task,
                      struct error *error)
{
    const bool *flags = invocation->flags;
    struct part_number part;
    *ret_task = flags[FLAG_PART] || flags[FLAG_JOIN] ? task : NULL;
    *task = (struct parts_task){.verify = flags[FLAG_VERIFY]};
    if (flags[FLAG_PART] && flags[FLAG_JOIN])
        return refuse(error, "--part and --join exclude each other");
    if (flags[FLAG_VERIFY] && !flags[FLAG_JOIN])
        return refuse(error, "--verify needs --join");
    if (*ret_task != NULL && flags[FLAG_REFLINK])
        return refuse(error, "--reflink shares blocks of whole files; leave it out, or --part and --join");
    if (flags[FLAG_JOIN])
        return part_count_parse(invocation->values[FLAG_JOIN], &task->count, error) || error_prefix(error, "--join");
    if (!flags[FLAG_PART])
        return true;
    if (!part_number_find(invocation->values[FLAG_PART], &part, error))
        return error_prefix(error, "--part");
    if (part.from != NULL)
        report("part %zu of %zu, by %s", part.number, part.count, part.from);
    *task = (struct parts_task){.number = part.number, .count = part.count};
    return true;
}

/* Enters the sandbox, in which a copy in parts may write beside DEST. */
static int confine(const struct invocation *invocation, bool in_parts)
{
    struct arena *arena = arena_new();
    struct command_needs needs = command_needs(invocation, arena);
    needs.writes_beside = in_parts;
    int status = command_confine(invocation, &needs);
    arena_free(arena);
    return status;
}

/* Opens the model with a header that another worker kept. Returns NULL, without a message, if that is not possible. */
static struct tree *open_with_header(const struct invocation *invocation, const struct parts_task *task,
                                     const struct options *options, struct arena *arena)
{
    struct options *with_header = arena_copy(arena, options, sizeof *options);
    struct error unsaid;
    struct node_attributes found;
    const char *path = invocation->arguments[1];
    if (task->number > 0)
        with_header->content.request.kept_header = parts_contents_header(
            path, invocation->arguments[invocation->n_arguments - 1], task->number, task->count, arena);
    if (with_header->content.request.kept_header == NULL || options->library)
        return NULL;
    struct tree *tree = lib_open(invocation->arguments[0], with_header, &unsaid);
    if (tree == NULL || tree_walk(tree, path, &found, &unsaid))
        return tree;
    command_close(tree);
    return NULL;
}

static int open_and_copy(const struct invocation *invocation, const struct parts_task *task)
{
    struct options options = *invocation->options;
    struct arena *arena = arena_new();
    struct tree *tree = NULL;
    uint64_t n_unreached = source_unreached();
    int status = EXIT_BAD_INPUT;
    options.content.request.shares_blocks = invocation->flags[FLAG_REFLINK];
    if (task != NULL && invocation->n_arguments == 3)
        tree = open_with_header(invocation, task, &options, arena);
    if (tree == NULL)
        tree = command_open(invocation->arguments[0], &options);
    if (tree != NULL)
        status = copy_all(tree, invocation, task);
    else if (task != NULL && source_unreached() != n_unreached)
        status = EXIT_TRY_AGAIN;
    if (tree != NULL)
        command_close(tree);
    arena_free(arena);
    return status;
}

static int run(const struct invocation *invocation)
{
    struct parts_task asked;
    const struct parts_task *task;
    struct error error;
    if (!find_task(invocation, &asked, &task, &error)) {
        report("cp: %s", error.message);
        return EXIT_MISUSE;
    }
    int status = confine(invocation, task != NULL);
    return status >= 0 ? status : open_and_copy(invocation, task);
}

const struct command cp_command = {
    .name = "cp",
    .usage = "SOURCE PATH... DEST",
    .summary = "Copy virtual files to disk, on all cores",
    .group = READ_COMMAND,
    .text = "Uses all cores. To copy several files, DEST must be a directory; if one of the files is missing, "
            "the weights of a directory cannot be made, or there is no room for all, nothing is copied. A "
            "file gets its name only when it is complete. On a terminal, a bar shows the rate and the time left. With "
            "--reflink, what a file has in common with a source on the same XFS or Btrfs takes neither time nor space; "
            "model.gguf then has its tensors in another order and a key wfs.padding, so it is not the converter's file "
            "byte for byte. With --part, several processes, also on machines that share a file system, each make one "
            "part of the copy, at once or one after the other; the bytes are those of one wfs cp. Parts lie in "
            "DEST.wfs-parts until the last is done. A part that was interrupted is made again by the same command. "
            "With --part and --join, the exit status is 1 or 2 if another try would fail, too, and 3 after an I/O "
            "error, on a full disk and if a server does not answer.",
    .flags =
        (const struct flag[]){
            {'r', "recursive", "copy directories with their contents"},
            {0, "reflink", "share disk blocks with the source where the file system can"},
            {0, "part",
             "make part NUMBER of COUNT, from 1 on; /COUNT or no value: take the number from an array job of Slurm or "
             "Kubernetes",
             "NUMBER/COUNT", .is_value = part_number_is},
            {0, "join", "end a copy whose parts are all done, or name the missing ones", "COUNT",
             .needs_argument = true},
            {0, "verify", "with --join: first read all parts and compare their checksums"},
            {0},
        },
    .examples =
        (const struct example[]){
            {"wfs cp Qwen/Qwen2.5-0.5B gguf/model-Q4_K_M.gguf .", "quantize a model from the hub cache"},
            {"wfs cp -r ~/models/Llama-3.2-1B gguf .", "write every quantization to ./gguf"},
            {"wfs cp --part 3/16 /nfs/kimi-k2 gguf/model-Q4_K_M.gguf /nfs/kimi-k2-q4.gguf",
             "make the third of sixteen parts; other machines make the others"},
            {0},
        },
    .min_arguments = 3,
    .max_arguments = SIZE_MAX,
    .n_sources = 1,
    .takes_options = true,
    .writes = true,
    .enters_sandbox_itself = true,
    .run = run,
};
