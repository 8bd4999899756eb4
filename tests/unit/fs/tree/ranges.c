/* Random ranges of every file that a mount of the test data shows: ranges [RUNS [SOURCE...]].
 *
 * Each file is read in order first, which is what all ranges must equal: RUNS ranges of each file from this thread, and
 * as many from eight threads at once. Of the first, no source may be read outside of the bytes that vfile_depends()
 * names before. For that the linker sends calls of source_read() and its siblings here (--wrap). */
#include "fs/tree/content_options.h"
#include "fs/tree/tree.h"
#include "models/formats.h"
#include "quant/views/dependencies.h"

#include "tests/unit/check.h"
#include "tests/unit/files.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { N_THREADS = 8, MAX_FILE = 1 << 20, STEP = 128 << 10, DEFAULT_RUNS = 10, MAX_NAMED = 1 << 16 };

static const char *const fixtures[] = {
    "gguf/quantized.gguf",
    "gguf/models/llama-tiny",
    "gguf/models/mixtral-tiny",
    "structure/gemma4",
    "structure/internlm2",
    "structure/qwen3-omni",
    "packed/awq-gemm",
    "packed/bnb-nf4-nested",
    "packed/fp8-blocks",
    "packed/gptq-4",
    "packed/mlx-4",
    "packed/nvfp4-modelopt",
    "packed/hqq-3-axis1",
    "packed/pack-4",
    "packed/quanto-4",
    "packed/mxfp4-experts",
    "comfy/model.safetensors",
    "ctranslate2/whisper-int8",
    "ctranslate2/source",
    "safetensors/dtypes.safetensors",
    "torch/deflated.pt",
    "torch/views-5.pt",
    "torch/typed-legacy.pt",
    "hdf5/latest.h5",
    "orbax/levels",
    "orbax/folders3",
};

/* What may be read: the ranges that a file has named. Not used while `watching` is false. */
static struct {
    atomic_bool watching;
    struct extent from[MAX_NAMED];
    uint64_t n_bytes[MAX_NAMED];
    size_t n;
} named;
static atomic_size_t n_reads_outside, n_reads_inside;

static void take_named(void *context, const struct extent *from, uint64_t n_bytes)
{
    (void)context;
    files_must(named.n < MAX_NAMED, "too many ranges");
    named.from[named.n] = *from;
    named.n_bytes[named.n++] = n_bytes;
}

/* Reports whether named ranges have all of these bytes. */
static bool is_named(const struct source *source, uint64_t offset, uint64_t length)
{
    uint64_t end = offset + length;
    for (bool found = true; found && offset < end;) {
        found = false;
        for (size_t i = 0; i < named.n && !found; i++) {
            uint64_t first = named.from[i].offset, last = first + named.n_bytes[i];
            found = named.from[i].source == source && first <= offset && offset < last;
            offset = found ? last : offset;
        }
    }
    return offset >= end;
}

static _Thread_local unsigned depth; /* of sources that are computed from others */

static void see(const struct source *source, uint64_t offset, uint64_t length)
{
    if (depth > 0 || !atomic_load(&named.watching) || length == 0)
        return;
    if (is_named(source, offset, length)) {
        atomic_fetch_add(&n_reads_inside, 1);
        return;
    }
    if (atomic_fetch_add(&n_reads_outside, 1) == 0)
        fprintf(stderr, "%s: [%" PRIu64 ", %" PRIu64 ") is read, but not named\n", source_name(source), offset,
                offset + length);
}

bool __real_source_read(const struct source *source, uint64_t offset, size_t length, void *out, struct error *error);
bool __wrap_source_read(const struct source *source, uint64_t offset, size_t length, void *out, struct error *error);
bool __wrap_source_read(const struct source *source, uint64_t offset, size_t length, void *out, struct error *error)
{
    see(source, offset, length);
    depth++;
    bool good = __real_source_read(source, offset, length, out, error);
    depth--;
    return good;
}

bool __real_source_read_runs(const struct source *source, uint64_t offset, uint64_t count, size_t length,
                             uint64_t stride, void *out, struct error *error);
bool __wrap_source_read_runs(const struct source *source, uint64_t offset, uint64_t count, size_t length,
                             uint64_t stride, void *out, struct error *error);
bool __wrap_source_read_runs(const struct source *source, uint64_t offset, uint64_t count, size_t length,
                             uint64_t stride, void *out, struct error *error)
{
    for (uint64_t i = 0; i < count; i++)
        see(source, offset + i * stride, length);
    depth++;
    bool good = __real_source_read_runs(source, offset, count, length, stride, out, error);
    depth--;
    return good;
}

const void *__real_source_mapping(struct source *source, uint64_t offset, uint64_t length);
const void *__wrap_source_mapping(struct source *source, uint64_t offset, uint64_t length);
const void *__wrap_source_mapping(struct source *source, uint64_t offset, uint64_t length)
{
    see(source, offset, length);
    return __real_source_mapping(source, offset, length);
}

/* The files of a tree. */

struct whole {
    struct vfile file;
    const char *path;
    unsigned char *bytes; /* NULL: it cannot be read */
};

struct walk {
    struct tree *tree;
    struct arena *arena;
    struct whole *files;
    size_t n_files;
    unsigned runs;
};

static void read_whole(struct whole *whole)
{
    struct error error;
    bool good = true;
    whole->bytes = malloc((size_t)whole->file.size + 1);
    for (uint64_t at = 0; good && at < whole->file.size; at += STEP) {
        uint64_t left = whole->file.size - at;
        good = vfile_read(&whole->file, at, left < STEP ? (size_t)left : STEP, whole->bytes + at, &error);
    }
    if (good)
        return;
    free(whole->bytes);
    whole->bytes = NULL;
}

static void add_file(struct walk *walk, const struct node_attributes *attributes)
{
    struct whole whole = {.path = tree_path(walk->tree, attributes->id, walk->arena)};
    struct error error;
    if (attributes->size > MAX_FILE || !tree_file(walk->tree, attributes->id, walk->arena, &whole.file, &error))
        return;
    read_whole(&whole);
    walk->files = memory_resize(walk->files, (walk->n_files + 1) * sizeof whole);
    walk->files[walk->n_files++] = whole;
}

static bool visit(void *context, uint64_t index, const char *name, const struct node_attributes *attributes)
{
    struct walk *walk = context;
    (void)index;
    (void)name;
    if (attributes->directory)
        tree_list(walk->tree, attributes->id, 0, visit, walk);
    else
        add_file(walk, attributes);
    return true;
}

static uint64_t next_random(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15;
    uint64_t x = (*state ^ *state >> 30) * 0xbf58476d1ce4e5b9;
    return x ^ x >> 27;
}

/* Reads a random range; false if it is not what the whole has there. */
static bool read_range(const struct whole *whole, uint64_t *random, bool watched)
{
    uint64_t size = whole->file.size, first = next_random(random) % (size + 1);
    size_t length = (size_t)(next_random(random) % (size - first + 1) % STEP);
    unsigned char *bytes = malloc(length + 1);
    struct error error;
    struct dependencies to = {.take = take_named};
    named.n = watched ? 0 : named.n;
    if (watched && length > 0) {
        vfile_depends(&whole->file, first, length, &to);
        dependencies_end(&to);
    }
    atomic_store(&named.watching, watched);
    size_t n_outside = atomic_load(&n_reads_outside);
    bool good = vfile_read(&whole->file, first, length, bytes, &error) && whole->bytes != NULL;
    atomic_store(&named.watching, false);
    if (n_outside == 0 && atomic_load(&n_reads_outside) > 0)
        fprintf(stderr, "for bytes [%" PRIu64 ", %" PRIu64 ") of %s\n", first, first + length, whole->path);
    bool equal = whole->bytes == NULL || (good && memcmp(bytes, whole->bytes + first, length) == 0);
    free(bytes);
    return equal;
}

static const struct whole *first_wrong(const struct walk *walk, uint64_t random, bool watched)
{
    for (size_t i = 0; i < walk->n_files * walk->runs; i++) {
        const struct whole *whole = &walk->files[watched ? i / walk->runs : next_random(&random) % walk->n_files];
        if (!read_range(whole, &random, watched))
            return whole;
    }
    return NULL;
}

struct reader {
    const struct walk *walk;
    uint64_t random;
    const struct whole *wrong;
    pthread_t thread;
};

static void *run_reader(void *context)
{
    struct reader *reader = context;
    reader->wrong = first_wrong(reader->walk, reader->random, false);
    return NULL;
}

static void check_files(const struct walk *walk, const char *source)
{
    struct reader readers[N_THREADS];
    atomic_store(&n_reads_outside, 0);
    const struct whole *wrong = first_wrong(walk, 1, true);
    CHECK_NAMED(wrong == NULL, wrong != NULL ? wrong->path : source);
    CHECK_NAMED(atomic_load(&n_reads_outside) == 0, source);
    for (size_t i = 0; i < N_THREADS; i++) {
        readers[i] = (struct reader){.walk = walk, .random = i + 2};
        files_must(pthread_create(&readers[i].thread, NULL, run_reader, &readers[i]) == 0, "a thread");
    }
    for (size_t i = 0; i < N_THREADS; i++) {
        pthread_join(readers[i].thread, NULL);
        CHECK_NAMED(readers[i].wrong == NULL, readers[i].wrong != NULL ? readers[i].wrong->path : source);
    }
}

static size_t check_source(const char *path, unsigned runs)
{
    static const struct open_options options;
    static const struct content_options content_options;
    struct error error = {""};
    const struct checkpoint *checkpoint = checkpoint_open(path, formats, &options, &error);
    struct walk walk = {.arena = arena_new(), .runs = runs};
    walk.tree = checkpoint != NULL ? tree_new(checkpoint, &content_options, &error) : NULL;
    if (CHECK_NAMED(walk.tree != NULL, walk.tree != NULL ? path : error.message)) {
        tree_list(walk.tree, TREE_ROOT, 0, visit, &walk);
        CHECK_NAMED(walk.n_files > 0, path);
        check_files(&walk, path);
    }
    for (size_t i = 0; i < walk.n_files; i++)
        free(walk.files[i].bytes);
    free(walk.files);
    arena_free(walk.arena);
    tree_free(walk.tree);
    checkpoint_close(checkpoint);
    return walk.n_files;
}

int main(int argc, char **argv)
{
    unsigned runs = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : DEFAULT_RUNS;
    size_t n_files = 0;
    const char *data = getenv("WFS_TEST_DATA");
    for (int i = 2; i < argc; i++)
        n_files += check_source(argv[i], runs);
    for (size_t i = 0; argc <= 2 && i < sizeof fixtures / sizeof *fixtures; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", data != NULL ? data : "tests/data", fixtures[i]);
        n_files += check_source(path, runs);
    }
    fprintf(stderr, "%zu files, %zu ranges of each from one thread and %u at once; %zu reads of sources, all named\n",
            n_files, (size_t)runs, N_THREADS, atomic_load(&n_reads_inside));
    return check_done();
}
