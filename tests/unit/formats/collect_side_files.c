#include "formats/checkpoint.h"
#include "formats/format.h"

#include "tests/unit/check.h"
#include "tests/unit/formats/readers_table.h"
#include "tests/unit/write_safetensors.h"

static const struct open_options usual = {.format = NULL};
static const char header[] = "{}";

static void write_weights(const char *path)
{
    files_write_safetensors(path, header, strlen(header), 0);
}

/* The names of the side files, separated by spaces. */
static const char *side_files(const struct checkpoint *checkpoint)
{
    static char text[4096];
    text[0] = '\0';
    for (size_t i = 0; i < checkpoint->n_side_files; i++)
        if (!checkpoint->side_files[i].hidden)
            sprintf(text + strlen(text), "%s%s", *text ? " " : "", checkpoint->side_files[i].name);
    return text;
}

static const char *reason(const struct checkpoint *checkpoint, const char *name)
{
    for (size_t i = 0; i < checkpoint->n_hidden; i++)
        if (strcmp(checkpoint->hidden[i].name, name) == 0)
            return checkpoint->hidden[i].reason;
    return "not hidden";
}

/* Files of these names, up to a NULL. */
static void write_all(const char *directory, const char *const *names, const char *text)
{
    for (; *names != NULL; names++) {
        char path[64];
        snprintf(path, sizeof path, "%s/%s", directory, *names);
        files_write_text(path, text);
    }
}

static const char *const other_weights[] = {
    "extra.bin",     "rust_model.ot",       "flax_model.msgpack", "tf_model.h5", "model.onnx", "model.onnx_data",
    "model-q4.gguf", "consolidated.00.pth", "optimizer.pt",       "UPPER.BIN",   NULL};

static void make_directory(void)
{
    static const char *const shown[] = {
        "config.json", "tokenizer.model",       "README.md",       ".gitattributes", "merges.txt",
        "a/b/c/deep",  "1_Pooling/config.json", "1_Pooling-notes", "with space",     NULL};
    write_weights("model/model.safetensors");
    write_all("model", other_weights, "x");
    write_all("model", shown, "text");
    files_write_text("model/pytorch_model.bin.index.json", "{}");
    files_write_text("model/original/consolidated.01.pth", "x");
    files_write_text("model/.git/config", "x");
    files_write_text("model/a/b/c/d/too-deep", "x");
    files_write_text("outside", "x");
    files_link("model/inside.json", "config.json");
    files_link("model/leaving.json", "../outside");
    files_link("model/1_Pooling/leaving.json", "../../outside");
    files_link("model/1_Pooling/inside.json", "../config.json");
    files_link("model/dangling", "nothing");
    files_link("model/link-to-directory", "1_Pooling");
    files_link("model/elsewhere", "/");
    files_must(mkfifo("model/fifo", 0644) == 0, "fifo");
}

static void directory(void)
{
    struct error error = {""};
    make_directory();
    const struct checkpoint *checkpoint = checkpoint_open("model", readers, &usual, &error);
    if (!CHECK(checkpoint != NULL))
        return;
    CHECK_TEXT(side_files(checkpoint),
               ".gitattributes 1_Pooling-notes 1_Pooling/config.json 1_Pooling/inside.json README.md "
               "a/b/c/deep config.json inside.json merges.txt tokenizer.model with space");
    for (const char *const *name = other_weights; *name != NULL; name++)
        check_text_report(reason(checkpoint, *name), "weights", __FILE__, __LINE__, *name);
    CHECK_TEXT(reason(checkpoint, "model.safetensors"), "weights");
    CHECK_TEXT(reason(checkpoint, "original/consolidated.01.pth"), "weights");
    CHECK_TEXT(reason(checkpoint, "pytorch_model.bin.index.json"), "list of shards");
    CHECK_TEXT(reason(checkpoint, ".git"), "hidden directory");
    CHECK_TEXT(reason(checkpoint, "a/b/c/d"), "nested too deep");
    CHECK_TEXT(reason(checkpoint, "link-to-directory"), "symbolic link to a directory");
    CHECK_TEXT(reason(checkpoint, "elsewhere"), "symbolic link to a directory");
    CHECK_TEXT(reason(checkpoint, "fifo"), "not a regular file");
    CHECK_TEXT(reason(checkpoint, "dangling"), "dangling: No such file or directory");
    CHECK(strstr(reason(checkpoint, "leaving.json"), "/outside, outside of the model's directory") != NULL);
    CHECK(strstr(reason(checkpoint, "1_Pooling/leaving.json"), "/outside, outside of the model's directory") != NULL);
    CHECK(checkpoint_notes(checkpoint) == 3);

    const struct side_file *leaving = checkpoint_side_file(checkpoint, "leaving.json");
    char byte;
    CHECK(leaving != NULL && !source_read(leaving->source, 0, 1, &byte, &error));
    CHECK_TEXT(error.message, reason(checkpoint, "leaving.json"));
    CHECK(checkpoint_side_file(checkpoint, "dangling") == NULL);
    const struct side_file *config = checkpoint_side_file(checkpoint, "1_Pooling/config.json");
    char text[5] = "";
    CHECK(config != NULL && source_read(config->source, 0, 4, text, &error) && strcmp(text, "text") == 0);
    CHECK(checkpoint_side_file(checkpoint, "1_Pooling") == NULL);
    checkpoint_close(checkpoint);
}

static void make_home(void)
{
    static const char *const strangers[] = {"notes.txt",
                                            "photos/1.jpg",
                                            ".netrc",
                                            ".config.json",
                                            "photos/config.json",
                                            "other.pt",
                                            "config.json~",
                                            "my config.json",
                                            "1_Pooling/notes.txt",
                                            "1_Pooling/a/config.json",
                                            ".hidden_Pooling/config.json",
                                            "additional_chat_templates/.a.jinja",
                                            "vocab.json.d/x",
                                            NULL};
    static const char *const own[] = {"README.md",
                                      "merges.txt",
                                      "vocab.json",
                                      "vocab.txt",
                                      "LICENSE.txt",
                                      "chat_template.jinja",
                                      "1_Pooling/config.json",
                                      "additional_chat_templates/tools.jinja",
                                      "modules.json",
                                      "spiece.model",
                                      "qwen.tiktoken",
                                      NULL};
    write_weights("home/downloaded");
    write_all("home", strangers, "x");
    write_all("home", own, "x");
    files_link("home/elsewhere_Pooling", "../model/1_Pooling");
}

/* A file may lie anywhere: what lies beside it is shown only where it is known to be a model's, and nothing else is
 * named. */
static void single_file(void)
{
    struct error error = {""};
    make_home();
    const struct checkpoint *checkpoint = checkpoint_open("home/downloaded", readers, &usual, &error);
    CHECK_TEXT(side_files(checkpoint), "");
    CHECK(checkpoint->n_hidden == 0);
    checkpoint_close(checkpoint);

    files_write_text("home/tokenizer.json", "{}");
    files_link("home/config.json", "../outside");
    checkpoint = checkpoint_open("home/downloaded", readers, &usual, &error);
    CHECK_TEXT(side_files(checkpoint),
               "1_Pooling/config.json LICENSE.txt README.md additional_chat_templates/tools.jinja "
               "chat_template.jinja merges.txt modules.json qwen.tiktoken spiece.model tokenizer.json "
               "vocab.json vocab.txt");
    CHECK(checkpoint->n_hidden == 2);
    CHECK_TEXT(reason(checkpoint, "elsewhere_Pooling"), "symbolic link to a directory");
    CHECK(strstr(reason(checkpoint, "config.json"), "/outside, outside of the model's directory") != NULL);
    checkpoint_close(checkpoint);
}

/* The user names the file, so it may be a link to anywhere. */
static void linked_file(void)
{
    struct error error = {""};
    files_link("home/linked.safetensors", "../model/model.safetensors");
    const struct checkpoint *checkpoint = checkpoint_open("home/linked.safetensors", readers, &usual, &error);
    CHECK(checkpoint != NULL);
    CHECK_TEXT(checkpoint->model_name, "home");
    checkpoint_close(checkpoint);
    files_must(remove("home/downloaded") == 0, "home/downloaded");
    CHECK(checkpoint_open("home", readers, &usual, &error) == NULL);
    CHECK(strstr(error.message, "linked.safetensors: a symbolic link to ") == error.message);
}

static void many_files(size_t n_files, bool all)
{
    struct error error = {""};
    if (!files_may_be_open(n_files)) {
        check_skip("many files", "the hard limit of open files is lower");
        return;
    }
    write_weights("many/model.safetensors");
    for (size_t i = 0; i < n_files - 1; i++) {
        char path[64];
        snprintf(path, sizeof path, "many/%04zu", i);
        files_write_text(path, "");
    }
    const struct checkpoint *checkpoint = checkpoint_open("many", readers, &usual, &error);
    CHECK(checkpoint != NULL && checkpoint->n_side_files + checkpoint->n_hidden == 4096);
    CHECK(checkpoint_notes(checkpoint) == (all ? 0 : 1));
    checkpoint_close(checkpoint);
}

/* A file that is opened with the names in its folder does not list the folder again. */
static void given_names(void)
{
    static const struct location_entry entries[] = {{"README.md", LOCATION_FILE}, {"config.json", LOCATION_FILE}};
    struct arena *arena = arena_new();
    const struct folder_names names = folder_names_of(&(struct location_list){entries, 2}, arena);
    const struct open_options options = {.names = &names};
    struct error error;
    write_weights("given/a.safetensors");
    files_write_text("given/config.json", "{}");
    files_write_text("given/tokenizer.json", "{}");
    const struct checkpoint *checkpoint = checkpoint_open("given/a.safetensors", readers, &options, &error);
    if (CHECK(checkpoint != NULL)) {
        CHECK_TEXT(side_files(checkpoint), "config.json");
        CHECK(strstr(reason(checkpoint, "README.md"), "No such file") != NULL);
    }
    checkpoint_close(checkpoint);
    arena_free(arena);
}

int main(void)
{
    files_begin();
    directory();
    single_file();
    linked_file();
    many_files(4096, true);
    many_files(4097, false);
    given_names();
    files_remove();
    return check_done();
}
