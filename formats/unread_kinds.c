#include "formats/unread.h"

#include "base/checked.h"
#include "base/text.h"
#include "formats/protobuf.h"
#include "formats/zip/deflate_index.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#define HTML_PAGE      "an HTML page, not the file itself; the download failed or needs a login"
#define USE_ORIGIN     ", which wfs does not read; use the model it was converted from"
#define USE_CHECKPOINT ", which wfs does not read; use the checkpoint it was converted from"
#define EXPORTED       ", which wfs does not read; use the checkpoint it was exported from"
#define EXECUTORCH     "an ExecuTorch program, which wfs does not read; use the model it was exported from"
#define TENSORRT       "a TensorRT engine, which wfs does not read; use the checkpoint it was built from"
#define SAVED_MODEL    "the graph of a TensorFlow SavedModel; name its directory, whose variables wfs reads"
#define MEGATRON                                                                                                       \
    "one rank of a Megatron checkpoint; name it if it is the only one, or join the ranks with Megatron's converter"
#define MLC           "MLC" USE_CHECKPOINT
#define NCNN          "ncnn" USE_ORIGIN
#define TFJS          "TensorFlow.js" USE_ORIGIN
#define ORBAX         "an Orbax (JAX) checkpoint, which wfs reads as a directory"
#define HALF_DOWNLOAD "an unfinished download; let it finish"

/* Recognizes rwkv.cpp, whose versions begin with 100 where those of LLaMA's "ggmf" are 1. */
static bool is_rwkv(const struct input *input)
{
    enum { FIRST = 100, LAST = 199 };
    return input->head_length >= 8 && memcmp(input->head, "fmgg", 4) == 0 && read_le(input->head + 4, 4) >= FIRST &&
           read_le(input->head + 4, 4) <= LAST;
}

/* Recognizes whisper.cpp's voice activity detection: the length and text of its model's type. */
static bool is_silero(const struct input *input)
{
    return input->head_length >= 14 && memcmp(input->head, "lmgg", 4) == 0 && memcmp(input->head + 8, "silero", 6) == 0;
}

static bool is_gzip(const struct input *input)
{
    bool is_nemo = input->file_name != NULL && text_ends_with(input->file_name, ".nemo");
    return !is_nemo && gzip_begins(input->head, input->head_length);
}

static bool is_named(const struct input *input, const char *ending)
{
    return input->file_name != NULL && text_ends_with(input->file_name, ending);
}

/* Recognizes MindSpore's checkpoint: messages, the first field of which is a message whose first field is a name. */
static bool is_mindspore(const struct input *input)
{
    enum { FIRST_FIELD = 0x0a, MORE = 0x80, MOST = 5 };
    size_t at = 1;
    if (!is_named(input, ".ckpt") || input->head_length < 2 + MOST || input->head[0] != FIRST_FIELD)
        return false;
    while (at < MOST && (input->head[at] & MORE) != 0)
        at++;
    return input->head[at + 1] == FIRST_FIELD;
}

/* Recognizes Darknet's weights: the version of the layout, before counts of images. */
static bool is_darknet(const struct input *input)
{
    enum { LEAST = 16, NEWEST_MAJOR = 1, NEWEST_MINOR = 9 };
    return is_named(input, ".weights") && input->head_length >= LEAST && read_le(input->head, 4) <= NEWEST_MAJOR &&
           read_le(input->head + 4, 4) <= NEWEST_MINOR && read_le(input->head + 8, 4) <= NEWEST_MINOR;
}

/* Recognizes what dlib serializes: a number is the count of its bytes, with a bit for its sign, then these; a version
 * comes first. */
static bool is_dlib(const struct input *input)
{
    enum { NEWEST = 9, SIGN = 0x80 };
    return is_named(input, ".dat") && input->head_length >= 4 && input->head[0] == 1 && input->head[1] >= 1 &&
           input->head[1] <= NEWEST && (input->head[2] & ~SIGN) >= 1 && (input->head[2] & ~SIGN) <= 8;
}

static bool head_has(const struct input *input, const char *text)
{
    return input->head_length > 0 && memmem(input->head, input->head_length, text, strlen(text)) != NULL;
}

/* Recognizes model.json of TensorFlow.js, which begins with the kind of model or its topology. */
static bool is_tfjs(const struct input *input)
{
    return is_named(input, ".json") && input->head_length > 0 && *input->head == '{' &&
           (head_has(input, "\"graph-model\"") || head_has(input, "\"layers-model\"") ||
            head_has(input, "\"modelTopology\""));
}

/* Reports whether a file has another beside it, of the same name with another ending. */
static bool has_beside(const struct input *input, const char *own, const char *other)
{
    if (!is_named(input, own))
        return false;
    size_t n_stem = strlen(input->file_name) - strlen(own);
    for (size_t i = 0; i < input->list.count; i++) {
        const char *name = input->list.entries[i].name;
        if (strlen(name) == n_stem + strlen(other) && memcmp(name, input->file_name, n_stem) == 0 &&
            strcmp(name + n_stem, other) == 0)
            return true;
    }
    return false;
}

static bool is_ncnn_weights(const struct input *input)
{
    return has_beside(input, ".bin", ".param");
}

static bool is_openvino_weights(const struct input *input)
{
    return has_beside(input, ".bin", ".xml");
}

/* Recognizes files in a package of Core ML, whose names do not tell. */
static bool is_in_package(const struct input *input)
{
    return input->file_name != NULL &&
           (strstr(input->path, ".mlpackage/") != NULL || strstr(input->path, ".mlmodelc/") != NULL);
}

/* Recognizes a whole protocol buffer by the fields at its top: the first is the number of a version, and all others
 * are `may_be` and bytes, or numbers below them. Stops at the first field that cannot be. */
static bool is_message(const struct input *input, bool (*may_be)(const struct protobuf_field *field),
                       bool (*is_enough)(const struct protobuf_field *field))
{
    enum { VERSION = 1, VERSION_TAG = 0x08, MOST_FIELDS = 64 };
    if (input->head_length == 0 || input->head[0] != VERSION_TAG)
        return false;
    struct error unused;
    struct protobuf_field field = {0};
    struct window *window = memory_alloc(sizeof *window);
    *window = (struct window){.source = input->file};
    struct protobuf message = {.window = window, .name = input->path, .end = source_size(input->file)};
    bool more = true, good = true, enough = false;
    for (unsigned n = 0; n < MOST_FIELDS && good && more; n++) {
        good = protobuf_next(&message, &field, &more, &unused);
        if (good && more) {
            good = n == 0 ? field.number == VERSION && field.wire == PROTOBUF_VARINT : may_be(&field);
            enough |= n > 0 && is_enough(&field);
        }
    }
    free(window);
    return good && !more && enough;
}

/* Core ML: a description, a flag that says whether it can be trained, and one kind of model. */
static bool is_core_ml_kind(const struct protobuf_field *field)
{
    enum { FIRST_KIND = 200, LAST_KIND = 3999 };
    return field->wire == PROTOBUF_BYTES && field->number >= FIRST_KIND && field->number <= LAST_KIND;
}

static bool may_be_core_ml(const struct protobuf_field *field)
{
    enum { DESCRIPTION = 2, IS_UPDATABLE = 10 };
    return (field->number == DESCRIPTION && field->wire == PROTOBUF_BYTES) || field->number == IS_UPDATABLE ||
           is_core_ml_kind(field);
}

static bool is_core_ml(const struct input *input)
{
    return is_message(input, may_be_core_ml, is_core_ml_kind);
}

static bool is_meta_graph(const struct protobuf_field *field)
{
    enum { META_GRAPH = 2 };
    return field->number == META_GRAPH && field->wire == PROTOBUF_BYTES;
}

static bool is_saved_model(const struct input *input)
{
    return is_message(input, is_meta_graph, is_meta_graph);
}

/* A row has bytes or a check, which the content must pass, or else its name tells alone. Names are patterns; those of
 * rows of content tell which entries of a directory are worth opening. What a late row finds a reader may still take.
 */
static const struct kind {
    const char *what, *name;
    size_t offset, length;
    const char *bytes;
    bool (*check)(const struct input *input);
    bool is_late;
} kinds[] = {
    /* not the file itself, or not as it is */
    {GIT_LFS_REFUSAL, NULL, 0, sizeof GIT_LFS_BEGINNING - 1, GIT_LFS_BEGINNING},
    {HTML_PAGE, NULL, 0, 9, "<!DOCTYPE"},
    {HTML_PAGE, NULL, 0, 9, "<!doctype"},
    {HTML_PAGE, NULL, 0, 5, "<html"},
    {"compressed by gzip; decompress it first", .check = is_gzip},
    {"compressed by gzip; decompress it first", "*.gz"},
    {"compressed by zstd; decompress it first", NULL, 0, 4, "\x28\xb5\x2f\xfd"},
    {"compressed by zstd; decompress it first", "*.zst"},
    {"compressed by xz; decompress it first", NULL, 0, 6, "\xfd\x37zXZ\0"},
    {"compressed by xz; decompress it first", "*.xz"},
    {"a 7-Zip archive; unpack it first", NULL, 0, 6, "7z\xbc\xaf\x27\x1c"},
    {"compressed by ZipNN; decompress it first", "*.znn"},
    {"a llamafile: a program and a GGUF in one; unzip the GGUF", NULL, 0, 6, "MZqFpD"},
    {HALF_DOWNLOAD, "*.incomplete"},
    {HALF_DOWNLOAD, "*.part"},
    {HALF_DOWNLOAD, "*.crdownload"},
    {HALF_DOWNLOAD, "*.downloadInProgress"},
    {"the mark of " HALF_DOWNLOAD, "*.aria2"},
    /* what wfs reads otherwise */
    {SAVED_MODEL, "saved_model.pb"},
    {SAVED_MODEL, .check = is_saved_model},
    {"a TensorFlow Lite model; name the file", "*.tflite"},
    {"a NeMo archive; name the file", "*.nemo"},
    {"part of a distributed torch checkpoint, which wfs reads as a directory with its .metadata", "*.distcp"},
    {"part of a DeepSpeed checkpoint, which wfs reads as a directory", "*_states.pt"},
    {"a list of Megatron checkpoints; name the directory of one iteration", "latest_checkpointed_iteration.txt"},
    {MEGATRON, "mp_rank_*"},
    {ORBAX, "_CHECKPOINT_METADATA"},
    {ORBAX, "manifest.ocdbt"},
    {"an array of zarr, which wfs does not read; save it as safetensors", "*.zarray"},
    {"an array of zarr, which wfs does not read; save it as safetensors", "zarr.json"},
    /* relatives of ggml */
    {"rwkv.cpp's format" USE_CHECKPOINT, "*.bin", .check = is_rwkv},
    {"whisper.cpp's model of voice activity detection, which wfs does not read; silero-vad has it as ONNX", "*.bin",
     .check = is_silero},
    {"a model of chatglm.cpp or one of its relatives" USE_CHECKPOINT, "*.bin", 0, 4, "ggml"},
    {"a LoRA adapter of llama.cpp before GGUF, which wfs does not read; use the adapter it was converted from", "*.bin",
     0, 4, "algg"},
    {"a session that llama.cpp saved, not a model", "*.bin", 0, 4, "nsgg"},
    {"the state of a sequence that llama.cpp saved, not a model", "*.bin", 0, 4, "qsgg"},
    /* other programs */
    {"Core ML" USE_ORIGIN, "*.mlmodel"},
    {"Core ML" USE_ORIGIN, "*.mlpackage"},
    {"Core ML" USE_ORIGIN, "*.mlmodelc"},
    {"Core ML" USE_ORIGIN, .check = is_core_ml},
    {"Core ML" USE_ORIGIN, .check = is_in_package, .is_late = true},
    {TFJS, "*.json", .check = is_tfjs},
    {TFJS, "group*-shard*of*"},
    {MLC, "mlc-chat-config.json"},
    {MLC, "ndarray-cache.json"},
    {MLC, "tensor-cache.json"},
    {MLC, "params_shard_*.bin"},
    {"Darknet" USE_ORIGIN, "*.weights", .check = is_darknet, .is_late = true},
    {"the layers of a Darknet model, which wfs does not read; use the model it was converted to or from", "*.cfg", 0, 5,
     "[net]"},
    {"Caffe" USE_ORIGIN, "*.caffemodel"},
    {"Caffe" USE_ORIGIN, "*.prototxt"},
    {"MXNet" USE_ORIGIN, "*.params", 0, 16, "\x12\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0"},
    {"MXNet" USE_ORIGIN, "*-symbol.json"},
    {NCNN, "*.param", 0, 8, "7767517\n"},
    {NCNN, "*.param.bin", 0, 4, "\xdd\x85\x76\0"},
    {NCNN, "*.ncnn.param"},
    {NCNN, .check = is_ncnn_weights, .is_late = true},
    {"ONNX Runtime's own format (ORT), which wfs does not read; use the .onnx file it was converted from", "*.ort", 4,
     4, "ORTM"},
    {TENSORRT, "*.engine"},
    {TENSORRT, "*.plan", 0, 4, "ftrt"},
    {TENSORRT, "*.plan", 0, 4, "ptrt"},
    {"MindSpore" USE_CHECKPOINT, "*.ckpt", .check = is_mindspore},
    {"MindSpore" EXPORTED, "*.mindir"},
    {"MindSpore Lite" USE_ORIGIN, "*.ms", 4, 4, "MSL2"},
    {"MindSpore Lite" USE_ORIGIN, "*.ms", 4, 4, "MSL1"},
    {"an object that dlib saved, which only dlib reads", "*.dat", .check = is_dlib, .is_late = true},
    {"fastText, which wfs does not read; fastText's own tools write its vectors as text", "*", 0, 4, "\xba\x16\x4f\x2f",
     NULL},
    {"Equinox, whose arrays have no names, which wfs does not read; save them with numpy.savez()", "*.eqx"},
    {"LiteRT-LM" USE_ORIGIN, "*.litertlm"},
    {"LiteRT-LM" USE_ORIGIN, NULL, 0, 8, "LITERTLM"},
    {EXECUTORCH, "*.pte"},
    {EXECUTORCH, NULL, 4, 4, "ET12"},
    {"MNN" USE_ORIGIN, "*.mnn"},
    {"OpenVINO" EXPORTED, "openvino_model.xml"},
    {"OpenVINO" EXPORTED, .check = is_openvino_weights, .is_late = true},
    {"a model packed by TorchServe; unzip it", "*.mar"},
};

enum { N_KINDS = sizeof kinds / sizeof *kinds };

static bool is_of_content(const struct kind *kind)
{
    return kind->bytes != NULL || kind->check != NULL;
}

static const char *kind_of_content(const struct input *input, bool is_late)
{
    for (const struct kind *kind = kinds; kind < kinds + N_KINDS; kind++) {
        if (!is_of_content(kind) || kind->is_late != is_late)
            continue;
        bool has_bytes = kind->bytes == NULL || (input->head_length >= kind->offset + kind->length &&
                                                 memcmp(input->head + kind->offset, kind->bytes, kind->length) == 0);
        if (has_bytes && (kind->check == NULL || kind->check(input)))
            return kind->what;
    }
    return NULL;
}

const char *unread_kind_of_content(const struct input *input)
{
    return kind_of_content(input, false);
}

const char *unread_kind_of_name(const char *name)
{
    for (const struct kind *kind = kinds; kind < kinds + N_KINDS; kind++)
        if (!is_of_content(kind) && fnmatch(kind->name, name, 0) == 0)
            return kind->what;
    return NULL;
}

const char *unread_kind_of_file(const struct input *input)
{
    const char *kind = unread_kind_of_content(input);
    if (kind == NULL && input->file_name != NULL)
        kind = unread_kind_of_name(input->file_name);
    return kind != NULL ? kind : kind_of_content(input, true);
}

/* Reports whether files of that name have to be opened to be told. */
static bool is_shared_name(const char *name)
{
    for (const struct kind *kind = kinds; kind < kinds + N_KINDS; kind++)
        if (is_of_content(kind) && kind->name != NULL && fnmatch(kind->name, name, 0) == 0)
            return true;
    return false;
}

const char *unread_kind_in_directory(const struct input *input, const struct location_entry *entry, unsigned *budget)
{
    const char *kind = unread_kind_of_name(entry->name);
    struct error unused;
    if (kind != NULL || entry->kind != LOCATION_FILE || *budget == 0 || !is_shared_name(entry->name))
        return kind;
    --*budget;
    struct input inner = *input;
    inner.file_name = entry->name;
    inner.file = location_source(input->location, entry->name, &unused);
    if (inner.file == NULL)
        return NULL;
    uint64_t size = source_size(inner.file);
    inner.head_length = size < sizeof inner.head ? (size_t)size : sizeof inner.head;
    if (source_read(inner.file, 0, inner.head_length, inner.head, &unused))
        kind = unread_kind_of_file(&inner);
    source_close(inner.file);
    return kind;
}

bool unread_is_half_download(const char *kind)
{
    return strstr(kind, HALF_DOWNLOAD) != NULL;
}
