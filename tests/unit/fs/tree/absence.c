/* Which note explains that a path is absent: by its beginning, by the files that it names, by its directory. */
#include "fs/tree/absence.h"

#include "tests/unit/check.h"
#include "tests/unit/files.h"

static const char *const notes[] = {
    "model.gguf and gguf/ are left out: no tokenizer",
    "gguf/model-Q4_K_M.gguf: a row is too short",
    "mmproj.gguf and gguf/mmproj-* are left out: an unknown tower",
    "hf/: BF16, rounded",
};

static const struct {
    const char *path;
    bool of_directory;
    int note; /* -1: none */
} cases[] = {
    {"model.gguf", false, 0},
    {"gguf/model-Q4_K_M.gguf", false, 1},
    {"gguf/mmproj-F16.gguf", false, 2},
    {"mmproj.gguf", false, 2},
    {"gguf/model-Q8_0.gguf", true, 0},
    {"gguf/model-Q8_0.gguf", false, -1},
    {"model.ggu", false, -1}, /* the beginning of the path in a note is not the path */
    {"model", true, -1},
    {"hf/config.json", true, 3},
    {"f/config.json", true, -1}, /* nor is the end of a name the name */
    {"tensors/a/q4_0", true, -1},
};

int main(void)
{
    static const struct open_options options = {0};
    static const char header[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}";
    struct error error = {""};
    files_begin();
    files_write_safetensors("a.safetensors", header, strlen(header), 1);
    struct checkpoint *checkpoint = checkpoint_open("a.safetensors", &options, &error);
    if (!CHECK(checkpoint != NULL))
        return check_done();
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        checkpoint_note(checkpoint, "%s", notes[i]);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *note = cases[i].of_directory ? absence_of_directory(checkpoint, cases[i].path)
                                                 : absence_in_notes(checkpoint, cases[i].path);
        bool right = cases[i].note < 0 ? note == NULL : note != NULL && strcmp(note, notes[cases[i].note]) == 0;
        CHECK_NAMED(right, cases[i].path);
    }
    checkpoint_close(checkpoint);
    files_remove();
    return check_done();
}
