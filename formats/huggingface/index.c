#include "formats/huggingface/index.h"

#include "base/sort.h"
#include "base/text.h"
#include "formats/documents.h"
#include "sources/paths.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN_NAME = 200 };

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool refuse_shard(const struct shard_index *index, const struct json_member *entry, struct error *error)
{
    const char *shard = json_string(entry->value, NULL);
    char tensor[SHOWN_NAME];
    text_printable(entry->key, entry->key_length, tensor, sizeof tensor);
    if (shard == NULL)
        return error_set(error, "%s: the shard of tensor '%s' is not a string", index->name, tensor);
    return error_set(error, "%s: the shard '%.200s' of tensor '%s' is not a path inside this directory", index->name,
                     shard, tensor);
}

/* Collects the shard of each entry, with repetitions. */
static bool collect_shards(const struct shard_index *index, const char **names, struct error *error)
{
    for (struct json_member entry = {0}; json_next_member(index->weight_map, &entry);) {
        size_t length;
        const char *shard = json_string(entry.value, &length);
        if (shard == NULL || !inner_path(shard, length))
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

/* Returns the name of the shard that holds a tensor. */
static const char *shard_of(const struct checkpoint *checkpoint, const struct shards *shards,
                            const struct tensor *tensor)
{
    const struct place place = {shards, (size_t)(tensor - checkpoint->tensors->tensors)};
    return shards->names[search_first(shards->n_names, shard_ends_before, &place)];
}

/* Superseded copies. */

static bool same_name(const struct tensor *a, const struct tensor *b)
{
    return text_compare(a->name, a->name_length, b->name, b->name_length) == 0;
}

/* Marks the other copies of a tensor that is in the shard of its index entry. Returns their number. */
static size_t mark_copies(const struct shard_index *index, const struct checkpoint *checkpoint,
                          const struct shards *shards, const uint32_t *copies, size_t n_copies, bool *is_out)
{
    const struct tensor *tensors = checkpoint->tensors->tensors, *first = &tensors[copies[0]];
    const char *wanted = json_string(json_get_n(index->weight_map, first->name, first->name_length), NULL);
    size_t kept = n_copies;
    for (size_t i = 0; wanted != NULL && i < n_copies; i++)
        if (strcmp(shard_of(checkpoint, shards, &tensors[copies[i]]), wanted) == 0)
            kept = i;
    if (kept == n_copies)
        return 0;
    for (size_t i = 0; i < n_copies; i++)
        is_out[copies[i]] = i != kept;
    return n_copies - 1;
}

/* Removes marked tensors, and moves where the shards begin. */
static void remove_marked(struct checkpoint *checkpoint, const struct shards *shards, const bool *is_out)
{
    struct tensor *tensors = tensor_set_edit(checkpoint->unsealed);
    size_t n_before = checkpoint->tensors->n_tensors, n = 0, shard = 0;
    for (size_t i = 0; i < n_before; i++) {
        for (; shard <= shards->n_names && shards->first_tensors[shard] == i; shard++)
            shards->first_tensors[shard] = n;
        if (!is_out[i])
            tensors[n++] = tensors[i];
    }
    for (; shard <= shards->n_names; shard++)
        shards->first_tensors[shard] = n;
    checkpoint->unsealed->n_tensors = n;
}

/* Leaves out copies of tensors that the index maps to another shard: a newer file lies over older ones. Two copies in a
 * shard, or of a tensor that the index does not place, stay, and sealing the set refuses them. */
static void leave_out_copies(const struct shard_index *index, struct checkpoint *checkpoint,
                             const struct shards *shards)
{
    const struct tensor *tensors = checkpoint->tensors->tensors;
    size_t n = checkpoint->tensors->n_tensors, n_out = 0, first = 0;
    uint32_t *by_name = tensors_by_name(tensors, n);
    bool *is_out = memory_alloc(n + 1);
    memset(is_out, 0, n + 1);
    for (size_t start = 0, end; start < n; start = end) {
        for (end = start + 1; end < n && same_name(&tensors[by_name[start]], &tensors[by_name[end]]); end++)
            ;
        size_t n_more =
            end - start > 1 ? mark_copies(index, checkpoint, shards, by_name + start, end - start, is_out) : 0;
        first = n_out == 0 && n_more > 0 ? by_name[start] : first;
        n_out += n_more;
    }
    if (n_out > 0)
        checkpoint_note(checkpoint, SUBJECT_SOURCE,
                        "%s: %zu superseded cop%s in other shards left out, first of '%.200s'", index->name, n_out,
                        n_out == 1 ? "y" : "ies", tensors[first].name);
    if (n_out > 0)
        remove_marked(checkpoint, shards, is_out);
    free(is_out);
    free(by_name);
}

static void note_unlisted(const struct shard_index *index, const struct checkpoint *checkpoint,
                          const struct shards *shards, size_t n_found)
{
    const struct tensor_set *set = checkpoint->tensors;
    size_t n_unlisted = set->n_tensors - n_found;
    for (size_t i = 0; n_unlisted > 0 && i < set->n_tensors; i++) {
        const struct tensor *tensor = &set->tensors[i];
        if (json_get_n(index->weight_map, tensor->name, tensor->name_length) != NULL)
            continue;
        checkpoint_note(checkpoint, SUBJECT_SOURCE, "%s does not list tensor '%.200s' of %s%s", index->name,
                        tensor->name, shard_of(checkpoint, shards, tensor), n_unlisted > 1 ? ", nor others" : "");
        return;
    }
}

/* Ends of the names of tensors that models make or share, so that a checkpoint may lack them: buffers, and matrices
 * that are tied to the embedding. */
static const char *const spare_names[] = {
    ".inv_freq",
    ".position_ids",
    ".masked_bias",
    ".attn.bias",
    ".attention.bias",
    "lm_head.weight",
    "embed_out.weight",
    "lm_head.decoder.weight",
    "lm_head.decoder.bias",
    "encoder.embed_tokens.weight",
    "decoder.embed_tokens.weight",
    "predictions.decoder.weight",
    "predictions.decoder.bias",
    ".num_batches_tracked",
};

static bool is_spare(const struct json_member *entry)
{
    for (size_t i = 0; i < sizeof spare_names / sizeof *spare_names; i++)
        if (strlen(entry->key) == entry->key_length && text_ends_with(entry->key, spare_names[i]))
            return true;
    return false;
}

/* Listed tensors that are in no shard: how many, and the first that models need, else the first. */
struct missing {
    size_t n_tensors;
    struct json_member first;
    bool is_needed;
};

static void add_missing(struct missing *missing, const struct json_member *entry)
{
    bool is_needed = !is_spare(entry);
    if (missing->n_tensors++ == 0 || (is_needed && !missing->is_needed))
        missing->first = *entry;
    missing->is_needed |= is_needed;
}

static void note_missing(const struct shard_index *index, struct checkpoint *checkpoint, const struct missing *missing,
                         const struct open_options *options)
{
    char shown[SHOWN_NAME];
    if (missing->n_tensors == 0)
        return;
    text_printable(missing->first.key, missing->first.key_length, shown, sizeof shown);
    const char *others = missing->n_tensors > 1 ? ", nor are others that it lists" : "";
    const char *wanted = json_string(missing->first.value, NULL);
    if (missing->is_needed)
        checkpoint_lacks(checkpoint, options, "%s: tensor '%s' should be in %s, but is in no shard%s", index->name,
                         shown, wanted, others);
    else
        checkpoint_note(checkpoint, SUBJECT_SOURCE,
                        "%s: tensor '%s' should be in %s, but is in no shard%s; models do without it", index->name,
                        shown, wanted, others);
}

static bool refuse_place(const struct shard_index *index, const struct json_member *entry, const char *found,
                         struct error *error)
{
    char shown[SHOWN_NAME];
    text_printable(entry->key, entry->key_length, shown, sizeof shown);
    return error_set(error, "%s: tensor '%s' should be in %s, but is in %s", index->name, shown,
                     json_string(entry->value, NULL), found);
}

bool index_check(const struct shard_index *index, struct checkpoint *checkpoint, const struct shards *shards,
                 const struct open_options *options, struct error *error)
{
    leave_out_copies(index, checkpoint, shards);
    if (!checkpoint_seal(checkpoint, error))
        return false;
    const struct tensor_set *set = checkpoint->tensors;
    const struct tensor *near = set->tensors;
    struct missing missing = {0};
    size_t n_found = 0;
    for (struct json_member entry = {0}; json_next_member(index->weight_map, &entry);) {
        const struct tensor *tensor =
            set->n_tensors > 0 ? tensor_set_find_near(set, near, entry.key, entry.key_length) : NULL;
        if (tensor == NULL) {
            add_missing(&missing, &entry);
            continue;
        }
        near = tensor;
        n_found++;
        const char *found = shard_of(checkpoint, shards, tensor);
        if (strcmp(found, json_string(entry.value, NULL)) != 0)
            return refuse_place(index, &entry, found, error);
    }
    note_missing(index, checkpoint, &missing, options);
    note_unlisted(index, checkpoint, shards, n_found);
    return true;
}
