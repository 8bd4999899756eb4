/* Directories as locations: names, kinds, and what may be opened. */
#include "formats/location.h"

#include "tests/unit/check.h"
#include "tests/unit/files.h"

static void make_files(void)
{
    files_write_text("outside", "x");
    files_write_text("model/b", "bb");
    files_write_text("model/a/inner", "inner");
    files_write_text("model/B", "x");
    files_link("model/link", "a/inner");
    files_link("model/leaving", "../outside");
    files_link("model/dangling", "nothing");
    files_link("model/folder", "a");
    files_link("model/device", "/dev/null");
}

static void names(const struct location *location)
{
    static const char *const expected[] = {"B", "a", "b", "dangling", "device", "folder", "leaving", "link"};
    struct arena *arena = arena_new();
    const char *const *names;
    size_t n_names;
    struct error error;
    CHECK(location_names(location, "", arena, &names, &n_names, &error) && n_names == 8);
    for (size_t i = 0; i < 8; i++)
        CHECK_TEXT(names[i], expected[i]);
    CHECK(location_names(location, "a", arena, &names, &n_names, &error) && n_names == 1);
    CHECK_TEXT(names[0], "inner");
    CHECK(!location_names(location, "folder", arena, &names, &n_names, &error));
    CHECK_TEXT(error.message, "Not a directory");
    CHECK(!location_names(location, "absent", arena, &names, &n_names, &error));
    CHECK_TEXT(error.message, "No such file or directory");
    arena_free(arena);
}

static void kinds(const struct location *location)
{
    static const struct {
        const char *path;
        enum location_kind kind;
    } rows[] = {
        {"b", LOCATION_FILE},
        {"link", LOCATION_FILE},
        {"dangling", LOCATION_FILE},
        {"leaving", LOCATION_FILE},
        {"a", LOCATION_FOLDER},
        {"a/inner", LOCATION_FILE},
        {"folder", LOCATION_LINKED_FOLDER},
        {"device", LOCATION_OTHER},
        {"absent", LOCATION_NOTHING},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_NAMED(location_kind(location, rows[i].path) == rows[i].kind, rows[i].path);
}

static void opening(struct location *location)
{
    static const char *const nothing[] = {"dangling", "a", "folder", "device", "absent"};
    struct error error;
    char text[8] = "";
    struct source *inner = location_open(location, "a/inner", &error), *link = location_open(location, "link", &error);
    CHECK(inner != NULL && link != NULL && source_same_file(inner, link) && strcmp(source_name(link), "link") == 0);
    CHECK(location_open(location, "leaving", &error) == NULL &&
          strstr(error.message, "leaving: a symbolic link to ") != NULL);
    CHECK(location_open(location, "dangling", &error) == NULL);
    CHECK_TEXT(error.message, "dangling: No such file or directory");
    bool inside;
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++)
        CHECK_NAMED(location_unopened(location, nothing[i], "?", &inside) == NULL, nothing[i]);
    struct source *unopened = location_unopened(location, "leaving", "?", &inside);
    CHECK_NAMED(unopened != NULL && !inside && source_size(unopened) == strlen("../outside"), "the link alone");
    source_close(unopened);
    unopened = location_unopened(location, "link", "link: the reason", &inside);
    CHECK(unopened != NULL && inside && source_size(unopened) == 5 && source_same_file(inner, unopened));
    CHECK(!source_read(unopened, 1, 2, text, &error));
    CHECK_TEXT(error.message, "link: the reason");
    source_close(unopened);
    CHECK(location_open(location, "a", &error) == NULL);
    CHECK_TEXT(error.message, "a: not a regular file");
    location_close(location);
    CHECK_NAMED(source_read(inner, 0, 5, text, &error) && strcmp(text, "inner") == 0, "a source outlives its location");
    source_close(inner);
    source_close(link);
}

int main(void)
{
    struct error error;
    files_begin();
    make_files();
    CHECK(location_of_directory("absent", &error) == NULL);
    CHECK_TEXT(error.message, "No such file or directory");
    CHECK(location_of_directory("outside", &error) == NULL);
    CHECK_TEXT(error.message, "Not a directory");
    location_close(NULL);
    struct location *location = location_of_directory("model", &error);
    names(location);
    kinds(location);
    opening(location);
    files_remove();
    return check_done();
}
