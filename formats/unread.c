#include "formats/unread.h"

#include "base/checked.h"
#include "base/text.h"
#include "formats/huggingface/hub_cache.h"
#include "formats/protobuf.h"
#include "formats/zip/gzip.h"

#include <libgen.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    size_t offset, length;
    const char *bytes, *what;
} contents[] = {
    {0, sizeof GIT_LFS_BEGINNING - 1, GIT_LFS_BEGINNING, GIT_LFS_REFUSAL},
    {0, 9, "<!DOCTYPE", "an HTML page, not the file itself; the download failed or needs a login"},
    {0, 9, "<!doctype", "an HTML page, not the file itself; the download failed or needs a login"},
    {0, 5, "<html", "an HTML page, not the file itself; the download failed or needs a login"},
    {0, 2, "\x1f\x8b", "compressed by gzip; decompress it first"},
    {0, 4, "\x28\xb5\x2f\xfd", "compressed by zstd; decompress it first"},
    {0, 6, "\xfd\x37zXZ\0", "compressed by xz; decompress it first"},
    {0, 6, "7z\xbc\xaf\x27\x1c", "a 7-Zip archive; unpack it first"},
};

static const struct {
    const char *ending, *what;
} endings[] = {
    {".tflite", "a TensorFlow Lite model; name the file"},
    {".litertlm", "LiteRT-LM, which wfs does not read"},
    {".pte", "an ExecuTorch program, which wfs does not read; use the model it was exported from"},
    {".mnn", "MNN, which wfs does not read; use the model it was converted from"},
    {".ncnn.param", "ncnn, which wfs does not read; use the model it was converted from"},
    {".znn", "compressed by ZipNN; decompress it first"},
    {".zarray", "an array of zarr, which wfs does not read; save it as safetensors"},
    {"zarr.json", "an array of zarr, which wfs does not read; save it as safetensors"},
    {"saved_model.pb", "a TensorFlow graph; wfs reads the variables of its directory"},
    {".distcp", "part of a distributed torch checkpoint, which wfs reads as a directory with its .metadata"},
    {"_states.pt", "part of a DeepSpeed checkpoint, which wfs reads as a directory"},
    {"latest_checkpointed_iteration.txt", "a list of Megatron checkpoints; name the directory of one iteration"},
    {"_CHECKPOINT_METADATA", "an Orbax (JAX) checkpoint, which wfs reads as a directory"},
    {"manifest.ocdbt", "an Orbax (JAX) checkpoint, which wfs reads as a directory"},
    {".nemo", "a NeMo archive; name the file"},
    {".mlmodel", "Core ML, which wfs does not read"},
    {".mlpackage", "Core ML, which wfs does not read"},
    {"openvino_model.xml", "OpenVINO, which wfs does not read; use the checkpoint it was exported from"},
    {".engine", "a TensorRT engine, which wfs does not read; use the checkpoint it was built from"},
    {".gz", "compressed by gzip; decompress it first"},
    {".zst", "compressed by zstd; decompress it first"},
    {".xz", "compressed by xz; decompress it first"},
    {".incomplete", "an unfinished download; let it finish"},
    {".part", "an unfinished download; let it finish"},
    {".crdownload", "an unfinished download; let it finish"},
    {".aria2", "the mark of an unfinished download; let it finish"},
};

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
    size_t length = is_letter ? 1 + (number[1] >= 'a' && number[1] <= 'z') : strspn(number, "0123456789");
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
    if (is_part(name))
        return "one of several parts of a file; join them with cat, in their order";
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (text_ends_with(name, endings[i].ending))
            return endings[i].what;
    return NULL;
}

/* Recognizes model.bin of CTranslate2: a version, then the length and name of the model's specification. */
static const char *kind_of_head(const unsigned char *head, size_t length)
{
    enum { NEWEST = 32, NAME = 6, SPEC = 5 }; /* SPEC: "Spec" and a NUL */
    size_t n_name = length > NAME ? (size_t)read_le(head + 4, 2) : 0;
    bool is_version = length > NAME && read_le(head, 4) >= 1 && read_le(head, 4) <= NEWEST;
    return is_version && n_name > SPEC && n_name <= length - NAME &&
                   memcmp(head + NAME + n_name - SPEC, "Spec", SPEC) == 0
               ? "CTranslate2, which wfs does not read; use the checkpoint it was converted from"
               : NULL;
}

/* Recognizes a whole protocol buffer by the fields at its top: a Core ML model has one of its kind, from 200 on, a
 * SavedModel of TensorFlow only graphs after its version. */
static const char *kind_of_message(const struct source *file)
{
    enum { VERSION = 1, GRAPH = 2, FIRST_KIND = 200, LAST_KIND = 3999, MOST_FIELDS = 64 };
    struct error unused;
    struct protobuf_field field = {0};
    struct window *window = memory_alloc(sizeof *window);
    *window = (struct window){.source = file};
    struct protobuf message = {.window = window, .name = source_name(file), .end = source_size(file)};
    bool more = true, good = true, has_kind = false, only_graphs = true;
    unsigned n_fields = 0;
    while ((good = protobuf_next(&message, &field, &more, &unused)) && more && n_fields++ < MOST_FIELDS) {
        bool is_bytes = field.wire == PROTOBUF_BYTES;
        has_kind |= is_bytes && field.number >= FIRST_KIND && field.number <= LAST_KIND;
        only_graphs &= field.number == (n_fields == 1 ? VERSION : GRAPH) && is_bytes == (n_fields > 1);
    }
    free(window);
    if (!good || more || n_fields < 2)
        return NULL;
    return has_kind ? kind_of_name(".mlmodel") : only_graphs ? kind_of_name("saved_model.pb") : NULL;
}

/* Returns what a file is that no reader takes, by its name or its content; NULL: unknown. */
static const char *kind_of_file(const struct input *input)
{
    enum { VERSION_TAG = 0x08 };
    const char *kind = kind_of_name(input->file_name);
    if (kind == NULL)
        kind = kind_of_head(input->head, input->head_length);
    if (kind == NULL && input->head_length > 0 && input->head[0] == VERSION_TAG)
        kind = kind_of_message(input->file);
    return kind;
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
    if (gzip_begins(input->head, input->head_length) && input->file_name != NULL &&
        text_ends_with(input->file_name, ".nemo"))
        return true;
    for (size_t i = 0; i < sizeof contents / sizeof *contents; i++)
        if (input->head_length >= contents[i].offset + contents[i].length &&
            memcmp(input->head + contents[i].offset, contents[i].bytes, contents[i].length) == 0)
            return error_set(error, "%s: %s", input->path, contents[i].what);
    bool says_kind = input->file_name != NULL && (is_zip(input) || is_part(input->file_name));
    const char *kind = says_kind ? kind_of_name(input->file_name) : NULL;
    if (kind != NULL)
        return error_set(error, "%s: %s", input->path, kind);
    return true;
}

bool unread_check_text(const struct input *input, struct error *error)
{
    if (!is_text(input))
        return true;
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
        if (kind != NULL && text_starts_with(kind, "an unfinished download"))
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

static struct below find_below(const struct input *input, struct arena *arena)
{
    enum { MOST_FOLDERS = 32 };
    struct below below = {0};
    for (size_t i = 0, n_folders = 0; i < input->list.count && n_folders < MOST_FOLDERS; i++) {
        const struct location_entry *entry = &input->list.entries[i];
        if (*entry->name != '.' && entry->kind == LOCATION_FOLDER) {
            look_into(input, entry->name, arena, &below);
            n_folders++;
        }
    }
    return below;
}

static bool has_repository(const struct input *input)
{
    for (size_t i = 0; i < input->list.count; i++)
        if (text_starts_with(input->list.entries[i].name, "models--"))
            return true;
    return false;
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
        error_set(error, "%s; it is a hub cache: name a model as ORG/NAME", missing.message);
    else if (below.models != NULL)
        error_set(error, "%s; name one of its directories, or show all with -o library: %s", missing.message,
                  below.models);
    else if (below.unread != NULL)
        error_set(error, "%s; %s", missing.message, below.unread);
    else if (input_has(input, "config.json"))
        error_set(error, "%s, only its config.json; 'hf download ORG/NAME' fetches complete models", missing.message);
    arena_free(arena);
}

/* Returns what a file of the directory is that no reader takes; NULL: unknown. */
static const char *kind_in_directory(const struct input *input, const char *name)
{
    static const char binary[] = "model.bin"; /* of CTranslate2, and of others */
    unsigned char head[sizeof input->head];
    struct error unused;
    const char *kind = kind_of_name(name);
    struct source *file =
        kind == NULL && strcmp(name, binary) == 0 ? location_source(input->location, name, &unused) : NULL;
    if (file == NULL)
        return kind;
    size_t length = source_size(file) < sizeof head ? (size_t)source_size(file) : sizeof head;
    if (source_read(file, 0, length, head, &unused))
        kind = kind_of_head(head, length);
    source_close(file);
    return kind;
}

/* Reports whether the directory is a package of Core ML, whose files have no names that tell. */
static bool is_package(const char *path)
{
    static const char ending[] = ".mlpackage";
    size_t length = strlen(path), ending_length = sizeof ending - 1;
    while (length > 0 && path[length - 1] == '/')
        length--;
    return length > ending_length && strncmp(path + length - ending_length, ending, ending_length) == 0;
}

static bool explain_directory(const struct input *input, struct error *error)
{
    if (is_package(input->path))
        return error_set(error, "%s: %s", input->path, kind_of_name(".mlpackage"));
    if (input_has(input, "model_index.json"))
        return error_set(error, "%s: a pipeline (model_index.json) whose models are missing", input->path);
    for (size_t i = 0; i < input->list.count; i++) {
        const char *kind = kind_in_directory(input, input->list.entries[i].name);
        if (kind != NULL)
            return error_set(error, "%s: no checkpoint that wfs can read in this directory; %s is %s", input->path,
                             input->list.entries[i].name, kind);
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
    const char *kind = kind_of_file(input);
    return error_set(error, "%s: %s", input->path, kind != NULL ? kind : "not a checkpoint that wfs can read");
}
