#include "fs/cli/info/info_models.h"

#include "fs/cli/info/json_page.h"
#include "fs/cli/info/quantization_html.h"
#include "fs/cli/progress.h"
#include "fs/cli/terminal.h"
#include "models/diffusion/state_dict.h"
#include "models/families/families.h"
#include "models/families/groups.h"
#include "models/projectors/projectors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_family(const struct family *family)
{
    printf("%c %-18s  %-36s ", family_is_golden(family) ? '*' : ' ', family_architecture(family), family->summary);
    for (const struct family_name *hf = family->hf; hf->name != NULL; hf++)
        printf(" %s", hf->name);
    putchar('\n');
}

void print_architectures(void)
{
    printf("  %-18s  %-36s  %s\n", "GGUF", "FAMILY (* compared with the converter byte for byte)", "HUGGING FACE");
    for (const struct family_group *group = family_groups; group->title != NULL; group++) {
        bool has_title = false;
        for (const struct family *const *family = families; *family != NULL; family++) {
            if (family_group_of(*family) != group)
                continue;
            if (!has_title)
                puts(group->title);
            has_title = true;
            print_family(*family);
        }
    }
    puts("Vision and audio encoders, for mmproj.gguf");
    for (const struct family *const *projector = projectors; *projector != NULL; projector++)
        print_family(*projector);
    puts("Diffusion models, as ComfyUI-GGUF writes them");
    for (const struct diffusion_architecture *const *row = diffusion_architectures; *row != NULL; row++)
        printf("  %-18s  %s\n", (*row)->name, (*row)->summary);
}

static void put_family(struct json_writer *writer, const struct family *family, const struct family_group *group)
{
    json_put_template(writer, "\n{'gguf': %s, 'family': %s", family_architecture(family), family->summary);
    if (group != NULL)
        json_put_text(writer, "group", group->title);
    json_put_template(writer, "'compared': %b, 'hugging_face': [", family_is_golden(family));
    for (const struct family_name *hf = family->hf; hf->name != NULL; hf++)
        json_put_text(writer, NULL, hf->name);
    json_put_template(writer, "]}");
}

void print_architectures_json(void)
{
    struct json_page page;
    json_page_begin(&page);
    json_put_template(&page.writer, "\n'architectures': [");
    for (const struct family *const *family = families; *family != NULL; family++)
        put_family(&page.writer, *family, family_group_of(*family));
    json_put_template(&page.writer, "], \n'projectors': [");
    for (const struct family *const *projector = projectors; *projector != NULL; projector++)
        put_family(&page.writer, *projector, NULL);
    json_put_template(&page.writer, "], \n'diffusion': [");
    for (const struct diffusion_architecture *const *row = diffusion_architectures; *row != NULL; row++)
        json_put_template(&page.writer, "\n{'gguf': %s, 'family': %s}", (*row)->name, (*row)->summary);
    json_end(&page.writer);
    json_page_print(&page);
}

static void print_row(const struct quantization *row, bool is_choice, bool is_best, bool colour)
{
    char size[SIZE_TEXT];
    printf("%s%-10s  %10s  %6.3f  %8.3g %%  %-16s%s%s%s\n", is_choice && colour ? "\033[1m" : "", row->mix->name,
           size_text(row->file_bytes, size), row->bits_per_weight, 100 * row->relative_error,
           quantization_word(row->relative_error), is_best ? " *" : "  ", is_choice ? " <- recommended" : "",
           is_choice && colour ? "\033[0m" : "");
}

/* Prints the names of impossible mixes with the first one's reason, which is nearly the same for all. */
static void print_not_made(const struct quantization *rows, size_t n_rows)
{
    const struct quantization *first = NULL;
    struct buffer names = {0};
    for (const struct quantization *row = rows; row < rows + n_rows; row++) {
        if (row->is_possible)
            continue;
        buffer_printf(&names, "%s%s", first == NULL ? "Not made: " : ", ", row->mix->name);
        first = first == NULL ? row : first;
    }
    if (first == NULL)
        return;
    buffer_printf(&names, " (%s: %s)", first->mix->name, first->reason.message);
    buffer_append(&names, "", 1);
    putchar('\n');
    print_wrapped((const char *)names.bytes, 0, 0, terminal_columns(STDOUT_FILENO));
    buffer_free(&names);
}

static void print_rows(const struct quantization *rows, size_t n_rows, const struct quantization_page *page,
                       bool by_importance)
{
    const struct quantization *choice = quantization_choice(rows, n_rows);
    printf("%-10s  %10s  %6s  %10s  %s\n", "TYPE", "SIZE", "BITS", "ERROR", "LOSS");
    for (const struct quantization *row = rows; row < rows + n_rows; row++)
        if (row->is_possible)
            print_row(row, row == choice, quantization_is_best(rows, n_rows, row), page->colour);
    print_not_made(rows, n_rows);
    unsigned columns = terminal_columns(STDOUT_FILENO);
    putchar('\n');
    print_wrapped(page->all ? "Files are gguf/model-TYPE.gguf. BITS per weight; ERROR is the root mean square of what "
                              "matrices differ from F32, as a share of theirs, in all weights."
                            : "Files are gguf/model-TYPE.gguf. BITS per weight; ERROR is the root mean square of what "
                              "matrices differ from F32, as a share of theirs, in a sample (--all: in all).",
                  0, 0, columns);
    if (by_importance)
        puts("Each error counts by the importance of its column, in all rows alike.");
    puts("* no file as small has less error: take the largest of these that fits.");
}

static void print_rows_json(const struct quantizations *measured)
{
    struct buffer out = {0};
    struct json_writer writer = {.out = &out, .letters = stdout_letters(), .compact = true};
    quantizations_put(&writer, measured);
    print_json_line(&out);
}

/* Prints the page for a browser, which also shows the distribution of weights. */
static bool print_html(const struct quantizations *measured, bool all, struct error *error)
{
    struct quantization_report report = {.model = measured->model,
                                         .rows = measured->rows,
                                         .n_rows = measured->n_rows,
                                         .all = all,
                                         .by_importance = measured->by_importance};
    struct weight_kind *kinds;
    if (!weights_measure(measured->model, &kinds, &report.n_kinds, error))
        return false;
    report.kinds = kinds;
    print_quantization_html(&report);
    free(kinds);
    return true;
}

bool print_quantizations(const struct tree *tree, const struct quantization_page *page, struct error *error)
{
    struct quantizations measured;
    if (!quantizations_measure(tree, page->all, &measured, error))
        return false;
    bool done = true;
    if (page->html)
        done = print_html(&measured, page->all, error);
    else if (page->json)
        print_rows_json(&measured);
    else
        print_rows(measured.rows, measured.n_rows, page, measured.by_importance);
    quantizations_free(&measured);
    return done;
}
