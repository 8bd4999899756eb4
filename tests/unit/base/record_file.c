/* Records in a file: found under their key and scope alone, never damaged, by any number of writers. */
#include "base/record_file.h"

#include "tests/unit/check.h"
#include "tests/unit/files.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct record_file file, other_scope;

/* Returns the record number N: its bytes are that number, again and again. */
static struct record numbered(uint32_t number, uint32_t length)
{
    struct record record = {.length = length};
    memcpy(record.key, &number, sizeof number);
    for (uint32_t i = 0; i + sizeof number <= length; i += sizeof number)
        memcpy(record.bytes + i, &number, sizeof number);
    return record;
}

static bool keep(uint32_t number, uint32_t length)
{
    const struct record record = numbered(number, length);
    return record_write(&file, &record, record_way(&file, record.key));
}

static bool is_there(const struct record_file *in, uint32_t number, uint32_t length)
{
    struct record found = numbered(number, 0);
    const struct record wanted = numbered(number, length);
    return record_read(in, &found) && found.length == length &&
           memcmp(found.bytes, wanted.bytes, sizeof wanted.bytes) == 0;
}

static void empty_file(void)
{
    files_must(ftruncate(file.descriptor, 0) == 0, "an empty file");
}

static void test_records(void)
{
    empty_file();
    CHECK(!is_there(&file, 1, 8));
    CHECK(keep(1, 8) && is_there(&file, 1, 8));
    CHECK(keep(2, RECORD_BYTES) && is_there(&file, 2, RECORD_BYTES) && is_there(&file, 1, 8));
    CHECK_NAMED(!is_there(&other_scope, 1, 8), "another scope");
    CHECK_NAMED(keep(1, 400) && is_there(&file, 1, 400), "a record is replaced");
    CHECK_NAMED(keep(1, 0) && !is_there(&file, 1, 400) && is_there(&file, 2, RECORD_BYTES), "or removed");
    const struct record too_long = numbered(3, RECORD_BYTES + 1), record = numbered(3, 8);
    CHECK(!record_write(&file, &too_long, 0) && !record_write(&file, &record, RECORD_WAYS));
    const struct record_file none = {.descriptor = -1};
    CHECK(!record_write(&none, &record, 0) && !is_there(&none, 3, 8));
}

/* Every byte of the file counts, and so does its end. */
static void test_damage(void)
{
    struct stat status;
    empty_file();
    keep(1, 100);
    fstat(file.descriptor, &status);
    off_t place = status.st_size - (off_t)sizeof(struct record);
    bool found = false;
    for (size_t i = 0; i < sizeof(struct record); i++) {
        unsigned char byte;
        if (pread(file.descriptor, &byte, 1, place + (off_t)i) != 1)
            break;
        unsigned char changed = byte ^ 0x10;
        files_must(pwrite(file.descriptor, &changed, 1, place + (off_t)i) == 1, "a change");
        found |= is_there(&file, 1, 100);
        files_must(pwrite(file.descriptor, &byte, 1, place + (off_t)i) == 1, "no change");
    }
    CHECK_NAMED(!found, "a record with any byte changed is none");
    CHECK(is_there(&file, 1, 100));
    files_must(ftruncate(file.descriptor, status.st_size - 1) == 0, "a cut");
    CHECK_NAMED(!is_there(&file, 1, 100), "nor is one that is cut");
    CHECK(keep(1, 100) && is_there(&file, 1, 100));
}

/* A file of more records than it has places for loses some, and grows no further. */
static void test_many(void)
{
    enum { MANY = 4 * RECORD_WAYS * RECORD_SETS, FEW = RECORD_SETS };
    struct stat status;
    unsigned n_found = 0;
    empty_file();
    for (uint32_t i = 0; i < FEW; i++)
        keep(i, 64);
    for (uint32_t i = 0; i < FEW; i++)
        n_found += is_there(&file, i, 64);
    CHECK_NAMED(n_found == FEW, "a tenth of the places is used before records are lost");
    for (uint32_t i = 0; i < MANY; i++)
        keep(i, 64);
    CHECK(is_there(&file, MANY - 1, 64));
    fstat(file.descriptor, &status);
    CHECK(status.st_size <= RECORDS_SIZE);
}

/* Writes records until the parent has read enough. */
static void write_for_long(uint32_t seed)
{
    for (uint32_t i = 0; i < 20000; i++)
        keep(i * seed % 64, i * seed % 2 == 0 ? 40 : 440);
    _exit(0);
}

static void test_writers(void)
{
    enum { WRITERS = 3 };
    bool wrong = false;
    unsigned n_ended = 0;
    int status;
    empty_file();
    fflush(stdout);
    for (uint32_t i = 0; i < WRITERS; i++)
        if (fork() == 0)
            write_for_long(2 * i + 1);
    while (n_ended < WRITERS) {
        n_ended += waitpid(-1, &status, WNOHANG) > 0;
        for (uint32_t i = 0; i < 64; i++) {
            struct record found = numbered(i, 0);
            if (record_read(&file, &found))
                wrong |= !is_there(&file, i, 40) && !is_there(&file, i, 440) && record_read(&file, &found) &&
                         memcmp(found.bytes, &i, sizeof i) != 0;
        }
    }
    CHECK_NAMED(!wrong, "several processes write, and readers see whole records");
}

int main(void)
{
    files_begin();
    file.descriptor = open("records", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    files_must(file.descriptor >= 0, "a file");
    other_scope = file;
    other_scope.scope[31] = 1;
    test_records();
    test_damage();
    test_many();
    test_writers();
    files_remove();
    return check_done();
}
