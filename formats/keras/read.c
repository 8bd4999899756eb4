/* Keras models and sharded weights.
 *
 * A .keras file is a zip of model.weights.h5, which is read where it lies, stored or deflated, and of files such as
 * config.json, which become side files. config.json describes layers, some of which are code: nothing in it is run.
 *
 * A directory with NAME.weights.json holds the shards of Model.save_weights(max_shard_size=): an object weight_map
 * gives the shards of each layer. All datasets of all shards are the model's. Source: keras/src/saving/saving_lib.py.
 */
#include "base/text.h"
#include "formats/checkpoint_builder.h"
#include "formats/documents.h"
#include "formats/format.h"
#include "formats/zip/deflate_index.h"
#include "sources/paths.h"
#include "sources/source.h"
#include "text/json.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_SIDE_FILES = 4096 };

static const char weights_name[] = "model.weights.h5", index_ending[] = ".weights.json";

/* Archives. */

struct archive {
    struct checkpoint *checkpoint;
    struct source *file;
    struct zip_directory zip;
    struct source *inflated; /* NULL: no member is deflated */
};

static void add_inflated(struct archive *archive)
{
    for (size_t i = 0; i < archive->zip.n_members && archive->inflated == NULL; i++)
        if (archive->zip.members[i].method == ZIP_DEFLATED)
            archive->inflated = inflated_source_new(&archive->zip);
    if (archive->inflated != NULL)
        checkpoint_add_source(archive->checkpoint, archive->inflated);
}

static struct source *member_source(const struct archive *archive, const char *name, const struct zip_member *member)
{
    bool is_stored = member->method == ZIP_STORED;
    return source_range_new(is_stored ? archive->file : archive->inflated, name,
                            is_stored ? member->offset : member->inflated, member->size);
}

static int compare_names(const void *a, const void *b)
{
    const struct zip_member *const *first = a, *const *second = b;
    return strcmp((*first)->name, (*second)->name);
}

/* Adds the other members as side files, sorted by name. */
static void add_side_files(struct archive *archive)
{
    struct arena *arena = archive->checkpoint->arena;
    size_t n = 0;
    const struct zip_member **members = arena_array(arena, archive->zip.n_members, sizeof *members);
    for (size_t i = 0; i < archive->zip.n_members && n < MAX_SIDE_FILES; i++) {
        const struct zip_member *member = &archive->zip.members[i];
        if (strcmp(member->name, weights_name) != 0 && inner_path(member->name, member->name_length))
            members[n++] = member;
    }
    if (n > 0)
        qsort(members, n, sizeof(struct zip_member *), compare_names);
    for (size_t i = 0; i < n; i++)
        checkpoint_add_side_file(archive->checkpoint, arena_strdup(arena, members[i]->name),
                                 member_source(archive, members[i]->name, members[i]));
}

static bool open_archive(struct checkpoint *checkpoint, const struct input *input, const struct open_options *options,
                         struct error *error)
{
    struct archive archive = {.checkpoint = checkpoint,
                              .file = location_source(input->location, input->file_name, error)};
    if (archive.file == NULL)
        return false;
    checkpoint_add_source(checkpoint, archive.file);
    if (!source_check_fetched(archive.file, error) ||
        !zip_directory_read(&archive.zip, archive.file, checkpoint->arena, error))
        return false;
    const struct zip_member *weights = zip_directory_find(&archive.zip, weights_name, strlen(weights_name));
    if (weights == NULL)
        return error_set(error, "%s: %s is missing", source_name(archive.file), weights_name);
    add_inflated(&archive);
    const char *name = arena_printf(checkpoint->arena, "%s: %s", source_name(archive.file), weights_name);
    struct source *source = member_source(&archive, name, weights);
    checkpoint_add_source(checkpoint, source);
    if (!hdf5_format.read_file(checkpoint, source, checkpoint->unsealed, options, error))
        return false;
    add_side_files(&archive);
    return true;
}

/* Shards. */

static bool is_index(const char *name)
{
    return text_ends_with(name, index_ending) && *name != '.';
}

/* Returns the only index of the directory; NULL, with an error if there are several. */
static const char *find_index(const struct input *input, struct error *error)
{
    const char *found = NULL;
    for (size_t i = 0; i < input->list.count; i++) {
        const char *name = input->list.entries[i].name;
        if (!is_index(name))
            continue;
        if (found != NULL) {
            error_set(error, "%s: %s and %s: several indexes; name one file", input->path, found, name);
            return NULL;
        }
        found = name;
    }
    return found;
}

/* The names of shards, with repetitions until they are sorted. */
struct names {
    struct arena *arena;
    const char **names;
    size_t n_names;
};

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool add_name(struct names *names, const char *index, const struct json *value, struct error *error)
{
    size_t length = 0;
    const char *name = json_string(value, &length);
    if (name == NULL || !inner_path(name, length) || strchr(name, '/') != NULL)
        return error_set(error, "%s: weight_map has a shard that is not a file name", index);
    names->names = arena_grow(names->arena, names->names, names->n_names, sizeof *names->names);
    names->names[names->n_names++] = arena_strndup(names->arena, name, length);
    return true;
}

/* Collects the shards of all layers: a list of names for each, or one name. */
static bool collect_names(struct names *names, const char *index, const struct json *weight_map, struct error *error)
{
    for (struct json_member layer = {0}; json_next_member(weight_map, &layer);) {
        const struct json *list = json_is(layer.value, JSON_ARRAY) ? json_first(layer.value) : layer.value;
        for (; list != NULL; list = json_is(layer.value, JSON_ARRAY) ? json_next(list) : NULL)
            if (!add_name(names, index, list, error))
                return false;
    }
    return names->n_names > 0 || error_set(error, "%s: the object weight_map is missing or empty", index);
}

static bool read_shards(struct checkpoint *checkpoint, const struct input *input, const struct open_options *options,
                        struct names *names, struct error *error)
{
    qsort(names->names, names->n_names, sizeof *names->names, compare_texts);
    for (size_t i = 0; i < names->n_names; i++) {
        if (i > 0 && strcmp(names->names[i - 1], names->names[i]) == 0)
            continue;
        struct source *shard = location_source(input->location, names->names[i], error);
        if (shard == NULL)
            return false;
        checkpoint_add_source(checkpoint, shard);
        if (!hdf5_format.read_file(checkpoint, shard, checkpoint->unsealed, options, error))
            return false;
    }
    return true;
}

static bool open_shards(struct checkpoint *checkpoint, const struct input *input, const struct open_options *options,
                        struct error *error)
{
    const char *name = input->file_name != NULL ? input->file_name : find_index(input, error);
    struct source *index = name != NULL ? location_source(input->location, name, error) : NULL;
    if (index == NULL)
        return false;
    struct names names = {.arena = checkpoint->arena};
    struct json_document *document = document_parse(index, error);
    bool good = document != NULL && collect_names(&names, name, json_get(json_root(document), "weight_map"), error) &&
                read_shards(checkpoint, input, options, &names, error);
    json_free(document);
    checkpoint_add_guide(checkpoint, index); /* after the weights */
    if (good)
        format_add_side_files(checkpoint, input);
    return good;
}

/* The format. */

static bool is_archive(const struct input *input)
{
    return input->file_name != NULL && format_extension(&keras_format, input->file_name) != NULL;
}

static bool keras_open(struct checkpoint *checkpoint, const struct input *input, const struct open_options *options,
                       struct error *error)
{
    return is_archive(input) ? open_archive(checkpoint, input, options, error)
                             : open_shards(checkpoint, input, options, error);
}

static enum probe keras_probe(const struct input *input)
{
    if (input->location == NULL)
        return PROBE_NO;
    if (input->file != NULL)
        return is_archive(input) || is_index(input->file_name) ? PROBE_SURE : PROBE_NO;
    for (size_t i = 0; i < input->list.count; i++)
        if (is_index(input->list.entries[i].name))
            return PROBE_SURE;
    return PROBE_NO;
}

static const struct extension extensions[] = {{".keras", .alone = true}, {0}};

const struct format keras_format = {
    .name = "keras",
    .extensions = extensions,
    .summary = "Keras models: .keras, and shards with their .weights.json",
    .probe = keras_probe,
    .open = keras_open,
};
