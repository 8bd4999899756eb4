#include "fs/http/viewer.h"

#include "fs/http/html.h"
#include "fs/tree/tensor_sample.h"
#include "quant/views/convert.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Time for reading: a page takes about 100 ms, whatever the tensor. */
#define SAMPLE_SECONDS 0.06
#define ERRORS_SECONDS 0.03

enum { MOST_TYPES = 32, WIDTH = 640, HEIGHT = 200, BOTTOM = 20, CELL = 8, N_COLOURS = 14 };

static void put_shape(struct buffer *out, const struct tensor *tensor)
{
    for (unsigned i = 0; i < tensor->rank; i++)
        buffer_printf(out, "%s%" PRIu64, i == 0 ? "" : " &times; ", tensor->shape[i]);
    buffer_append_text(out, tensor->rank == 0 ? "scalar" : "");
}

static void put_facts(struct buffer *out, const struct shown_tensors *shown, size_t index, const struct tensor *tensor)
{
    const struct tensor *stored = shown_tensors_stored(shown, index);
    buffer_append_text(out, "<table>\n<tr><th>shape</th><td>");
    put_shape(out, tensor);
    buffer_printf(out,
                  "</td></tr>\n<tr><th>type</th><td>%s</td></tr>\n<tr><th>elements</th><td>%" PRIu64
                  "</td></tr>\n<tr><th>size</th><td>",
                  tensor->dtype->name, tensor_elements(tensor));
    html_put_size(out, dtype_bytes(tensor->dtype, tensor_elements(tensor)));
    if (stored != NULL && stored->source != NULL)
        buffer_printf(out, "</td></tr>\n<tr><th>stored</th><td>%s, %" PRIu64 " bytes from byte %" PRIu64,
                      stored->dtype->name, stored->length, stored->offset);
    if (shown_tensors_unpacked(shown, index) != NULL)
        buffer_append_text(out, "</td></tr>\n<tr><th>values</th><td>dequantized from packed weights");
    buffer_append_text(out, "</td></tr>\n</table>\n");
}

static void put_statistics(struct buffer *out, const struct tensor_sample *sample, uint64_t n_elements)
{
    bool is_whole = sample->n_values == n_elements, has_finite = sample->n_values > sample->n_nan + sample->n_infinite;
    buffer_printf(out, "<h2>Statistics</h2>\n<p>Of %s%" PRIu64 " values%s.</p>\n<table>\n",
                  is_whole ? "all " : "a sample of ", sample->n_values,
                  is_whole ? "" : " of one matrix, evenly spread");
    if (has_finite)
        buffer_printf(out,
                      "<tr><th>mean</th><td>%.6g</td></tr>\n<tr><th>standard deviation</th><td>%.6g</td></tr>\n"
                      "<tr><th>least</th><td>%.6g</td></tr>\n<tr><th>largest</th><td>%.6g</td></tr>\n",
                      sample->mean, sample->deviation, sample->least, sample->largest);
    buffer_printf(out,
                  "<tr><th>zeros</th><td>%" PRIu64 "</td></tr>\n<tr><th>NaN</th><td>%" PRIu64
                  "</td></tr>\n<tr><th>infinite</th><td>%" PRIu64 "</td></tr>\n</table>\n",
                  sample->n_zeros, sample->n_nan, sample->n_infinite);
}

static void put_ticks(struct buffer *out, const struct tensor_sample *sample, double ground)
{
    enum { MOST_TICKS = 6, HALF_LABEL = 24 };
    double span = sample->bins_to - sample->bins_from,
           step = span > 0 && isfinite(span) ? plot_step(span, MOST_TICKS) : 0;
    if (step <= 0) {
        buffer_printf(out, "\n<text x=\"0\" y=\"%d\">%.6g</text>\n", HEIGHT - 5, sample->bins_from);
        return;
    }
    double first = ceil(sample->bins_from / step);
    for (int i = 0; (first + i) * step <= sample->bins_to && i <= MOST_TICKS; i++) {
        double tick = (first + i) * step, x = WIDTH * (tick - sample->bins_from) / span;
        const char *anchor = x < HALF_LABEL ? "start" : x > WIDTH - HALF_LABEL ? "end" : "middle";
        buffer_printf(out, "\n<line class=\"axis\" x1=\"%.1f\" y1=\"%.0f\" x2=\"%.1f\" y2=\"%.0f\"/>", x, ground, x,
                      ground + 4);
        buffer_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">%.4g</text>", x, HEIGHT - 4, anchor,
                      tick + 0.0);
    }
}

static void put_histogram(struct buffer *out, const struct tensor_sample *sample)
{
    const double bar = (double)WIDTH / SAMPLE_BINS, ground = HEIGHT - BOTTOM;
    uint64_t most = 1;
    for (int i = 0; i < SAMPLE_BINS; i++)
        most = sample->bins[i] > most ? sample->bins[i] : most;
    buffer_printf(out,
                  "<h2>Histogram</h2>\n<svg viewBox=\"0 0 %d %d\" width=\"%d\" role=\"img\" "
                  "aria-label=\"histogram of the values\">\n",
                  WIDTH, HEIGHT, WIDTH);
    for (int i = 0; i < SAMPLE_BINS; i++) {
        double height = (ground - 4) * (double)sample->bins[i] / (double)most;
        buffer_printf(out, "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>", bar * i,
                      ground - height, bar - 1, height);
    }
    put_ticks(out, sample, ground);
    buffer_printf(out,
                  "<line class=\"axis\" x1=\"0\" y1=\"%.0f\" x2=\"%d\" y2=\"%.0f\"/>\n</svg>\n<p>Values in the "
                  "highest bar: %" PRIu64 ". The outermost bars include the values further out.</p>\n",
                  ground, WIDTH, ground, most);
}

/* Returns the class of a cell's colour: 0 to N_COLOURS - 1, N_COLOURS for values that are not finite, -1: not read. */
static int colour_of(float cell, float largest)
{
    if (isnan(cell))
        return N_COLOURS;
    if (cell < 0)
        return -1;
    return largest > 0 ? (int)fminf(cell / largest * N_COLOURS, N_COLOURS - 1) : 0;
}

/* Puts the cells of a colour as one path, neighbours in a row as one line. */
static void put_colour(struct buffer *out, const struct tensor_sample *sample, int colour)
{
    bool is_used = false;
    for (unsigned row = 0; row < sample->n_rows; row++)
        for (unsigned i = 0, length; i < sample->n_columns; i += length) {
            const float *cells = sample->cells + (size_t)row * sample->n_columns;
            length = 1;
            if (colour_of(cells[i], sample->largest_cell) != colour)
                continue;
            while (i + length < sample->n_columns && colour_of(cells[i + length], sample->largest_cell) == colour)
                length++;
            if (!is_used && colour < 0)
                buffer_append_text(out, "<path class=\"unread\" d=\"");
            else if (!is_used && colour == N_COLOURS)
                buffer_append_text(out, "<path class=\"bad\" d=\"");
            else if (!is_used)
                buffer_printf(out, "<path class=\"h%d\" d=\"", colour);
            is_used = true;
            buffer_printf(out, "M%u %u.5h%u", i, row, length);
        }
    buffer_append_text(out, is_used ? "\"/>\n" : "");
}

static void put_matrix_links(struct buffer *out, const struct tensor_sample *sample, uint64_t matrix,
                             const char *tensor_link)
{
    if (sample->matrices <= 1)
        return;
    buffer_printf(out, "<p>Matrix %" PRIu64 " of 0 to %" PRIu64 ".", matrix, sample->matrices - 1);
    if (matrix > 0)
        buffer_printf(out, " <a href=\"%s&amp;matrix=%" PRIu64 "\">the one before</a>", tensor_link, matrix - 1);
    if (matrix + 1 < sample->matrices)
        buffer_printf(out, " <a href=\"%s&amp;matrix=%" PRIu64 "\">the next</a>", tensor_link, matrix + 1);
    buffer_append_text(out, "</p>\n");
}

static void put_map(struct buffer *out, const struct tensor_sample *sample, uint64_t matrix, const char *tensor_link)
{
    buffer_append_text(out, "<h2>Map</h2>\n");
    put_matrix_links(out, sample, matrix, tensor_link);
    buffer_printf(out,
                  "<p>%u by %u cells for %" PRIu64 " rows by %" PRIu64 " columns; the first row is at the top. "
                  "A cell's colour is the root mean square of up to %d values: light is 0, dark %.3g, violet "
                  "means NaN or infinite.</p>\n",
                  sample->n_rows, sample->n_columns, sample->rows, sample->columns, SAMPLE_RUN,
                  (double)sample->largest_cell);
    if (sample->n_taken < sample->n_rows)
        buffer_printf(out, "<p>%u of %u rows were read in the time that a page has; grey ones were not.</p>\n",
                      sample->n_taken, sample->n_rows);
    buffer_printf(out,
                  "<svg viewBox=\"0 0 %u %u\" width=\"%u\" height=\"%u\" shape-rendering=\"crispEdges\" "
                  "role=\"img\" aria-label=\"map of the matrix\">\n",
                  sample->n_columns, sample->n_rows, sample->n_columns * CELL, sample->n_rows * CELL);
    for (int colour = -1; colour <= N_COLOURS; colour++)
        put_colour(out, sample, colour);
    buffer_append_text(out, "</svg>\n");
}

static void put_errors(struct buffer *out, const struct view *view)
{
    struct type_error errors[MOST_TYPES];
    struct error error;
    size_t n_errors = tensor_type_errors(view, ERRORS_SECONDS, errors, MOST_TYPES, &error);
    if (n_errors == 0)
        return;
    buffer_append_text(out, "<h2>Quantization errors</h2>\n<p>The root mean square of what a type changes, divided by "
                            "that of the values, in a sample, without an importance matrix.</p>\n"
                            "<table class=\"sort\"><tr><th>type</th><th class=\"n\">bits per weight</th><th "
                            "class=\"n\">error</th></tr>\n");
    for (size_t i = 0; i < n_errors; i++)
        buffer_printf(out,
                      "<tr><td>%s</td><td class=\"n\">%.4g</td><td class=\"n\" data-n=\"%.9g\">%.3g %%</td></tr>\n",
                      errors[i].type->name, 8.0 * errors[i].type->block_bytes / errors[i].type->block_elements,
                      errors[i].relative_error, 100 * errors[i].relative_error);
    buffer_append_text(out, "</table>\n");
}

static void put_values(struct buffer *out, const struct tensor *tensor, const struct view *view, uint64_t matrix,
                       const char *tensor_link)
{
    const char *reason = tensor->refusal;
    struct error error;
    struct tensor_sample *sample = memory_alloc(sizeof *sample);
    if (reason == NULL)
        convert_possible(view, encoding_of(&f32_dtype), &reason);
    if (reason == NULL && !tensor_sample(view, matrix, SAMPLE_SECONDS, sample, &error))
        reason = error.message;
    if (reason != NULL) {
        buffer_append_text(out, "<p>Its values cannot be shown: ");
        html_put_text(out, reason);
        buffer_append_text(out, "</p>\n");
    } else if (sample->n_values == 0) {
        buffer_append_text(out, view->n_elements == 0 ? "<p>The tensor has no values.</p>\n"
                                                      : "<p>The tensor has no matrix of that number.</p>\n");
    } else {
        put_statistics(out, sample, view->n_elements);
        if (sample->n_values > sample->n_nan + sample->n_infinite)
            put_histogram(out, sample);
        put_map(out, sample, matrix, tensor_link);
        put_errors(out, view);
    }
    free(sample);
}

void viewer_answer_tensor(const struct repository *model, size_t index, uint64_t matrix, struct answer *answer)
{
    const struct shown_tensors *shown = tree_shown(model->tree);
    struct tensor room;
    const struct tensor *tensor = shown_tensors_at(shown, index, &room);
    const struct view *view = tensor->refusal == NULL ? tensor_view(tensor, answer->arena) : NULL;
    struct buffer *out = html_begin_n(answer, tensor->name, tensor->name_length);
    buffer_append_text(out, "<p>A tensor of <a href=\"?\">");
    html_put_text(out, model->base);
    buffer_append_text(out, "</a></p>\n");
    put_facts(out, shown, index, tensor);
    put_values(out, tensor, view, matrix, arena_printf(answer->arena, "?tensor=/%zu", index));
    html_end(out);
}
