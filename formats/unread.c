#include "formats/unread.h"

#include "base/text.h"
#include "formats/huggingface/hub_cache.h"

#include <libgen.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reports whether a text is a number of `split` alone: ".001" or "aa", after "." or not. */
static bool is_bare_number(const char *text)
{
    bool has_dot = *text == '.';
    text += has_dot;
    bool is_letters = text[0] == 'a' && text[1] >= 'a' && text[1] <= 'z' && text[2] == '\0';
    size_t n_digits = strspn(text, "0123456789");
    return is_letters || (has_dot && n_digits >= 2 && text[n_digits] == '\0');
}

/* Reports whether what follows the name of a file is the number of a part: ".part1of2", ".part-01", ".part-b",
 * "-split-a", ".001", ".aa". */
static bool is_part_number(const char *text)
{
    static const char *const words[] = {".part", "-split-", ".split-", "-part-"};
    if (is_bare_number(text))
        return true;
    const char *number = NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        number = text_starts_with(text, words[i]) ? text + strlen(words[i]) : number;
    if (number == NULL || *number == '\0')
        return false;
    number += *number == '-' || *number == '_';
    bool is_letter = *number >= 'a' && *number <= 'z';
    size_t length = is_letter ? 1u + (number[1] >= 'a' && number[1] <= 'z') : strspn(number, "0123456789");
    const char *rest = number + length;
    if (!is_letter && text_starts_with(rest, "of") && is_digit(rest[2]))
        rest += 2 + strspn(rest + 2, "0123456789");
    return length > 0 && *rest == '\0';
}

/* Reports whether a file is one of several that `split` or the like cut from a file of weights, by its name. */
static bool is_part(const char *name)
{
    static const char *const whole[] = {".gguf", ".safetensors", ".bin", ".pth", ".pt", ".ckpt", ".onnx", ".h5"};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        for (const char *at = strstr(name, whole[i]); at != NULL; at = strstr(at + 1, whole[i]))
            if (is_part_number(at + strlen(whole[i])))
                return true;
    return false;
}

static const char *kind_of_name(const char *name)
{
    return is_part(name) ? "one of several parts of a file; join them with cat, in their order"
                         : unread_kind_of_name(name);
}

/* Reports zip archives, which many programs write, torch included. */
static bool is_zip(const struct input *input)
{
    return input->head_length >= 4 && memcmp(input->head, "PK\3\4", 4) == 0;
}

/* Reports text, such as a server's message saved under the name of a model. */
static bool is_text(const struct input *input)
{
    enum { LEAST = 16 };
    for (size_t i = 0; i < input->head_length; i++)
        if (!(input->head[i] >= ' ' && input->head[i] < 0x7f) && memchr("\t\r\n", input->head[i], 3) == NULL)
            return false;
    return input->head_length >= LEAST;
}

bool unread_check_content(const struct input *input, struct error *error)
{
    if (input->head_length == 0)
        return error_set(error, "%s: the file is empty; an interrupted download?", input->path);
    const char *kind = unread_kind_of_content(input);
    bool says_kind = input->file_name != NULL && (is_zip(input) || is_part(input->file_name));
    if (kind == NULL && says_kind)
        kind = kind_of_name(input->file_name);
    return kind == NULL || error_set(error, "%s: %s", input->path, kind);
}

bool unread_check_text(const struct input *input, struct error *error)
{
    const char *kind = is_text(input) && input->file_name != NULL ? unread_kind_of_name(input->file_name) : NULL;
    if (!is_text(input))
        return true;
    if (kind != NULL)
        return error_set(error, "%s: %s", input->path, kind);
    if (input->file_name != NULL && text_ends_with(input->file_name, ".json"))
        return error_set(error, "%s: a text file, not a checkpoint; name its directory if that is a model",
                         input->path);
    return error_set(error, "%s: a text file, not a checkpoint: it starts with '%.16s'", input->path,
                     (const char *)input->head);
}

static bool has_unfinished(const char *directory)
{
    struct location_list list;
    bool found = false;
    struct error unused;
    struct arena *arena = arena_new();
    struct location *location = location_open(directory, LOCATION_INSIDE, NULL, &unused);
    if (location != NULL && location_list(location, "", arena, &list, &unused))
        for (size_t i = 0; i < list.count; i++)
            found |= text_ends_with(list.entries[i].name, ".incomplete");
    location_close(location);
    arena_free(arena);
    return found;
}

/* Returns where the hub's client keeps unfinished files: for a snapshot, among the blobs of its repository; for a
 * directory that the user chose, in a folder of it, by the folder of the file. NULL: there are none. */
static const char *unfinished_of(const char *directory, const char *folder, struct arena *arena)
{
    bool is_snapshot;
    hub_cache_model_name(arena, directory, &is_snapshot);
    if (is_snapshot && has_unfinished(arena_printf(arena, "%s/../../blobs", directory)))
        return "*.incomplete among the blobs";
    if (has_unfinished(arena_printf(arena, "%s/.cache/huggingface/download/%s", directory, folder)))
        return "*.incomplete in .cache/huggingface/download";
    return NULL;
}

/* Looks for an unfinished download into a folder of the directory, "" for its own, or of the directory's parent. */
static const char *find_unfinished(const struct input *input, const char *folder, struct arena *arena)
{
    char *path = arena_strdup(arena, input->path);
    const char *found = unfinished_of(input->path, folder, arena);
    return found != NULL ? found : unfinished_of(arena_printf(arena, "%s/..", input->path), basename(path), arena);
}

/* Returns the path of a file in the folder whose name marks an unfinished download, in the arena; NULL: none. */
static const char *find_mark(const struct input *input, const char *folder, struct arena *arena)
{
    struct location_list list = input->list;
    struct error unused;
    if (*folder != '\0' && !location_list(input->location, folder, arena, &list, &unused))
        return NULL;
    for (size_t i = 0; i < list.count; i++) {
        const char *name = list.entries[i].name, *kind = kind_of_name(name);
        if (kind != NULL && unread_is_half_download(kind))
            return *folder != '\0' ? arena_printf(arena, "%s/%s", folder, name) : name;
    }
    return NULL;
}

/* Adds an unfinished download into a folder of the directory to the error; false if there is none. */
static bool add_half_download(const struct input *input, const char *folder, struct error *error)
{
    struct error missing = *error;
    struct arena *arena = arena_new();
    const char *found = find_unfinished(input, folder, arena), *advice = "let 'hf download' finish it";
    if (found == NULL) {
        found = find_mark(input, folder, arena);
        advice = "let it finish";
    }
    if (found != NULL)
        error_set(error, "%s; unfinished download (%s): %s", missing.message, found, advice);
    arena_free(arena);
    return found != NULL;
}

bool unread_add_half_download(const struct input *input, const char *path, struct error *error)
{
    char *folder = memory_strdup(path), *slash = strrchr(folder, '/');
    folder[slash != NULL ? slash - folder : 0] = '\0';
    add_half_download(input, folder, error);
    free(folder);
    return false;
}

/* The kinds of files in the folders of a directory; NULL for unknown kinds. */
struct below {
    const char *models; /* the folders that have weights: "a, b" */
    const char *unread; /* a file that wfs cannot read, and its kind */
};

/* Reports whether a file of that name means that its directory can be opened. */
static bool is_of_model(const struct format *const *formats, const char *name)
{
    const struct extension *extension = formats_extension(formats, name);
    bool found = extension != NULL && !extension->shared && !extension->alone;
    for (const struct format *const *format = formats; *format != NULL && !found; format++)
        found = (*format)->directory_name != NULL && strcmp((*format)->directory_name, name) == 0;
    return found;
}

static void look_into(const struct input *input, const char *folder, struct arena *arena, struct below *below)
{
    struct location_list list;
    struct error unused;
    if (!location_list(input->location, folder, arena, &list, &unused))
        return;
    bool has_weights = false;
    for (size_t i = 0; i < list.count; i++) {
        const char *name = list.entries[i].name, *kind = kind_of_name(name);
        has_weights |= is_of_model(input->formats, name);
        if (below->unread == NULL && kind != NULL)
            below->unread = arena_printf(arena, "%s/%s is %s", folder, name, kind);
    }
    if (has_weights && below->models != NULL)
        below->models = arena_printf(arena, "%s, %s", below->models, folder);
    else if (has_weights)
        below->models = folder;
}

enum { MOST_FOLDERS = 32 }; /* that are looked into at each depth: on a server, each is a request */

/* Looks into the folders of a folder; "": those of the input. */
static void look_below(const struct input *input, const char *folder, size_t *n_folders, struct arena *arena,
                       struct below *below)
{
    struct location_list list = input->list;
    struct error unused;
    if (*folder != '\0' && !location_list(input->location, folder, arena, &list, &unused))
        return;
    for (size_t i = 0; i < list.count && *n_folders < MOST_FOLDERS; i++) {
        const char *name = list.entries[i].name;
        if (*name == '.' || list.entries[i].kind != LOCATION_FOLDER)
            continue;
        look_into(input, *folder != '\0' ? arena_printf(arena, "%s/%s", folder, name) : name, arena, below);
        ++*n_folders;
    }
}

/* Finds models in folders, or else in folders of publishers, as LM Studio keeps them. */
static struct below find_below(const struct input *input, struct arena *arena)
{
    struct below below = {0};
    size_t n_folders = 0, n_deeper = 0;
    look_below(input, "", &n_folders, arena, &below);
    for (size_t i = 0; i < input->list.count && below.models == NULL && n_deeper < MOST_FOLDERS; i++)
        if (*input->list.entries[i].name != '.' && input->list.entries[i].kind == LOCATION_FOLDER)
            look_below(input, input->list.entries[i].name, &n_deeper, arena, &below);
    return below;
}

static bool has_repository(const struct input *input)
{
    for (size_t i = 0; i < input->list.count; i++)
        if (text_starts_with(input->list.entries[i].name, "models--"))
            return true;
    return false;
}

/* Reports whether a directory has only files that a model's weights come with. */
static bool has_only_texts(const struct input *input)
{
    static const char *const texts[] = {".json", ".txt", ".md", ".jinja", ".model", ".py", "LICENSE", ".gitattributes"};
    bool is_text = true;
    for (size_t i = 0; i < input->list.count && is_text; i++) {
        is_text = input->list.entries[i].kind == LOCATION_FOLDER;
        for (size_t j = 0; j < sizeof texts / sizeof *texts; j++)
            is_text |= text_ends_with(input->list.entries[i].name, texts[j]);
    }
    return is_text;
}

/* Adds advice about a directory without any known name. */
static void add_advice(const struct input *input, struct error *error)
{
    struct error missing = *error;
    if (input->list.count == 0) {
        error_set(error, "%s; it is empty", missing.message);
        return;
    }
    struct arena *arena = arena_new();
    struct below below = find_below(input, arena);
    if (has_repository(input))
        error_set(error, "%s; it is a hub cache: name a model as ORG/NAME, or show all with -o library",
                  missing.message);
    else if (below.models != NULL)
        error_set(error, "%s; name one of its directories, or show all with -o library: %s", missing.message,
                  below.models);
    else if (below.unread != NULL)
        error_set(error, "%s; %s", missing.message, below.unread);
    else if (input_has(input, "config.json") && has_only_texts(input))
        error_set(error, "%s, only its config.json; 'hf download ORG/NAME' fetches complete models", missing.message);
    arena_free(arena);
}

/* Reports whether the last name of a path ends like a package of Core ML, whose files have no names that tell; then
 * *ret_kind is what it is. */
static bool is_package(const char *path, const char **ret_kind)
{
    static const char *const endings[] = {".mlpackage", ".mlmodelc"};
    size_t length = strlen(path);
    while (length > 0 && path[length - 1] == '/')
        length--;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t n = strlen(endings[i]);
        *ret_kind = unread_kind_of_name(endings[i]);
        if (length > n && strncmp(path + length - n, endings[i], n) == 0)
            return true;
    }
    return false;
}

static bool explain_directory(const struct input *input, struct error *error)
{
    enum { MOST_OPENED = 16 }; /* on servers, each is a request */
    unsigned budget = MOST_OPENED;
    const char *kind;
    if (is_package(input->path, &kind))
        return error_set(error, "%s: %s", input->path, kind);
    if (input_has(input, "model_index.json"))
        return error_set(error, "%s: a pipeline (model_index.json) whose models are missing", input->path);
    for (size_t i = 0; i < input->list.count; i++) {
        const struct location_entry *entry = &input->list.entries[i];
        kind = is_part(entry->name) ? kind_of_name(entry->name) : unread_kind_in_directory(input, entry, &budget);
        if (kind != NULL)
            return error_set(error, "%s: no checkpoint that wfs can read in this directory; %s is %s", input->path,
                             entry->name, kind);
    }
    error_set(error, "%s: no checkpoint that wfs can read in this directory", input->path);
    if (!add_half_download(input, "", error))
        add_advice(input, error);
    return false;
}

bool unread_explain(const struct input *input, struct error *error)
{
    if (input->file == NULL)
        return explain_directory(input, error);
    const char *kind = input->file_name != NULL ? kind_of_name(input->file_name) : NULL;
    if (kind == NULL)
        kind = unread_kind_of_file(input);
    return error_set(error, "%s: %s", input->path, kind != NULL ? kind : "not a checkpoint that wfs can read");
}
