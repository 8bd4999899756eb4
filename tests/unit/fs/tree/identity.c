/* Identities: equal for equal inputs, request and path; other ones otherwise. */
#include "fs/tree/identity.h"
#include "models/formats.h"

#include "formats/documents.h"

#include "tests/unit/check.h"
#include "tests/unit/write_safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>

static const char header[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";

struct digest {
    char hex[SHA256_HEX + 1];
};

static struct digest identity_in(const char *directory, const char *request, const char *path)
{
    struct error error;
    struct digest digest;
    struct arena *arena = arena_new();
    const struct checkpoint *checkpoint = checkpoint_open(directory, formats, &(struct open_options){0}, &error);
    files_must(checkpoint != NULL, directory);
    struct origin origin = origin_of_model(checkpoint, arena);
    file_identity(&origin, checkpoint->model_name, request, path, digest.hex);
    checkpoint_close(checkpoint);
    arena_free(arena);
    return digest;
}

static struct digest identity_of(const char *request, const char *path)
{
    return identity_in("model", request, path);
}

static void set_time(const char *path, time_t seconds)
{
    const struct timespec times[2] = {{0, UTIME_OMIT}, {seconds, 0}};
    files_must(utimensat(AT_FDCWD, path, times, 0) == 0, path);
}

static void test_identity(void)
{
    struct digest first = identity_of("lora=a\n", "model.gguf");
    CHECK(strlen(first.hex) == SHA256_HEX);
    CHECK_TEXT(identity_of("lora=a\n", "model.gguf").hex, first.hex);
    CHECK(strcmp(identity_of("lora=b\n", "model.gguf").hex, first.hex) != 0);
    CHECK(strcmp(identity_of(NULL, "model.gguf").hex, first.hex) != 0);
    CHECK(strcmp(identity_of("lora=a\n", "gguf/model-F16.gguf").hex, first.hex) != 0);
    files_must(rename("model", "renamed") == 0, "renamed");
    CHECK_NAMED(strcmp(identity_in("renamed", "lora=a\n", "model.gguf").hex, first.hex) != 0,
                "another name of the directory, which files contain");
    files_must(rename("renamed", "model") == 0, "model");
    set_time("model/notes.txt", 1600000000);
    CHECK_NAMED(strcmp(identity_of("lora=a\n", "model.gguf").hex, first.hex) == 0, "a file that nothing is made from");
    set_time("model/config.json", 1600000000);
    CHECK_NAMED(strcmp(identity_of("lora=a\n", "model.gguf").hex, first.hex) != 0, "an input that changed");
}

static void test_declared(void)
{
    static const char *const names[] = {"config.json", "1_Pooling/config.json", "tokenizer.model.v7m1",
                                        "README.md",   "hy.tiktoken",           "additional_chat_templates/a.jinja",
                                        "spiece.model"};
    static const char *const others[] = {"notes.txt", "a/b/config.json", "config.json.orig", "trainer_state.json", ""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK_NAMED(document_is_declared(names[i]), names[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        CHECK_NAMED(!document_is_declared(others[i]), others[i]);
    CHECK(document_says_packing("config.json") && !document_says_packing("tokenizer.json"));
}

int main(void)
{
    files_begin();
    files_must(mkdir("model", 0700) == 0, "model");
    files_write_safetensors("model/model.safetensors", header, strlen(header), 4);
    files_write("model/config.json", "{}", 2);
    files_write("model/notes.txt", "notes", 5);
    test_identity();
    test_declared();
    files_remove();
    return check_done();
}
