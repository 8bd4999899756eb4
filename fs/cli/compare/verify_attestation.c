#include "fs/cli/compare/checks.h"

#include "base/report.h"
#include "base/text.h"
#include "fs/cli/info/json_page.h"
#include "fs/lib/attestation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_SAME = 0, EXIT_DIFFERENT = 1, EXIT_TROUBLE = 2, FLAG_JSON = 1 };

static void print_difference(void *context, const char *kind, const struct attested_file *stated,
                             const struct attested_file *made)
{
    printf("%s ", kind);
    text_put(stated != NULL ? stated->name : made->name, stdout);
    if (made == NULL)
        puts(": missing");
    else if (stated == NULL)
        printf(": not in the statement, %s\n", made->sha256);
    else
        printf(": %s instead of %s\n", made->sha256, stated->sha256);
}

static size_t print_json(const struct attested *attested)
{
    struct json_page page;
    json_page_begin(&page);
    size_t n_different = attested_put(&page.writer, attested);
    json_page_print(&page);
    return n_different;
}

static size_t print_text(const struct attested *attested)
{
    const struct attestation *stated = &attested->stated, *made = &attested->made;
    size_t n_different = attested_differences(attested, print_difference, NULL);
    text_put(attested->path, stdout);
    if (n_different == 0)
        printf(": %zu subjects and %zu materials are as stated\n", stated->n_subjects, stated->n_materials);
    else
        printf(": %zu %s not as stated\n", n_different, n_different == 1 ? "file is" : "files are");
    if (n_different != 0 && strcmp(stated->version, made->version) != 0)
        report_unnamed("note: the statement is of wfs %s, and this is wfs %s", stated->version, made->version);
    return n_different;
}

int verify_attestation(const char *path, const struct invocation *invocation)
{
    struct attested attested;
    struct error error;
    int status = EXIT_TROUBLE;
    if (invocation->n_arguments != 1) {
        report("verify: --attestation needs one operand, the SOURCE");
        return EXIT_TROUBLE;
    }
    if (!attested_read(path, invocation->options, &attested, &error)) {
        report("%s", error.message);
        return EXIT_TROUBLE;
    }
    struct tree *tree = command_open(invocation->arguments[0], attested.options);
    if (tree != NULL && attested_make(&attested, tree, &error)) {
        size_t n_different = (invocation->flags[FLAG_JSON] ? print_json : print_text)(&attested);
        status = n_different == 0 ? EXIT_SAME : EXIT_DIFFERENT;
    } else if (tree != NULL) {
        report("%s", error.message);
    }
    if (tree != NULL)
        command_close(tree);
    attested_free(&attested);
    return finish_output(EXIT_SUCCESS) == EXIT_SUCCESS ? status : EXIT_TROUBLE;
}
