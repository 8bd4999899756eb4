/* Texts for programs: what a model is, what files are made from, and whether others are the same. */
#include "fs/lib/attestation.h"
#include "fs/lib/diff.h"
#include "fs/lib/info/architectures.h"
#include "fs/lib/info/profile.h"
#include "fs/lib/info/quantization.h"
#include "fs/lib/verification.h"

#include <errno.h>
#include <stdlib.h>

/* Ends the text of a call; its memory is the caller's. */
static char *finish_text(struct buffer *text)
{
    buffer_append(text, "", 1);
    return (char *)text->bytes;
}

/* Returns the text of a call; NULL if that has failed, by a stop after the text was made, too. */
static char *text_of(bool done, char **text)
{
    if (!done)
        free(*text);
    return done ? *text : NULL;
}

struct info_call {
    wfs_model *model;
    char *text;
};

static bool describe(void *context, struct error *error)
{
    struct info_call *call = context;
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .compact = true};
    json_begin_object(&writer, NULL);
    info_put(&writer, call->model->tree);
    json_end(&writer);
    call->text = finish_text(&text);
    return true;
}

char *wfs_info_json(wfs_model *model, struct wfs_error *ret_error)
{
    struct info_call call = {model, NULL};
    return text_of(lib_call(model->context, describe, &call, ret_error), &call.text);
}

static bool list_architectures(void *context, struct error *error)
{
    char **ret_text = context;
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .compact = true};
    json_begin_object(&writer, NULL);
    architectures_put(&writer);
    json_end(&writer);
    *ret_text = finish_text(&text);
    return true;
}

char *wfs_architectures_json(wfs_context *context, struct wfs_error *ret_error)
{
    char *text = NULL;
    return text_of(lib_call(context, list_architectures, &text, ret_error), &text);
}

struct measure_call {
    wfs_model *model;
    bool all;
    char *text;
};

static bool measure(void *context, struct error *error)
{
    struct measure_call *call = context;
    struct quantizations measured;
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .compact = true};
    if (!quantizations_measure(call->model->tree, call->all, &measured, error))
        return false;
    quantizations_put(&writer, &measured);
    quantizations_free(&measured);
    call->text = finish_text(&text);
    return true;
}

char *wfs_quantizations_json(wfs_model *model, bool all, struct wfs_error *ret_error)
{
    struct measure_call call = {model, all, NULL};
    return text_of(lib_call(model->context, measure, &call, ret_error), &call.text);
}

struct compare_call;
typedef bool comparison(const struct compare_call *call, const struct options *options, struct json_writer *writer,
                        struct error *error);

struct compare_call {
    const char *file, *source;
    const char *const *options;
    comparison *compare; /* puts the members of its result */
    bool only_opens;     /* options that are not for opening a source are errors */
    char *text;
};

static bool compare_file(const struct compare_call *call, const struct options *options, struct json_writer *writer,
                         struct error *error)
{
    struct verified verified;
    if (!verify_file(call->file, call->source, options, &verified, error))
        return false;
    verified_put(writer, &verified);
    verified_free(&verified);
    return true;
}

static bool compare_statement(const struct compare_call *call, const struct options *options,
                              struct json_writer *writer, struct error *error)
{
    struct attested attested;
    if (!attested_read(call->file, options, &attested, error))
        return false;
    struct tree *tree = lib_open(call->source, attested.options, error);
    bool made = tree != NULL && attested_make(&attested, tree, error);
    if (made)
        attested_put(writer, &attested);
    if (tree != NULL)
        lib_close_tree(tree);
    attested_free(&attested);
    return made;
}

static bool compare_sources(const struct compare_call *call, const struct options *options, struct json_writer *writer,
                            struct error *error)
{
    struct diff diff;
    if (!diff_make(call->file, call->source, options, &diff, error))
        return false;
    diff_put(writer, &diff);
    diff_free(&diff);
    return true;
}

static bool compare(void *context, struct error *error)
{
    struct compare_call *call = context;
    struct options options;
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .compact = true};
    if (call->file == NULL || call->source == NULL)
        return lib_misuse(error, "no %s is given", call->file == NULL ? "file" : "source");
    options_init(&options);
    options.only_opening = call->only_opens;
    json_begin_object(&writer, NULL);
    bool compared = lib_parse_options(&options, call->options, error) && call->compare(call, &options, &writer, error);
    json_end(&writer);
    options_free(&options);
    if (compared)
        call->text = finish_text(&text);
    else
        buffer_free(&text);
    return compared;
}

char *wfs_compare(wfs_context *context, const char *file, const char *source, const char *const *options,
                  struct wfs_error *ret_error)
{
    struct compare_call call = {file, source, options, compare_file, false, NULL};
    return text_of(lib_call(context, compare, &call, ret_error), &call.text);
}

char *wfs_compare_attestation(wfs_context *context, const char *statement, const char *source,
                              const char *const *options, struct wfs_error *ret_error)
{
    struct compare_call call = {statement, source, options, compare_statement, false, NULL};
    return text_of(lib_call(context, compare, &call, ret_error), &call.text);
}

char *wfs_diff(wfs_context *context, const char *a, const char *b, const char *const *options,
               struct wfs_error *ret_error)
{
    struct compare_call call = {a, b, options, compare_sources, true, NULL};
    return text_of(lib_call(context, compare, &call, ret_error), &call.text);
}

struct attest_call {
    wfs_model *model;
    const char *const *paths;
    size_t n_paths;
    char *text;
};

static bool find_files(const struct attest_call *call, struct found_list *files, struct error *error)
{
    struct found_list named = {0};
    bool found = call->n_paths > 0 || lib_misuse(error, "no path is given");
    for (size_t i = 0; found && i < call->n_paths; i++)
        found = paths_find(call->model->tree, call->paths[i], &named, error) || error_set_code(error, ENOENT);
    paths_add_files(call->model->tree, &named, files);
    found_free(&named);
    return found;
}

static bool attest(void *context, struct error *error)
{
    struct attest_call *call = context;
    struct found_list files = {0};
    struct attestation attestation;
    struct buffer text = {0};
    struct arena *arena = arena_new();
    bool attested = find_files(call, &files, error) &&
                    attestation_make(call->model->tree, &files, call->model->options, arena, &attestation, error);
    if (attested) {
        attestation_append(&attestation, JSON_UTF8, &text);
        call->text = finish_text(&text);
    }
    found_free(&files);
    arena_free(arena);
    return attested;
}

char *wfs_attest(wfs_model *model, const char *const *paths, size_t n_paths, struct wfs_error *ret_error)
{
    struct attest_call call = {model, paths, n_paths, NULL};
    return text_of(lib_call(model->context, attest, &call, ret_error), &call.text);
}

void wfs_text_free(char *text)
{
    free(text);
}
