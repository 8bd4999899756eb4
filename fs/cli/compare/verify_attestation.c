#include "fs/cli/compare/verify_attestation.h"

#include "base/report.h"
#include "base/text.h"
#include "fs/cli/info/json_page.h"
#include "fs/lib/attestation.h"

#include <stdlib.h>
#include <string.h>

enum { EXIT_SAME = 0, EXIT_DIFFERENT = 1, EXIT_TROUBLE = 2, FLAG_JSON = 1 };

/* Reports whether the user has given the option. */
static bool is_given(const struct options *options, const struct option_row *row)
{
    for (size_t i = 0; i < options->asked.count; i++)
        if (options->asked.items[i].row == row)
            return true;
    return false;
}

/* Applies an option of the statement. A statement may come from anyone: what would open files must come from the user.
 */
static bool apply(struct options *options, const struct options *given, const char *text, struct error *error)
{
    size_t length = strcspn(text, "=");
    char *words = arena_alloc(options->arena, 2 * strlen(text) + 1), *end = words;
    const struct option_row *row = option_find(arena_strndup(options->arena, text, length));
    if (row == NULL || row->group == MOUNT_OPTION || row->is_transport)
        return error_set(error, "unknown option '%s'", text);
    if (is_given(given, row))
        return true;
    if (row->names_input || strcmp(row->name, "follow-links") == 0)
        return error_set(error, "it was made with -o %s; give this option with your own file", text);
    for (; *text != '\0'; text++) {
        if (*text == ',')
            *end++ = '\\';
        *end++ = *text;
    }
    *end = '\0';
    return options_parse(options, words, error);
}

/* Returns the user's options with those of the statement; its model's name counts unless the user gives one. */
static struct options *with_options(const struct options *given, const struct attestation *stated, struct error *error)
{
    struct options *options = arena_copy(given->arena, given, sizeof *options);
    for (size_t i = 0; i < stated->n_options; i++)
        if (!apply(options, given, stated->options[i], error))
            return NULL;
    if (options->content.request.references.llama_cpp == 0 && stated->llama_cpp != NULL &&
        !apply(options, given, arena_printf(given->arena, "llama.cpp=%s", stated->llama_cpp), error))
        return NULL;
    if (options->open.name == NULL)
        options->open.name = stated->model;
    return options;
}

/* Makes the statement again. A path that does not exist any more is a subject that is missing. */
static bool make_again(const struct attestation *stated, struct tree *tree, const struct options *options,
                       struct arena *arena, struct attestation *ret_made, struct error *error)
{
    struct found_list files = {0};
    struct error unused;
    for (size_t i = 0; i < stated->n_subjects; i++) {
        struct node_attributes attributes;
        if (tree_walk(tree, stated->subjects[i].name, &attributes, &unused) && !attributes.directory)
            found_add(&files, stated->subjects[i].name, &attributes);
    }
    bool made = attestation_make(tree, &files, options, arena, ret_made, error);
    found_free(&files);
    return made;
}

struct printing {
    const char *kind;           /* "subject" or "material" */
    struct json_writer *writer; /* inside the array of differences; NULL: print lines */
};

static void print_difference(void *context, const struct attested_file *stated, const struct attested_file *made)
{
    const struct printing *printing = context;
    const char *name = stated != NULL ? stated->name : made->name;
    if (printing->writer != NULL) {
        json_put_template(printing->writer, "\n{'kind': %s, 'name': %s, 'stated': %s, 'sha256': %s}", printing->kind,
                          name, stated != NULL ? stated->sha256 : NULL, made != NULL ? made->sha256 : NULL);
        return;
    }
    printf("%s ", printing->kind);
    text_put(name, stdout);
    if (made == NULL)
        puts(": missing");
    else if (stated == NULL)
        printf(": not in the statement, %s\n", made->sha256);
    else
        printf(": %s instead of %s\n", made->sha256, stated->sha256);
}

static size_t print_differences(const struct attestation *stated, const struct attestation *made,
                                struct json_writer *writer)
{
    struct printing subjects = {"subject", writer}, materials = {"material", writer};
    return attestation_compare(stated->subjects, stated->n_subjects, made->subjects, made->n_subjects, print_difference,
                               &subjects) +
           attestation_compare(stated->materials, stated->n_materials, made->materials, made->n_materials,
                               print_difference, &materials);
}

static size_t print_json(const struct attestation *stated, const struct attestation *made, const char *path)
{
    struct json_page page;
    json_page_begin(&page);
    json_put_template(&page.writer,
                      "'attestation': %s, 'version': %s, 'subjects': %u, 'materials': %u, \n'differences': [", path,
                      stated->version, (uint64_t)stated->n_subjects, (uint64_t)stated->n_materials);
    size_t n_different = print_differences(stated, made, &page.writer);
    json_put_template(&page.writer, "], \n'identical': %b", n_different == 0);
    json_page_print(&page);
    return n_different;
}

static size_t print_text(const struct attestation *stated, const struct attestation *made, const char *path)
{
    size_t n_different = print_differences(stated, made, NULL);
    text_put(path, stdout);
    if (n_different == 0)
        printf(": %zu subjects and %zu materials are as stated\n", stated->n_subjects, stated->n_materials);
    else
        printf(": %zu %s not as stated\n", n_different, n_different == 1 ? "file is" : "files are");
    if (n_different != 0 && strcmp(stated->version, made->version) != 0)
        report_unnamed("note: the statement is of wfs %s, and this is wfs %s", stated->version, made->version);
    return n_different;
}

/* Compares the statement with the source, and prints the result; returns the exit status. */
static int compare(const struct attestation *stated, const char *path, const struct invocation *invocation,
                   const struct options *options, struct arena *arena)
{
    struct attestation made;
    struct error error;
    struct tree *tree = command_open(invocation->arguments[0], options);
    int status = EXIT_TROUBLE;
    if (tree == NULL)
        return EXIT_TROUBLE;
    if (!make_again(stated, tree, options, arena, &made, &error))
        report("%s", error.message);
    else if ((invocation->flags[FLAG_JSON] ? print_json : print_text)(stated, &made, path) == 0)
        status = EXIT_SAME;
    else
        status = EXIT_DIFFERENT;
    command_close(tree);
    return status;
}

int verify_attestation(const char *path, const struct invocation *invocation)
{
    struct attestation stated;
    struct error error;
    int status = EXIT_TROUBLE;
    if (invocation->n_arguments != 1) {
        report("verify: --attestation needs one operand, the SOURCE");
        return EXIT_TROUBLE;
    }
    struct arena *arena = arena_new();
    bool read = attestation_read(path, arena, &stated, &error);
    const struct options *options = read ? with_options(invocation->options, &stated, &error) : NULL;
    if (options != NULL)
        status = compare(&stated, path, invocation, options, arena);
    else
        report("%s%s%s", read ? path : "", read ? ": " : "", error.message);
    arena_free(arena);
    return finish_output(EXIT_SUCCESS) == EXIT_SUCCESS ? status : EXIT_TROUBLE;
}
