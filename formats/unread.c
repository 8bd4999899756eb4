#include "formats/unread.h"

#include "base/text.h"
#include "formats/huggingface/hub_cache.h"

#include <libgen.h>
#include <string.h>

static const struct {
    size_t offset, length;
    const char *bytes, *what;
} contents[] = {
    {0, 23, "version https://git-lfs", "a pointer of Git LFS, not the file itself; 'git lfs pull' fetches that"},
    {0, 9, "<!DOCTYPE", "a page of HTML, not the file itself; the download went wrong, or wants a login"},
    {0, 9, "<!doctype", "a page of HTML, not the file itself; the download went wrong, or wants a login"},
    {0, 5, "<html", "a page of HTML, not the file itself; the download went wrong, or wants a login"},
    {0, 8, "\x89HDF\r\n\x1a\n", "HDF5 (Keras, TensorFlow), which wfs does not read; save it as safetensors"},
    {4, 4, "TFL3", "TensorFlow Lite, which wfs does not read"},
    {0, 2, "\x1f\x8b", "compressed by gzip; decompress it first"},
    {0, 4, "\x28\xb5\x2f\xfd", "compressed by zstd; decompress it first"},
    {0, 6, "\xfd\x37zXZ\0", "compressed by xz; decompress it first"},
    {0, 6, "7z\xbc\xaf\x27\x1c", "an archive of 7-Zip; unpack it first"},
    {0, 4, "lmgg",
     "GGML of before GGUF, which wfs does not read; convert_llama_ggml_to_gguf.py of llama.cpp converts it"},
    {0, 4, "fmgg",
     "GGML of before GGUF, which wfs does not read; convert_llama_ggml_to_gguf.py of llama.cpp converts it"},
    {0, 4, "tjgg",
     "GGML of before GGUF, which wfs does not read; convert_llama_ggml_to_gguf.py of llama.cpp converts it"},
};

static const struct {
    const char *ending, *what;
} endings[] = {
    {".onnx", "ONNX, which wfs does not read; name the checkpoint that it was exported from"},
    {".h5", "HDF5 (Keras, TensorFlow), which wfs does not read; save it as safetensors"},
    {".ckpt.index", "TensorFlow, which wfs does not read; save it as safetensors"},
    {".keras", "Keras, which wfs does not read; save it as safetensors"},
    {".msgpack", "Flax, which wfs does not read; save it as safetensors"},
    {".tflite", "TensorFlow Lite, which wfs does not read"},
    {"saved_model.pb", "TensorFlow, which wfs does not read; save it as safetensors"},
    {".pt2", "an exported program of torch, which wfs does not read; save its state_dict"},
    {".distcp", "a part of a distributed checkpoint of torch; "
                "'python -m torch.distributed.checkpoint.format_utils dcp_to_torch DIRECTORY FILE.pt' joins it"},
    {"_states.pt", "a part of a checkpoint of DeepSpeed; zero_to_fp32.py, which is beside such, joins the parts"},
    {"latest_checkpointed_iteration.txt", "of Megatron, which wfs does not read; save it as safetensors"},
    {"_CHECKPOINT_METADATA", "of Orbax (JAX), which wfs does not read; save it as safetensors"},
    {"manifest.ocdbt", "of Orbax (JAX), which wfs does not read; save it as safetensors"},
    {".nemo", "an archive of NeMo; unpack it by tar, the checkpoint is in it"},
    {".pdparams", "Paddle, which wfs does not read; save it as safetensors"},
    {".mlmodel", "Core ML, which wfs does not read"},
    {".mlpackage", "Core ML, which wfs does not read"},
    {"openvino_model.xml", "OpenVINO, which wfs does not read; name the checkpoint that it was exported from"},
    {".engine", "an engine of TensorRT, which wfs does not read; name the checkpoint that it was built from"},
    {".gz", "compressed by gzip; decompress it first"},
    {".zst", "compressed by zstd; decompress it first"},
    {".xz", "compressed by xz; decompress it first"},
    {".incomplete", "half a download; let it finish"},
    {".part", "half a download; let it finish"},
    {".crdownload", "half a download; let it finish"},
    {".aria2", "the mark of half a download; let it finish"},
};

static const char *kind_of_name(const char *name)
{
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (text_ends_with(name, endings[i].ending))
            return endings[i].what;
    return NULL;
}

/* Many programs put theirs into a zip archive, as torch does. */
static bool is_zip(const struct input *input)
{
    return input->head_length >= 4 && memcmp(input->head, "PK\3\4", 4) == 0;
}

/* Formats of text: a message of a server, say, that was saved instead of what was asked for. */
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
    for (size_t i = 0; i < sizeof contents / sizeof *contents; i++)
        if (input->head_length >= contents[i].offset + contents[i].length &&
            memcmp(input->head + contents[i].offset, contents[i].bytes, contents[i].length) == 0)
            return error_set(error, "%s: %s", input->path, contents[i].what);
    const char *kind = input->file_name != NULL && is_zip(input) ? kind_of_name(input->file_name) : NULL;
    if (kind != NULL)
        return error_set(error, "%s: %s", input->path, kind);
    return true;
}

bool unread_check_text(const struct input *input, struct error *error)
{
    if (!is_text(input))
        return true;
    if (input->file_name != NULL && text_ends_with(input->file_name, ".json"))
        return error_set(error, "%s: a text, not a checkpoint; the directory that it is in may be one", input->path);
    return error_set(error, "%s: a text, not a checkpoint: it begins with '%.16s'", input->path,
                     (const char *)input->head);
}

static bool has_unfinished(const char *directory)
{
    size_t n_names = 0;
    const char *const *names;
    bool found = false;
    struct error unused;
    struct arena *arena = arena_new();
    struct location *location = location_of_directory(directory, &unused);
    if (location != NULL && location_names(location, "", arena, &names, &n_names, &unused))
        for (size_t i = 0; i < n_names; i++)
            found |= text_ends_with(names[i], ".incomplete");
    location_close(location);
    arena_free(arena);
    return found;
}

/* Where the hub's client keeps what it has of a file while it downloads: of a snapshot, among the blobs of its
 * repository; where the user has said to which directory, in a folder of that, by the folder of the file. */
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

/* The directory may be a folder of what is downloaded. */
static const char *find_unfinished(const struct input *input, struct arena *arena)
{
    char *path = arena_strdup(arena, input->path);
    const char *found = unfinished_of(input->path, "", arena);
    return found != NULL ? found : unfinished_of(arena_printf(arena, "%s/..", input->path), basename(path), arena);
}

/* Adds to the error what half download there is; false where there is none. */
static bool add_half_download(const struct input *input, struct error *error)
{
    struct error missing = *error;
    struct arena *arena = arena_new();
    const char *found = find_unfinished(input, arena), *advice = "let 'hf download' finish it";
    for (size_t i = 0; i < input->n_names && found == NULL; i++) {
        const char *kind = kind_of_name(input->names[i]);
        if (kind == NULL || !text_starts_with(kind, "half a download"))
            continue;
        found = input->names[i];
        advice = "let it finish";
    }
    if (found != NULL)
        error_set(error, "%s; half a download (%s): %s", missing.message, found, advice);
    arena_free(arena);
    return found != NULL;
}

bool unread_add_half_download(const struct input *input, struct error *error)
{
    add_half_download(input, error);
    return false;
}

/* What the folders of a directory hold: NULL where that is nothing that is known. */
struct below {
    const char *models; /* the folders that have weights: "a, b" */
    const char *unread; /* a file that is not read, and its kind */
};

static bool is_weights(const char *name)
{
    static const char *const ends[] = {".safetensors", ".gguf", "pytorch_model.bin", "model_index.json", ".00.pth"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (text_ends_with(name, ends[i]))
            return true;
    return false;
}

static void look_into(const struct input *input, const char *folder, struct arena *arena, struct below *below)
{
    const char *const *names;
    size_t n_names;
    struct error unused;
    if (!location_names(input->location, folder, arena, &names, &n_names, &unused))
        return;
    bool has_weights = false;
    for (size_t i = 0; i < n_names; i++) {
        const char *kind = kind_of_name(names[i]);
        has_weights |= is_weights(names[i]);
        if (below->unread == NULL && kind != NULL)
            below->unread = arena_printf(arena, "%s/%s is %s", folder, names[i], kind);
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
    for (size_t i = 0, n_folders = 0; i < input->n_names && n_folders < MOST_FOLDERS; i++)
        if (*input->names[i] != '.' && location_kind(input->location, input->names[i]) == LOCATION_FOLDER) {
            look_into(input, input->names[i], arena, &below);
            n_folders++;
        }
    return below;
}

static bool has_repository(const struct input *input)
{
    for (size_t i = 0; i < input->n_names; i++)
        if (text_starts_with(input->names[i], "models--"))
            return true;
    return false;
}

/* Of a directory in which nothing is known by its name: what may help. */
static void add_advice(const struct input *input, struct error *error)
{
    struct error missing = *error;
    if (input->n_names == 0) {
        error_set(error, "%s; it is empty", missing.message);
        return;
    }
    struct arena *arena = arena_new();
    struct below below = find_below(input, arena);
    if (has_repository(input))
        error_set(error, "%s; it is a hub cache: name a model in it as ORG/NAME", missing.message);
    else if (below.models != NULL)
        error_set(error, "%s; name a directory in it: %s", missing.message, below.models);
    else if (below.unread != NULL)
        error_set(error, "%s; %s", missing.message, below.unread);
    else if (input_has(input, "config.json"))
        error_set(error, "%s, just its config.json; 'hf download ORG/NAME' fetches models whole", missing.message);
    arena_free(arena);
}

static bool explain_directory(const struct input *input, struct error *error)
{
    if (input_has(input, "model_index.json"))
        return error_set(error, "%s: a pipeline (model_index.json) whose models are not there", input->path);
    for (size_t i = 0; i < input->n_names; i++) {
        const char *kind = kind_of_name(input->names[i]);
        if (kind != NULL)
            return error_set(error, "%s: no checkpoint that wfs can read is in this directory; %s is %s", input->path,
                             input->names[i], kind);
    }
    error_set(error, "%s: no checkpoint that wfs can read is in this directory", input->path);
    if (!add_half_download(input, error))
        add_advice(input, error);
    return false;
}

bool unread_explain(const struct input *input, struct error *error)
{
    if (input->file == NULL)
        return explain_directory(input, error);
    const char *kind = kind_of_name(input->file_name);
    return error_set(error, "%s: %s", input->path, kind != NULL ? kind : "not a checkpoint that wfs can read");
}
