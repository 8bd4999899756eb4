/* The files beside the weights.
 *
 * For a directory, these rules apply to its files and those of its sub-directories, MAX_DEPTH deep and MAX_FILES many:
 * regular files are side files, with their bytes unchanged. Weights of any kind, lists of shards, hidden directories,
 * links to directories, and links that lead nowhere or out of the model's directory are listed as hidden, with the
 * reason; weights of components are not listed. A file that cannot be opened is a side file, too: reading it fails, and
 * so does every output that needs it, since it would differ without it. So does every output that needs a file through
 * a link that leads out.
 *
 * A single file may lie in any directory, such as a home directory. Only files with names that models use become side
 * files, and only if one name marks the directory as a model's; all others are neither shown nor listed. */
#include "formats/checkpoint_builder.h"
#include "formats/components.h"

#include <ctype.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_DEPTH = 3, MAX_FILES = 4096 };

/* Endings of weights in formats that wfs does not read. */
static const char *const other_suffixes[] = {
    ".pkl", ".ggml", ".onnx_data", ".onnx.data", ".ot", ".tflite", ".pdparams", ".pdopt", ".mlmodel", ".llamafile",
};

/* Files that may belong to a single weights file. Names that only models use mark the directory as a model's. */
static const struct {
    const char *name; /* patterns */
    const char *directory;
    bool says_model;
} known_files[] = {
    {"config.json", NULL, true},
    {"params.json", NULL, true},
    {"adapter_config.json", NULL, true},
    {"generation_config.json", NULL, true},
    {"tokenizer.json", NULL, true},
    {"tokenizer.jsonl", NULL, true},
    {"tokenizer.model", NULL, true},
    {"tokenizer_config.json", NULL, true},
    {"special_tokens_map.json", NULL, true},
    {"added_tokens.json", NULL, true},
    {"preprocessor_config.json", NULL, true},
    {"processor_config.json", NULL, true},
    {"modules.json", NULL, false},
    {"embedding_config.json", NULL, false},
    {"sentence_bert_config.json", NULL, false},
    {"config_sentence_transformers.json", NULL, false},
    {"config.json", "*_Pooling", false},
    {"vocab.*", NULL, false},
    {"merges.txt", NULL, false},
    {"spiece.model", NULL, false},
    {"*.tiktoken", NULL, false},
    {"rwkv_vocab_*.txt", NULL, false},
    {"chat_template.*", NULL, false},
    {"*.jinja", "additional_chat_templates", false},
    {"README.md", NULL, false},
    {"LICENSE*", NULL, false},
};
enum { N_KNOWN_FILES = sizeof known_files / sizeof *known_files };

struct walk {
    struct checkpoint *checkpoint;
    const struct input *input;
    size_t n_files;
    bool single_file; /* the input is a single file */
};

static bool matches(const char *pattern, const char *name)
{
    return fnmatch(pattern, name, FNM_PERIOD) == 0;
}

static bool is_known_directory(const char *name)
{
    for (size_t i = 0; i < N_KNOWN_FILES; i++)
        if (known_files[i].directory != NULL && matches(known_files[i].directory, name))
            return true;
    return false;
}

/* Reports whether models have such a file. `prefix` is the directory's name with a '/', or "" for the model's own. */
static bool is_known_file(const char *prefix, const char *name)
{
    char directory[NAME_MAX + 1];
    snprintf(directory, sizeof directory, "%.*s", (int)strcspn(prefix, "/"), prefix);
    for (size_t i = 0; i < N_KNOWN_FILES; i++) {
        const char *pattern = known_files[i].directory;
        bool there = pattern != NULL ? matches(pattern, directory) : *directory == '\0';
        if (there && matches(known_files[i].name, name))
            return true;
    }
    return false;
}

/* Returns true if a name marks the directory as a model's. */
static bool is_of_model(const struct location_list *list)
{
    for (size_t i = 0; i < N_KNOWN_FILES; i++)
        if (known_files[i].says_model && location_list_has(list, known_files[i].name))
            return true;
    return false;
}

bool input_is_model_directory(const struct input *input)
{
    return is_of_model(&input->list);
}

struct folder_names folder_names_of(const struct location_list *list, struct arena *arena)
{
    struct location_entry *known = NULL;
    size_t n_known = 0;
    for (size_t i = 0, n = is_of_model(list) ? list->count : 0; i < n; i++) {
        const struct location_entry *entry = &list->entries[i];
        if (!is_known_file("", entry->name) && !is_known_directory(entry->name))
            continue;
        known = arena_grow(arena, known, n_known, sizeof *known);
        known[n_known++] = *entry;
    }
    return (struct folder_names){*list, {known, n_known}};
}

static bool has_suffix(const char *name, const char *suffix)
{
    size_t length = strlen(name), suffix_length = strlen(suffix);
    return length > suffix_length && strcasecmp(name + length - suffix_length, suffix) == 0;
}

bool format_is_companion(const char *name)
{
    static const char *const beginnings[] = {"adapter", "draft", "mtp-", "dflash-", "dspark-", "eagle3-"};
    if (!has_suffix(name, ".gguf"))
        return false;
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return strstr(name, "mmproj") != NULL;
}

bool checkpoint_is_companion(const struct checkpoint *checkpoint, const char *name)
{
    return format_is_companion(name) && checkpoint->n_sources > 0 &&
           has_suffix(source_name(checkpoint->sources[0]), ".gguf") &&
           !format_is_companion(source_name(checkpoint->sources[0]));
}

/* Ignores the case of the extension: MODEL.SAFETENSORS. */
static bool is_weights(const struct format *const *formats, const char *name)
{
    char lower[NAME_MAX + 1];
    size_t length = strlen(name);
    for (size_t i = 0; i <= length && i < sizeof lower; i++)
        lower[i] = (char)tolower((unsigned char)name[i]);
    if (length < sizeof lower && formats_extension(formats, lower) != NULL)
        return true;
    for (size_t i = 0; i < sizeof other_suffixes / sizeof *other_suffixes; i++)
        if (has_suffix(name, other_suffixes[i]))
            return true;
    return false;
}

static void add_unopened(struct walk *walk, const char *path, const char *reason)
{
    struct checkpoint *checkpoint = walk->checkpoint;
    struct source_identity identity;
    bool inside;
    reason = arena_strdup(checkpoint->arena, reason);
    checkpoint_note(checkpoint, SUBJECT_SOURCE, "%s", reason);
    if (!location_identify(walk->input->location, path, &identity, &inside))
        checkpoint_hide_file(checkpoint, path, reason);
    else if (inside)
        checkpoint_add_side_file(checkpoint, path, source_unopened(&identity, path, reason));
    else
        checkpoint_add_hidden_side_file(checkpoint, path, source_unopened(&identity, path, reason), reason);
}

static void add_file(struct walk *walk, const char *path)
{
    struct error error;
    struct source *source = location_source(walk->input->location, path, &error);
    if (source != NULL)
        checkpoint_add_side_file(walk->checkpoint, path, source);
    else
        add_unopened(walk, path, error.message);
}

static const char *reason_as_weights(const struct format *const *formats, const char *name)
{
    if (is_weights(formats, name))
        return "weights";
    return has_suffix(name, ".index.json") ? "list of shards" : NULL;
}

/* Returns the reason not to show a file or directory, by its kind and name, or NULL. */
static const char *reason_to_hide(const struct format *const *formats, const char *name, enum location_kind kind,
                                  unsigned depth)
{
    if (kind == LOCATION_LINKED_FOLDER)
        return "symbolic link to a directory";
    if (kind == LOCATION_FOLDER && *name == '.')
        return "hidden directory";
    if (kind == LOCATION_FOLDER)
        return depth == MAX_DEPTH ? "nested too deep" : NULL;
    if (kind == LOCATION_OTHER)
        return "not a regular file";
    return reason_as_weights(formats, name);
}

static void add_folder(struct walk *walk, const struct location_list *list, const char *prefix, unsigned depth);

static void add_subfolder(struct walk *walk, const char *path, unsigned depth)
{
    struct arena *arena = walk->checkpoint->arena;
    struct location_list list;
    struct error error;
    if (location_list(walk->input->location, path, arena, &list, &error))
        add_folder(walk, &list, arena_printf(arena, "%s/", path), depth);
    else
        checkpoint_hide_file(walk->checkpoint, path, arena_strdup(arena, error.message));
}

/* Adds an entry of a folder if it is a folder (`folders`) or a file (otherwise). */
static void add_entry(struct walk *walk, const struct location_entry *entry, const char *path, unsigned depth,
                      bool folders)
{
    const struct format *const *formats = walk->input->formats;
    const char *name = entry->name;
    enum location_kind kind = entry->kind == LOCATION_LINK ? location_kind(walk->input->location, path) : entry->kind;
    if (kind == LOCATION_NOTHING || (kind == LOCATION_FOLDER || kind == LOCATION_LINKED_FOLDER) != folders)
        return;
    if (!folders && components_hold(walk->input->components, path) && reason_as_weights(formats, name) != NULL)
        return;
    bool is_shown = depth == 0 && !folders && kind != LOCATION_OTHER && checkpoint_is_companion(walk->checkpoint, name);
    const char *reason = is_shown ? NULL : reason_to_hide(formats, name, kind, depth);
    if (walk->n_files++ >= MAX_FILES)
        checkpoint_note(walk->checkpoint, SUBJECT_SOURCE,
                        "more than %d files beside the weights: the rest are not shown", MAX_FILES);
    else if (reason != NULL)
        checkpoint_hide_file(walk->checkpoint, path, reason);
    else if (folders)
        add_subfolder(walk, path, depth + 1);
    else
        add_file(walk, path);
}

/* Adds files first, so that a large sub-directory cannot displace the model's own. */
static void add_folder(struct walk *walk, const struct location_list *list, const char *prefix, unsigned depth)
{
    for (int folders = 0; folders < 2; folders++)
        for (size_t i = 0; i < list->count && walk->n_files <= MAX_FILES; i++) {
            const char *name = list->entries[i].name;
            if (!walk->single_file || (folders ? depth == 0 && is_known_directory(name) : is_known_file(prefix, name)))
                add_entry(walk, &list->entries[i], arena_printf(walk->checkpoint->arena, "%s%s", prefix, name), depth,
                          folders);
        }
}

static void add_companion(struct checkpoint *checkpoint, const struct companion *companion)
{
    struct error error;
    struct source *source = location_open_file(companion->path, &error);
    if (source != NULL)
        checkpoint_add_side_file(checkpoint, companion->name, source);
    else
        checkpoint_note(checkpoint, SUBJECT_SOURCE, "%s", error.message);
}

static int compare_side_files(const void *a, const void *b)
{
    return strcmp(((const struct side_file *)a)->name, ((const struct side_file *)b)->name);
}

void format_add_side_files(struct checkpoint *checkpoint, const struct input *input)
{
    struct walk walk = {checkpoint, input, 0, input->file_name != NULL};
    for (const struct companion *one = input->companions; one != NULL && one->name != NULL; one++)
        add_companion(checkpoint, one);
    add_folder(&walk, walk.single_file ? &input->known : &input->list, "", 0);
    if (checkpoint->n_side_files > 0)
        qsort(checkpoint->side_files, checkpoint->n_side_files, sizeof *checkpoint->side_files, compare_side_files);
}
