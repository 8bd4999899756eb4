/* What is told about what wfs does not read: one line each, by the first bytes, the name, or what is beside it. */
#include "formats/unread.h"

#include "base/text.h"
#include "tests/unit/check.h"
#include "tests/unit/files.h"
#include "tests/unit/formats/readers_table.h"

static struct input file_of(const char *name, const void *head, size_t length)
{
    static char no_source; /* which is not looked at */
    struct input input = {.formats = readers,
                          .path = name,
                          .file_name = name,
                          .file = (struct source *)&no_source,
                          .head_length = length};
    memcpy(input.head, head, length);
    return input;
}

/* First bytes, and a part of what they are; NULL: nothing that is known. */
static const struct {
    const char *name, *head;
    size_t length;
    const char *what;
} contents[] = {
    {"a", "", 0, "a: the file is empty; an interrupted download?"},
    {"a", "version https://git-lfs.github.com/spec/v1\n", 43, "a: a Git LFS pointer"},
    {"a", "version https://git-lf", 22, NULL},
    {"a", "<!DOCTYPE html>", 15, "a: an HTML page"},
    {"a", "<html lang=", 11, "a: an HTML page"},
    {"a", "\x1f\x8b", 2, "a: compressed by gzip"},
    {"a", "\x1f", 1, NULL},
    {"a", "\xfd\x37zXZ\0", 6, "a: compressed by xz"},
    {"a", "GGUF\3\0\0\0", 8, NULL},
    {"a.litertlm", "PK\3\4\0", 5, "a.litertlm: LiteRT-LM"},
    {"a.task", "PK\3\4\0", 5, NULL},
    {"a.pt", "PK\3\4\0", 5, NULL},
    {"a.bin", "\x80\2", 2, NULL},
    {"m.Q8_0.gguf.part1of2", "GGUF\3\0\0\0", 8, "m.Q8_0.gguf.part1of2: one of several parts of a file; join them"},
    {"m.gguf.part-01", "x", 1, "m.gguf.part-01: one of several parts"},
    {"m.gguf-split-a", "x", 1, "m.gguf-split-a: one of several parts"},
    {"m.safetensors.001", "x", 1, "m.safetensors.001: one of several parts"},
    {"model.bin.part-ab", "x", 1, "model.bin.part-ab: one of several parts"},
    {"m.gguf.part", "x", 1, NULL},
    {"m.gguf.partial", "x", 1, NULL},
    {"m.gguf.01", "GGUF\3\0\0\0", 8, "m.gguf.01: one of several parts of a file; join them"},
    {"m.gguf.aa", "GGUF\3\0\0\0", 8, "m.gguf.aa: one of several parts of a file; join them"},
    {"m.safetensorsab", "x", 1, "m.safetensorsab: one of several parts of a file; join them"},
    {"m.gguf.7", "x", 1, NULL},
    {"a.bin", "fmgg\x64\0\0\0", 8, "a.bin: rwkv.cpp's format"},
    {"a.bin", "fmgg\1\0\0\0", 8, NULL},
    {"a.bin", "lmgg\x0a\0\0\0silero-16k", 18, "a.bin: whisper.cpp's model of voice activity detection"},
    {"a.bin", "lmgg\xe1\xca\0\0", 8, NULL},
    {"a.bin", "ggml\1\0\0\0", 8, "a.bin: a model of chatglm.cpp"},
    {"a.bin", "algg\1\0\0\0", 8, "a.bin: a LoRA adapter of llama.cpp before GGUF"},
    {"a", "nsgg\x09\0\0\0", 8, "a: a session that llama.cpp saved"},
    {"a", "qsgg\2\0\0\0", 8, "a: the state of a sequence"},
    {"a", "\xba\x16\x4f\x2f\x0c\0\0\0", 8, "a: fastText"},
    {"a", "\x20\0\0\0ORTM", 8, "a: ONNX Runtime's own format (ORT)"},
    {"a", "\x1c\0\0\0TFL3", 8, NULL},
    {"a", "\x1c\0\0\0ET12", 8, "a: an ExecuTorch program"},
    {"a", "\x1c\0\0\0MSL2", 8, "a: MindSpore Lite"},
    {"a.ckpt",
     "\x0a\x2c\x0a\x0b"
     "conv1.weight",
     16, "a.ckpt: MindSpore"},
    {"a.ckpt",
     "\x0a\xac\x02\x0a\x0b"
     "conv1.weight",
     17, "a.ckpt: MindSpore"},
    {"a.pb",
     "\x0a\x2c\x0a\x0b"
     "conv1.weight",
     16, NULL},
    {"a", "ftrt\0\0\0\0", 8, "a: a TensorRT engine"},
    {"a", "\x12\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16, "a: MXNet"},
    {"a.param", "7767517\n75 83\n", 14, "a.param: ncnn"},
    {"a.cfg", "[net]\n", 6, "a.cfg: the layers of a Darknet model"},
    {"model.json", "{\"format\": \"graph-model\", ", 26, "model.json: TensorFlow.js"},
    {"model.json", "{\"format\": \"other\", ", 20, NULL},
    {"a.llamafile", "MZqFpD='", 8, "a.llamafile: a llamafile"},
    {"a.mar", "PK\3\4\0", 5, "a.mar: a model packed by TorchServe"},
    {"a.weights", "\0\0\0\0\2\0\0\0\5\0\0\0\0\0\0\0", 16, NULL},
    {"m.part1of2.gguf", "x", 1, NULL},
    {"m-00001-of-00002.gguf", "x", 1, NULL},
};

static void test_contents(void)
{
    for (size_t i = 0; i < sizeof contents / sizeof *contents; i++) {
        struct error error = {""};
        const struct input input = file_of(contents[i].name, contents[i].head, contents[i].length);
        const char *what = contents[i].what;
        CHECK_NAMED(unread_check_content(&input, &error) == (what == NULL), what ? what : "nothing");
        CHECK_NAMED(what != NULL ? text_starts_with(error.message, what) : *error.message == '\0', what ? what : "");
    }
}

static void test_texts(void)
{
    static const char sixteen[] = "Invalid username", binary[] = "Invalid username\x80";
    struct error error = {""};
    struct input input = file_of("a", sixteen, 16);
    CHECK(!unread_check_text(&input, &error));
    CHECK_TEXT(error.message, "a: a text file, not a checkpoint: it starts with 'Invalid username'");
    input = file_of("config.json", sixteen, 16);
    CHECK(!unread_check_text(&input, &error));
    CHECK_TEXT(error.message, "config.json: a text file, not a checkpoint; name its directory if that is a model");
    input = file_of("a", sixteen, 15);
    CHECK(unread_check_text(&input, &error));
    input = file_of("a", binary, 17);
    CHECK(unread_check_text(&input, &error));
    input = file_of("a", "one\ttwo\r\nthree four", 19);
    CHECK(!unread_check_text(&input, &error));
}

/* Empty files with a blank between them, a directory named last, and what is said of it; NULL: the file alone. */
static const struct {
    const char *files, *directory, *message;
} explained[] = {
    {"d/", "d", "no checkpoint that wfs can read in this directory; it is empty"},
    {"d/model_index.json", "d", "a pipeline (model_index.json) whose models are missing"},
    {"d/a d/b.tflite", "d",
     "no checkpoint that wfs can read in this directory; b.tflite is a TensorFlow Lite model; name the file"},
    {"d/a", "d", "no checkpoint that wfs can read in this directory"},
    {"d/config.json", "d",
     "no checkpoint that wfs can read in this directory, only its config.json; 'hf download ORG/NAME' fetches complete "
     "models"},
    {"d/x/model.gguf d/y/z d/z/a.safetensors d/.h/b.gguf", "d",
     "no checkpoint that wfs can read in this directory; name one of its directories, or show all with -o library: x, "
     "z"},
    {"d/acme/.h/a.gguf d/acme/one/a.gguf d/acme/two/a.gguf d/b/c d/b/x/y/a.gguf", "d",
     "no checkpoint that wfs can read in this directory; name one of its directories, or show all with -o library: "
     "acme/one, acme/two"},
    {"d/x/weights.npz d/y/data.bin d/z/array.npy d/torch/pytorch_model.bin", "d",
     "no checkpoint that wfs can read in this directory; name one of its directories, or show all with -o library: "
     "torch, x"},
    {"d/a.pte", "d",
     "no checkpoint that wfs can read in this directory; a.pte is an ExecuTorch program, which wfs does not read; use "
     "the model it was exported from"},
    {"d/x/.zarray d/x/0.0", "d",
     "no checkpoint that wfs can read in this directory; x/.zarray is an array of zarr, which wfs does not read; save "
     "it "
     "as safetensors"},
    {"d/config.json d/pile.what", "d", "no checkpoint that wfs can read in this directory"},
    {"d/mp_rank_00/x d/mp_rank_01/x", "d",
     "no checkpoint that wfs can read in this directory; mp_rank_00 is one rank of a Megatron checkpoint; name it if "
     "it "
     "is the only one, or join the ranks with Megatron's converter"},
    {"d/params_shard_0.bin d/tokenizer.json", "d",
     "no checkpoint that wfs can read in this directory; params_shard_0.bin is MLC, which wfs does not read; use the "
     "checkpoint it was converted from"},
    {"d/x/a.nemo", "d", "no checkpoint that wfs can read in this directory; x/a.nemo is a NeMo archive; name the file"},
    {"d/config.json d/.cache/huggingface/download/x.incomplete", "d",
     "no checkpoint that wfs can read in this directory; unfinished download (*.incomplete in "
     ".cache/huggingface/download): let 'hf download' finish it"},
    {"d/x/config.json d/.cache/huggingface/download/x/y.incomplete", "d/x",
     "no checkpoint that wfs can read in this directory; unfinished download (*.incomplete in "
     ".cache/huggingface/download): let 'hf download' finish it"},
    {"d/models--org--name/refs/main", "d",
     "no checkpoint that wfs can read in this directory; it is a hub cache: name a model as ORG/NAME, "
     "or show all with -o library"},
};

static void test_directories(void)
{
    for (size_t i = 0; i < sizeof explained / sizeof *explained; i++) {
        char root[16], path[64], expected[400], copy[200];
        struct error error;
        struct arena *arena = arena_new();
        snprintf(root, sizeof root, "%zu", i);
        snprintf(copy, sizeof copy, "%s", explained[i].files);
        for (char *name = strtok(copy, " "); name != NULL; name = strtok(NULL, " ")) {
            char file[100];
            snprintf(file, sizeof file, "%s/%s", root, name);
            if (file[strlen(file) - 1] == '/')
                files_make_parents(file);
            else
                files_write_text(file, "");
        }
        snprintf(path, sizeof path, "%s/%s", root, explained[i].directory);
        struct input input = {
            .formats = readers, .path = path, .location = location_open(path, LOCATION_INSIDE, NULL, &error)};
        files_must(input.location != NULL && location_list(input.location, "", arena, &input.list, &error), path);
        snprintf(expected, sizeof expected, "%s: %s", path, explained[i].message);
        CHECK(!unread_explain(&input, &error));
        CHECK_TEXT(error.message, expected);
        location_close(input.location);
        arena_free(arena);
    }
}

static void test_files(void)
{
    struct error error;
    struct input input = file_of("model.litertlm", "abc", 3);
    CHECK(!unread_explain(&input, &error));
    CHECK_TEXT(error.message,
               "model.litertlm: LiteRT-LM, which wfs does not read; use the model it was converted from");
    input = file_of("model.bin", "\6\0\0\0\x20\0TransformerSpec", 22);
    CHECK(!unread_explain(&input, &error));
    CHECK_TEXT(error.message, "model.bin: not a checkpoint that wfs can read");
    static const struct location_entry beside[] = {{"net.bin"}, {"net.param"}, {"other.bin"}};
    input = file_of("net.bin", "abc", 3);
    input.list = (struct location_list){beside, 3};
    CHECK(!unread_explain(&input, &error));
    CHECK_TEXT(error.message, "net.bin: ncnn, which wfs does not read; use the model it was converted from");
    input = file_of("other.bin", "abc", 3);
    input.list = (struct location_list){beside, 3};
    CHECK(!unread_explain(&input, &error));
    CHECK_TEXT(error.message, "other.bin: not a checkpoint that wfs can read");
    input = file_of("yolo.weights", "\0\0\0\0\2\0\0\0\5\0\0\0\0\0\0\0", 16);
    CHECK(!unread_explain(&input, &error));
    CHECK_TEXT(error.message, "yolo.weights: Darknet, which wfs does not read; use the model it was converted from");
    input = file_of("shape_predictor.dat", "\1\1\x81\x0a\x81", 5);
    CHECK(!unread_explain(&input, &error));
    CHECK_TEXT(error.message, "shape_predictor.dat: an object that dlib saved, which only dlib reads");
    input = file_of("model.what", "abc", 3);
    CHECK(!unread_explain(&input, &error));
    CHECK_TEXT(error.message, "model.what: not a checkpoint that wfs can read");
}

/* An error about what is missing keeps its text where there is no half a download. */
static void test_half_downloads(void)
{
    static const struct location_entry none[] = {{"a"}, {"b.safetensors"}}, half[] = {{"a"}, {"b.safetensors.part"}};
    struct error error;
    struct input input = {.path = "nowhere", .formats = readers, .list = {none, 2}};
    error_set(&error, "c is missing");
    CHECK(!unread_add_half_download(&input, "c", &error));
    CHECK_TEXT(error.message, "c is missing");
    input.list.entries = half;
    CHECK(!unread_add_half_download(&input, "c", &error));
    CHECK_TEXT(error.message, "c is missing; unfinished download (b.safetensors.part): let it finish");
}

int main(void)
{
    files_begin();
    test_contents();
    test_texts();
    test_directories();
    test_files();
    test_half_downloads();
    files_remove();
    return check_done();
}
