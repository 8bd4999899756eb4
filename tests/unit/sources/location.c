/* Directories as locations: names, kinds, and what may be opened. */
#include "sources/location.h"

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
    files_must(mkfifo("model/fifo", 0644) == 0, "fifo");
}

/* The target of a link is not looked at: "folder" may be on a server that is gone. */
static void lists(const struct location *location)
{
    static const struct location_entry expected[] = {
        {"B", LOCATION_FILE},        {"a", LOCATION_FOLDER},     {"b", LOCATION_FILE},
        {"dangling", LOCATION_LINK}, {"device", LOCATION_LINK},  {"fifo", LOCATION_OTHER},
        {"folder", LOCATION_LINK},   {"leaving", LOCATION_LINK}, {"link", LOCATION_LINK},
    };
    enum { N = sizeof expected / sizeof *expected };
    struct arena *arena = arena_new();
    struct location_list list;
    struct error error;
    CHECK(location_list(location, "", arena, &list, &error) && list.count == N);
    for (size_t i = 0; i < N; i++)
        CHECK_NAMED(strcmp(list.entries[i].name, expected[i].name) == 0 && list.entries[i].kind == expected[i].kind,
                    expected[i].name);
    CHECK(location_list_has(&list, "link") && !location_list_has(&list, "lin"));
    CHECK(location_list(location, "a", arena, &list, &error) && list.count == 1);
    CHECK_TEXT(list.entries[0].name, "inner");
    CHECK(!location_list(location, "folder", arena, &list, &error));
    CHECK_TEXT(error.message, "Not a directory");
    CHECK(!location_list(location, "absent", arena, &list, &error));
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

/* What stat(2) says of a file, and what changes where it is replaced. */
static void identities(const struct location *location)
{
    static const char *const nothing[] = {"dangling", "a", "folder", "device", "fifo", "absent"};
    struct source_identity found, again;
    struct stat status;
    bool inside;
    files_must(chmod("model/a/inner", 0640) == 0 && stat("model/a/inner", &status) == 0, "inner");
    CHECK(location_identify(location, "link", &found, &inside) && inside);
    CHECK(found.size == 5 && found.key[0] == status.st_dev && found.key[1] == status.st_ino &&
          found.mtime.tv_sec == status.st_mtim.tv_sec && found.mtime.tv_nsec == status.st_mtim.tv_nsec &&
          found.permissions == 0640 && found.group == status.st_gid);
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++)
        CHECK_NAMED(!location_identify(location, nothing[i], &again, &inside), nothing[i]);
    CHECK_NAMED(location_identify(location, "leaving", &again, &inside) && !inside &&
                    again.size == strlen("../outside"),
                "the link alone");
    files_write_text("model/new", "longer");
    files_must(rename("model/new", "model/b") == 0, "rename");
    CHECK(location_identify(location, "b", &again, &inside) && again.size == 6);
    files_write_text("model/new", "larger");
    files_must(rename("model/new", "model/b") == 0, "rename");
    CHECK(location_identify(location, "b", &found, &inside) && found.size == 6 && found.key[1] != again.key[1]);
}

static void opening(struct location *location)
{
    struct error error;
    char text[8] = "";
    struct source *inner = location_source(location, "a/inner", &error),
                  *link = location_source(location, "link", &error);
    CHECK(inner != NULL && link != NULL && source_same_file(inner, link) && strcmp(source_name(link), "link") == 0);
    CHECK(location_source(location, "leaving", &error) == NULL &&
          strstr(error.message, "leaving: a symbolic link to ") != NULL);
    CHECK(location_source(location, "dangling", &error) == NULL);
    CHECK_TEXT(error.message, "dangling: No such file or directory");
    CHECK(location_source(location, "a", &error) == NULL);
    CHECK_TEXT(error.message, "a: not a regular file");
    location_close(location);
    CHECK_NAMED(source_read(inner, 0, 5, text, &error) && strcmp(text, "inner") == 0, "a source outlives its location");
    source_close(inner);
    source_close(link);
}

static void folders(const struct location *location)
{
    struct error error;
    files_write_text("elsewhere/file", "x");
    files_link("model/folder-leaving", "../elsewhere");
    struct location *folder = location_folder(location, "folder", "folder", &error);
    struct source *inner = folder != NULL ? location_source(folder, "inner", &error) : NULL;
    CHECK_NAMED(inner != NULL, "a link that stays inside");
    source_close(inner);
    location_close(folder);
    CHECK(location_folder(location, "folder-leaving", "folder-leaving", &error) == NULL &&
          strstr(error.message, "folder-leaving: a symbolic link to ") != NULL);
    CHECK(location_folder(location, "b", "b", &error) == NULL);
    CHECK_TEXT(error.message, "b: not a directory");
    files_must(unlink("model/folder-leaving") == 0, "unlink");
}

/* The file that was named may be a link to anywhere; those beside it may not. */
static void named(void)
{
    struct error error;
    const char *file = "";
    struct location *location = location_open("model/leaving", LOCATION_INSIDE, &file, &error);
    CHECK_TEXT(file, "leaving");
    struct source *source = location_source(location, "leaving", &error);
    CHECK(source != NULL && source_size(source) == 1);
    source_close(source);
    files_link("model/leaving-too", "../outside");
    CHECK(location_source(location, "leaving-too", &error) == NULL);
    location_close(location);
    location = location_open("model", LOCATION_INSIDE, &file, &error);
    CHECK(location != NULL && file == NULL);
    location_close(location);
    source = location_open_file("model/leaving", &error);
    CHECK(source != NULL && strcmp(source_name(source), "model/leaving") == 0);
    source_close(source);
    CHECK(location_open_file("model", &error) == NULL);
    CHECK_TEXT(error.message, "model: not a regular file");
}

/* Opening a file by name takes no right to list its directory. */
static void unlisted(void)
{
    struct error error;
    files_must(chmod("model", 0111) == 0, "chmod");
    struct source *source = location_open_file("model/B", &error);
    CHECK(source != NULL);
    source_close(source);
    files_must(chmod("model", 0755) == 0, "chmod");
}

/* Links to files anywhere; nothing else changes. */
static void following(void)
{
    static const char *const refused[] = {"dangling", "a", "folder", "device", "absent"};
    struct error error;
    struct location *location = location_open("model", LOCATION_FOLLOW, NULL, &error);
    struct source *source = location_source(location, "leaving", &error);
    CHECK(source != NULL && strcmp(source_name(source), "leaving") == 0);
    source_close(source);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        CHECK_NAMED(location_source(location, refused[i], &error) == NULL, refused[i]);
    location_close(location);
}

int main(void)
{
    struct error error;
    files_begin();
    make_files();
    CHECK(location_open("absent", LOCATION_INSIDE, NULL, &error) == NULL);
    CHECK_TEXT(error.message, "absent: No such file or directory");
    CHECK(location_open("outside", LOCATION_INSIDE, NULL, &error) == NULL);
    CHECK_TEXT(error.message, "outside: Not a directory");
    location_close(NULL);
    struct location *location = location_open("model", LOCATION_INSIDE, NULL, &error);
    lists(location);
    kinds(location);
    identities(location);
    folders(location);
    opening(location);
    following();
    named();
    unlisted();
    files_remove();
    return check_done();
}
