#include "base/report.h"
#include "base/text.h"
#include "formats/layout.h"
#include "fs/cli/command.h"
#include "fs/cli/match.h"
#include "models/canonical.h"
#include "models/from_gguf.h"
#include "models/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_SAME = 0, EXIT_DIFFERENT = 1, EXIT_TROUBLE = 2, SHOWN_ELEMENTS = 8, SHOWN_BYTES = 60 };
enum { FLAG_BRIEF };

/* One of the two. */
struct side {
    struct checkpoint *checkpoint;
    struct gguf_model *model;          /* as GGUF; NULL where it cannot be one */
    struct canonical_model *canonical; /* as Hugging Face has it; NULL where that was not asked for, or cannot be */
};

static bool open_side(struct side *side, const char *path, const struct open_options *options, struct error *error)
{
    struct error unused;
    side->checkpoint = checkpoint_open(path, options, error);
    if (side->checkpoint == NULL)
        return false;
    side->model = gguf_model_new(side->checkpoint, &unused);
    return true;
}

static void close_side(struct side *side)
{
    canonical_model_free(side->canonical);
    gguf_model_free(side->model);
    checkpoint_close(side->checkpoint);
}

/* Whether it is known what its tensors are in GGUF, and not just how they are called. */
static bool is_understood(const struct side *side)
{
    return side->model != NULL && (side->model->family != NULL || side->model->is_gguf);
}

/* Whether most of the smaller set's names are in the other: then they are of one kind. */
static bool share_names(const struct tensor_set *a, const struct tensor_set *b)
{
    const struct tensor_set *smaller = a->n_tensors < b->n_tensors ? a : b, *larger = smaller == a ? b : a;
    size_t n_shared = 0;
    for (size_t i = 0; i < smaller->n_tensors; i++)
        n_shared += tensor_set_find(larger, smaller->tensors[i].name, smaller->tensors[i].name_length) != NULL;
    return 2 * n_shared >= smaller->n_tensors;
}

static void print_tensor_name(const struct tensor *tensor)
{
    char name[512];
    text_printable(tensor->name, tensor->name_length, name, sizeof name);
    printf("tensor %s: ", name);
}

static void print_values(const struct difference *difference)
{
    if (!difference->has_values)
        printf("the stored bytes differ");
    else if (difference->n_different == 0)
        printf("the values are equal");
    else
        printf("%" PRIu64 " of %" PRIu64 " values differ, by %.3g at most, RMS %.3g (%.3g of A's)",
               difference->n_different, difference->n_elements, difference->largest, difference_rms(difference),
               difference_relative(difference));
}

static bool is_same(const struct match *match)
{
    return match->pair != NULL && match->pair->difference.same_bytes;
}

static bool has_other_values(const struct match *match)
{
    const struct difference *difference = match->pair != NULL ? &match->pair->difference : NULL;
    return difference != NULL && !difference->same_bytes && (!difference->has_values || difference->n_different != 0);
}

static void print_match(const struct match *match)
{
    const struct tensor *a = match->a, *b = match->b;
    char shape_a[128], shape_b[128];
    print_tensor_name(a != NULL ? a : b);
    if (a == NULL || b == NULL)
        printf("only in %s", a != NULL ? "A" : "B");
    else if (!match->same_shape)
        printf("shape %s in A, %s in B", layout_shape_text(a->shape, a->rank, shape_a, sizeof shape_a),
               layout_shape_text(b->shape, b->rank, shape_b, sizeof shape_b));
    else if (match->pair == NULL)
        printf("cannot be compared: %s", a->refusal != NULL ? a->refusal : b->refusal);
    else {
        if (a->dtype != b->dtype)
            printf("%s in A, %s in B; ", a->dtype->name, b->dtype->name);
        print_values(&match->pair->difference);
    }
    putchar('\n');
}

static void print_value(const struct gguf_kv *kv)
{
    struct buffer value = {0};
    char text[SHOWN_BYTES + 1];
    gguf_append_text(&value, kv, SHOWN_ELEMENTS);
    text_printable((const char *)value.bytes, value.length, text, sizeof text);
    printf("%s%s", text, value.length > SHOWN_BYTES ? "..." : "");
    buffer_free(&value);
}

static void print_key(const struct key_match *match)
{
    fputs("key ", stdout);
    text_put(match->a != NULL ? match->a->key : match->b->key, stdout);
    fputs(": ", stdout);
    if (match->a == NULL || match->b == NULL) {
        printf("only in %s: ", match->a != NULL ? "A" : "B");
        print_value(match->a != NULL ? match->a : match->b);
    } else {
        print_value(match->a);
        printf(" (%s) in A, ", gguf_type_name(match->a->type));
        print_value(match->b);
        printf(" (%s) in B", gguf_type_name(match->b->type));
    }
    putchar('\n');
}

/* What a model has only once it is written to a file. */
static bool is_of_file(const struct key_match *match)
{
    static const char *const keys[] = {"general.file_type", "general.quantization_version", "split.no",
                                       "split.count",       "split.tensors.count",          NULL};
    const char *key = match->a != NULL ? match->a->key : match->b->key;
    for (const char *const *of_file = keys; *of_file != NULL; of_file++)
        if (strcmp(key, *of_file) == 0)
            return true;
    return false;
}

static size_t print_keys(const struct key_matches *keys, bool of_files, bool brief)
{
    size_t n_different = 0;
    for (size_t i = 0; i < keys->n_matches; i++) {
        if (!of_files && is_of_file(&keys->matches[i]))
            continue;
        n_different++;
        if (!brief)
            print_key(&keys->matches[i]);
    }
    return n_different;
}

static bool compare(struct matches *matches, struct error *error)
{
    struct progress progress;
    progress_begin(&progress, "diff", compare_bytes(matches->pairs, matches->n_pairs));
    bool compared = compare_pairs(matches->pairs, matches->n_pairs, &progress, error);
    progress_end(&progress);
    return compared;
}

/* The tensors of both under names of one kind, as far as they are known. */
struct common {
    const struct tensor_set *a, *b;
    const char *names; /* whose; NULL: their own */
};

/* Their own names, where both have them; GGUF's, where it is known of both what they are there; or Hugging Face's, by
 * which a file without config.json has what a GGUF of its family has. */
static struct common common_names(struct side *a, struct side *b, bool as_gguf)
{
    struct error unused;
    const struct common own = {a->checkpoint->tensors, b->checkpoint->tensors, NULL};
    if (share_names(own.a, own.b))
        return own;
    if (as_gguf)
        return (struct common){a->model->tensors, b->model->tensors, "GGUF"};
    a->canonical = canonical_model_new(a->checkpoint, NULL, &unused);
    b->canonical = canonical_model_new(b->checkpoint, NULL, &unused);
    if (a->canonical == NULL || b->canonical == NULL || !share_names(a->canonical->tensors, b->canonical->tensors))
        return own;
    return (struct common){a->canonical->tensors, b->canonical->tensors, "Hugging Face"};
}

static int diff(struct side *a, struct side *b, bool brief, struct arena *arena, struct error *error)
{
    bool as_gguf = is_understood(a) && is_understood(b);
    const struct common common = common_names(a, b, as_gguf);
    struct matches tensors = match_tensors(common.a, common.b, arena);
    struct key_matches keys = as_gguf ? match_keys(&a->model->kvs, &b->model->kvs, arena)
                                      : match_keys(&a->checkpoint->metadata, &b->checkpoint->metadata, arena);
    size_t n_tensors = 0, n_values = 0;
    if (!compare(&tensors, error))
        return EXIT_TROUBLE;
    if (common.names != NULL && !brief)
        printf("compared by %s's names and layout\n", common.names);
    for (size_t i = 0; i < tensors.n_matches; i++) {
        if (is_same(&tensors.matches[i]))
            continue;
        n_tensors++;
        n_values += has_other_values(&tensors.matches[i]);
        if (!brief)
            print_match(&tensors.matches[i]);
    }
    size_t n_keys = print_keys(&keys, !as_gguf || (a->model->is_gguf && b->model->is_gguf), brief);
    if (n_tensors + n_keys == 0)
        return EXIT_SAME;
    printf("%zu of %zu tensors (%zu in their values) and %zu key%s differ\n", n_tensors, tensors.n_matches, n_values,
           n_keys, n_keys == 1 ? "" : "s");
    return EXIT_DIFFERENT;
}

static int run(const struct invocation *invocation)
{
    struct side a = {0}, b = {0};
    struct error error;
    struct arena *arena = arena_new();
    struct open_options options = invocation->options->open;
    int status = EXIT_TROUBLE;
    bool opened = open_side(&a, invocation->arguments[0], &options, &error);
    /* that of a directory is not a difference between models; a GGUF has the name of its model among its keys */
    if (opened && options.name == NULL && !gguf_is_source(a.checkpoint))
        options.name = a.checkpoint->model_name;
    if (opened && open_side(&b, invocation->arguments[1], &options, &error))
        status = diff(&a, &b, invocation->flags[FLAG_BRIEF], arena, &error);
    if (status == EXIT_TROUBLE)
        report("%s", error.message);
    arena_free(arena);
    close_side(&b);
    close_side(&a);
    return finish_output(EXIT_SUCCESS) == EXIT_SUCCESS ? status : EXIT_TROUBLE;
}

const struct command diff_command = {
    .name = "diff",
    .usage = "A B",
    .summary = "Compare two sources of any formats: their tensors by name, shape, type and value, and their keys",
    .text =
        "Where most names are the same in both, tensors are compared by them; else both as GGUF has them, or, where\n"
        "there is no configuration, as Hugging Face has them. Values that differ are compared as F32. The exit status\n"
        "is that of diff: 0 where all is the same, 1 where something differs, 2 where they could not be compared.",
    .flags = (const struct flag[]){{'q', "brief", "just say how many differ"}, {0}},
    .examples =
        (const struct example[]){
            {"wfs diff model.safetensors pytorch_model.bin", "whether a conversion kept everything"},
            {"wfs diff Qwen/Qwen2.5-0.5B model-Q4_K_M.gguf", "what quantization did to each tensor"},
            {0},
        },
    .min_arguments = 2,
    .max_arguments = 2,
    .takes_options = true,
    .only_opens = true,
    .compares = true,
    .run = run,
};
