/* Checkpoints whose JSON has another structure than it should.
 *
 *     fuzz_structure [-n RUNS] [-s SEED] [-k DIRECTORY] [-b BASE] [-l LAYOUT] CHECKPOINT...
 *
 * Copies each checkpoint, a directory, and opens the copy RUNS times (300), each time with one change to one of its
 * JSON files or to the header of a safetensors file: a value of another type, an object for an array, a member left
 * out or there twice, a number out of range, a container emptied or nested. All files are listed, and the beginning and
 * the end of each is read. A run that dies, or takes as long as standalone.c allows, is a finding: its line names the
 * file and the change, and -k keeps the changed file. The same SEED makes the same changes. With -l, the layout of that
 * file is made, too, and the file is among those that change; -b gives an adapter its base model.
 *
 * By hand, with the sanitizers: CC=clang meson setup -Db_sanitize=address,undefined -Db_lundef=false build-asan
 *     build-asan/tests/fuzz/fuzz_structure -n 20000 -s 2 -k findings CHECKPOINT... */
#include "tests/fuzz/visit_tree.h"

#include "base/buffer.h"
#include "base/text.h"
#include "tests/fuzz/time_limit.h"
#include "tests/unit/files.h"
#include "text/json.h"
#include "text/json_write.h"

#include <fcntl.h>
#include <sys/wait.h>

enum { MAX_PATH = 1024, MAX_JSON_FILES = 256, MAX_COPY = 64 << 20, LENGTH_BYTES = 8, NESTED = 100 };

/* A JSON file of the copy. */
struct json_file {
    char *path;
    unsigned char *bytes; /* as they were */
    size_t size, head;    /* bytes before the JSON: of a safetensors file its length */
    size_t json_size;
    struct json_document *document;
};

static char copy[] = "/tmp/wfs-structure-XXXXXX";
static const char *source; /* that is copied */
static struct json_file files[MAX_JSON_FILES];
static size_t n_files;

/* What becomes of a value: one of these texts, or one of the changes below. */
static const char *const texts[] = {"null",       "true",  "false", "\"\"",      "\"x\"",  "\"\\u0000\"",
                                    "0",          "-1",    "1",     "3",         "0.5",    "1e-300",
                                    "1e999",      "-0",    "[]",    "{}",        "[null]", "{\"\": null}",
                                    "4294967296", "[[]]",  "[{}]",  "{\"0\":1}", "255",    "18446744073709551616",
                                    "2147483648", "[-1]",  "[0.5]", "65536",     "\"-1\"", "-9223372036854775808",
                                    "99999999",   "[\"\"]"};
enum change_kind { SWAP = sizeof texts / sizeof *texts, IN_ARRAY, NEST, HALVE, DROP, REPEAT, RENAME, N_KINDS };
static const char *const kinds[] = {"swap", "in array", "nest", "halve", "drop", "repeat", "rename"};

struct change {
    size_t value; /* number of the value, in the order of the text */
    unsigned kind;
};

struct writing {
    struct json_writer json;
    struct change change;
    size_t n_values; /* written, or left out, so far */
};

static size_t count_values(const struct json *value)
{
    size_t n_values = 1;
    for (const struct json *item = json_first(value); item != NULL; item = json_next(item))
        n_values += count_values(item);
    for (struct json_member member = {0}; json_next_member(value, &member);)
        n_values += count_values(member.value);
    return n_values;
}

static void put(struct writing *writing, const struct json *value);

static void put_scalar(struct writing *writing, const struct json *value)
{
    static const char *const words[] = {[JSON_NULL] = "null", [JSON_FALSE] = "false", [JSON_TRUE] = "true"};
    size_t length;
    const char *text = json_string(value, &length);
    if (text != NULL)
        json_put_text_n(&writing->json, NULL, text, length);
    else
        json_put_raw(&writing->json, NULL,
                     json_is(value, JSON_NUMBER) ? json_number_text(value) : words[json_type(value)]);
}

/* An item of a container, with its key in an object, else NULL. */
static void put_item(struct writing *writing, const char *key, size_t key_length, const struct json *value)
{
    bool is_changed = writing->n_values == writing->change.value;
    unsigned kind = is_changed ? writing->change.kind : N_KINDS;
    if (kind == DROP)
        writing->n_values += count_values(value);
    for (unsigned i = kind == DROP ? 2 : kind == REPEAT ? 0 : 1; i < 2; i++) {
        if (key != NULL && kind == RENAME)
            json_put_key(&writing->json, "-1", 2);
        else if (key != NULL)
            json_put_key(&writing->json, key, key_length);
        put(writing, value);
    }
}

/* The first `most` items of a container, as an object or as an array; the keys of elements are their numbers. */
static void put_items(struct writing *writing, const struct json *container, bool as_object, size_t most)
{
    size_t number = 0;
    if (as_object)
        json_begin_object(&writing->json, NULL);
    else
        json_begin_array(&writing->json, NULL);
    for (const struct json *item = json_first(container); item != NULL && number < most; item = json_next(item)) {
        char key[24];
        int length = snprintf(key, sizeof key, "%zu", number++);
        put_item(writing, as_object ? key : NULL, (size_t)length, item);
    }
    for (struct json_member member = {0}; number < most && json_next_member(container, &member); number++)
        put_item(writing, as_object ? member.key : NULL, member.key_length, member.value);
    json_end(&writing->json);
}

static void put_as_it_is(struct writing *writing, const struct json *value)
{
    if (json_is(value, JSON_OBJECT) || json_is(value, JSON_ARRAY))
        put_items(writing, value, json_is(value, JSON_OBJECT), SIZE_MAX);
    else
        put_scalar(writing, value);
}

static void put_in_arrays(struct writing *writing, const struct json *value, unsigned depth)
{
    for (unsigned i = 0; i < depth; i++)
        json_begin_array(&writing->json, NULL);
    put_as_it_is(writing, value);
    for (unsigned i = 0; i < depth; i++)
        json_end(&writing->json);
}

static void put_changed(struct writing *writing, const struct json *value, unsigned kind)
{
    size_t n_items = json_count(value) + json_count_members(value);
    bool is_object = json_is(value, JSON_OBJECT);
    if (kind < SWAP)
        json_put_raw(&writing->json, NULL, texts[kind]);
    else if (kind == SWAP)
        put_items(writing, value, !is_object, SIZE_MAX);
    else if (kind == HALVE)
        put_items(writing, value, is_object, n_items / 2);
    else
        put_in_arrays(writing, value, kind == IN_ARRAY ? 1 : kind == NEST ? NESTED : 0);
}

static void put(struct writing *writing, const struct json *value)
{
    if (writing->n_values++ == writing->change.value)
        put_changed(writing, value, writing->change.kind);
    else
        put_as_it_is(writing, value);
}

/* Returns the changed file, beginning with its header length if it had one. */
static struct buffer changed_file(const struct json_file *file, struct change change)
{
    struct buffer json = {0}, out = {0};
    struct writing writing = {.json = {.out = &json, .letters = JSON_UTF8, .compact = true}, .change = change};
    put(&writing, json_root(file->document));
    if (file->head > 0)
        buffer_append_le(&out, json.length, LENGTH_BYTES);
    buffer_append(&out, json.bytes, json.length);
    buffer_append(&out, file->bytes + file->head + file->json_size, file->size - file->head - file->json_size);
    buffer_free(&json);
    return out;
}

static void *read_bytes(const char *path, size_t size)
{
    unsigned char *bytes = malloc(size + 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    require(bytes != NULL && fd >= 0 && read(fd, bytes, size) == (ssize_t)size);
    close(fd);
    return bytes;
}

/* Keeps a file in mind if it has JSON. */
static void add_file(const char *path, unsigned char *bytes, size_t size)
{
    struct error error;
    struct json_file file = {.path = strdup(path), .bytes = bytes, .size = size, .json_size = size};
    uint64_t length = 0;
    if (text_ends_with(path, ".safetensors") && size > LENGTH_BYTES) {
        memcpy(&length, bytes, sizeof length);
        file.head = LENGTH_BYTES;
        file.json_size = length <= size - LENGTH_BYTES ? (size_t)length : 0;
    } else if (!text_ends_with(path, ".json")) {
        file.json_size = 0;
    }
    if (file.json_size > 0 && n_files < MAX_JSON_FILES)
        file.document = json_parse((const char *)bytes + file.head, file.json_size, &error);
    if (file.document == NULL) {
        free(file.path);
        free(bytes);
        return;
    }
    files[n_files++] = file;
}

static int copy_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
    char to[MAX_PATH];
    (void)place;
    snprintf(to, sizeof to, "%s/model%s", copy, path + strlen(source));
    if (type == FTW_D)
        return mkdir(to, 0700);
    if (type != FTW_F || status->st_size > MAX_COPY)
        return 0;
    unsigned char *bytes = read_bytes(path, (size_t)status->st_size);
    files_write(to, bytes, (size_t)status->st_size);
    add_file(to, bytes, (size_t)status->st_size);
    return 0;
}

static void copy_layout(const char *path, char to[MAX_PATH])
{
    struct stat status;
    require(stat(path, &status) == 0);
    unsigned char *bytes = read_bytes(path, (size_t)status.st_size);
    snprintf(to, MAX_PATH, "%s/layout.json", copy);
    files_write(to, bytes, (size_t)status.st_size);
    add_file(to, bytes, (size_t)status.st_size);
}

struct settings {
    const char *base, *layout, *kept;
    unsigned long n_runs, seed;
};

/* Everything of the copy, in a process of its own. */
static void visit_copy(const struct settings *settings, const char *layout)
{
    struct arena *arena = arena_new();
    struct layout_request request;
    struct error error;
    struct content_options options = {.request.base = settings->base};
    char model[MAX_PATH];
    snprintf(model, sizeof model, "%s/model", copy);
    limit_time(MOST_SECONDS);
    if (settings->layout != NULL) {
        if (layout_find(layout, arena, &request, &error))
            options.request.layouts = (struct layout_requests){&request, 1};
        else
            require_one_line(&error);
    }
    visit_path(model, &options, NULL);
    arena_free(arena);
}

static bool dies(const struct settings *settings, const char *layout)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    require(child >= 0);
    if (child == 0) {
        visit_copy(settings, layout);
        exit(0);
    }
    require(waitpid(child, &status, 0) == child);
    return status != 0;
}

/* The state of a generator of random numbers (SplitMix64). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

/* An item of a container. Adds to *number by how much its number is larger than the container's. */
static const struct json *item_at(const struct json *container, size_t index, size_t *number)
{
    ++*number;
    for (const struct json *item = json_first(container); item != NULL; item = json_next(item)) {
        if (index-- == 0)
            return item;
        *number += count_values(item);
    }
    for (struct json_member member = {0}; json_next_member(container, &member);) {
        if (index-- == 0)
            return member.value;
        *number += count_values(member.value);
    }
    abort();
}

/* The number of some value: those near the root are as likely as those of a long list. */
static size_t pick_value(const struct json *value, uint64_t *state)
{
    size_t number = 0, n_items;
    bool goes_down = true;
    while (goes_down && (n_items = json_count(value) + json_count_members(value)) > 0) {
        value = item_at(value, next_random(state) % n_items, &number);
        goes_down = next_random(state) % 4 != 0;
    }
    return number;
}

static void report(const struct settings *settings, const struct json_file *file, struct change change,
                   const struct buffer *bytes, unsigned finding)
{
    const char *kind = change.kind < SWAP ? texts[change.kind] : kinds[change.kind - SWAP];
    char kept[MAX_PATH];
    printf("%s: %s: value %zu: %s\n", source, file->path + sizeof copy, change.value, kind);
    if (settings->kept == NULL)
        return;
    snprintf(kept, sizeof kept, "%s/%lu-%u-%s", settings->kept, settings->seed, finding, strrchr(file->path, '/') + 1);
    files_write(kept, bytes->bytes, bytes->length);
}

static unsigned run_all(const struct settings *settings, const char *layout)
{
    static unsigned n_findings;
    unsigned before = n_findings;
    uint64_t state = settings->seed;
    for (unsigned long run = 0; n_files > 0 && run < settings->n_runs; run++) {
        const struct json_file *file = &files[next_random(&state) % n_files];
        struct change change = {pick_value(json_root(file->document), &state),
                                (unsigned)(next_random(&state) % N_KINDS)};
        struct buffer bytes = changed_file(file, change);
        files_write(file->path, bytes.bytes, bytes.length);
        if (dies(settings, layout))
            report(settings, file, change, &bytes, ++n_findings);
        files_write(file->path, file->bytes, file->size);
        buffer_free(&bytes);
    }
    return n_findings - before;
}

static unsigned run_checkpoint(const struct settings *settings)
{
    char layout[MAX_PATH] = "";
    strcpy(strrchr(copy, '-') + 1, "XXXXXX");
    require(mkdtemp(copy) != NULL && nftw(source, copy_one, 16, FTW_PHYS) == 0);
    if (settings->layout != NULL)
        copy_layout(settings->layout, layout);
    unsigned n_findings = run_all(settings, layout);
    for (; n_files > 0; n_files--) {
        struct json_file *file = &files[n_files - 1];
        json_free(file->document);
        free(file->bytes);
        free(file->path);
    }
    require(nftw(copy, files_remove_one, 16, FTW_PHYS | FTW_DEPTH) == 0);
    return n_findings;
}

int main(int argc, char **argv)
{
    struct settings settings = {.n_runs = 300, .seed = 1};
    unsigned n_findings = 0;
    for (int option; (option = getopt(argc, argv, "n:s:k:b:l:")) != -1;) {
        if (option == 'n')
            settings.n_runs = strtoul(optarg, NULL, 10);
        else if (option == 's')
            settings.seed = strtoul(optarg, NULL, 10);
        else if (option == 'k')
            settings.kept = optarg;
        else if (option == 'b')
            settings.base = optarg;
        else if (option == 'l')
            settings.layout = optarg;
        else
            return 2;
    }
    for (int i = optind; i < argc; i++) {
        source = argv[i];
        n_findings += run_checkpoint(&settings);
    }
    printf("%d checkpoints, %lu runs each, %u findings\n", argc - optind, settings.n_runs, n_findings);
    return n_findings > 0 || optind == argc;
}
