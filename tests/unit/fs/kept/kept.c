/* Kept bytes: what was computed once is read from the store, and is never wrong. Reads of the source tell whether bytes
 * were computed. */
#include "fs/kept/kept.h"

#include "formats/tensor_set.h"
#include "quant/merge/merge.h"
#include "remote/options.h"
#include "remote/store.h"
#include "remote/store_directory.h"

#include "tests/unit/check.h"
#include "tests/unit/files.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

static const struct dtype *q4_k, *q5_k, *q8_0;

enum { ROWS = 1200, COLUMNS = 1024, HEADER = 100, STORED_ROWS = 160, NEVER = -1 };

#define IDENTITY "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static float values[ROWS * COLUMNS];
static unsigned char stored[sizeof values];
static unsigned char expected[HEADER + ROWS * COLUMNS * 4], found[sizeof expected];
static size_t n_expected;

/* The source: how often it was read, and the read during which it changes. */
static atomic_int n_reads, changes_at = NEVER;
static struct source *source;

static bool read_values(void *context, uint64_t offset, size_t length, void *out, struct error *error)
{
    memcpy(out, stored + offset, length);
    if (atomic_fetch_add(&n_reads, 1) + 1 == atomic_load(&changes_at))
        source_mark_changed(source);
    return true;
}

static void open_source(time_t age)
{
    static const struct source_ops ops = {.read = read_values, .release = free};
    struct source_identity identity = {.key = {1, 2}, .size = sizeof values, .mtime = {.tv_sec = time(NULL) - age}};
    source = source_new_file(&identity, "values", &ops, NULL);
    atomic_store(&n_reads, 0);
    atomic_store(&changes_at, NEVER);
}

/* A header, rows as they are stored, and all rows in the type. */
static struct vfile file_of(struct arena *arena, const struct dtype *dtype, const char *header)
{
    const uint64_t shape[2] = {ROWS, COLUMNS}, few[2] = {STORED_ROWS, COLUMNS};
    struct span_list spans = {.arena = arena};
    struct source **sources = arena_copy(arena, &source, sizeof source);
    spans_add_literal(&spans, header, HEADER);
    spans_add_view(&spans, view_of_source(arena, source, 0, &f32_dtype, 2, few), encoding_of(&f32_dtype));
    spans_add_view(&spans, view_of_source(arena, source, 0, &f32_dtype, 2, shape), encoding_of(dtype));
    return vfile_of_spans(&spans, (struct origin){sources, 1});
}

static const char header[HEADER] = "header";

/* Writes down what the file of a type holds, by the portable kernel alone. */
static void expect(const struct dtype *dtype)
{
    memcpy(expected, header, HEADER);
    memcpy(expected + HEADER, stored, STORED_ROWS * COLUMNS * 4);
    n_expected = HEADER + STORED_ROWS * COLUMNS * 4;
    dtype_kernels_at(dtype, CPU_PORTABLE).encode(values, expected + n_expected, ROWS * COLUMNS / dtype->block_elements);
    n_expected += (size_t)ROWS * COLUMNS / dtype->block_elements * dtype->block_bytes;
}

/* What one reader reads: the file in pieces of a size, as bytes or as vectors. */
struct reader {
    const struct vfile *file;
    size_t step;
    bool as_vectors, failed;
};

static bool read_piece(const struct reader *reader, size_t at, size_t length, unsigned char *out)
{
    struct error error;
    struct iovec iov[VFILE_MAX_IOV];
    size_t count, done = 0;
    unsigned char *scratch = memory_alloc(length);
    bool read = reader->as_vectors ? vfile_iov(reader->file, at, length, iov, &count, scratch, &error)
                                   : vfile_read(reader->file, at, length, out, &error);
    for (size_t i = 0; read && reader->as_vectors && i < count; done += iov[i++].iov_len)
        memcpy(out + done, iov[i].iov_base, iov[i].iov_len);
    free(scratch);
    return read && (!reader->as_vectors || done == length);
}

static void *read_all(void *context)
{
    struct reader *reader = context;
    unsigned char *bytes = memory_alloc(reader->step);
    for (size_t at = 0, n; at < n_expected; at += n) {
        n = n_expected - at < reader->step ? n_expected - at : reader->step;
        reader->failed |= !read_piece(reader, at, n, bytes) || memcmp(bytes, expected + at, n) != 0;
    }
    free(bytes);
    return NULL;
}

struct outcome_of_reads {
    bool right;
    int n_reads; /* of the source */
};

static const struct kept_request quantized = {.keep = KEEP_QUANTIZED, .identity = IDENTITY, .name = "/model/file"};

static bool give_file(void *context, struct vfile *ret_file)
{
    *ret_file = *(const struct vfile *)context;
    return true;
}

/* Reads a file in another process, as it were: with a new source of that age, plan and knowledge of the store. */
static struct outcome_of_reads read_anew(const struct dtype *dtype, const struct kept_request *request, time_t age,
                                         struct reader *readers, size_t n_readers)
{
    pthread_t threads[8];
    struct arena *arena = arena_new();
    open_source(age);
    struct vfile file = file_of(arena, dtype, header);
    bool right = file.size == n_expected;
    struct kept_request own = *request;
    own.context = &file;
    file.kept = kept_new(&file, &own);
    for (size_t i = 0; i < n_readers; i++) {
        readers[i].file = &file;
        files_must(pthread_create(&threads[i], NULL, read_all, &readers[i]) == 0, "a thread");
    }
    for (size_t i = 0; i < n_readers; i++) {
        pthread_join(threads[i], NULL);
        right &= !readers[i].failed;
    }
    kept_free(file.kept);
    source_close(source);
    arena_free(arena);
    return (struct outcome_of_reads){right, atomic_load(&n_reads)};
}

enum { OLD = 3600, MIB = 1 << 20 };

static struct outcome_of_reads read_once(const struct dtype *dtype, const struct kept_request *request, time_t age)
{
    return read_anew(dtype, request, age, &(struct reader){.step = MIB}, 1);
}

static void empty_store(void)
{
    evict(store_directory(), 0);
}

/* The reads of the source that take all bytes of the file of Q4_K, and all that are not kept. */
static int n_computing, n_remaining;

static void kept_and_read_again(void)
{
    empty_store();
    expect(q4_k);
    struct outcome_of_reads first = read_once(q4_k, &quantized, OLD), second = read_once(q4_k, &quantized, OLD);
    n_computing = first.n_reads;
    n_remaining = second.n_reads;
    CHECK(first.right);
    CHECK_NAMED(second.right, "kept bytes are those that were computed");
    CHECK_NAMED(n_remaining > 0 && n_remaining < n_computing / 2, "only stored rows are read from the source");
    struct outcome_of_reads vectors =
        read_anew(q4_k, &quantized, OLD, &(struct reader){.step = 130000, .as_vectors = true}, 1);
    CHECK_NAMED(vectors.right, "vectors of kept and stored bytes, at any offset");
}

static void assembled(void)
{
    struct reader readers[] = {{.step = 8192}, {.step = 40960, .as_vectors = true}, {.step = 131072}, {.step = MIB}};
    empty_store();
    struct outcome_of_reads first = read_anew(q4_k, &quantized, OLD, readers, 4);
    struct outcome_of_reads second = read_once(q4_k, &quantized, OLD);
    CHECK_NAMED(first.right, "several readers of one file");
    CHECK_NAMED(second.right && second.n_reads == n_remaining, "granules are put together from their pages");
    empty_store();
    first = read_anew(q4_k, &quantized, OLD, &(struct reader){.step = 5000}, 1);
    second = read_once(q4_k, &quantized, OLD);
    CHECK_NAMED(first.right && second.right && second.n_reads == n_computing, "parts of pages are not kept");
}

static void choice(void)
{
    const struct kept_request all = {.keep = KEEP_ALL, .identity = IDENTITY, .name = "/model/file"};
    empty_store();
    expect(q8_0);
    int plain = read_once(q8_0, &quantized, OLD).n_reads;
    CHECK_NAMED(read_once(q8_0, &quantized, OLD).n_reads == plain, "what is encoded fast is not kept");
    CHECK(read_once(q8_0, &all, OLD).right);
    struct outcome_of_reads again = read_once(q8_0, &all, OLD);
    CHECK_NAMED(again.right && again.n_reads < plain, "but it is if all is");
}

/* Reads the file when nothing of it may be kept, and checks that nothing is. */
static void keeps_nothing(const struct kept_request *request, time_t age, const char *name)
{
    empty_store();
    bool right = read_once(q4_k, request, age).right;
    CHECK_NAMED(right && read_once(q4_k, &quantized, OLD).n_reads == n_computing, name);
}

static void unsettled(void)
{
    enum { AHEAD = 600 }; /* so that no machine is so slow that the input grows old meanwhile */
    const struct kept_request fresh = {KEEP_QUANTIZED, IDENTITY, "/model/file", {.tv_sec = time(NULL) + AHEAD}};
    expect(q4_k);
    keeps_nothing(&quantized, -AHEAD, "nothing is kept of a young input");
    keeps_nothing(&fresh, OLD, "nor with a young file that an option names");
}

/* Reads the first granule that is all Q4_K, in one piece; the source changes with its last read, which then fails. */
static void changed(void)
{
    const uint64_t granule = 3, offset = granule * STORE_GRANULE;
    struct error error;
    int n_whole = NEVER;
    empty_store();
    expect(q4_k);
    for (int round = 0; round < 3; round++) {
        struct arena *arena = arena_new();
        open_source(OLD);
        struct vfile file = file_of(arena, q4_k, header);
        file.kept = round > 0 ? kept_new(&file, &quantized) : NULL;
        if (round == 1)
            atomic_store(&changes_at, n_whole);
        CHECK(vfile_read(&file, offset, STORE_GRANULE, found, &error) == (round != 1));
        CHECK_NAMED(round == 0 || atomic_load(&n_reads) == n_whole,
                    round == 1 ? "the source changes while a granule is computed" : "which is not kept");
        n_whole = atomic_load(&n_reads);
        kept_free(file.kept);
        source_close(source);
        arena_free(arena);
    }
}

/* Changes a byte of every kept segment. */
static void damage(void)
{
    struct arena *arena = arena_new();
    const struct stored_segments segments = evict_list(store_directory(), arena);
    for (size_t i = 0; i < segments.count; i++) {
        unsigned char byte = 0;
        const off_t at = 3 * STORE_GRANULE + 12345;
        int fd = open(segments.items[i].path, O_RDWR);
        files_must(fd >= 0 && pread(fd, &byte, 1, at) == 1, segments.items[i].path);
        byte ^= 1;
        files_must(pwrite(fd, &byte, 1, at) == 1 && close(fd) == 0, segments.items[i].path);
    }
    CHECK_NAMED(segments.count == 1 && segments.items[0].is_computed, "a segment of computed bytes");
    CHECK_TEXT(segments.items[0].name, "/model/file");
    arena_free(arena);
}

static void damaged(void)
{
    empty_store();
    expect(q4_k);
    read_once(q4_k, &quantized, OLD);
    damage();
    struct outcome_of_reads first = read_once(q4_k, &quantized, OLD);
    CHECK_NAMED(first.right && first.n_reads > n_remaining, "a damaged granule is computed again");
    struct outcome_of_reads second = read_once(q4_k, &quantized, OLD);
    CHECK_NAMED(second.right && second.n_reads == n_remaining, "and kept again");
}

/* Reads a file again and again while its kept bytes are evicted. */
static void evicted(void)
{
    struct arena *arena = arena_new();
    empty_store();
    open_source(OLD);
    struct vfile file = file_of(arena, q4_k, header);
    struct reader reader = {.file = &file, .step = 100000};
    file.kept = kept_new(&file, &quantized);
    for (int round = 0; round < 6; round++) {
        read_all(&reader);
        if (round % 2 != 0)
            empty_store();
    }
    CHECK_NAMED(!reader.failed, "bytes that are evicted while they are read");
    kept_free(file.kept);
    source_close(source);
    arena_free(arena);
}

/* Reports whether the store has a sealed file. */
static bool has_sealed(void)
{
    bool has = false;
    struct arena *arena = arena_new();
    const struct stored_segments segments = evict_list(store_directory(), arena);
    for (size_t i = 0; i < segments.count; i++)
        has |= strcmp(strrchr(segments.items[i].path, '/'), "/sealed") == 0;
    arena_free(arena);
    return has;
}

/* Reads a file of a type that may be sealed. Waits until it is if `await` is set. Returns true if all bytes are right,
 * those of the sealed file, too, if it was sealed before. */
static bool read_sealable(const struct dtype *dtype, bool await, bool *ret_was_sealed)
{
    struct arena *arena = arena_new();
    open_source(OLD);
    struct vfile file = file_of(arena, dtype, header);
    struct kept_request request = quantized;
    struct reader reader = {.file = &file, .step = MIB};
    request.keep = KEEP_WHOLE;
    request.remake = give_file;
    request.context = &file;
    file.kept = kept_new(&file, &request);
    kept_begin(file.kept);
    int descriptor = kept_sealed_descriptor(file.kept);
    *ret_was_sealed = descriptor >= 0;
    read_all(&reader);
    if (*ret_was_sealed)
        reader.failed |= pread(descriptor, found, sizeof found, 0) != (ssize_t)n_expected ||
                         memcmp(found, expected, n_expected) != 0;
    for (int i = 0; await && i < 6000 && !has_sealed(); i++)
        nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
    kept_free(file.kept);
    source_close(source);
    arena_free(arena);
    return !reader.failed;
}

static void sealed(void)
{
    bool was_sealed;
    empty_store();
    expect(q8_0);
    CHECK_NAMED(read_sealable(q8_0, false, &was_sealed) && !has_sealed(), "a file of which nothing is kept");
    expect(q4_k);
    CHECK_NAMED(read_sealable(q4_k, true, &was_sealed) && !was_sealed && has_sealed(), "a complete file is sealed");
    CHECK_NAMED(read_sealable(q4_k, false, &was_sealed) && was_sealed, "it has all bytes of the file");
    empty_store();
    CHECK(read_once(q4_k, &quantized, OLD).right && !has_sealed());
    CHECK_NAMED(read_sealable(q4_k, true, &was_sealed) && has_sealed(),
                "a file that was complete before it was opened");
}

static uint64_t stored_bytes(void)
{
    uint64_t n_bytes = 0;
    struct arena *arena = arena_new();
    const struct stored_segments segments = evict_list(store_directory(), arena);
    for (size_t i = 0; i < segments.count; i++)
        n_bytes += segments.items[i].bytes;
    arena_free(arena);
    return n_bytes;
}

/* Changes a byte of each kept record, but not its CRC. */
static void damage_records(void)
{
    struct arena *arena = arena_new();
    const struct stored_segments segments = evict_list(store_directory(), arena);
    for (size_t i = 0; i < segments.count; i++) {
        FILE *file = fopen(segments.items[i].path, "r+b");
        for (long at = 0; file != NULL && at < 2 * (long)STORE_GRANULE; at += (long)STORE_GRANULE) {
            fseek(file, at + 7, SEEK_SET);
            int byte = fgetc(file);
            fseek(file, at + 7, SEEK_SET);
            fputc(byte ^ 1, file);
        }
        if (file != NULL)
            fclose(file);
    }
    arena_free(arena);
}

static void by_scales(const char *name, unsigned most_percent)
{
    const struct dtype *dtype = dtype_by_name(name);
    struct kept_request request = quantized;
    struct reader odd[] = {{.step = 5000}, {.step = 130001, .as_vectors = true}, {.step = MIB}};
    request.remake = give_file;
    empty_store();
    expect(dtype);
    size_t n_encoded = n_expected - HEADER - STORED_ROWS * COLUMNS * 4;
    CHECK_NAMED(read_once(dtype, &request, OLD).right, name);
    uint64_t n_kept = stored_bytes();
    CHECK_NAMED(n_kept > 0 && n_kept < n_encoded * most_percent / 100 && !has_sealed(), name);
    CHECK_NAMED(read_anew(dtype, &request, OLD, odd, 3).right, "any ranges, by several readers");
    CHECK_NAMED(stored_bytes() == n_kept, "what is kept is not kept again");
    damage_records();
    CHECK_NAMED(read_once(dtype, &request, OLD).right, "damage is found before a byte is given");
    CHECK_NAMED(read_once(dtype, &request, OLD).right, "and is made good");
}

struct key {
    char hex[SHA256_HEX + 1];
};

static struct key key_of(const struct dtype *dtype, const char *text, const char *identity, time_t changed)
{
    struct key key;
    static const struct source_ops ops = {.read = read_values, .release = free};
    struct arena *arena = arena_new();
    struct source_identity about = {.key = {1, 2}, .size = sizeof values, .changed = {.tv_sec = changed}};
    source = source_new_file(&about, "values", &ops, NULL);
    struct vfile file = file_of(arena, dtype, text);
    kept_key(&file, identity, key.hex);
    source_close(source);
    arena_free(arena);
    return key;
}

static void keys(void)
{
    static const char other_header[HEADER] = "Header";
    const struct key key = key_of(q4_k, header, IDENTITY, 5);
    CHECK(strlen(key.hex) == SHA256_HEX);
    CHECK_TEXT(key_of(q4_k, header, IDENTITY, 5).hex, key.hex);
    CHECK_NAMED(strcmp(key_of(q5_k, header, IDENTITY, 5).hex, key.hex) != 0, "another type");
    CHECK_NAMED(strcmp(key_of(q4_k, other_header, IDENTITY, 5).hex, key.hex) != 0, "another header");
    CHECK_NAMED(strcmp(key_of(q4_k, header, "another", 5).hex, key.hex) != 0, "another identity");
    CHECK_NAMED(strcmp(key_of(q4_k, header, IDENTITY, 6).hex, key.hex) != 0, "another change of the inode");
}

/* A key must be the same in the process that reads a merge first and in the next one. */
static void key_of_a_merge(void)
{
    const uint64_t shape[] = {ROWS, COLUMNS};
    char before[SHA256_HEX + 1], after[SHA256_HEX + 1];
    struct arena *arena = arena_new();
    struct error error;
    open_source(OLD);
    const struct view *view = view_of_source(arena, source, 0, &f32_dtype, 2, shape);
    const struct merge_model model = {.view = view, .weight = 1};
    const struct merge_operands operands = {&f32_dtype, view, &model, 1, .findings = findings_new(arena), .t = 0.5};
    struct span_list spans = {.arena = arena};
    spans_add_view(&spans, merge_slerp(arena, &operands), encoding_of(q4_k));
    struct vfile file = vfile_of_spans(&spans, (struct origin){&source, 1});
    kept_key(&file, IDENTITY, before);
    CHECK(vfile_read(&file, 0, 1, found, &error));
    kept_key(&file, IDENTITY, after);
    CHECK_TEXT(after, before);
    source_close(source);
    arena_free(arena);
}

/* In a process of its own, which has another store: a directory that cannot be made. */
static void without_store(void)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        static const struct remote_options options = {.cache = "/proc/none"};
        remote_use(&options);
        struct outcome_of_reads first = read_once(q4_k, &quantized, OLD);
        struct outcome_of_reads second = read_once(q4_k, &quantized, OLD);
        _exit(!(first.right && second.right && first.n_reads == second.n_reads));
    }
    int status;
    CHECK_NAMED(waitpid(child, &status, 0) == child && status == 0, "without a store all is computed");
}

int main(void)
{
    char cache[1024];
    struct remote_options options = {.cache = cache, .cache_size = {true, 64 * MIB}};
    uint64_t state = 1;
    for (size_t i = 0; i < ROWS * COLUMNS; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        values[i] = (float)(int32_t)(state >> 32) / (float)INT32_MAX;
    }
    f32_dtype.kernels[CPU_PORTABLE].encode(values, stored, ROWS * COLUMNS);
    q4_k = dtype_by_name("Q4_K");
    q5_k = dtype_by_name("Q5_K");
    q8_0 = dtype_by_name("Q8_0");
    files_begin();
    expect(q4_k);
    without_store();
    files_must(getcwd(cache, sizeof cache - 100) != NULL, "getcwd");
    strcat(cache, "/cache");
    remote_use(&options);
    kept_and_read_again();
    assembled();
    choice();
    unsettled();
    changed();
    damaged();
    evicted();
    by_scales("Q2_K", 26);
    by_scales("Q3_K", 15);
    by_scales("Q4_K", 14);
    by_scales("Q5_K", 12);
    by_scales("Q6_K", 11);
    by_scales("IQ4_XS", 10);
    sealed();
    keys();
    key_of_a_merge();
    files_remove();
    return check_done();
}
