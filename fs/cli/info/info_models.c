#include "fs/cli/info/info_pages.h"

#include "fs/cli/info/json_page.h"
#include "fs/cli/terminal.h"
#include "fs/lib/info/architectures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_architecture(const struct architecture *one)
{
    printf("%c %-18s  %-36s ", one->is_compared ? '*' : ' ', one->gguf, one->summary);
    for (const char *const *name = one->names; *name != NULL; name++)
        printf(" %s", *name);
    putchar('\n');
}

static void print_group(const struct architectures *all, const char *title)
{
    bool has_title = false;
    for (size_t i = 0; i < all->n_families; i++) {
        if (strcmp(all->families[i].group, title) != 0)
            continue;
        if (!has_title)
            puts(title);
        has_title = true;
        print_architecture(&all->families[i]);
    }
}

void print_architectures(void)
{
    struct arena *arena = arena_new();
    const struct architectures all = architectures_list(arena);
    printf("  %-18s  %-36s  %s\n", "GGUF", "FAMILY (* compared with the converter byte for byte)", "HUGGING FACE");
    for (const char *const *title = all.groups; *title != NULL; title++)
        print_group(&all, *title);
    puts("Vision and audio encoders, for mmproj.gguf");
    for (size_t i = 0; i < all.n_projectors; i++)
        print_architecture(&all.projectors[i]);
    puts("Diffusion models, as ComfyUI-GGUF writes them");
    for (size_t i = 0; i < all.n_diffusion; i++)
        printf("  %-18s  %s\n", all.diffusion[i].gguf, all.diffusion[i].summary);
    arena_free(arena);
}

void print_architectures_json(void)
{
    struct json_page page;
    json_page_begin(&page);
    architectures_put(&page.writer);
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
