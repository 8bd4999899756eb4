#include "fs/cli/info_models.h"

#include "fs/cli/progress.h"
#include "fs/cli/quantization.h"
#include "models/families/family.h"

#include <stdio.h>
#include <stdlib.h>

void print_architectures(void)
{
    printf("%-20s  %-36s  %s\n", "GGUF", "FAMILY", "HUGGING FACE");
    for (const struct family *const *family = families; *family != NULL; family++) {
        printf("%-20s  %-36s ", family_architecture(*family), (*family)->summary);
        for (const struct family_name *hf = (*family)->hf; hf->name != NULL; hf++)
            printf(" %s", hf->name);
        putchar('\n');
    }
}

/* The bar counts the values of all mixes together. */
struct meter {
    struct progress progress;
    size_t n_done; /* mixes */
    uint64_t bytes_per_mix;
};

static void show_share(void *context, double share)
{
    struct meter *meter = context;
    progress_set(&meter->progress, meter->n_done * meter->bytes_per_mix + (uint64_t)(share * (double)meter->bytes_per_mix));
}

static size_t count_mixes(void)
{
    size_t n_mixes = 0;
    while (mixes[n_mixes].name != NULL)
        n_mixes++;
    return n_mixes;
}

static bool is_possible(const struct quantization *row)
{
    return row->reason.message[0] == '\0';
}

/* Whether no other file that is as small has less error. */
static bool is_best_of_its_size(const struct quantization *rows, size_t n_rows, const struct quantization *row)
{
    for (size_t i = 0; i < n_rows; i++)
        if (is_possible(&rows[i]) && rows[i].file_bytes <= row->file_bytes && rows[i].rmse < row->rmse)
            return false;
    return true;
}

static void print_rows(const struct quantization *rows, size_t n_rows)
{
    char size[SIZE_TEXT];
    printf("%-10s  %6s  %-10s  %10s  %10s\n", "TYPE", "BITS", "SIZE", "RMSE", "LARGEST");
    for (const struct quantization *row = rows; row < rows + n_rows; row++)
        if (is_possible(row))
            printf("%-10s  %6.3f  %-10s  %10.3e  %10.3e%s\n", row->mix->name, row->bits_per_weight,
                   size_text(row->file_bytes, size), row->rmse, row->largest_error,
                   is_best_of_its_size(rows, n_rows, row) ? "  *" : "");
        else
            printf("%-10s  %s\n", row->mix->name, row->reason.message);
}

bool print_quantizations(const struct checkpoint *checkpoint, const struct quantize_options *options, bool all,
                         struct error *error)
{
    struct gguf_model *model = gguf_model_new(checkpoint, error);
    if (model == NULL)
        return false;
    struct meter meter = {.bytes_per_mix = quantization_bytes(model, all)};
    bool measured = model->family != NULL || model->is_gguf ||
                    error_set(error, "%s: no family of models is known for it, so nothing is quantized", checkpoint->path);
    struct quantization *rows = memory_alloc(count_mixes() * sizeof *rows);
    progress_begin(&meter.progress, "measuring", count_mixes() * meter.bytes_per_mix);
    for (; measured && mixes[meter.n_done].name != NULL; meter.n_done++)
        measured =
            quantization_measure(model, &mixes[meter.n_done], options, all, show_share, &meter, &rows[meter.n_done], error);
    progress_end(&meter.progress);
    if (measured) {
        print_rows(rows, meter.n_done);
        printf("\nBITS per weight, and errors against F32 of %s; files are gguf/model-TYPE.gguf\n",
               all ? "all weights" : "a sample of the weights (--all for all)");
        if (options->imatrix != NULL)
            printf("RMSE counts each error by the importance of its column, in all rows alike\n");
        printf("* no file as small has less error: take the largest of these that fits\n");
    }
    free(rows);
    gguf_model_free(model);
    return measured;
}
