/* Lists of files: what is taken is written again, and what could lead out of its folder is refused. */
#include "sources/archive/files.h"

#include "sources/source_kinds.h"
#include "tests/unit/check.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HASH                "\"sha256\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\""
#define REST                "\"mode\":420,\"mtime\":[1,2]"
#define ROOT                "{\"path\":\"\",\"kind\":\"folder\"," REST "}\n"
#define FILE_OF(path, size) "{\"path\":\"" path "\",\"kind\":\"file\"," REST ",\"size\":" size "," HASH "}\n"
#define FOLDER(path)        "{\"path\":\"" path "\",\"kind\":\"folder\"," REST "}\n"

static struct source *source_of(const struct buffer *text)
{
    struct buffer frame = {0};
    struct error error;
    lines_append_frame(text, &frame);
    int fd = memfd_create("list", MFD_CLOEXEC);
    CHECK(fd >= 0 && write(fd, frame.bytes, frame.length) == (ssize_t)frame.length);
    struct source *source = source_file_open(fd, "list", &error);
    CHECK(source != NULL);
    close(fd);
    buffer_free(&frame);
    return source;
}

static struct files *read_text(const struct buffer *text, struct error *error)
{
    struct source *source = source_of(text);
    struct files *files = files_read(source, NULL, 2, error);
    source_close(source);
    return files;
}

static void check_refused(const char *text, const char *reason)
{
    struct buffer buffer = {0};
    struct error error = {""};
    buffer_append_text(&buffer, text);
    CHECK(read_text(&buffer, &error) == NULL);
    if (strstr(error.message, reason) == NULL)
        fprintf(stderr, "%s\nis not refused as '%s', but: %s\n", text, reason, error.message);
    CHECK(strstr(error.message, reason) != NULL);
    buffer_free(&buffer);
}

static void refuses(void)
{
    static const char link[] = "{\"path\":\"l\",\"kind\":\"link\"," REST ",\"target\":\"/etc\"}\n";
    char text[1000];
    check_refused("", "an empty list");
    check_refused(FOLDER("a"), "the first path is 'a'");
    check_refused(ROOT FILE_OF("../x", "0"), "'../x' leads out of its folder");
    check_refused(ROOT FILE_OF("/x", "0"), "leads out of its folder");
    check_refused(ROOT FOLDER("a") FILE_OF("a/../b", "0"), "leads out of its folder");
    check_refused(ROOT FOLDER("a") FILE_OF("a/", "0"), "leads out of its folder");
    check_refused(ROOT FILE_OF("a/b", "0"), "'a/b' is in no folder of the list");
    check_refused(ROOT FILE_OF("b", "0") FILE_OF("a", "0"), "'a' does not come after 'b'");
    check_refused(ROOT FILE_OF("a", "0") FILE_OF("a", "0"), "'a' does not come after 'a'");
    check_refused(ROOT FILE_OF("a", "0") FILE_OF("a/b", "0"), "in no folder of the list");
    snprintf(text, sizeof text, "%s%s%s", ROOT, link, FILE_OF("l/passwd", "0"));
    check_refused(text, "in no folder of the list");
    check_refused(ROOT FILE_OF("a", "9223372036854775808"), "no valid size");
    check_refused(ROOT FILE_OF("a", "4"), "the segments of 'a' have 0 bytes, and the file 4");
    check_refused(ROOT FILE_OF("a", "4") "[5]\n", "a segment of 5 bytes, and 'a' lacks 4");
    check_refused(ROOT FILE_OF("a", "4") "[4]\n[0,0,0,1]\n", "'a' lacks 0");
    check_refused(ROOT FILE_OF("a", "4") "[2,0,0,4]\n", "a segment of pack 2 of 2");
    check_refused(ROOT FILE_OF("a", "4") "[0,0,18446744073709551615,4]\n", "a segment of pack");
    check_refused(ROOT "[4]\n", "a segment of no file");
    check_refused(ROOT "{\"path\":\"a\",\"kind\":\"pipe\"," REST "}\n", "neither a folder nor a file nor a link");
    check_refused(ROOT "{\"path\":\"a\\u0000b\",\"kind\":\"folder\"," REST "}\n", "has a NUL");
    check_refused(ROOT "x\n", "line 2 of its list");
    check_refused(ROOT "{}", "ends within a line");
}

/* A frame of some KB that expands to a list of millions of lines is refused before it has taken much memory. */
static void refuses_bomb(void)
{
    struct buffer text = {0};
    struct error error;
    buffer_append_text(&text, ROOT FILE_OF("a", "3000000"));
    for (int i = 0; i < 1500000; i++)
        buffer_append_text(&text, "[1]\n");
    CHECK(read_text(&text, &error) == NULL);
    CHECK(strstr(error.message, "more than a list of its size may have") != NULL);
    buffer_free(&text);
}

/* What is taken is written as it was. */
static void keeps(void)
{
    static const char list[] = ROOT FILE_OF("a", "10") "[0,1,0,4]\n[2]\n[1,7,5,4]\n" FOLDER("a-b") FOLDER("b")
        FILE_OF("b/c", "0") "{\"path\":\"d\",\"kind\":\"file\"," REST ",\"size\":10," HASH ",\"same\":1}\n"
                            "{\"path64\":\"/w==\",\"kind\":\"link\"," REST ",\"target64\":\"gA==\"}\n";
    struct buffer text = {0}, frame = {0}, again = {0};
    struct error error = {""};
    buffer_append_text(&text, list);
    struct files *files = read_text(&text, &error);
    CHECK(files != NULL && files->n_entries == 7 && files->n_segments == 3);
    CHECK(strcmp(files->entries[6].path, "\xff") == 0 && strcmp(files->entries[6].target, "\x80") == 0);
    CHECK(files->entries[5].same == 1 && files->entries[5].n_segments == 3);
    lines_append_frame(&text, &frame);
    files_append_frame(files, &again);
    CHECK(frame.length == again.length && memcmp(frame.bytes, again.bytes, frame.length) == 0);
    files_free(files);
    buffer_free(&text);
    buffer_free(&frame);
    buffer_free(&again);
}

int main(void)
{
    refuses();
    refuses_bomb();
    keeps();
    return check_done();
}
