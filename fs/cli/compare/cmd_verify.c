#include "base/report.h"
#include "base/text.h"
#include "fs/cli/command.h"
#include "fs/cli/compare/checks.h"
#include "fs/cli/info/json_page.h"
#include "fs/cli/pack/archive_check.h"
#include "fs/lib/verification.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EXIT_SAME = 0,
    EXIT_DIFFERENT = 1,
    EXIT_TROUBLE = 2,
    EXIT_EQUAL = 3,
    EXIT_NEAREST = 4,
    NAMED_KEYS = 3,
    SHOWN_ELEMENTS = 16
};
enum { FLAG_ALL, FLAG_JSON, FLAG_ATTESTATION };

static const struct {
    const char *text;
    int status;
} answers[] = {
    [ANSWER_IDENTICAL] = {": identical to ", EXIT_SAME},
    [ANSWER_EQUAL] = {": equal, but not identical, to ", EXIT_EQUAL},
    [ANSWER_NEAREST] = {": quantized from the same weights with other scales than ", EXIT_NEAREST},
    [ANSWER_DIFFERENT] = {": different; the nearest is ", EXIT_DIFFERENT},
};

/* Returns the largest ratio of an error to the error of its type, for the tensors of a verdict; 0 if none is known. */
static double most_times(const struct verification *verification, enum tensor_verdict verdict)
{
    double most = 0;
    for (size_t i = 0; i < verification->n_tensors; i++) {
        const struct tensor_finding *finding = &verification->tensors[i];
        if (finding->verdict == verdict && finding->cost > 0 && finding->error / finding->cost > most)
            most = finding->error / finding->cost;
    }
    return most;
}

/* Appends a clause: "; 3 tensors ...". */
static void say(struct buffer *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct buffer *out, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    buffer_printf(out, "%s%s", out->length != 0 ? "; " : "", text);
}

static const char *tensors(size_t count)
{
    return count == 1 ? "tensor" : "tensors";
}

static void say_error(struct buffer *out, const struct verification *verification, enum tensor_verdict verdict)
{
    double times = most_times(verification, verdict);
    if (times > 0)
        buffer_printf(out, ", with up to %.3g times the error of their types", times);
}

/* Returns the likely cause of other rounding; "" if the weights differ anyway. */
static const char *cause_of_rounding(const struct verification *verification)
{
    if (verification->counts[TENSOR_OTHER_WEIGHTS] != 0)
        return "";
    return verification->has_importance ? "an importance matrix: " : "an importance matrix, or another tool: ";
}

/* Says how many blocks are near ties, where the first is, and how far off. */
static void say_near_ties(struct buffer *out, const struct verification *verification)
{
    uint64_t n_near = 0, n_blocks = 0;
    double largest = 0;
    const struct tensor_finding *first = NULL;
    for (size_t i = 0; i < verification->n_tensors; i++) {
        const struct tensor_finding *finding = &verification->tensors[i];
        if (finding->verdict != TENSOR_NEAR_TIES)
            continue;
        first = first == NULL ? finding : first;
        n_near += finding->blocks.n_different;
        n_blocks += finding->blocks.n_blocks;
        largest = finding->blocks.largest > largest ? finding->blocks.largest : largest;
    }
    if (first == NULL)
        return;
    say(out,
        "near ties, as another rounding gives: %" PRIu64 " of %" PRIu64 " blocks in %zu %s, by at most %.3g of a "
        "block's scale, first in block %" PRIu64 " of %.*s",
        n_near, n_blocks, verification->counts[TENSOR_NEAR_TIES], tensors(verification->counts[TENSOR_NEAR_TIES]),
        largest, first->blocks.first, (int)first->found->name_length, first->found->name);
}

/* Says what is proved of tensors with other scales. */
static void say_nearest_codes(struct buffer *out, const struct verification *verification)
{
    const size_t count = verification->counts[TENSOR_NEAREST_CODES];
    uint64_t n_loose = 0, n_outside = 0;
    double least = 1, most = 1;
    if (count == 0)
        return;
    for (size_t i = 0; i < verification->n_tensors; i++) {
        const struct tensor_finding *finding = &verification->tensors[i];
        if (finding->verdict != TENSOR_NEAREST_CODES)
            continue;
        n_loose += finding->codes.n_loose;
        n_outside += finding->codes.n_outside;
        least = finding->codes.least < least ? finding->codes.least : least;
        most = finding->codes.most > most ? finding->codes.most : most;
    }
    say(out,
        "the codes of %zu %s are the nearest for their scales, and the scales are within %.2f and %.2f times those "
        "that fit the range of the weights",
        count, tensors(count), least, most);
    if (n_loose > 0)
        say(out, "%" PRIu64 " of these codes are second nearest, as a search leaves them", n_loose);
    if (n_outside > 0)
        say(out, "%" PRIu64 " of these scales are outside the usual limits, as an extreme importance matrix gives",
            n_outside);
}

/* Says which codes or scales of a tensor do not follow from the weights. */
static void say_codes(struct buffer *out, const struct code_counts *codes)
{
    if (codes->n_other > 0)
        buffer_printf(
            out, ", %" PRIu64 " of %" PRIu64 " codes are not the nearest for their scales, first in block %" PRIu64,
            codes->n_other, codes->n_codes, codes->first_other);
    if (codes->n_outside > 0)
        buffer_printf(out, ", %" PRIu64 " of %" PRIu64 " scales do not fit the weights, first in block %" PRIu64,
                      codes->n_outside, codes->n_scales, codes->first_outside);
    if (codes->n_other == 0 && codes->n_loose > codes->n_codes / LOOSE_SHARE)
        buffer_printf(out, ", %" PRIu64 " of %" PRIu64 " codes are second nearest", codes->n_loose, codes->n_codes);
}

/* Says which tensor is the first that differs by more than near ties, and by how much. */
static void say_first(struct buffer *out, const struct verification *verification)
{
    for (size_t i = 0; i < verification->n_tensors; i++) {
        const struct tensor_finding *finding = &verification->tensors[i];
        const struct tensor *named = finding->found != NULL ? finding->found : finding->expected;
        if (finding->verdict <= TENSOR_NEAREST_CODES)
            continue;
        say(out, "first %.*s", (int)named->name_length, named->name);
        if (finding->blocks.n_different != 0)
            buffer_printf(out, ", %" PRIu64 " of %" PRIu64 " blocks, by at most %.3g of a block's scale",
                          finding->blocks.n_different, finding->blocks.n_blocks, finding->blocks.largest);
        if (finding->by_codes)
            say_codes(out, &finding->codes);
        return;
    }
}

static void say_tensors(struct buffer *out, const struct verification *verification)
{
    const size_t *counts = verification->counts;
    if (counts[TENSOR_OTHER_WEIGHTS] != 0) {
        say(out, "weights of another model: %zu of %zu tensors", counts[TENSOR_OTHER_WEIGHTS], verification->n_tensors);
        say_error(out, verification, TENSOR_OTHER_WEIGHTS);
    }
    if (counts[TENSOR_OTHER_SHAPE] != 0)
        say(out, "%zu %s of another shape", counts[TENSOR_OTHER_SHAPE], tensors(counts[TENSOR_OTHER_SHAPE]));
    if (counts[TENSOR_MISSING] != 0)
        say(out, "%zu %s missing", counts[TENSOR_MISSING], tensors(counts[TENSOR_MISSING]));
    if (counts[TENSOR_UNKNOWN] != 0)
        say(out, "%zu extra %s", counts[TENSOR_UNKNOWN], tensors(counts[TENSOR_UNKNOWN]));
    if (counts[TENSOR_OTHER_TYPE] != 0)
        say(out, "another mix: %zu %s of other types", counts[TENSOR_OTHER_TYPE], tensors(counts[TENSOR_OTHER_TYPE]));
    if (counts[TENSOR_OTHER_ROUNDING] != 0) {
        say(out, "%s%zu %s rounded differently", cause_of_rounding(verification), counts[TENSOR_OTHER_ROUNDING],
            tensors(counts[TENSOR_OTHER_ROUNDING]));
        say_error(out, verification, TENSOR_OTHER_ROUNDING);
    }
    say_first(out, verification);
    say_near_ties(out, verification);
    say_nearest_codes(out, verification);
}

static void say_keys(struct buffer *out, const struct key_matches *keys)
{
    if (keys->n_matches != 0)
        say(out, "%zu other key%s:", keys->n_matches, keys->n_matches == 1 ? "" : "s");
    for (size_t i = 0; i < keys->n_matches && i < NAMED_KEYS; i++) {
        const struct key_match *match = &keys->matches[i];
        buffer_append_text(out, i ? ", " : " ");
        if (match->a == NULL)
            buffer_printf(out, "+%s", match->b->key);
        else
            buffer_printf(out, "%s%s", match->b == NULL ? "-" : "", match->a->key);
    }
    if (keys->n_matches > NAMED_KEYS)
        buffer_append_text(out, " ...");
}

/* Appends "b11192 to b11549". */
static void append_builds(struct buffer *out, const struct build_range *builds)
{
    buffer_printf(out, "b%u", builds->first);
    if (builds->last != builds->first)
        buffer_printf(out, " to b%u", builds->last);
}

/* Says which other builds write keys as the file has them. */
static void say_builds(struct buffer *out, const struct verification *verification)
{
    const struct key_matches *keys = &verification->keys;
    for (size_t i = 0; i < keys->n_matches; i++) {
        const struct build_class *class = verification->explained[i];
        bool is_said = class == NULL;
        for (size_t j = 0; j < i; j++)
            is_said |= verification->explained[j] == class;
        if (is_said)
            continue;
        say(out, "llama.cpp ");
        append_builds(out, &class->builds);
        buffer_append_text(out, " writes");
        for (size_t j = i; j < keys->n_matches; j++)
            if (verification->explained[j] == class)
                buffer_printf(out, "%s%s %s", j > i ? "," : "", keys->matches[j].b == NULL ? " no" : "",
                              keys->matches[j].a != NULL ? keys->matches[j].a->key : keys->matches[j].b->key);
    }
}

/* Returns all differences on one line. */
static struct buffer verdict_text(const struct verification *verification)
{
    struct buffer text = {0};
    say_tensors(&text, verification);
    say_keys(&text, &verification->keys);
    say_builds(&text, verification);
    if (text.length == 0)
        say(&text, "the same tensors and keys in another order or alignment");
    buffer_append(&text, "", 1);
    return text;
}

/* Printing every difference on a line of its own. */

static void print_codes(const struct tensor_finding *finding)
{
    struct buffer text = {0};
    say_codes(&text, &finding->codes);
    printf("%.*s, scales within %.3g and %.3g times those that fit", (int)text.length, (const char *)text.bytes,
           finding->codes.least, finding->codes.most);
    buffer_free(&text);
}

static void print_tensor(const struct tensor_finding *finding)
{
    const struct tensor *named = finding->found != NULL ? finding->found : finding->expected;
    char name[512];
    text_printable(named->name, named->name_length, name, sizeof name);
    printf("tensor %s: %s", name, verdict_word(finding->verdict));
    if (finding->found != NULL && finding->expected != NULL) {
        if (finding->found->dtype != finding->expected->dtype)
            printf(", %s instead of %s", finding->found->dtype->name, finding->expected->dtype->name);
        if (finding->weighed)
            printf(", error %.3g (%.3g of the model's)", finding->error, finding->relative);
        if (finding->weighed && finding->cost > 0)
            printf(", %.3g times the error of %s", finding->error / finding->cost, finding->found->dtype->name);
        if (finding->blocks.n_different > 0)
            printf(", %" PRIu64 " of %" PRIu64 " blocks from %" PRIu64 " on, by at most %.3g of a block's scale",
                   finding->blocks.n_different, finding->blocks.n_blocks, finding->blocks.first,
                   finding->blocks.largest);
        if (finding->by_codes)
            print_codes(finding);
    }
    putchar('\n');
}

static void print_value(const char *before, const struct gguf_kv *kv)
{
    struct buffer value = {0};
    gguf_append_text(&value, kv, SHOWN_ELEMENTS);
    buffer_append(&value, "", 1);
    fputs(before, stdout);
    text_put((const char *)value.bytes, stdout);
    buffer_free(&value);
}

static void print_all(const struct verification *verification)
{
    for (size_t i = 0; i < verification->n_tensors; i++)
        if (verification->tensors[i].verdict != TENSOR_SAME)
            print_tensor(&verification->tensors[i]);
    for (size_t i = 0; i < verification->keys.n_matches; i++) {
        const struct key_match *match = &verification->keys.matches[i];
        fputs("key ", stdout);
        text_put(match->a != NULL ? match->a->key : match->b->key, stdout);
        if (match->b != NULL)
            print_value(": ", match->b);
        else
            fputs(": missing", stdout);
        if (match->a != NULL)
            print_value(" instead of ", match->a);
        putchar('\n');
    }
}

static void print_builds(const struct reproduction *reproduction)
{
    struct buffer text = {0};
    const struct build_class *class = reproduction_builds(reproduction);
    if (class == NULL)
        return;
    append_builds(&text, &class->builds);
    printf(", as llama.cpp %.*s writes it", (int)text.length, (const char *)text.bytes);
    buffer_free(&text);
}

static void print_lines(const struct verified *verified)
{
    const bool is_identical = verified->verification.answer == ANSWER_IDENTICAL;
    text_put(verified->path, stdout);
    fputs(answers[verified->verification.answer].text, stdout);
    text_put(verified->reproduction.path, stdout);
    fputs(" of ", stdout);
    text_put(verified->source, stdout);
    if (is_identical) {
        print_builds(&verified->reproduction);
    } else {
        struct buffer text = verdict_text(&verified->verification);
        fputs(": ", stdout);
        text_put((const char *)text.bytes, stdout);
        buffer_free(&text);
    }
    putchar('\n');
    if (verified->command != NULL) {
        fputs(is_identical ? "made by: " : "made like: ", stdout);
        text_put(verified->command, stdout);
        putchar('\n');
    }
}

static void print_json(const struct verified *verified)
{
    struct json_page page;
    json_page_begin(&page);
    verified_put(&page.writer, verified);
    json_page_print(&page);
}

static int verify_gguf(const struct invocation *invocation)
{
    struct verified verified;
    struct error error;
    if (!verify_file(invocation->arguments[0], invocation->arguments[1], invocation->options, &verified, &error)) {
        report("%s", error.message);
        return EXIT_TROUBLE;
    }
    if (invocation->flags[FLAG_JSON])
        print_json(&verified);
    else
        print_lines(&verified);
    if (invocation->flags[FLAG_ALL] && !invocation->flags[FLAG_JSON])
        print_all(&verified.verification);
    int status = answers[verified.verification.answer].status;
    verified_free(&verified);
    return finish_output(EXIT_SUCCESS) == EXIT_SUCCESS ? status : EXIT_TROUBLE;
}

static int verify_archives(const char *name)
{
    struct error error;
    enum archives found = check_named_archives(name, &error);
    if (found == ARCHIVES_NONE)
        report("%s", error.message);
    int status = found == ARCHIVES_WHOLE ? EXIT_SAME : found == ARCHIVES_NONE ? EXIT_TROUBLE : EXIT_DIFFERENT;
    return finish_output(EXIT_SUCCESS) == EXIT_SUCCESS ? status : EXIT_TROUBLE;
}

static int run(const struct invocation *invocation)
{
    if (invocation->flags[FLAG_ATTESTATION])
        return verify_attestation(invocation->values[FLAG_ATTESTATION], invocation);
    if (invocation->n_arguments == 1 && archive_holds(invocation->arguments[0]))
        return finish_output(archive_verify(invocation->arguments[0]));
    if (invocation->n_arguments == 1)
        return verify_archives(invocation->arguments[0]);
    return verify_gguf(invocation);
}

const struct command verify_command = {
    .name = "verify",
    .usage = "FILE.gguf SOURCE | SOURCE | ARCHIVE",
    .summary = "Tell whether a GGUF was made from a model, and by which build",
    .group = COMPARE_COMMAND,
    .text =
        "The answer is one of four: identical (exit status 0), equal up to near ties (3), quantized from the same "
        "weights with other scales (4),\ndifferent (1); the status is 2 if the file cannot be compared.\nA near tie is "
        "a block that differs only because an intermediate value was rounded the other way, as on ARM; the report "
        "counts these blocks. In an equal\nfile, keys that only describe the model may differ, too, and "
        "those that another build of llama.cpp writes: verify tries "
        "all known\nbuilds, and names them. A "
        "file made with an unknown importance matrix or tool has status 4 if each of its codes is the nearest one for "
        "its scale, and each\nscale fits the weights. The "
        "report on a different file counts tensors with another type\n(another mix), tensors rounded differently (an "
        "importance matrix), and tensors with more than 1.5 times the error of\ntheir type (weights of another model), "
        "and lists the keys that differ, with + and - for keys that only one file has.\nverify finds out which virtual "
        "file and which options give FILE.gguf, and prints the command that makes it. Options\nsuch as -o imatrix= "
        "apply to SOURCE.\n"
        "Of an archive of wfs pack, or a part of it, verify reads every file and compares its SHA-256 with the "
        "original's: exit status 0, or 1 if one is damaged.\n"
        "With --attestation, verify applies the options of the statement, except those that name files, which you give "
        "again.\n"
        "With one argument, a torch or numpy file or a directory of them, verify compares the checksum of every member "
        "of the zip\narchives. The exit status is 1 if a member is damaged, 2 if there is no archive.",
    .flags = (const struct flag[]){{'a', "all", "list every tensor and key that differs"},
                                   {0, "json", "print JSON for scripts"},
                                   {0, "attestation", "make the statement of 'wfs attest' again, and compare", "FILE",
                                    true, .names_input = true},
                                   {0}},
    .examples =
        (const struct example[]){
            {"wfs verify qwen2.5-0.5b-q4_k_m.gguf Qwen/Qwen2.5-0.5B", "check a downloaded GGUF against its model"},
            {"wfs verify --attestation model.intoto.json ~/models/Llama-3.2-1B", "check what 'wfs attest' stated"},
            {"wfs verify pytorch_model.bin", "check a torch or numpy archive for damage"},
            {"wfs verify --json model.gguf ~/models/Qwen2.5-0.5B | jq .counts", "count the tensors by result"},
            {0},
        },
    .min_arguments = 1,
    .max_arguments = 2,
    .n_sources = 2,
    .takes_options = true,
    .compares = true,
    .run = run,
};
