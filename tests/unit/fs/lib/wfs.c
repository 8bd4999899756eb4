/* The shared library, through wfs.h alone: files, tensors and their slices, failures, and a process that stays as it
 * was. */
#include <wfs.h>

#include "base/checked.h"
#include "base/little_endian.h"
#include "tests/unit/check.h"
#include "tests/unit/files.h"
#include "tests/unit/sanitized.h"
#include "tests/unit/write_safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { ROWS = 6, COLUMNS = 64, CUBE = 2 * 3 * 4 };

static float matrix[ROWS][COLUMNS];
static uint16_t cube[CUBE];
static char logged[200];

static void take_line(void *user, const char *line)
{
    snprintf(user, sizeof logged, "%s", line);
}

static void write_model(void)
{
    struct safetensors file = {0};
    for (int i = 0; i < ROWS * COLUMNS; i++)
        matrix[i / COLUMNS][i % COLUMNS] = (float)(i % 97) - 40;
    for (int i = 0; i < CUBE; i++)
        cube[i] = (uint16_t)(0x3f80 + i); /* BF16 */
    safetensors_add(&file, "matrix", "F32", "6,64", matrix, sizeof matrix);
    little_endian(matrix, ROWS * COLUMNS, sizeof **matrix); /* as the file has them */
    safetensors_add(&file, "cube", "BF16", "2,3,4", cube, sizeof cube);
    safetensors_add(&file, "scalar", "I64", "", &(int64_t){1}, 8);
    safetensors_add(&file, "empty", "F32", "0,64", NULL, 0);
    safetensors_write(&file, "model.safetensors");
}

static size_t find(wfs_model *model, const char *name)
{
    size_t index = SIZE_MAX;
    wfs_tensor_find(model, name, strlen(name), &index, NULL);
    return index;
}

/* Reads a tensor into new memory, which the caller frees; NULL, with the error, on failure. */
static void *read_tensor(wfs_model *model, const char *name, const char *dtype, const struct wfs_slice *slices,
                         uint64_t *ret_size, struct wfs_error *error)
{
    size_t index = find(model, name);
    if (!wfs_tensor_size(model, index, dtype, slices, ret_size, error))
        return NULL;
    void *out = calloc(1, (size_t)*ret_size + 1);
    if (wfs_tensor_read(model, index, dtype, slices, out, *ret_size, error))
        return out;
    free(out);
    return NULL;
}

static void openings(wfs_context *context)
{
    static const struct {
        const char *source, *word, *message;
        int code;
    } bad[] = {
        {"model.safetensors", "no-such", "unknown option 'no-such'", EINVAL},
        {"model.safetensors", "allow_other", "option allow_other has an effect only on a mount", EINVAL},
        {"model.safetensors", "shard-size=x", "option shard-size: ", EINVAL},
        {"model.safetensors", "imatrix=absent", "option imatrix: ", EIO},
        {"absent.safetensors", NULL, "absent.safetensors", ENOENT},
        {NULL, NULL, "no source is given", EINVAL},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct wfs_error error = {0};
        const char *const words[] = {bad[i].word, NULL};
        CHECK(wfs_open(context, bad[i].source, words, &error) == NULL);
        CHECK_NAMED(strncmp(error.message, bad[i].message, strlen(bad[i].message)) == 0, error.message);
        CHECK(error.code == bad[i].code);
    }
    CHECK_NAMED(wfs_open(context, "absent", NULL, NULL) == NULL, "a caller that wants no error");
    const char *const words[] = {"dtype=f16", "name=a,b", NULL};
    wfs_model *model = wfs_open(context, "model.safetensors", words, NULL);
    CHECK_NAMED(model != NULL, "a comma in a value");
    wfs_close(model);
    wfs_close(NULL);
}

/* Options for remote sources add up, and hold for the process: another value is refused. */
static void remote_options_hold(wfs_context *context)
{
    static const struct {
        const char *word, *refusal;
    } rows[] = {
        {"timeout=7", ""},
        {"cache=/tmp/a", ""},
        {"timeout=8", "option timeout: this process has another value already, which holds for all its remote sources"},
        {"cache=/tmp/b",
         "option cache: this process has another value already, which holds for all its remote sources"},
        {"timeout=7", ""},
        {"name=a", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct wfs_error error = {0};
        const char *const words[] = {rows[i].word, NULL};
        wfs_model *model = wfs_open(context, "model.safetensors", words, &error);
        CHECK_TEXT(error.message, rows[i].refusal);
        CHECK((model != NULL) == (*rows[i].refusal == '\0') && error.code == (model != NULL ? 0 : EINVAL));
        wfs_close(model);
    }
}

/* A folder of models is shown as models/ORG/NAME. */
static void libraries(wfs_context *context)
{
    const char *const words[] = {"library", NULL};
    struct wfs_entry entry;
    struct wfs_error error;
    CHECK(mkdir("models", 0700) == 0 && mkdir("models/org", 0700) == 0);
    CHECK(link("model.safetensors", "models/org/first.safetensors") == 0);
    wfs_model *model = wfs_open(context, "models", words, NULL);
    if (CHECK(model != NULL)) {
        CHECK(wfs_tensor_count(model) == 0);
        CHECK(wfs_stat(model, "models/org/first", &entry, NULL) && S_ISDIR(entry.mode));
        CHECK(!wfs_stat(model, "models/org/second", &entry, &error) && error.code == ENOENT);
    }
    wfs_close(model);
    CHECK(mkdir("nothing", 0700) == 0);
    CHECK(wfs_open(context, "nothing", words, &error) == NULL);
    CHECK_TEXT(error.message, "nothing: holds no models");
}

/* Reads a file in pieces of a length; returns whether they are the bytes. */
static bool reads_in_pieces(wfs_file *file, const unsigned char *bytes, size_t length)
{
    unsigned char piece[512];
    bool same = true;
    for (uint64_t at = 0; at < wfs_file_size(file); at += length) {
        uint64_t left = wfs_file_size(file) - at, wanted = left < length ? left : length;
        same &= wfs_file_read(file, at, piece, length, NULL) == (int64_t)wanted;
        same &= memcmp(piece, bytes + at, (size_t)wanted) == 0;
    }
    return same;
}

static void files(wfs_model *model)
{
    struct wfs_entry entry;
    struct wfs_error error;
    unsigned char byte;
    wfs_file *file = wfs_file_open(model, "/tensors//matrix/f32", &error);
    if (!CHECK(file != NULL))
        return;
    CHECK(wfs_file_size(file) == sizeof matrix && reads_in_pieces(file, (const unsigned char *)matrix, 7));
    CHECK(reads_in_pieces(file, (const unsigned char *)matrix, 512));
    CHECK(wfs_file_read(file, sizeof matrix, &byte, 1, NULL) == 0 &&
          wfs_file_read(file, UINT64_MAX, &byte, 1, NULL) == 0);
    CHECK(wfs_stat(model, "tensors/matrix/f32", &entry, NULL) && entry.size == sizeof matrix && S_ISREG(entry.mode));
    CHECK(wfs_stat(model, "", &entry, NULL) && S_ISDIR(entry.mode) && entry.name == NULL);
    CHECK(!wfs_stat(model, "tensors/matrix/q9", &entry, &error) && error.code == ENOENT);
    CHECK(wfs_file_open(model, "tensors", &error) == NULL && error.code == EISDIR);
    CHECK(wfs_list_open(model, "tensors/matrix/f32", false, &error) == NULL && error.code == ENOTDIR);
    CHECK(wfs_file_open(model, NULL, &error) == NULL && error.code == EINVAL);
    CHECK(!wfs_file_write(file, -1, &error) && strncmp(error.message, "/tensors//matrix/f32: ", 22) == 0);
    wfs_file_close(file);
    wfs_file_close(NULL);
}

static bool has_matrix(const char *path)
{
    unsigned char found[sizeof matrix + 1];
    int fd = open(path, O_RDONLY);
    bool same =
        fd >= 0 && read(fd, found, sizeof found) == (ssize_t)sizeof matrix && memcmp(found, matrix, sizeof matrix) == 0;
    if (fd >= 0)
        close(fd);
    return same;
}

static void *copy_again(void *file)
{
    bool done = true;
    for (int i = 0; done && i < 50; i++)
        done = wfs_file_copy(file, "copies/shared", NULL) && has_matrix("copies/shared");
    return done ? file : NULL;
}

/* Stops a copy after more than *user bytes; else puts there how many were written. */
static bool watch_up_to(void *user, uint64_t n_written)
{
    uint64_t *most = user;
    bool goes_on = n_written <= *most;
    *most = n_written;
    return goes_on;
}

/* Copies onto a new file, an old one, a link, a FIFO, and with threads onto one; nothing else is left. */
static void copies(wfs_model *model)
{
    enum { N_THREADS = 3 };
    unsigned char found[sizeof matrix];
    struct wfs_error error;
    struct stat status;
    pthread_t threads[N_THREADS];
    wfs_file *file = wfs_file_open(model, "/tensors/matrix/f32", NULL);
    files_must(mkdir("copies", 0777) == 0 && symlink("old", "copies/link") == 0 && mkfifo("copies/fifo", 0666) == 0,
               "copies");
    files_write_text("copies/old", "old");
    CHECK(wfs_file_copy(file, "copies/new", NULL) && has_matrix("copies/new"));
    CHECK(wfs_file_copy(file, "copies/link", NULL) && has_matrix("copies/old"));
    CHECK_NAMED(lstat("copies/link", &status) == 0 && S_ISLNK(status.st_mode), "a link stays one");
    int fifo = open("copies/fifo", O_RDWR);
    CHECK(wfs_file_copy(file, "copies/fifo", NULL) && read(fifo, found, sizeof found) == (ssize_t)sizeof found);
    CHECK_NAMED(stat("copies/fifo", &status) == 0 && S_ISFIFO(status.st_mode), "and a FIFO one");
    close(fifo);
    CHECK(!wfs_file_copy(file, "copies/none/file", &error) && error.code == ENOENT);
    CHECK(!wfs_file_copy(file, "copies", &error) && strncmp(error.message, "copies: ", 8) == 0);
    uint64_t most = UINT64_MAX, none = 0;
    CHECK(wfs_file_copy_watched(file, "copies/new", watch_up_to, &most, NULL) && most == sizeof matrix);
    files_write_text("copies/old", "old");
    CHECK(!wfs_file_copy_watched(file, "copies/old", watch_up_to, &none, &error) && error.code == ECANCELED);
    CHECK_NAMED(!has_matrix("copies/old"), "a copy that is stopped replaces nothing");
    for (int i = 0; i < N_THREADS; i++)
        pthread_create(&threads[i], NULL, copy_again, file);
    for (int i = 0; i < N_THREADS; i++) {
        void *done = NULL;
        pthread_join(threads[i], &done);
        CHECK_NAMED(done == file, "each copy onto one name is complete");
    }
    wfs_file_close(file);
    for (size_t i = 0; i < 5; i++)
        CHECK(unlink((const char *[]){"copies/new", "copies/old", "copies/link", "copies/fifo", "copies/shared"}[i]) ==
              0);
    CHECK_NAMED(rmdir("copies") == 0, "no temporary file is left");
}

static void lists(wfs_model *model)
{
    for (int only_names = 0; only_names < 2; only_names++) {
        wfs_list *list = wfs_list_open(model, "tensors", only_names, NULL);
        bool found = false;
        for (size_t i = 0; list != NULL && i < wfs_list_count(list); i++)
            found |= strcmp(wfs_list_entry(list, i)->name, "matrix") == 0 && S_ISDIR(wfs_list_entry(list, i)->mode);
        CHECK(found && wfs_list_entry(list, wfs_list_count(list)) == NULL);
        wfs_list_close(list);
    }
    wfs_list_close(NULL);
}

static void descriptions(wfs_model *model)
{
    struct wfs_tensor tensor;
    struct wfs_error error;
    size_t index;
    CHECK(wfs_tensor_count(model) == 4);
    CHECK(wfs_tensor_at(model, find(model, "cube"), &tensor, NULL));
    CHECK_TEXT(tensor.name, "cube");
    CHECK_TEXT(tensor.dtype, "BF16");
    CHECK(tensor.rank == 3 && tensor.shape[0] == 2 && tensor.shape[1] == 3 && tensor.shape[2] == 4);
    CHECK(tensor.n_elements == CUBE && tensor.refusal == NULL && tensor.name_length == 4);
    CHECK(!wfs_tensor_at(model, 4, &tensor, &error) && error.code == EINVAL);
    CHECK(!wfs_tensor_find(model, "cub", 3, &index, &error) && error.code == ENOENT);
}

static float bf16_value(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* Every slice of the cube in steps of 1 and 2, also the empty ones. */
static void all_slices(wfs_model *model)
{
    static const uint64_t shape[] = {2, 3, 4};
    struct wfs_slice all[3][64];
    size_t n[3] = {0};
    bool same = true;
    for (int axis = 0; axis < 3; axis++)
        for (uint64_t start = 0; start <= shape[axis]; start++)
            for (uint64_t step = 1; step <= 2; step++)
                for (uint64_t count = 0; count == 0 || start + (count - 1) * step < shape[axis]; count++)
                    all[axis][n[axis]++] = (struct wfs_slice){start, count, step};
    for (size_t i = 0; i < n[0] * n[1] * n[2]; i++) {
        const struct wfs_slice slices[] = {all[0][i % n[0]], all[1][i / n[0] % n[1]], all[2][i / n[0] / n[1]]};
        uint64_t size, at = 0;
        float *values = read_tensor(model, "cube", "f32", slices, &size, NULL);
        same &= values != NULL && size == slices[0].count * slices[1].count * slices[2].count * sizeof(float);
        if (same)
            little_endian(values, size / sizeof *values, sizeof *values);
        for (uint64_t a = 0; a < slices[0].count && same; a++)
            for (uint64_t b = 0; b < slices[1].count; b++)
                for (uint64_t c = 0; c < slices[2].count; c++) {
                    uint64_t x = slices[0].start + a * slices[0].step, y = slices[1].start + b * slices[1].step,
                             z = slices[2].start + c * slices[2].step;
                    same &= values[at++] == bf16_value(cube[(x * 3 + y) * 4 + z]);
                }
        free(values);
    }
    CHECK_NAMED(same && n[2] > 10, "every slice");
}

static void blocks(wfs_model *model)
{
    static const struct wfs_slice row[] = {{2, 2, 1}, {0, 64, 1}}, half[] = {{2, 1, 1}, {32, 32, 1}},
                                  odd[] = {{2, 1, 1}, {1, 32, 1}}, halves[] = {{2, 2, 1}, {32, 32, 1}};
    uint64_t size, part_size;
    struct wfs_error error;
    unsigned char *whole = read_tensor(model, "matrix", "Q4_0", NULL, &size, &error);
    CHECK(whole != NULL && size == ROWS * COLUMNS / 32 * 18);
    unsigned char *part = read_tensor(model, "matrix", "q4_0", row, &part_size, &error);
    CHECK(part != NULL && part_size == 4 * 18 && memcmp(part, whole + 4 * 18, part_size) == 0);
    free(part);
    part = read_tensor(model, "matrix", "q4_0", half, &part_size, &error);
    CHECK(part != NULL && part_size == 18 && memcmp(part, whole + 5 * 18, part_size) == 0);
    free(part);
    free(whole);
    CHECK(read_tensor(model, "matrix", "q4_0", odd, &part_size, &error) == NULL && error.code == EINVAL);
    CHECK(read_tensor(model, "matrix", "q4_0", halves, &part_size, &error) == NULL && error.code == EINVAL);
    CHECK_TEXT(error.message, "matrix as Q4_0: a slice must be whole blocks of 32 elements that follow each other");
}

static void tensors(wfs_model *model)
{
    static const struct wfs_slice none[] = {{0, 0, 1}, {0, 64, 1}}, beyond[] = {{5, 2, 1}, {0, 64, 1}},
                                  still[] = {{0, 1, 0}, {0, 64, 1}}, wrap[] = {{1, UINT64_MAX, 2}, {0, 64, 1}};
    static const struct wfs_slice *const bad[] = {beyond, still, wrap};
    uint64_t size;
    struct wfs_error error;
    int64_t *scalar = read_tensor(model, "scalar", "I64", NULL, &size, &error);
    CHECK_NAMED(scalar != NULL && size == 8 && read_le(scalar, 8) == 1, "a type that is no file of tensors/");
    free(scalar);
    void *empty = read_tensor(model, "empty", "f16", NULL, &size, &error);
    CHECK(empty != NULL && size == 0);
    free(empty);
    empty = read_tensor(model, "matrix", "q4_0", none, &size, &error);
    CHECK(empty != NULL && size == 0);
    free(empty);
    for (size_t i = 0; i < 3; i++)
        CHECK(read_tensor(model, "matrix", "f32", bad[i], &size, &error) == NULL && error.code == EINVAL);
    CHECK(read_tensor(model, "matrix", "q9", NULL, &size, &error) == NULL);
    CHECK_TEXT(error.message, "matrix as q9: no type has this name");
    CHECK(read_tensor(model, "matrix", "f32.npy", NULL, &size, &error) == NULL && error.code == EINVAL);
    CHECK(read_tensor(model, "cube", "q4_0", NULL, &size, &error) == NULL && error.code == EINVAL);
    CHECK(!wfs_tensor_read(model, find(model, "matrix"), "f32", NULL, NULL, 4, &error) && error.code == EINVAL);
}

static void mappings(wfs_model *model)
{
    static const struct wfs_slice rows[] = {{2, 2, 1}, {0, 64, 1}}, columns[] = {{0, 6, 1}, {0, 2, 1}};
    uint64_t size;
    size_t index = find(model, "matrix");
    unsigned char *mapped = wfs_tensor_map(model, index, "F32", NULL, &size), *again;
    CHECK(mapped != NULL && size == sizeof matrix && memcmp(mapped, matrix, size) == 0);
    mapped[0] ^= 1;
    again = wfs_tensor_map(model, index, "F32", NULL, &size);
    CHECK_NAMED(again != NULL && memcmp(again, matrix, size) == 0, "writing to a mapping changes no other");
    wfs_unmap(again, size);
    wfs_unmap(mapped, size);
    mapped = wfs_tensor_map(model, index, "raw", rows, &size);
    CHECK(mapped != NULL && size == 2 * sizeof *matrix && memcmp(mapped, matrix[2], size) == 0);
    wfs_unmap(mapped, size);
    CHECK_NAMED(wfs_tensor_map(model, index, "f32", columns, &size) == NULL, "what lies apart is not mapped");
    CHECK_NAMED(wfs_tensor_map(model, index, "f16", NULL, &size) == NULL, "nothing computed is mapped");
    CHECK(wfs_tensor_map(model, find(model, "empty"), "raw", NULL, &size) == NULL);
    CHECK(wfs_tensor_map(model, 4, "raw", NULL, &size) == NULL);
}

/* Each call that reads, on a model of its own: under a flag that is set it fails, and after that the same model answers
 * as if it had not. */
static bool stops(wfs_context *context, bool (*call)(wfs_context *context, wfs_model *model, struct wfs_error *error))
{
    const volatile int stop = 1;
    struct wfs_error error = {0};
    wfs_model *model = wfs_open(context, "model.safetensors", NULL, NULL);
    wfs_stop_by(&stop);
    bool stopped = !call(context, model, &error) && error.code == ECANCELED;
    wfs_stop_by(NULL);
    bool good = CHECK_NAMED(stopped, error.message) && CHECK_NAMED(call(context, model, &error), error.message);
    wfs_close(model);
    return good;
}

static bool made(char *text)
{
    bool good = text != NULL && *text != '\0';
    wfs_text_free(text);
    return good;
}

static bool open_again(wfs_context *context, wfs_model *model, struct wfs_error *error)
{
    wfs_model *other = wfs_open(context, "model.safetensors", NULL, error);
    wfs_close(other);
    return other != NULL;
}

static bool diff_itself(wfs_context *context, wfs_model *model, struct wfs_error *error)
{
    return made(wfs_diff(context, "model.safetensors", "model.safetensors", NULL, error));
}

static bool attest_it(wfs_context *context, wfs_model *model, struct wfs_error *error)
{
    return made(wfs_attest(model, (const char *const[]){"tensors/matrix"}, 1, error));
}

static bool read_it(wfs_context *context, wfs_model *model, struct wfs_error *error)
{
    float values[ROWS * COLUMNS] = {0};
    return wfs_tensor_read(model, find(model, "matrix"), "f32", NULL, values, sizeof values, error) &&
           memcmp(values, matrix, sizeof values) == 0;
}

static bool copy_it(wfs_context *context, wfs_model *model, struct wfs_error *error)
{
    wfs_file *file = wfs_file_open(model, "model.safetensors", NULL);
    bool copied = wfs_file_copy(file, "copy", error);
    wfs_file_close(file);
    return (unlink("copy") == 0) == copied && copied;
}

static void stopped_calls(wfs_context *context)
{
    CHECK(stops(context, open_again));
    CHECK(stops(context, diff_itself));
    CHECK(stops(context, attest_it));
    CHECK(stops(context, read_it));
    CHECK_NAMED(stops(context, copy_it), "a copy, which leaves nothing");
}

static void *read_much(void *context)
{
    bool same = true;
    size_t index = SIZE_MAX;
    wfs_tensor_find(context, "matrix", 6, &index, NULL);
    for (int i = 0; i < 200; i++) {
        float values[ROWS * COLUMNS];
        wfs_file *file = wfs_file_open(context, "tensors/matrix/f32", NULL);
        same &= wfs_tensor_read(context, index, "f32", NULL, values, sizeof values, NULL);
        same &= memcmp(values, matrix, sizeof values) == 0;
        same &= file != NULL && wfs_file_read(file, 0, values, sizeof values, NULL) == sizeof values;
        same &= memcmp(values, matrix, sizeof values) == 0;
        wfs_file_close(file);
    }
    return same ? context : NULL;
}

static void many_threads(wfs_model *model)
{
    pthread_t threads[4];
    bool same = true;
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, read_much, model);
    for (int i = 0; i < 4; i++) {
        void *done;
        pthread_join(threads[i], &done);
        same &= done != NULL;
    }
    CHECK_NAMED(same, "several threads read one model");
}

/* Opens a model for which memory does not suffice, in a process that goes on. */
static void lack_of_memory(wfs_context *context)
{
    enum { N_TENSORS = 200000, LEFT = 8 << 20 };
#if IS_SANITIZED
    check_skip("lack of memory", "sanitizers need the address space");
#else
    struct safetensors file = {0};
    struct rlimit before, little;
    struct wfs_error error = {0};
    char name[40];
    for (int i = 0; i < N_TENSORS; i++) {
        snprintf(name, sizeof name, "layers.%d.weight", i);
        safetensors_add(&file, name, "F32", "1", NULL, 4);
    }
    safetensors_write(&file, "large.safetensors");
#ifdef __GLIBC__
    malloc_trim(0); /* what is free in the heap would not count against the limit */
#endif
    getrlimit(RLIMIT_AS, &before);
    FILE *status = fopen("/proc/self/statm", "r");
    unsigned long n_pages = 0;
    files_must(status != NULL && fscanf(status, "%lu", &n_pages) == 1 && fclose(status) == 0, "/proc/self/statm");
    little = (struct rlimit){n_pages * (rlim_t)sysconf(_SC_PAGESIZE) + LEFT, before.rlim_max};
    setrlimit(RLIMIT_AS, &little);
    void *too_much = malloc(2 * (size_t)LEFT);
    wfs_model *model = too_much == NULL ? wfs_open(context, "large.safetensors", NULL, &error) : NULL;
    setrlimit(RLIMIT_AS, &before);
    free(too_much);
    if (too_much != NULL) { /* as under qemu */
        check_skip("lack of memory", "nothing limits the address space here");
        return;
    }
    CHECK_NAMED(model == NULL && error.code == ENOMEM, error.message);
    wfs_close(model);
    model = wfs_open(context, "large.safetensors", NULL, &error);
    CHECK_NAMED(model != NULL && wfs_tensor_count(model) == N_TENSORS, "memory suffices again");
    wfs_close(model);
#endif
}

static void changes(wfs_context *context)
{
    float values[ROWS * COLUMNS];
    struct wfs_error error;
    wfs_model *model = wfs_open(context, "model.safetensors", NULL, NULL);
    wfs_file *file = wfs_file_open(model, "tensors/matrix/f32", NULL);
    files_write_text("model.safetensors", "shorter");
    usleep(20 * 1000); /* longer than a source's last check counts */
    CHECK(wfs_file_read(file, 0, values, sizeof values, &error) == -1 && error.code == ESTALE);
    CHECK(!wfs_tensor_read(model, find(model, "matrix"), "f32", NULL, values, sizeof values, &error));
    CHECK(error.code == ESTALE);
    uint64_t size;
    CHECK(wfs_tensor_map(model, find(model, "matrix"), "f32", NULL, &size) == NULL);
    wfs_file_close(file);
    wfs_close(model);
}

static void the_process_is_as_it_was(const struct rlimit *limit, const struct sigaction *before)
{
    struct sigaction action;
    struct rlimit now;
    CHECK_NAMED(sigaction(SIGBUS, NULL, &action) == 0 && action.sa_handler == before->sa_handler,
                "no new handler of SIGBUS");
    CHECK_NAMED(getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_cur == limit->rlim_cur, "no other limit");
    CHECK_TEXT(logged, "");
}

/* A child of a fork, such as a worker of a data loader, frees what it has without the threads of its parent. */
static void closed_in_child(wfs_context *context, wfs_model *model)
{
    enum { SECONDS = 20 };
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        alarm(SECONDS); /* which ends it if it hangs */
        wfs_close(model);
        wfs_context_free(context);
        _exit(0);
    }
    CHECK_NAMED(waitpid(child, &status, 0) == child && status == 0, "a child of a fork frees model and context");
}

int main(void)
{
    struct rlimit limit;
    struct sigaction action; /* sanitizers have one of their own */
    files_begin();
    write_model();
    getrlimit(RLIMIT_NOFILE, &limit);
    sigaction(SIGBUS, NULL, &action);
    CHECK_TEXT(wfs_version(), WFS_VERSION);
    wfs_context *context = wfs_context_new(3, take_line, logged);
    lack_of_memory(context); /* before there are threads, each with a heap of its own */
    openings(context);
    remote_options_hold(context);
    libraries(context);
    stopped_calls(context);
    wfs_model *model = wfs_open(context, "model.safetensors", NULL, NULL);
    if (CHECK(model != NULL)) {
        files(model);
        copies(model);
        lists(model);
        descriptions(model);
        all_slices(model);
        blocks(model);
        tensors(model);
        mappings(model);
        many_threads(model);
        CHECK(wfs_note(model, wfs_note_count(model)) == NULL);
    }
    closed_in_child(context, model);
    wfs_close(model);
    changes(context);
    wfs_context_free(context);
    wfs_context_free(NULL);
    the_process_is_as_it_was(&limit, &action);
    files_remove();
    return check_done();
}
