#include "fs/cli/verification.h"

#include "base/text.h"
#include "fs/cli/paths.h"
#include "fs/tree/pool.h"
#include "models/formats.h"
#include "models/quantize/mix.h"
#include "quant/convert.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    CANDIDATES = 4,       /* virtual files to open in search of the nearest */
    RANGE_BYTES = 1 << 20 /* compared by one task */
};

static const double most_times_the_cost = 1.5, most_unexplained = 1e-3, unrelated = 0.7;

/* Comparing two files byte by byte. */

struct identity {
    const struct vfile *expected;
    const struct source *found;
    struct progress *progress;
    pthread_mutex_t lock; /* guards the following fields */
    bool over, same;
    struct error *error; /* set if bytes cannot be read, which also ends the comparison */
    bool failed;
};

static void compare_range(void *context, size_t index)
{
    struct identity *identity = context;
    struct error error;
    uint64_t offset = (uint64_t)index * RANGE_BYTES, left = identity->expected->size - offset;
    size_t length = left < RANGE_BYTES ? (size_t)left : RANGE_BYTES;
    pthread_mutex_lock(&identity->lock);
    bool over = identity->over;
    pthread_mutex_unlock(&identity->lock);
    if (over)
        return;
    unsigned char *bytes = memory_alloc(2 * length);
    bool read = source_read(identity->found, offset, length, bytes + length, &error) &&
                vfile_wait(identity->expected, offset, length, &error) &&
                vfile_read(identity->expected, offset, length, bytes, &error);
    bool same = read && memcmp(bytes, bytes + length, length) == 0;
    free(bytes);
    pthread_mutex_lock(&identity->lock);
    if (!read && !identity->failed)
        *identity->error = error;
    identity->failed |= !read;
    identity->same &= same;
    identity->over |= !same;
    progress_add(identity->progress, length);
    pthread_mutex_unlock(&identity->lock);
}

static bool is_same_file(struct tree *tree, const struct found *found, const struct source *file, bool *ret_same,
                         struct error *error)
{
    struct vfile expected;
    struct progress progress;
    struct arena *arena = arena_new();
    struct identity identity = {
        .expected = &expected, .found = file, .progress = &progress, .same = true, .error = error};
    if (!tree_file(tree, found->attributes.id, arena, &expected, error)) {
        arena_free(arena);
        return error_prefix(error, "%s", found->path);
    }
    progress_begin(&progress, found->path, expected.size);
    pthread_mutex_init(&identity.lock, NULL);
    pool_run((size_t)((expected.size + RANGE_BYTES - 1) / RANGE_BYTES), compare_range, &identity);
    pthread_mutex_destroy(&identity.lock);
    progress_end(&progress);
    arena_free(arena);
    *ret_same = identity.same;
    return !identity.failed;
}

/* Finds all GGUFs that wfs makes from the source, without splits. */
static void find_candidates(struct tree *tree, struct found_list *candidates)
{
    static const char *const patterns[] = {"model.gguf", "gguf/*.gguf", "gguf/converter/*.gguf"};
    struct error unused;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        paths_find(tree, patterns[i], candidates, &unused);
}

/* Finds the identical virtual file; *ret_path stays NULL if there is none. */
static bool find_identical(struct tree *tree, const struct found_list *candidates, const struct checkpoint *file,
                           const char **ret_path, struct error *error)
{
    if (file->n_sources != 1)
        return true;
    for (size_t i = 0; i < candidates->n_items && *ret_path == NULL; i++) {
        bool same = false;
        if (candidates->items[i].attributes.size != source_size(file->sources[0]))
            continue;
        if (!is_same_file(tree, &candidates->items[i], file->sources[0], &same, error))
            return false;
        if (same)
            *ret_path = candidates->items[i].path;
    }
    return true;
}

/* Opening a virtual GGUF as if it were a file; it is closed with the arena. */
static void close_opened(void *context)
{
    const struct checkpoint *const *opened = context;
    checkpoint_close(*opened);
}

static const struct checkpoint *open_virtual(struct tree *tree, const struct found *found, struct arena *arena,
                                             struct error *error)
{
    struct vfile file;
    if (!tree_file(tree, found->attributes.id, arena, &file, error)) {
        error_prefix(error, "%s", found->path);
        return NULL;
    }
    const struct checkpoint *checkpoint = checkpoint_of_source(source_of_vfile(&file, found->path), formats, error);
    if (checkpoint != NULL)
        arena_on_free(arena, close_opened, arena_copy(arena, &checkpoint, sizeof checkpoint));
    return checkpoint;
}

/* Returns how many tensors of the file the other one has in the same type. */
static size_t likeness(const struct checkpoint *file, const struct checkpoint *other)
{
    size_t n_alike = 0;
    for (size_t i = 0; i < file->tensors->n_tensors; i++) {
        const struct tensor *tensor = &file->tensors->tensors[i];
        const struct tensor *same = tensor_set_find(other->tensors, tensor->name, tensor->name_length);
        n_alike += same != NULL && same->dtype == tensor->dtype;
    }
    return n_alike;
}

static uint64_t total_size(const struct checkpoint *checkpoint)
{
    uint64_t size = 0;
    for (size_t i = 0; i < checkpoint->n_sources; i++)
        size += source_size(checkpoint->sources[i]);
    return size;
}

/* Reports whether the file's own metadata name this candidate's mix. */
static bool is_named(const struct found *candidate, const struct checkpoint *file)
{
    uint64_t file_type;
    const struct mix *mix =
        gguf_get_u64(&file->metadata, "general.file_type", &file_type) ? mix_of_file_type(file_type) : NULL;
    const char *start = strchr(candidate->path, '-');
    return mix != NULL && start != NULL && text_starts_with(candidate->path, "gguf/model-") &&
           text_starts_with(start + 1, mix->name) && strcmp(start + 1 + strlen(mix->name), ".gguf") == 0;
}

static uint64_t distance(const struct found *candidate, const struct checkpoint *file)
{
    uint64_t size = total_size(file), other = candidate->attributes.size;
    if (is_named(candidate, file))
        return 0;
    return size > other ? size - other : other - size;
}

/* Returns the candidate with the most tensors in the file's types, and then the fewest different keys, among the one
 * that the file names and the few nearest in size. Opens each of them, since sizes alone hardly tell mixes apart. */
static const struct checkpoint *find_nearest(struct tree *tree, struct found_list *candidates,
                                             const struct checkpoint *file, struct arena *arena, const char **ret_path,
                                             struct error *error)
{
    const struct checkpoint *nearest = NULL;
    size_t most = 0, fewest = 0;
    for (size_t n = 0; n < CANDIDATES && n < candidates->n_items; n++) {
        size_t best = n;
        for (size_t i = n + 1; i < candidates->n_items; i++)
            if (distance(&candidates->items[i], file) < distance(&candidates->items[best], file))
                best = i;
        const struct found chosen = candidates->items[best];
        candidates->items[best] = candidates->items[n];
        candidates->items[n] = chosen;
        const struct checkpoint *opened = open_virtual(tree, &chosen, arena, error);
        if (opened == NULL)
            return NULL;
        size_t n_alike = likeness(file, opened),
               n_keys = match_keys(&opened->metadata, &file->metadata, arena).n_matches;
        if (nearest == NULL || n_alike > most || (n_alike == most && n_keys < fewest)) {
            nearest = opened;
            most = n_alike;
            fewest = n_keys;
            *ret_path = chosen.path;
        }
    }
    return nearest;
}

/* Weighing. */

/* Returns the verdict on a tensor that the model has with other values. */
static enum tensor_verdict weigh(const struct tensor_finding *finding)
{
    bool explained;
    if (finding->cost_is_known && finding->cost > 0)
        explained = finding->error <= most_times_the_cost * finding->cost || finding->relative <= most_unexplained;
    else
        explained = finding->relative <= (finding->cost_is_known ? most_unexplained : unrelated);
    if (!explained)
        return TENSOR_OTHER_WEIGHTS;
    return finding->expected->dtype == finding->found->dtype ? TENSOR_OTHER_ROUNDING : TENSOR_OTHER_TYPE;
}

/* Returns the verdict on a tensor that needs no weighing; TENSOR_OTHER_WEIGHTS if it does. */
static enum tensor_verdict first_verdict(const struct match *match)
{
    if (match->b == NULL)
        return TENSOR_MISSING;
    if (match->a == NULL)
        return TENSOR_UNKNOWN;
    if (!match->same_shape)
        return TENSOR_OTHER_SHAPE;
    return match->pair != NULL && match->pair->difference.same_bytes ? TENSOR_SAME : TENSOR_OTHER_WEIGHTS;
}

/* Weighs tensors by two pairs each: the tensor of the file, and wfs's conversion to its type, both against the source's
 * values. */
static bool weigh_all(struct verification *verification, const struct checkpoint *exact, struct arena *arena,
                      struct error *error)
{
    struct pair *pairs = arena_array(arena, 2 * verification->n_tensors + 1, sizeof *pairs);
    struct tensor_finding **weighed = arena_array(arena, verification->n_tensors + 1, sizeof(struct tensor_finding *));
    struct progress progress;
    const char *unused;
    size_t n_pairs = 0, n_weighed = 0;
    for (size_t i = 0; i < verification->n_tensors; i++) {
        struct tensor_finding *finding = &verification->tensors[i];
        const struct tensor *found = finding->found;
        const struct tensor *source =
            finding->expected != NULL
                ? tensor_set_find(exact->tensors, finding->expected->name, finding->expected->name_length)
                : NULL;
        if (finding->verdict != TENSOR_OTHER_WEIGHTS || source == NULL || source->refusal != NULL ||
            found->refusal != NULL)
            continue;
        const struct view *values = tensor_view(source, arena);
        finding->cost_is_known = convert_possible(values, encoding_of(found->dtype), &unused);
        weighed[n_weighed++] = finding;
        pairs[n_pairs++] = (struct pair){.a = values, .b = tensor_view(found, arena)};
        pairs[n_pairs++] = (struct pair){
            .a = values, .b = finding->cost_is_known ? view_convert(arena, values, found->dtype) : values};
    }
    progress_begin(&progress, "weighing", compare_bytes(pairs, n_pairs));
    bool compared = compare_pairs(pairs, n_pairs, &progress, error);
    progress_end(&progress);
    for (size_t i = 0; compared && i < n_weighed; i++) {
        const struct difference *found = &pairs[2 * i].difference, *cost = &pairs[2 * i + 1].difference;
        weighed[i]->weighed = found->has_values;
        weighed[i]->error = difference_rms(found);
        weighed[i]->relative = difference_relative(found);
        weighed[i]->cost = difference_rms(cost);
        if (found->has_values)
            weighed[i]->verdict = weigh(weighed[i]);
    }
    return compared;
}

static bool judge_tensors(struct verification *verification, const struct checkpoint *expected,
                          const struct checkpoint *found, const struct checkpoint *exact, struct arena *arena,
                          struct error *error)
{
    struct matches matches = match_tensors(expected->tensors, found->tensors, arena);
    struct progress progress;
    progress_begin(&progress, "comparing", compare_bytes(matches.pairs, matches.n_pairs));
    bool compared = compare_pairs(matches.pairs, matches.n_pairs, &progress, error);
    progress_end(&progress);
    verification->n_tensors = matches.n_matches;
    verification->tensors = arena_array(arena, matches.n_matches + 1, sizeof *verification->tensors);
    for (size_t i = 0; compared && i < matches.n_matches; i++)
        verification->tensors[i] = (struct tensor_finding){
            .expected = matches.matches[i].a,
            .found = matches.matches[i].b,
            .verdict = first_verdict(&matches.matches[i]),
        };
    if (!compared || !weigh_all(verification, exact, arena, error))
        return false;
    for (size_t i = 0; i < verification->n_tensors; i++)
        verification->counts[verification->tensors[i].verdict]++;
    return true;
}

static bool judge(struct verification *verification, struct tree *tree, struct found_list *candidates,
                  const struct checkpoint *file, struct arena *arena, struct error *error)
{
    struct found exact_file = {.path = "gguf/model-F32.gguf"};
    const struct checkpoint *expected = find_nearest(tree, candidates, file, arena, &verification->nearest, error);
    const struct checkpoint *exact = expected;
    if (expected == NULL)
        return false;
    if (tree_walk(tree, exact_file.path, &exact_file.attributes, error) &&
        (exact = open_virtual(tree, &exact_file, arena, error)) == NULL)
        return false;
    verification->keys = match_keys(&expected->metadata, &file->metadata, arena);
    verification->has_importance = gguf_kvs_find(&file->metadata, "quantize.imatrix.file") != NULL;
    return judge_tensors(verification, expected, file, exact, arena, error);
}

bool verify(const struct checkpoint *file, struct tree *tree, struct arena *arena,
            struct verification *ret_verification, struct error *error)
{
    struct found_list candidates = {0};
    struct verification verification = {0};
    if (file->kind != CHECKPOINT_GGUF)
        return error_set(error, "%s: not a GGUF file", file->path);
    find_candidates(tree, &candidates);
    bool done =
        candidates.n_items != 0 ||
        error_set(error, "%s: no GGUF can be made from it; 'wfs info' gives the reason", tree_checkpoint(tree)->path);
    done = done && find_identical(tree, &candidates, file, &verification.identical, error) &&
           (verification.identical != NULL || judge(&verification, tree, &candidates, file, arena, error));
    if (verification.identical != NULL)
        verification.identical = arena_strdup(arena, verification.identical);
    if (verification.nearest != NULL)
        verification.nearest = arena_strdup(arena, verification.nearest);
    found_free(&candidates);
    *ret_verification = verification;
    return done;
}
