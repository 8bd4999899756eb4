#include "formats/huggingface/hub_cache.h"

#include "formats/checkpoint.h"

#include "tests/unit/check.h"
#include "tests/unit/formats/readers_table.h"
#include "tests/unit/write_safetensors.h"

#define FOLDER "hub/models--org--a-model"

static const char header[] = "{\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}";
static const struct open_options usual = {.format = NULL};

static void write_snapshot(const char *folder, const char *revision)
{
    char path[256];
    snprintf(path, sizeof path, "%s/blobs/weights", folder);
    files_write_safetensors(path, header, sizeof header - 1, 1);
    snprintf(path, sizeof path, "%s/blobs/config", folder);
    files_write_text(path, "{}");
    snprintf(path, sizeof path, "%s/snapshots/%s/model.safetensors", folder, revision);
    files_link(path, "../../blobs/weights");
    snprintf(path, sizeof path, "%s/snapshots/%s/config.json", folder, revision);
    files_link(path, "../../blobs/config");
    snprintf(path, sizeof path, "%s/snapshots/%s/1_Pooling/config.json", folder, revision);
    files_link(path, "../../../blobs/config");
}

/* "NAME: n side files" that are shown, or the error. */
static const char *outcome(const char *path)
{
    static char text[1100];
    struct error error = {""};
    const struct checkpoint *checkpoint = checkpoint_open(path, readers, &usual, &error);
    if (checkpoint == NULL)
        return strcpy(text, error.message);
    size_t n_shown = 0;
    for (size_t i = 0; i < checkpoint->n_side_files; i++)
        n_shown += !checkpoint->side_files[i].hidden;
    snprintf(text, sizeof text, "%s: %zu side files, %zu notes", checkpoint->model_name, n_shown,
             checkpoint_notes(checkpoint));
    checkpoint_close(checkpoint);
    return text;
}

/* What 'hf download' leaves where it is interrupted. */
static void interrupted(void)
{
    files_write_text("hub/models--org--begun/blobs/config", "{}");
    files_link("hub/models--org--begun/snapshots/1111/config.json", "../../blobs/config");
    CHECK(strstr(outcome("hub/models--org--begun/snapshots/1111"), "no checkpoint that wfs can read") != NULL);
    files_write_text("hub/models--org--begun/blobs/weights.incomplete", "half");
    CHECK(strstr(outcome("hub/models--org--begun/snapshots/1111"), "let 'hf download' finish it") != NULL);
}

static void folders(void)
{
    write_snapshot(FOLDER, "1111");
    CHECK_TEXT(outcome(FOLDER), "a-model: 2 side files, 0 notes");
    CHECK_TEXT(outcome(FOLDER "/"), "a-model: 2 side files, 0 notes");
    CHECK_TEXT(outcome(FOLDER "/snapshots/1111"), "a-model: 2 side files, 0 notes");
    CHECK_TEXT(outcome(FOLDER "/snapshots/1111/"), "a-model: 2 side files, 0 notes");
    CHECK_TEXT(outcome(FOLDER "/snapshots/1111/model.safetensors"), "a-model: 2 side files, 0 notes");
    write_snapshot(FOLDER, "2222");
    CHECK(strstr(outcome(FOLDER), "no refs/main, and 2 snapshots (1111, 2222 ...); name the directory of one") != NULL);
    files_write_text(FOLDER "/refs/main", "2222\n");
    CHECK_TEXT(outcome(FOLDER), "a-model: 2 side files, 0 notes");
    files_write_text(FOLDER "/refs/main", "3333");
    CHECK(strstr(outcome(FOLDER), "hub/models--org--a-model: no snapshot of the revision 3333") != NULL);
    files_write_text(FOLDER "/refs/main", "../../../etc");
    CHECK(strstr(outcome(FOLDER), "refs/main: contains no revision") != NULL);
    files_write(FOLDER "/refs/main", "\0\0\0\0", 4);
    CHECK(strstr(outcome(FOLDER), "refs/main: contains no revision") != NULL);
    files_write(FOLDER "/refs/main", "2222\0", 5);
    CHECK(strstr(outcome(FOLDER), "refs/main: contains no revision") != NULL);
    files_write_text(FOLDER "/refs/main", "");
    CHECK(strstr(outcome(FOLDER), "refs/main: contains no revision") != NULL);
    files_must(unlink(FOLDER "/refs/main") == 0, "unlink");
    files_link(FOLDER "/refs/main", "../../elsewhere");
    files_write_text("hub/elsewhere", "2222");
    CHECK(strstr(outcome(FOLDER), FOLDER ": refs/main: a symbolic link to ") != NULL);
    CHECK(strstr(outcome(FOLDER), "/hub/elsewhere, outside of the model's directory") != NULL);
    files_must(unlink(FOLDER "/refs/main") == 0, "unlink");
    files_link(FOLDER "/refs/main", "v2");
    files_write_text(FOLDER "/refs/v2", "2222");
    CHECK_TEXT(outcome(FOLDER), "a-model: 2 side files, 0 notes");
    files_must(unlink(FOLDER "/refs/main") == 0, "unlink");

    files_must(mkdir("hub/models--org--empty", 0755) == 0 && mkdir("hub/models--org--empty/snapshots", 0755) == 0,
               "empty");
    CHECK(strstr(outcome("hub/models--org--empty"), "contains no snapshot") != NULL);
    write_snapshot("hub/models--bare", "1");
    CHECK_TEXT(outcome("hub/models--bare"), "bare: 2 side files, 0 notes");
}

static void links_that_leave(void)
{
    files_write_text("hub/secret", "secret");
    write_snapshot("hub/models--org--evil", "1");
    files_link("hub/models--org--evil/snapshots/1/README.md", "../../../secret");
    files_link("hub/models--org--evil/snapshots/1/other.json", "../../../models--org--a-model/blobs/config");
    CHECK_TEXT(outcome("hub/models--org--evil"), "evil: 2 side files, 2 notes");
    remove("hub/models--org--evil/snapshots/1/model.safetensors");
    files_link("hub/models--org--evil/snapshots/1/model.safetensors", "../../../models--org--a-model/blobs/weights");
    CHECK(strstr(outcome("hub/models--org--evil"), "outside of the model's directory") != NULL);
}

/* A revision that is a link to a directory: to another one of the repository, and to one that it does not hold. */
static void linked_snapshots(void)
{
    const struct open_options following = {.follow_links = true};
    struct error error;
    write_snapshot("hub/models--org--linked", "1");
    write_snapshot("elsewhere", "1");
    files_link("hub/models--org--linked/snapshots/2", "1");
    files_write_text("hub/models--org--linked/refs/main", "2");
    CHECK_TEXT(outcome("hub/models--org--linked"), "linked: 2 side files, 0 notes");
    files_link("hub/models--org--linked/snapshots/3", "../../../elsewhere/snapshots/1");
    files_write_text("hub/models--org--linked/refs/main", "3");
    const char *refused = outcome("hub/models--org--linked");
    CHECK(strstr(refused, "hub/models--org--linked/snapshots/3: a symbolic link to ") != NULL &&
          strstr(refused, "/elsewhere/snapshots/1, outside of the model's directory; -o follow-links follows it"));
    const struct checkpoint *followed = checkpoint_open("hub/models--org--linked", readers, &following, &error);
    CHECK(followed != NULL && followed->n_sources == 1);
    checkpoint_close(followed);

    /* So is one of all snapshots. */
    files_link("hub/models--org--moved/snapshots", "../../elsewhere/snapshots");
    files_write_text("hub/models--org--moved/refs/main", "1");
    CHECK(strstr(outcome("hub/models--org--moved"), "moved/snapshots/1: a symbolic link to ") != NULL);
}

/* Blobs are for models--NAME/snapshots/REVISION and what is below, for no other directory called snapshots. */
static void layouts(void)
{
    static const char outside[] = "outside of the model's directory";
    write_snapshot("backup", "1");
    CHECK(strstr(outcome("backup/snapshots/1"), outside) != NULL);
    write_snapshot("datasets--org--a", "1");
    CHECK(strstr(outcome("datasets--org--a/snapshots/1"), outside) != NULL);
    write_snapshot("hub/models--org--b", "1");
    files_link("hub/models--org--b/snapshots/model.safetensors", "../blobs/weights");
    CHECK(strstr(outcome("hub/models--org--b/snapshots"), outside) != NULL);
    files_link("hub/models--org--b/snapshots/1/deep/model.safetensors", "../../../blobs/weights");
    CHECK_TEXT(outcome("hub/models--org--b/snapshots/1/deep"), "deep: 0 side files, 0 notes");
    files_link("hub/models--org--b/snapshots/1/device/model.safetensors", "/dev/zero");
    CHECK_TEXT(outcome("hub/models--org--b/snapshots/1/device"), "model.safetensors: not a regular file");
}

static void shorthand(void)
{
    char directory[256];
    unsetenv("HF_HOME");
    unsetenv("HUGGINGFACE_HUB_CACHE");
    unsetenv("XDG_CACHE_HOME");
    files_write_text(FOLDER "/refs/main", "1111");
    setenv("HF_HUB_CACHE", "hub", 1);
    CHECK_TEXT(outcome("org/a-model"), "a-model: 2 side files, 0 notes");
    CHECK_TEXT(outcome("org/a-model@2222"), "a-model: 2 side files, 0 notes");
    CHECK_TEXT(outcome("org/a-model@3333"), "hub/models--org--a-model: no snapshot of the revision 3333");
    files_write_text(FOLDER "/refs/pr/1", "2222");
    CHECK_TEXT(outcome("org/a-model@pr/1"), "a-model: 2 side files, 0 notes");
    CHECK_TEXT(outcome("org/a-model@../snapshots"), "org/a-model@../snapshots: No such file or directory");
    CHECK_TEXT(outcome("org/unknown"),
               "org/unknown: no such file or directory, and no hub/models--org--unknown in the "
               "hub cache; 'hf download org/unknown' fetches it, hf://org/unknown reads it from the hub");
    CHECK_TEXT(outcome("org/missing.gguf"), "org/missing.gguf: No such file or directory");
    write_snapshot("hub/models--alone", "1");
    CHECK_TEXT(outcome("alone"), "alone: 2 side files, 0 notes");
    CHECK_TEXT(outcome("nobody"), "nobody: no such file or directory, and no hub/models--nobody in the hub cache");
    CHECK_TEXT(outcome("nobody.bin"), "nobody.bin: No such file or directory");
    CHECK_TEXT(outcome("../unknown"), "../unknown: No such file or directory");
    CHECK_TEXT(outcome("org/x/unknown"), "org/x/unknown: No such file or directory");

    /* A real path of that name wins. */
    snprintf(directory, sizeof directory, "org/a-model/model.safetensors");
    files_write_safetensors(directory, header, sizeof header - 1, 1);
    CHECK_TEXT(outcome("org/a-model"), "a-model: 0 side files, 0 notes");
}

static void places(void)
{
    unsetenv("HF_HUB_CACHE");
    setenv("HF_HOME", "home", 1);
    write_snapshot("home/hub/models--org--in-home", "1");
    CHECK_TEXT(outcome("org/in-home"), "in-home: 2 side files, 0 notes");
    setenv("HF_HOME", "", 1);
    setenv("XDG_CACHE_HOME", "xdg", 1);
    write_snapshot("xdg/huggingface/hub/models--org--in-xdg", "1");
    CHECK_TEXT(outcome("org/in-xdg"), "in-xdg: 2 side files, 0 notes");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", files_directory, 1);
    write_snapshot(".cache/huggingface/hub/models--org--by-default", "1");
    CHECK_TEXT(outcome("org/by-default"), "by-default: 2 side files, 0 notes");
    setenv("HF_HOME", "~/home", 1);
    CHECK_TEXT(outcome("org/in-home"), "in-home: 2 side files, 0 notes");
    setenv("HF_HUB_CACHE", "hub", 1);
}

/* The converter takes the name of the directory as it is spelled: a link's own name. */
static void names(void)
{
    static const struct {
        const char *path, *name;
    } paths[] = {
        {"plain", "plain"},
        {"plain/", "plain"},
        {"plain//", "plain"},
        {"./plain/.", "plain"},
        {"plain/sub/..", "plain"},
        {"link", "link"},
        {"link/", "link"},
        {"link/.", "link"},
        {"link/sub", "sub"},
        {"to-snapshot", "to-snapshot"},
        {FOLDER "/snapshots/1111", "a-model"},
        {"/", "model"},
    };
    files_write_text("plain/sub/x", "");
    files_link("link", "plain");
    files_link("to-snapshot", FOLDER "/snapshots/1111");
    struct arena *arena = arena_new();
    bool is_snapshot;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const char *name = hub_cache_model_name(arena, paths[i].path, &is_snapshot);
        check_text_report(name, paths[i].name, __FILE__, __LINE__, paths[i].path);
        CHECK(is_snapshot == (strcmp(name, "a-model") == 0));
    }
    files_must(chdir("plain") == 0, "plain");
    CHECK_TEXT(hub_cache_model_name(arena, ".", &is_snapshot), "plain");
    CHECK_TEXT(hub_cache_model_name(arena, "./", &is_snapshot), "plain");
    arena_free(arena);
}

int main(void)
{
    files_begin();
    folders();
    interrupted();
    links_that_leave();
    linked_snapshots();
    layouts();
    shorthand();
    places();
    names();
    files_remove();
    return check_done();
}
