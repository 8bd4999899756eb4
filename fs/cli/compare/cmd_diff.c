#include "base/report.h"
#include "base/text.h"
#include "fs/cli/command.h"
#include "fs/cli/info/json_page.h"
#include "fs/lib/diff.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_SAME = 0, EXIT_DIFFERENT = 1, EXIT_TROUBLE = 2, SHOWN_ELEMENTS = 8, SHOWN_BYTES = 60 };
enum { FLAG_BRIEF, FLAG_JSON };

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

static void print_text(const struct diff *found, bool brief)
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

static void print_json(const struct diff *found)
{
    struct json_page page;
    json_page_begin(&page);
    diff_put(&page.writer, found);
    json_page_print(&page);
}

static int print(const struct diff *found, const struct invocation *invocation)
{
    if (invocation->flags[FLAG_JSON])
        print_json(found);
    else
        print_text(found, invocation->flags[FLAG_BRIEF]);
    return found->n_tensors + found->n_keys != 0 ? EXIT_DIFFERENT : EXIT_SAME;
}

static int run(const struct invocation *invocation)
{
    struct diff found;
    struct error error;
    int status = EXIT_TROUBLE;
    if (diff_make(invocation->arguments[0], invocation->arguments[1], invocation->options, &found, &error)) {
        status = print(&found, invocation);
        diff_free(&found);
    } else {
        report("%s", error.message);
    }
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
