#include "fs/lib/attestation.h"

#include "base/lock.h"
#include "base/pool.h"
#include "base/text.h"
#include "fs/lib/copy.h"
#include "fs/lib/stage.h"
#include "fs/options/options.h"
#include "fs/tree/identity.h"
#include "fs/tree/inventory.h"
#include "sources/location.h"
#include "text/json_write.h"

#include <nettle/base16.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

#define STATEMENT_TYPE "https://in-toto.io/Statement/v1"
#define PREDICATE_TYPE "https://slsa.dev/provenance/v1"
#define BUILD_TYPE     "urn:wfs:virtual-files:v1"
#define BUILDER        "urn:wfs:builder"

enum { MOST_BYTES = 64 << 20 /* of a statement */ };

/* Hashing. */

struct hashed {
    struct vfile file;
    struct attested_file *result;
};

struct hashing {
    struct hashed *files;
    size_t n_files;
    struct lock lock; /* guards the following fields and the stage */
    bool failed;
    struct error *error;
};

/* A file that is being read. */
struct reading {
    struct hashing *hashing;
    struct sha256_ctx context;
};

static bool take(void *context, const void *bytes, size_t length, struct error *error)
{
    struct reading *reading = context;
    sha256_update(&reading->context, length, bytes);
    lock_take(&reading->hashing->lock);
    stage_add(length);
    lock_drop(&reading->hashing->lock);
    return true;
}

static void hash_file(void *context, size_t index)
{
    struct hashing *hashing = context;
    struct hashed *hashed = &hashing->files[index];
    struct reading reading = {.hashing = hashing};
    struct error error;
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_init(&reading.context);
    const struct vfile *file = &hashed->file;
    bool done = take_file(file, take, &reading, &error);
    sha256_digest(&reading.context, sizeof digest, digest);
    base16_encode_update(hashed->result->sha256, sizeof digest, digest);
    hashed->result->sha256[SHA256_HEX] = '\0';
    done = (done && (file->whole == NULL || source_confirm(file->whole, hashed->result->sha256, false, &error))) ||
           error_prefix(&error, "%s", hashed->result->name);
    lock_take(&hashing->lock);
    if (!done && !hashing->failed)
        *hashing->error = error;
    hashing->failed |= !done;
    lock_drop(&hashing->lock);
}

static bool hash_all(struct hashed *files, size_t n_files, struct error *error)
{
    struct hashing hashing = {.files = files, .n_files = n_files, .error = error};
    uint64_t n_bytes = 0;
    for (size_t i = 0; i < n_files; i++)
        n_bytes += files[i].file.size;
    lock_init(&hashing.lock);
    stage_begin("sha256", n_bytes);
    pool_run(n_files, hash_file, &hashing);
    stage_end();
    lock_destroy(&hashing.lock);
    return !hashing.failed;
}

/* Gathering files. */

struct gathering {
    struct arena *arena;
    struct hashed *files; /* subjects first */
    size_t n_files, capacity, n_subjects;
    struct source *const *named; /* the files of options */
    size_t n_named;
};

static void add_file(struct gathering *gathering, const struct vfile *file, const char *name)
{
    struct attested_file *result = arena_alloc(gathering->arena, sizeof *result);
    *result = (struct attested_file){.name = name};
    gathering->files = memory_grow(gathering->files, gathering->n_files, sizeof *gathering->files);
    gathering->files[gathering->n_files++] = (struct hashed){*file, result};
}

/* Returns the name of a source without the folder of the checkpoint, or of any other file without its folder. */
static const char *relative_name(const char *name, const char *folder)
{
    size_t length = strlen(folder);
    if (text_starts_with(name, folder) && name[length] == '/')
        return name + length + 1;
    const char *slash = name[0] == '/' || strstr(name, "://") != NULL ? strrchr(name, '/') : NULL;
    return slash != NULL ? slash + 1 : name;
}

static void add_material(struct gathering *gathering, struct source *source, const char *folder)
{
    for (size_t i = gathering->n_subjects; i < gathering->n_files; i++)
        if (gathering->files[i].file.whole == source || source_same_file(gathering->files[i].file.whole, source))
            return;
    if (!source_is_file(source))
        return; /* made by wfs, from the files that are materials, too */
    struct vfile file = vfile_of_source(gathering->arena, source, (struct origin){0});
    add_file(gathering, &file, relative_name(source_name(source), folder));
}

/* Adds the configurations of merged adapters, which give their strength. */
static void add_adapters(struct gathering *gathering, const struct checkpoint *checkpoint)
{
    for (; checkpoint != NULL; checkpoint = checkpoint_base(checkpoint, BASE_ORIGIN))
        for (size_t i = 0; i < checkpoint->n_bases; i++) {
            const struct checkpoint *adapter = checkpoint->bases[i].checkpoint;
            const struct side_file *config =
                checkpoint->bases[i].role == BASE_ADAPTER ? checkpoint_side_file(adapter, "adapter_config.json") : NULL;
            if (config != NULL)
                add_material(gathering, config->source, adapter->path);
        }
}

static bool gather(struct gathering *gathering, struct tree *tree, const struct found_list *files, struct error *error)
{
    const char *folder = tree_checkpoint(tree)->path;
    for (size_t i = 0; i < files->n_items; i++) {
        struct vfile file;
        if (!tree_file(tree, files->items[i].attributes.id, gathering->arena, &file, error))
            return error_prefix(error, "%s", files->items[i].path);
        add_file(gathering, &file, files->items[i].path);
    }
    gathering->n_subjects = gathering->n_files;
    for (size_t i = 0; i < gathering->n_subjects; i++) {
        const struct origin origin = gathering->files[i].file.origin;
        for (size_t j = 0; j < origin.n_sources; j++)
            add_material(gathering, origin.sources[j], folder);
    }
    add_adapters(gathering, tree_checkpoint(tree));
    for (size_t i = 0; i < gathering->n_named; i++)
        add_material(gathering, gathering->named[i], folder);
    return true;
}

static int compare_files(const void *a, const void *b)
{
    const struct attested_file *left = a, *right = b;
    int order = strcmp(left->name, right->name);
    return order != 0 ? order : strcmp(left->sha256, right->sha256);
}

/* Returns a sorted copy of the results of `n` files, each name and digest once. */
static struct attested_file *sorted(const struct hashed *files, size_t *n, struct arena *arena)
{
    struct attested_file *results = arena_array(arena, *n + 1, sizeof *results);
    size_t n_kept = 0;
    for (size_t i = 0; i < *n; i++) {
        results[i] = *files[i].result;
        results[i].name = arena_strdup(arena, results[i].name);
    }
    qsort(results, *n, sizeof *results, compare_files);
    for (size_t i = 0; i < *n; i++)
        if (n_kept == 0 || compare_files(&results[n_kept - 1], &results[i]) != 0)
            results[n_kept++] = results[i];
    *n = n_kept;
    return results;
}

/* Returns the options as texts: a value that names files without their folders. */
static const char *const *option_texts(const struct asked_options *asked, struct arena *arena)
{
    const char **texts = arena_array(arena, asked->count + 1, sizeof *texts);
    for (size_t i = 0; i < asked->count; i++) {
        const struct asked_option *option = &asked->items[i];
        const char *value = option->value;
        const char *slash = value != NULL && option->row->names_input ? strrchr(value, '/') : NULL;
        value = slash != NULL ? slash + 1 : value;
        texts[i] = value == NULL ? option->row->name : arena_printf(arena, "%s=%s", option->row->name, value);
    }
    return texts;
}

bool attestation_make(struct tree *tree, const struct found_list *files, const struct options *options,
                      struct arena *arena, struct attestation *ret_attestation, struct error *error)
{
    struct gathering gathering = {.arena = arena};
    gathering.named = request_open_files(options, arena, &gathering.n_named);
    bool done = gather(&gathering, tree, files, error) && hash_all(gathering.files, gathering.n_files, error);
    if (done) {
        size_t n_subjects = gathering.n_subjects, n_materials = gathering.n_files - n_subjects;
        const struct hashed *materials = n_materials > 0 ? gathering.files + n_subjects : NULL;
        *ret_attestation = (struct attestation){
            .model = arena_strdup(arena, tree_checkpoint(tree)->model_name),
            .version = WFS_VERSION,
            .references = &options->content.request.references,
            .options = option_texts(&options->asked, arena),
            .n_options = options->asked.count,
        };
        ret_attestation->subjects = sorted(gathering.files, &n_subjects, arena);
        ret_attestation->materials = sorted(materials, &n_materials, arena);
        ret_attestation->n_subjects = n_subjects;
        ret_attestation->n_materials = n_materials;
    }
    free(gathering.files);
    return done;
}

/* JSON. */

static void put_attested(struct json_writer *writer, const char *key, const struct attested_file *files, size_t n_files)
{
    json_begin_array(writer, key);
    for (size_t i = 0; i < n_files; i++)
        json_put_template(writer, "\n{'name': %s, 'digest': {'sha256': %s}}", files[i].name, files[i].sha256);
    json_end(writer);
}

static void put_texts(struct json_writer *writer, const char *key, const char *const *texts, size_t n_texts)
{
    json_begin_array(writer, key);
    for (size_t i = 0; i < n_texts; i++)
        json_put_text(writer, NULL, texts[i]);
    json_end(writer);
}

void attestation_append(const struct attestation *attestation, enum json_letters letters, struct buffer *out)
{
    struct json_writer writer = {.out = out, .letters = letters, .compact = true};
    json_put_template(&writer, "{'_type': %s", STATEMENT_TYPE);
    json_break_line(&writer);
    put_attested(&writer, "subject", attestation->subjects, attestation->n_subjects);
    json_put_template(&writer,
                      "\n'predicateType': %s, \n'predicate': {'buildDefinition': {'buildType': %s, \n"
                      "'externalParameters': {'model': %s",
                      PREDICATE_TYPE, BUILD_TYPE, attestation->model);
    put_texts(&writer, "options", attestation->options, attestation->n_options);
    json_begin_array(&writer, "paths");
    for (size_t i = 0; i < attestation->n_subjects; i++)
        json_put_text(&writer, NULL, attestation->subjects[i].name);
    json_put_template(&writer, "]}, \n'internalParameters': {'build': %s", wfs_build);
    put_references(&writer, attestation->references);
    json_put_template(&writer, "}");
    json_break_line(&writer);
    put_attested(&writer, "resolvedDependencies", attestation->materials, attestation->n_materials);
    json_put_template(&writer, "}, \n'runDetails': {'builder': {'id': %s, 'version': {'wfs': %s}}}}}", BUILDER,
                      attestation->version);
}

/* Gets the names and digests of an array; false if one is missing or no SHA-256. */
static bool read_files(const struct json *array, struct arena *arena, struct attested_file **ret_files, size_t *ret_n)
{
    size_t n = 0;
    *ret_files = arena_array(arena, json_count(array) + 1, sizeof **ret_files);
    for (const struct json *item = json_first(array); item != NULL; item = json_next(item)) {
        size_t name_length, length = 0;
        const char *name = json_string(json_get(item, "name"), &name_length);
        const char *sha256 = json_string(json_get(json_get(item, "digest"), "sha256"), &length);
        if (name == NULL || strlen(name) != name_length || sha256 == NULL || length != SHA256_HEX ||
            strspn(sha256, "0123456789abcdef") != SHA256_HEX)
            return false;
        struct attested_file *file = &(*ret_files)[n++];
        file->name = arena_strdup(arena, name);
        memcpy(file->sha256, sha256, SHA256_HEX + 1);
    }
    qsort(*ret_files, n, sizeof **ret_files, compare_files);
    *ret_n = n;
    return json_is(array, JSON_ARRAY);
}

static bool read_options(const struct json *array, struct arena *arena, struct attestation *attestation)
{
    const char **options = arena_array(arena, json_count(array) + 1, sizeof *options);
    attestation->options = options;
    for (const struct json *item = json_first(array); item != NULL; item = json_next(item)) {
        size_t length;
        const char *text = json_string(item, &length);
        if (text == NULL || strlen(text) != length)
            return false;
        options[attestation->n_options++] = arena_strdup(arena, text);
    }
    return json_is(array, JSON_ARRAY);
}

static bool read_statement(const struct json *root, struct arena *arena, struct attestation *ret_attestation,
                           struct error *error)
{
    const struct json *predicate = json_get(root, "predicate"), *build = json_get(predicate, "buildDefinition");
    const struct json *parameters = json_get(build, "externalParameters");
    const struct json *builder = json_get(json_get(predicate, "runDetails"), "builder");
    const char *model = json_string(json_get(parameters, "model"), NULL);
    const char *version = json_string(json_get(json_get(builder, "version"), "wfs"), NULL);
    struct attestation read = {0};
    if (!json_string_is(json_get(root, "_type"), STATEMENT_TYPE))
        return error_set(error, "not an in-toto statement: _type is not %s", STATEMENT_TYPE);
    if (!json_string_is(json_get(root, "predicateType"), PREDICATE_TYPE) ||
        !json_string_is(json_get(build, "buildType"), BUILD_TYPE))
        return error_set(error, "not a statement of 'wfs attest': predicateType is not %s, or buildType not %s",
                         PREDICATE_TYPE, BUILD_TYPE);
    if (model == NULL || version == NULL || !read_options(json_get(parameters, "options"), arena, &read) ||
        !read_files(json_get(root, "subject"), arena, &read.subjects, &read.n_subjects) ||
        !read_files(json_get(build, "resolvedDependencies"), arena, &read.materials, &read.n_materials))
        return error_set(error, "not a statement of 'wfs attest': a name, digest, version or option is missing");
    const struct json *references = json_get(json_get(build, "internalParameters"), "references");
    const char *llama_cpp = json_string(json_get(references, "llama.cpp"), NULL);
    read.llama_cpp = llama_cpp != NULL ? arena_strdup(arena, llama_cpp) : NULL;
    read.model = arena_strdup(arena, model);
    read.version = arena_strdup(arena, version);
    *ret_attestation = read;
    return true;
}

bool attestation_read(const char *path, struct arena *arena, struct attestation *ret_attestation, struct error *error)
{
    size_t length;
    struct source *source = location_open_file(path, error);
    char *text = source != NULL ? source_read_text(source, MOST_BYTES, &length, error) : NULL;
    struct json_document *document = text != NULL ? json_parse(text, length, error) : NULL;
    if (text != NULL && document == NULL)
        error_prefix(error, "%s", path);
    bool read = document != NULL &&
                (read_statement(json_root(document), arena, ret_attestation, error) || error_prefix(error, "%s", path));
    json_free(document);
    free(text);
    source_close(source);
    return read;
}

size_t attestation_compare(const struct attested_file *a, size_t n_a, const struct attested_file *b, size_t n_b,
                           attested_difference *differ, void *context)
{
    size_t n_different = 0, i = 0, j = 0;
    while (i < n_a || j < n_b) {
        int order = i == n_a ? 1 : j == n_b ? -1 : strcmp(a[i].name, b[j].name);
        bool is_same = order == 0 && strcmp(a[i].sha256, b[j].sha256) == 0;
        if (!is_same)
            differ(context, order <= 0 ? &a[i] : NULL, order >= 0 ? &b[j] : NULL);
        n_different += !is_same;
        i += order <= 0;
        j += order >= 0;
    }
    return n_different;
}
