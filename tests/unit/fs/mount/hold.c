/* Holds: beside each other, and one that waits until nobody holds the directory. */
#include "fs/mount/mountpoint.h"

#include "tests/unit/check.h"
#include "tests/unit/files.h"

#include <errno.h>

int main(void)
{
    files_begin();
    files_write_text("directory/file", "");
    files_link("link", "directory");
    int first = hold_take("directory"), second = hold_take("directory");
    CHECK(first >= 0 && second >= 0);
    CHECK(hold_take_over("directory", 5) < 0 && errno == EWOULDBLOCK);
    close(first);
    CHECK(hold_take_over("directory", 0) < 0 && errno == EWOULDBLOCK);
    close(second);
    int taken_over = hold_take_over("directory", 0);
    CHECK(taken_over >= 0 && hold_take_over("directory", 0) < 0);
    CHECK(hold_is_of(taken_over, "directory") && !hold_is_of(taken_over, "link") && !hold_is_of(taken_over, "none"));
    CHECK(rename("directory", "moved") == 0 && mkdir("directory", 0777) == 0);
    CHECK_NAMED(!hold_is_of(taken_over, "directory") && hold_is_of(taken_over, "moved"),
                "a hold is on the directory, not on its name");
    close(taken_over);
    CHECK(hold_take("none") < 0 && errno == ENOENT);
    CHECK(hold_take("link") < 0 && hold_take("moved/file") < 0);
    files_remove();
    return check_done();
}
