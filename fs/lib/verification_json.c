/* What `wfs verify --json` prints of a comparison, and wfs_compare() returns. */
#include "fs/lib/verification.h"
#include "text/json_write.h"

enum { DIGITS = 9, SHOWN_ELEMENTS = 16 };

static const char *const answer_words[] = {
    [ANSWER_IDENTICAL] = "identical",
    [ANSWER_EQUAL] = "equal",
    [ANSWER_NEAREST] = "nearest codes",
    [ANSWER_DIFFERENT] = "different",
};

/* Puts the counts of blocks; `first` is NULL for all tensors together. */
static void put_blocks(struct json_writer *writer, const struct block_counts *blocks, const uint64_t *first)
{
    json_begin_object(writer, "blocks");
    json_put_number(writer, "all", blocks->n_blocks);
    json_put_number(writer, "different", blocks->n_different);
    json_put_number(writer, "near_ties", blocks->n_near);
    json_put_number(writer, "close", blocks->n_close);
    if (first != NULL)
        json_put_number(writer, "first", *first);
    json_put_f64(writer, "largest", blocks->largest, DIGITS);
    json_end(writer);
}

/* Puts what is known of codes and scales; `cast` is NULL for all tensors together, and for values that were not cast.
 */
static void put_codes(struct json_writer *writer, const struct code_counts *codes, const char *cast)
{
    json_begin_object(writer, "codes");
    json_put_number(writer, "all", codes->n_codes);
    json_put_number(writer, "other", codes->n_other);
    json_put_number(writer, "second_nearest", codes->n_loose);
    if (codes->first_other != UINT64_MAX)
        json_put_number(writer, "first_other", codes->first_other);
    if (cast != NULL)
        json_put_text(writer, "cast", cast);
    json_end(writer);
    json_begin_object(writer, "scales");
    json_put_number(writer, "all", codes->n_scales);
    json_put_number(writer, "outside", codes->n_outside);
    if (codes->first_outside != UINT64_MAX)
        json_put_number(writer, "first_outside", codes->first_outside);
    if (codes->least <= codes->most) {
        json_put_f64(writer, "least", codes->least, DIGITS);
        json_put_f64(writer, "most", codes->most, DIGITS);
    }
    json_end(writer);
}

static void put_tensor(struct json_writer *writer, const struct tensor_finding *finding)
{
    const struct tensor *named = finding->found != NULL ? finding->found : finding->expected;
    json_put_template(writer, "\n{'name': %t, 'verdict': %s", named->name, (size_t)named->name_length,
                      verdict_word(finding->verdict));
    if (finding->found != NULL)
        json_put_text(writer, "dtype", finding->found->dtype->name);
    if (finding->expected != NULL)
        json_put_text(writer, "expected", finding->expected->dtype->name);
    if (finding->blocks.n_different > 0)
        put_blocks(writer, &finding->blocks, &finding->blocks.first);
    if (finding->by_codes)
        put_codes(writer, &finding->codes, finding->cast);
    if (finding->weighed) {
        json_put_f64(writer, "error", finding->error, DIGITS);
        json_put_f64(writer, "relative_error", finding->relative, DIGITS);
        if (finding->cost_is_known)
            json_put_f64(writer, "cost", finding->cost, DIGITS);
    }
    json_end(writer);
}

static void put_builds(struct json_writer *writer, const struct build_class *class)
{
    if (class == NULL)
        json_put_null(writer, "builds");
    else
        json_put_template(writer, "'builds': {'first': %u, 'last': %u}", (uint64_t) class->builds.first,
                          (uint64_t) class->builds.last);
}

static void put_key(struct json_writer *writer, const struct key_match *match, const struct build_class *class)
{
    json_put_template(writer, "\n{'key': %s", match->a != NULL ? match->a->key : match->b->key);
    if (match->b != NULL)
        gguf_put_json(writer, "value", match->b, SHOWN_ELEMENTS);
    if (match->a != NULL)
        gguf_put_json(writer, "expected", match->a, SHOWN_ELEMENTS);
    if (class != NULL)
        put_builds(writer, class);
    json_end(writer);
}

/* Puts the counts of all tensors that were checked by codes; the numbers of blocks belong to single tensors. */
static void put_all_codes(struct json_writer *writer, const struct code_counts *codes)
{
    struct code_counts all = *codes;
    all.first_other = all.first_outside = UINT64_MAX;
    put_codes(writer, &all, NULL);
}

void verified_put(struct json_writer *writer, const struct verified *verified)
{
    const struct verification *verification = &verified->verification;
    json_put_template(writer, "'file': %s, 'source': %s, 'answer': %s, 'identical': %b, 'nearest': %s, 'command': %s",
                      verified->path, verified->source, answer_words[verification->answer],
                      verification->answer == ANSWER_IDENTICAL, verified->reproduction.path, verified->command);
    put_builds(writer, reproduction_builds(&verified->reproduction));
    put_blocks(writer, &verification->all, NULL);
    put_all_codes(writer, &verification->codes);
    json_break_line(writer);
    json_begin_object(writer, "counts");
    for (size_t i = 0; i < TENSOR_VERDICTS; i++)
        json_put_number(writer, verdict_word(i), verification->counts[i]);
    json_put_template(writer, "}, \n'tensors': [");
    for (size_t i = 0; i < verification->n_tensors; i++)
        if (verification->tensors[i].verdict != TENSOR_SAME)
            put_tensor(writer, &verification->tensors[i]);
    json_put_template(writer, "], \n'keys': [");
    for (size_t i = 0; i < verification->keys.n_matches; i++)
        put_key(writer, &verification->keys.matches[i], verification->explained[i]);
    json_end(writer);
}
