/* Removing originals: only what was scanned, and nothing that a link leads to. */
#include "fs/cli/pack/packing_written.h"

#include "tests/unit/check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static const struct stat nothing;

static void write_file(const char *path)
{
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    CHECK(fd >= 0 && write(fd, "x", 1) == 1);
    close(fd);
}

static struct removed remove_all(const struct scan *scan)
{
    struct removed removed = {0};
    replace_remove(scan, &removed);
    return removed;
}

static void make_tree(struct scan *scan)
{
    struct error error;
    CHECK(mkdir("tree", 0755) == 0 && mkdir("tree/d", 0755) == 0 && mkdir("tree/d/e", 0755) == 0);
    write_file("tree/d/e/f");
    write_file("tree/d/g");
    CHECK(scan_source(scan, "tree", "tree", &nothing, &error));
}

static void removes_what_was_scanned(void)
{
    struct scan scan;
    make_tree(&scan);
    const struct removed removed = remove_all(&scan);
    CHECK(removed.n_files == 2 && removed.n_bytes == 2 && removed.n_kept == 0 && access("tree", F_OK) != 0);
    scan_free(&scan);
}

/* A folder that has moved elsewhere, with the same files in it. */
static void follows_no_new_link(void)
{
    struct scan scan;
    make_tree(&scan);
    CHECK(rename("tree/d", "elsewhere") == 0 && symlink("../elsewhere", "tree/d") == 0);
    const struct removed removed = remove_all(&scan);
    CHECK(removed.n_files == 0 && removed.n_kept == 4);
    CHECK(access("elsewhere/e/f", F_OK) == 0 && access("elsewhere/g", F_OK) == 0 && access("tree/d", F_OK) == 0);
    scan_free(&scan);
    CHECK(system("rm -r tree elsewhere") == 0);
}

static void keeps_other_files_of_the_name(void)
{
    struct scan scan;
    make_tree(&scan);
    CHECK(rename("tree/d/g", "g") == 0);
    write_file("tree/d/g");
    const struct removed removed = remove_all(&scan);
    CHECK(removed.n_files == 1 && removed.n_kept == 1 && access("tree/d/g", F_OK) == 0);
    scan_free(&scan);
    CHECK(system("rm -r tree g") == 0);
}

static void keeps_a_source_that_a_link_names(void)
{
    struct scan scan;
    struct error error;
    write_file("file");
    CHECK(symlink("file", "link") == 0 && scan_source(&scan, "./link", "link", &nothing, &error));
    const struct removed removed = remove_all(&scan);
    CHECK(removed.n_files == 0 && removed.n_kept == 1 && access("link", F_OK) == 0);
    scan_free(&scan);
    CHECK(scan_source(&scan, "./file", "file", &nothing, &error) && remove_all(&scan).n_files == 1);
    CHECK(access("file", F_OK) != 0);
    scan_free(&scan);
    CHECK(unlink("link") == 0);
}

int main(void)
{
    char folder[] = "/tmp/wfs-replace-XXXXXX";
    if (mkdtemp(folder) == NULL || chdir(folder) != 0)
        return EXIT_FAILURE;
    removes_what_was_scanned();
    follows_no_new_link();
    keeps_other_files_of_the_name();
    keeps_a_source_that_a_link_names();
    CHECK(rmdir(folder) == 0);
    return check_done();
}
