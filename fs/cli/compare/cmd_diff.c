#include "base/report.h"
#include "base/text.h"
#include "formats/shape.h"
#include "fs/cli/command.h"
#include "fs/cli/compare/diff_json.h"
#include "fs/lib/stage.h"
#include "models/convert/model.h"
#include "models/facts.h"
#include "models/huggingface/hf_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_SAME = 0, EXIT_DIFFERENT = 1, EXIT_TROUBLE = 2, SHOWN_ELEMENTS = 8, SHOWN_BYTES = 60 };
enum { FLAG_BRIEF, FLAG_JSON };

/* One of the two sources. */
struct side {
    const struct checkpoint *checkpoint;
    struct gguf_model *model;         /* the source as GGUF; NULL: impossible */
    const struct hf_model *canonical; /* under Hugging Face names; NULL: not needed, or impossible */
};

static bool open_side(struct side *side, const char *path, const struct options *options, struct error *error)
{
    struct error unused;
    side->checkpoint = lib_open_checkpoint(path, options, error);
    if (side->checkpoint == NULL)
        return false;
    side->model = gguf_model_new(side->checkpoint, &options->content.request.references, &unused);
    return true;
}

static void close_side(struct side *side)
{
    gguf_model_free(side->model);
    checkpoint_close(side->checkpoint);
}

/* Reports whether the GGUF form of a source is known, beyond its tensors' own names. */
static bool is_understood(const struct side *side)
{
    return side->model != NULL && (side->model->family != NULL || side->model->is_gguf);
}

/* Reports whether the larger set has at least half of the smaller one's names: then both have names of one kind. */
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
        printf("shape %s in A, %s in B", shape_text(a->shape, a->rank, shape_a, sizeof shape_a),
               shape_text(b->shape, b->rank, shape_b, sizeof shape_b));
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

/* Reports whether a key exists only in files, not in models. */
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

static void leave_out_file_keys(struct key_matches *keys)
{
    size_t n_left = 0;
    for (size_t i = 0; i < keys->n_matches; i++)
        if (!is_of_file(&keys->matches[i]))
            keys->matches[n_left++] = keys->matches[i];
    keys->n_matches = n_left;
}

static bool compare(struct matches *matches, struct error *error)
{
    stage_begin("diff", compare_bytes(matches->pairs, matches->n_pairs));
    bool compared = compare_pairs(matches->pairs, matches->n_pairs, error);
    stage_end();
    return compared;
}

/* The tensors of both sources, under names of one kind if possible. */
struct common {
    const struct tensor_set *a, *b;
    const char *names; /* the kind of names; NULL: their own */
};

/* Chooses the names: the sources' own if they share them; GGUF's if both sources are understood; or Hugging Face's,
 * which match a file without config.json with a GGUF. */
static struct common common_names(struct side *a, struct side *b, bool as_gguf)
{
    struct error unused;
    const struct common own = {a->checkpoint->tensors, b->checkpoint->tensors, NULL};
    if (share_names(own.a, own.b))
        return own;
    if (as_gguf)
        return (struct common){a->model->tensors, b->model->tensors, "GGUF"};
    a->canonical = hf_model_of(a->checkpoint, &unused);
    b->canonical = hf_model_of(b->checkpoint, &unused);
    if (a->canonical == NULL || b->canonical == NULL || !share_names(a->canonical->tensors, b->canonical->tensors))
        return own;
    return (struct common){a->canonical->tensors, b->canonical->tensors, "Hugging Face"};
}

static bool diff(struct side *a, struct side *b, struct arena *arena, struct comparison *ret_found, struct error *error)
{
    bool as_gguf = is_understood(a) && is_understood(b);
    const struct common common = common_names(a, b, as_gguf);
    struct comparison found = {.a = a->checkpoint, .b = b->checkpoint, .names = common.names};
    found.tensors = match_tensors(common.a, common.b, arena);
    found.keys = as_gguf ? match_keys(&a->model->kvs, &b->model->kvs, arena)
                         : match_keys(&a->checkpoint->metadata, &b->checkpoint->metadata, arena);
    if (!compare(&found.tensors, error))
        return false;
    if (as_gguf && !(a->model->is_gguf && b->model->is_gguf))
        leave_out_file_keys(&found.keys);
    for (size_t i = 0; i < found.tensors.n_matches; i++) {
        found.n_tensors += !match_is_same(&found.tensors.matches[i]);
        found.n_values += has_other_values(&found.tensors.matches[i]);
    }
    found.n_keys = found.keys.n_matches;
    *ret_found = found;
    return true;
}

static void print_text(const struct comparison *found, bool brief)
{
    if (found->names != NULL && !brief)
        printf("compared with %s names and shapes\n", found->names);
    for (size_t i = 0; i < found->tensors.n_matches && !brief; i++)
        if (!match_is_same(&found->tensors.matches[i]))
            print_match(&found->tensors.matches[i]);
    for (size_t i = 0; i < found->keys.n_matches && !brief; i++)
        print_key(&found->keys.matches[i]);
    if (found->n_tensors + found->n_keys != 0)
        printf("%zu of %zu tensors (%zu in their values) and %zu key%s differ\n", found->n_tensors,
               found->tensors.n_matches, found->n_values, found->n_keys, found->n_keys == 1 ? "" : "s");
}

static int print(const struct comparison *found, const struct invocation *invocation)
{
    if (invocation->flags[FLAG_JSON])
        print_diff_json(found);
    else
        print_text(found, invocation->flags[FLAG_BRIEF]);
    return found->n_tensors + found->n_keys != 0 ? EXIT_DIFFERENT : EXIT_SAME;
}

static int run(const struct invocation *invocation)
{
    struct side a = {0}, b = {0};
    struct comparison found;
    struct error error;
    struct arena *arena = arena_new();
    struct options options = *invocation->options;
    int status = EXIT_TROUBLE;
    bool opened = open_side(&a, invocation->arguments[0], &options, &error);
    /* directories' names are no difference between models; a GGUF has its model's name among its keys */
    if (opened && options.open.name == NULL && facts_of(a.checkpoint).keys == NULL)
        options.open.name = a.checkpoint->model_name;
    opened = opened && open_side(&b, invocation->arguments[1], &options, &error);
    if (opened && diff(&a, &b, arena, &found, &error))
        status = print(&found, invocation);
    else
        report("%s", error.message);
    arena_free(arena);
    close_side(&b);
    close_side(&a);
    return finish_output(EXIT_SUCCESS) == EXIT_SUCCESS ? status : EXIT_TROUBLE;
}

const struct command diff_command = {
    .name = "diff",
    .usage = "A B",
    .summary = "Compare tensors and metadata of two sources of any format",
    .group = COMPARE_COMMAND,
    .text =
        "If most tensor names match, tensors are compared by name. Otherwise both sources are compared with their GGUF "
        "names, or with their Hugging Face\nnames if there is no configuration. Values that differ are compared as "
        "F32. The exit status is 0 if the sources\nare the same, 1 if they differ, 2 if they cannot be compared.",
    .flags = (const struct flag[]){{'q', "brief", "print only how many tensors and keys differ"},
                                   {0, "json", "print JSON for scripts: every tensor and key that differs"},
                                   {0}},
    .examples =
        (const struct example[]){
            {"wfs diff model.safetensors pytorch_model.bin", "check that a conversion lost nothing"},
            {"wfs diff Qwen/Qwen2.5-0.5B model-Q4_K_M.gguf", "measure the loss of quantization in each tensor"},
            {0},
        },
    .min_arguments = 2,
    .max_arguments = 2,
    .n_sources = 2,
    .takes_options = true,
    .only_opens = true,
    .compares = true,
    .run = run,
};
