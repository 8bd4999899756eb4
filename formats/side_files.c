/* The files beside the weights.
 *
 * Served as they are: regular files of the model's directory and of its sub-directories, MAX_DEPTH deep and MAX_FILES many.
 * Listed as hidden, with the reason: weights of any kind, lists of shards, hidden directories, links to directories, what cannot
 * be opened, and links that lead out of the model's directory. A directory that a single file happens to lie in may be anything
 * (a home directory): its sub-directories count only where it has a config.json. */
#include "formats/directory.h"
#include "formats/format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { MAX_DEPTH = 3, MAX_FILES = 4096 };

static const char *const weight_suffixes[] = {
    ".safetensors", ".bin",      ".pt",    ".pth",       ".ckpt",      ".pkl",     ".gguf",      ".ggml", ".h5",
    ".hdf5",        ".keras",    ".onnx",  ".onnx_data", ".onnx.data", ".msgpack", ".ot",        ".npy",  ".npz",
    ".tflite",      ".pdparams", ".pdopt", ".mlmodel",   ".nemo",      ".distcp",  ".llamafile",
};

struct walk {
    struct checkpoint *checkpoint;
    const struct input *input;
    size_t n_files;
};

static bool has_suffix(const char *name, const char *suffix)
{
    size_t length = strlen(name), suffix_length = strlen(suffix);
    return length > suffix_length && strcasecmp(name + length - suffix_length, suffix) == 0;
}

static bool is_weights(const char *name)
{
    for (size_t i = 0; i < sizeof weight_suffixes / sizeof *weight_suffixes; i++)
        if (has_suffix(name, weight_suffixes[i]))
            return true;
    return false;
}

static bool has_name(const struct input *input, const char *name)
{
    for (size_t i = 0; i < input->n_names; i++)
        if (strcmp(input->names[i], name) == 0)
            return true;
    return false;
}

static void add_file(struct walk *walk, const char *path)
{
    struct error error;
    struct source *source = directory_open_file(walk->input->directory, path, path, &error);
    if (source != NULL) {
        checkpoint_add_side_file(walk->checkpoint, path, source);
        return;
    }
    checkpoint_hide_file(walk->checkpoint, path, arena_strdup(walk->checkpoint->arena, error.message));
    checkpoint_note(walk->checkpoint, "%s", error.message);
}

/* Why a file or directory is not shown, by its kind and name; NULL: it is. */
static const char *reason_to_hide(const struct walk *walk, const char *path, mode_t kind, bool is_link, unsigned depth)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    if (S_ISDIR(kind)) {
        bool follow = walk->input->file_name == NULL || has_name(walk->input, "config.json");
        return is_link              ? "symbolic link to a directory"
               : *name == '.'       ? "hidden directory"
               : depth == MAX_DEPTH ? "nested too deep"
               : !follow            ? "directory beside a single file"
                                    : NULL;
    }
    if (!S_ISREG(kind))
        return "not a regular file";
    if (walk->input->file_name != NULL && strcmp(path, walk->input->file_name) == 0)
        return "the source itself";
    return is_weights(name) ? "weights" : has_suffix(name, ".index.json") ? "list of shards" : NULL;
}

static void add_directory(struct walk *walk, int directory, const char *const *names, size_t n_names, const char *prefix,
                          unsigned depth);

static void add_subdirectory(struct walk *walk, int parent, const char *name, const char *path, unsigned depth)
{
    struct arena *arena = walk->checkpoint->arena;
    const char *const *names;
    size_t n_names;
    int directory = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (directory >= 0 && directory_names(directory, arena, &names, &n_names))
        add_directory(walk, directory, names, n_names, arena_printf(arena, "%s/", path), depth);
    else
        checkpoint_hide_file(walk->checkpoint, path, strerror(errno));
    if (directory >= 0)
        close(directory);
}

/* One name in the open directory: as a sub-directory, or as a file, as `directories` says. */
static void add_entry(struct walk *walk, int directory, const char *name, const char *path, unsigned depth, bool directories)
{
    struct stat entry, target;
    if (fstatat(directory, name, &entry, AT_SYMLINK_NOFOLLOW) != 0)
        return; /* gone meanwhile */
    bool is_link = S_ISLNK(entry.st_mode);
    mode_t kind = !is_link ? entry.st_mode : fstatat(directory, name, &target, 0) == 0 ? target.st_mode : S_IFREG;
    if (S_ISDIR(kind) != directories)
        return;
    const char *reason = reason_to_hide(walk, path, kind, is_link, depth);
    if (walk->n_files++ >= MAX_FILES)
        checkpoint_note(walk->checkpoint, "there are more than %d files beside the weights: not all are shown", MAX_FILES);
    else if (reason != NULL)
        checkpoint_hide_file(walk->checkpoint, path, reason);
    else if (directories)
        add_subdirectory(walk, directory, name, path, depth + 1);
    else
        add_file(walk, path);
}

/* Files first, so that no large sub-directory takes the place of the model's own. */
static void add_directory(struct walk *walk, int directory, const char *const *names, size_t n_names, const char *prefix,
                          unsigned depth)
{
    for (int directories = 0; directories < 2; directories++)
        for (size_t i = 0; i < n_names && walk->n_files <= MAX_FILES; i++)
            add_entry(walk, directory, names[i], arena_printf(walk->checkpoint->arena, "%s%s", prefix, names[i]), depth,
                      directories);
}

static int compare_side_files(const void *a, const void *b)
{
    return strcmp(((const struct side_file *)a)->name, ((const struct side_file *)b)->name);
}

void format_add_side_files(struct checkpoint *checkpoint, const struct input *input)
{
    struct walk walk = {checkpoint, input, 0};
    add_directory(&walk, input->directory, input->names, input->n_names, "", 0);
    if (checkpoint->n_side_files > 0)
        qsort(checkpoint->side_files, checkpoint->n_side_files, sizeof *checkpoint->side_files, compare_side_files);
}
