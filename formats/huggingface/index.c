#include "formats/huggingface/index.h"

#include "base/binary_search.h"
#include "base/text.h"
#include "formats/documents.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_NAME = 200 };

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Accepts one component of a path that stays in its directory. */
static bool is_file_name(const char *name, size_t length)
{
    return length > 0 && length <= NAME_MAX && strlen(name) == length && strchr(name, '/') == NULL &&
           strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static bool refuse_shard(const struct shard_index *index, const struct json_member *entry, struct error *error)
{
    const char *shard = json_string(entry->value, NULL);
    char tensor[SHOWN_NAME];
    text_printable(entry->key, entry->key_length, tensor, sizeof tensor);
    if (shard == NULL)
        return error_set(error, "%s: the shard of tensor '%s' is not a string", index->name, tensor);
    return error_set(error, "%s: the shard '%.200s' of tensor '%s' is not a file name", index->name, shard, tensor);
}

/* Collects the shard of each entry, with repetitions. */
static bool collect_shards(const struct shard_index *index, const char **names, struct error *error)
{
    for (struct json_member entry = {0}; json_next_member(index->weight_map, &entry);) {
        size_t length;
        const char *shard = json_string(entry.value, &length);
        if (shard == NULL || !is_file_name(shard, length))
            return refuse_shard(index, &entry, error);
        *names++ = shard;
    }
    return true;
}

static bool find_shards(const struct shard_index *index, struct arena *arena, struct shards *ret_shards,
                        struct error *error)
{
    size_t n_entries = json_count_members(index->weight_map), n_names = 0;
    const char **names = memory_alloc(n_entries * sizeof *names);
    bool found = collect_shards(index, names, error);
    if (found) {
        qsort(names, n_entries, sizeof *names, compare_names);
        for (size_t i = 0; i < n_entries; i++)
            if (i == 0 || strcmp(names[i - 1], names[i]) != 0)
                n_names++;
        found = n_names <= INDEX_MAX_SHARDS;
        if (!found)
            error_set(error, "%s: too many shards: %zu, the limit is %d", index->name, n_names, INDEX_MAX_SHARDS);
    }
    if (found) {
        const char **distinct = arena_array(arena, n_names, sizeof *distinct);
        ret_shards->names = distinct;
        ret_shards->n_names = n_names;
        for (size_t i = 0; i < n_entries; i++)
            if (i == 0 || strcmp(names[i - 1], names[i]) != 0)
                *distinct++ = arena_strdup(arena, names[i]);
    }
    free(names);
    return found;
}

bool index_read(struct shard_index *index, const struct location *location, const char *name,
                struct checkpoint *checkpoint, struct shards *ret_shards, struct error *error)
{
    index->name = name;
    struct source *source = location_source(location, name, error);
    if (source == NULL)
        return false;
    checkpoint_add_guide(checkpoint, source);
    index->document = document_parse(source, error);
    if (index->document == NULL)
        return false;
    index->weight_map = json_get(json_root(index->document), "weight_map");
    if (!json_is(index->weight_map, JSON_OBJECT))
        return error_set(error, "%s: the object weight_map is missing", name);
    if (json_count_members(index->weight_map) == 0)
        return error_set(error, "%s: weight_map is empty", name);
    return find_shards(index, checkpoint->arena, ret_shards, error);
}

void index_free(struct shard_index *index)
{
    json_free(index->document);
}

struct place {
    const struct shards *shards;
    size_t tensor;
};

static bool shard_ends_before(const void *context, size_t index)
{
    const struct place *place = context;
    return place->shards->first_tensors[index + 1] <= place->tensor;
}

/* Returns the number of the shard that holds a tensor. */
static size_t shard_of(const struct checkpoint *checkpoint, const struct shards *shards, const struct tensor *tensor)
{
    const struct place place = {shards, (size_t)(tensor - checkpoint->tensors->tensors)};
    return search_first(shards->n_names, shard_ends_before, &place);
}

static void note_unlisted(const struct shard_index *index, const struct checkpoint *checkpoint,
                          const struct shards *shards)
{
    const struct tensor_set *set = checkpoint->tensors;
    size_t n_unlisted = set->n_tensors - json_count_members(index->weight_map);
    for (size_t i = 0; n_unlisted > 0 && i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        if (json_get_n(index->weight_map, tensor->name, tensor->name_length) != NULL)
            continue;
        checkpoint_note(checkpoint, SUBJECT_SOURCE, "%s does not list tensor '%.200s' of %s%s", index->name,
                        tensor->name, shards->names[shard_of(checkpoint, shards, tensor)],
                        n_unlisted > 1 ? ", nor others" : "");
        return;
    }
}

bool index_check(const struct shard_index *index, struct checkpoint *checkpoint, const struct shards *shards,
                 struct error *error)
{
    if (!checkpoint_seal(checkpoint, error))
        return false;
    const struct tensor_set *set = checkpoint->tensors;
    const struct tensor *near = set->tensors;
    for (struct json_member entry = {0}; json_next_member(index->weight_map, &entry);) {
        const char *wanted = json_string(entry.value, NULL);
        const struct tensor *tensor =
            set->n_tensors > 0 ? tensor_set_find_near(set, near, entry.key, entry.key_length) : NULL;
        near = tensor != NULL ? tensor : near;
        const char *found = tensor != NULL ? shards->names[shard_of(checkpoint, shards, tensor)] : NULL;
        if (found != NULL && strcmp(found, wanted) == 0)
            continue;
        char shown[SHOWN_NAME];
        text_printable(entry.key, entry.key_length, shown, sizeof shown);
        return error_set(error, "%s: tensor '%s' should be in %s, but is %s%s", index->name, shown, wanted,
                         found ? "in " : "in no shard", found ? found : "");
    }
    note_unlisted(index, checkpoint, shards);
    return true;
}
