#include "fs/lib/verification.h"

#include "fs/lib/stage.h"
#include "models/facts.h"
#include "models/formats.h"
#include "quant/views/convert.h"

#include <stdlib.h>
#include <string.h>

enum {
    CHUNK_BYTES = 1 << 20,     /* of headers, compared at once */
    MANY_CODES = 20,           /* one of so many is not the nearest: other weights */
    LEAST_NEAR_FOR_CLOSE = 50, /* near ties for each block that is only close */
};

static const double most_times_the_cost = 1.5, most_unexplained = 1e-3, unrelated = 0.7;

/* Weighing. */

/* Returns the verdict on a tensor that the model has with other values. */
static enum tensor_verdict weigh(const struct tensor_finding *finding)
{
    bool explained;
    if (finding->cost_is_known && finding->cost > 0)
        explained = finding->error <= most_times_the_cost * finding->cost || finding->relative <= most_unexplained;
    else
        explained = finding->relative <= (finding->cost_is_known ? most_unexplained : unrelated);
    /* a few wrong codes are damage, however large their error */
    bool is_damaged = finding->by_codes && finding->codes.n_other < finding->codes.n_codes / MANY_CODES;
    if (!explained && !is_damaged)
        return TENSOR_OTHER_WEIGHTS;
    return finding->expected->dtype == finding->found->dtype ? TENSOR_OTHER_ROUNDING : TENSOR_OTHER_TYPE;
}

/* Weighs tensors by two pairs each: the tensor of the file, and wfs's conversion to its type, both against the source's
 * values. */
static bool weigh_all(struct verification *verification, const struct checkpoint *exact, struct arena *arena,
                      struct error *error)
{
    struct pair *pairs = arena_array(arena, 2 * verification->n_tensors + 1, sizeof *pairs);
    struct tensor_finding **weighed = arena_array(arena, verification->n_tensors + 1, sizeof(struct tensor_finding *));
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
    if (n_pairs == 0)
        return true;
    stage_begin("weighing", compare_bytes(pairs, n_pairs));
    bool compared = compare_pairs(pairs, n_pairs, error);
    stage_end();
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

/* Verdicts. */

static bool needs_blocks(const struct tensor_finding *finding)
{
    return finding->verdict == TENSOR_OTHER_WEIGHTS && finding->expected->dtype == finding->found->dtype &&
           finding->expected->refusal == NULL && finding->found->refusal == NULL;
}

/* Finds the tensors of both, and those whose values are to be compared: TENSOR_OTHER_WEIGHTS. */
static void match(struct verification *verification, const struct reproduction *reproduction,
                  const struct checkpoint *file, struct arena *arena)
{
    struct matches matches = match_tensors(reproduction->opened->tensors, file->tensors, arena);
    verification->n_tensors = matches.n_matches;
    verification->tensors = arena_array(arena, matches.n_matches + 1, sizeof *verification->tensors);
    for (size_t i = 0; i < matches.n_matches; i++) {
        const struct match *match = &matches.matches[i];
        verification->tensors[i] = (struct tensor_finding){
            .expected = match->a,
            .found = match->b,
            .verdict = match->b == NULL     ? TENSOR_MISSING
                       : match->a == NULL   ? TENSOR_UNKNOWN
                       : !match->same_shape ? TENSOR_OTHER_SHAPE
                                            : TENSOR_OTHER_WEIGHTS,
        };
    }
}

static void add_counts(struct block_counts *all, const struct block_counts *blocks)
{
    all->n_blocks += blocks->n_blocks;
    all->n_different += blocks->n_different;
    all->n_near += blocks->n_near;
    all->n_close += blocks->n_close;
    all->largest = blocks->largest > all->largest ? blocks->largest : all->largest;
}

/* Settles the tensors that are the same up to near ties, and those with the nearest codes. Blocks that are close count
 * as near ties if there are few. */
static void settle(struct verification *verification)
{
    uint64_t n_near = 0, n_close = 0;
    verification->codes = code_counts_none();
    for (size_t i = 0; i < verification->n_tensors; i++) {
        add_counts(&verification->all, &verification->tensors[i].blocks);
        n_near += verification->tensors[i].blocks.n_near;
        n_close += verification->tensors[i].blocks.n_close;
    }
    bool few_are_close = n_close <= n_near / LEAST_NEAR_FOR_CLOSE;
    for (size_t i = 0; i < verification->n_tensors; i++) {
        struct tensor_finding *finding = &verification->tensors[i];
        const struct block_counts *blocks = &finding->blocks;
        uint64_t n_explained = blocks->n_near + (few_are_close ? blocks->n_close : 0);
        if (finding->by_codes) {
            code_counts_add(&verification->codes, &finding->codes);
            if (codes_are_nearest(&finding->codes))
                finding->verdict = TENSOR_NEAREST_CODES;
        } else if (needs_blocks(finding) && blocks->n_different == n_explained)
            finding->verdict = blocks->n_different == 0 ? TENSOR_SAME : TENSOR_NEAR_TIES;
    }
}

/* Checks the codes of tensors that are not those of the reproduction, and leaves out these of `found`. */
static bool check_codes(struct tensor_finding **found, size_t *n_found, uint64_t n_bytes,
                        const struct reproduction *reproduction, struct error *error)
{
    size_t n_left = 0;
    stage_begin("checking", n_bytes);
    bool checked = compare_codes(found, *n_found, reproduction, error);
    stage_end();
    for (size_t i = 0; i < *n_found; i++)
        if (!found[i]->by_codes)
            found[n_left++] = found[i];
    *n_found = n_left;
    return checked;
}

/* Compares the values of tensors of one type. */
static bool compare_values(struct verification *verification, const struct reproduction *reproduction,
                           struct arena *arena, struct error *error)
{
    struct tensor_finding **found = arena_array(arena, verification->n_tensors + 1, sizeof(struct tensor_finding *));
    size_t n_found = 0;
    uint64_t n_bytes = 0;
    for (size_t i = 0; i < verification->n_tensors; i++)
        if (needs_blocks(&verification->tensors[i])) {
            n_bytes += verification->tensors[i].expected->length;
            found[n_found++] = &verification->tensors[i];
        }
    if (!check_codes(found, &n_found, n_bytes, reproduction, error))
        return false;
    stage_begin("comparing", n_bytes);
    bool compared = compare_blocks(found, n_found, reproduction, error);
    stage_end();
    if (compared)
        settle(verification);
    return compared;
}

/* Opens the virtual file in F32, the values to weigh against; where there is none, the reproduction's own file must do.
 */
static bool weigh_against_source(struct verification *verification, const struct reproduction *reproduction,
                                 struct arena *arena, struct error *error)
{
    struct node_attributes attributes;
    struct error unused;
    struct vfile file;
    const struct checkpoint *exact = reproduction->opened;
    size_t n_others = 0;
    for (size_t i = 0; i < verification->n_tensors; i++)
        n_others += verification->tensors[i].verdict == TENSOR_OTHER_WEIGHTS;
    if (n_others > 0 && tree_walk(reproduction->tree, "gguf/model-F32.gguf", &attributes, &unused)) {
        if (!tree_file(reproduction->tree, attributes.id, arena, &file, error))
            return false;
        exact = checkpoint_of_source(source_of_vfile(&file, "gguf/model-F32.gguf"), formats, error);
    }
    bool weighed = exact != NULL && weigh_all(verification, exact, arena, error);
    if (exact != reproduction->opened)
        checkpoint_close(exact);
    return weighed;
}

/* Identity. */

/* Compares the bytes of both files between two offsets: headers, or the padding after tensors. */
static bool same_range(const struct vfile *expected, const struct source *found, uint64_t from, uint64_t to,
                       bool *ret_same, struct error *error)
{
    unsigned char *bytes = memory_alloc(2 * (size_t)CHUNK_BYTES);
    bool read = true;
    *ret_same = true;
    for (size_t length; read && *ret_same && from < to; from += length) {
        length = to - from < CHUNK_BYTES ? (size_t)(to - from) : CHUNK_BYTES;
        read = vfile_wait(expected, from, length, error) && vfile_read(expected, from, length, bytes, error) &&
               source_read(found, from, length, bytes + CHUNK_BYTES, error);
        *ret_same = read && memcmp(bytes, bytes + CHUNK_BYTES, length) == 0;
    }
    free(bytes);
    return read;
}

/* Compares what lies around the tensors, which are the same and lie at the same places if the headers are. */
static bool same_rest(const struct checkpoint *file, const struct reproduction *reproduction, bool *ret_same,
                      struct error *error)
{
    const struct tensor_set *set = reproduction->opened->tensors;
    uint64_t end = 0;
    *ret_same = file->n_sources == 1 && source_size(file->sources[0]) == reproduction->file.size;
    for (size_t i = 0; *ret_same && i <= set->n_tensors; i++) {
        uint64_t next = i < set->n_tensors ? set->tensors[i].offset : reproduction->file.size;
        if (!same_range(&reproduction->file, file->sources[0], end, next, ret_same, error))
            return false;
        if (i < set->n_tensors)
            end = next + set->tensors[i].length;
    }
    return true;
}

static bool find_answer(struct verification *verification, const struct checkpoint *file,
                        const struct reproduction *reproduction, struct error *error)
{
    const size_t *counts = verification->counts;
    const size_t n_equal = counts[TENSOR_SAME] + counts[TENSOR_NEAR_TIES], n_nearest = counts[TENSOR_NEAREST_CODES];
    bool same = false, equal = n_equal + n_nearest == verification->n_tensors;
    if (counts[TENSOR_SAME] == verification->n_tensors && !same_rest(file, reproduction, &same, error))
        return false;
    for (size_t i = 0; i < verification->keys.n_matches; i++) {
        const struct key_match *match = &verification->keys.matches[i];
        equal &=
            key_is_descriptive(match->a != NULL ? match->a->key : match->b->key) || verification->explained[i] != NULL;
    }
    verification->answer = same             ? ANSWER_IDENTICAL
                           : !equal         ? ANSWER_DIFFERENT
                           : n_nearest == 0 ? ANSWER_EQUAL
                                            : ANSWER_NEAREST;
    return true;
}

/* Finds, for each key that differs, other builds that write it as the file has it. */
static const struct build_class **explain_keys(const struct key_matches *keys, const struct reproduction *reproduction,
                                               struct arena *arena)
{
    const struct build_class **explained = arena_array(arena, keys->n_matches + 1, sizeof(const struct build_class *));
    for (size_t i = 0; i < keys->n_matches; i++) {
        const struct key_match *match = &keys->matches[i];
        const char *key = match->a != NULL ? match->a->key : match->b->key;
        explained[i] = reproduction->classes != NULL && !key_is_descriptive(key)
                           ? build_classes_with(reproduction->classes, key, match->b)
                           : NULL;
    }
    return explained;
}

bool verify(const struct checkpoint *file, const struct reproduction *reproduction, struct arena *arena,
            struct verification *ret_verification, struct error *error)
{
    struct verification verification = {
        .keys = match_keys(&reproduction->opened->metadata, &file->metadata, arena),
        .has_importance = gguf_kvs_find(&file->metadata, "quantize.imatrix.file") != NULL,
    };
    verification.explained = explain_keys(&verification.keys, reproduction, arena);
    match(&verification, reproduction, file, arena);
    if (!compare_values(&verification, reproduction, arena, error) ||
        !weigh_against_source(&verification, reproduction, arena, error))
        return false;
    for (size_t i = 0; i < verification.n_tensors; i++)
        verification.counts[verification.tensors[i].verdict]++;
    *ret_verification = verification;
    return find_answer(ret_verification, file, reproduction, error);
}

const char *verdict_word(enum tensor_verdict verdict)
{
    static const char *const words[TENSOR_VERDICTS] = {
        [TENSOR_SAME] = "same",
        [TENSOR_NEAR_TIES] = "near ties",
        [TENSOR_NEAREST_CODES] = "nearest codes",
        [TENSOR_OTHER_TYPE] = "other type",
        [TENSOR_OTHER_ROUNDING] = "other rounding",
        [TENSOR_MISSING] = "missing",
        [TENSOR_UNKNOWN] = "unknown",
        [TENSOR_OTHER_SHAPE] = "other shape",
        [TENSOR_OTHER_WEIGHTS] = "other weights",
    };
    return words[verdict];
}

/* Files and sources by their names. */

static const char *command_of(const struct verified *verified)
{
    struct buffer text = {0};
    reproduction_append_command(&verified->reproduction, verified->source, verified->path, &text);
    const char *command = arena_strndup(verified->arena, (const char *)text.bytes, text.length);
    buffer_free(&text);
    return command;
}

static bool verify_opened(struct verified *verified, const struct options *options, struct error *error)
{
    if (facts_of(verified->file).keys == NULL)
        return error_set(error, "%s: not a GGUF file", verified->file->path);
    if (!reproduction_find(verified->file, verified->source, options, &verified->reproduction, error))
        return false;
    verified->arena = arena_new();
    if (!verify(verified->file, &verified->reproduction, verified->arena, &verified->verification, error)) {
        arena_free(verified->arena);
        reproduction_close(&verified->reproduction);
        return false;
    }
    verified->command = verified->verification.answer != ANSWER_DIFFERENT ? command_of(verified) : NULL;
    return true;
}

bool verify_file(const char *path, const char *source, const struct options *options, struct verified *ret_verified,
                 struct error *error)
{
    const struct open_options plain = {0};
    *ret_verified = (struct verified){path, source, checkpoint_open(path, formats, &plain, error)};
    if (ret_verified->file == NULL)
        return lib_name_directory(path, error);
    if (verify_opened(ret_verified, options, error))
        return true;
    checkpoint_close(ret_verified->file);
    return false;
}

void verified_free(struct verified *verified)
{
    arena_free(verified->arena);
    reproduction_close(&verified->reproduction);
    checkpoint_close(verified->file);
}
