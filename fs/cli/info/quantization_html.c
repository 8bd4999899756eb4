#include "fs/cli/info/info_pages.h"

#include "base/buffer.h"
#include "base/text.h"
#include "fs/cli/terminal.h"
#include "fs/http/html.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns a text with HTML's special characters escaped. */
static const char *html_text(const char *text, struct arena *arena)
{
    struct buffer html = {0};
    html_put_text(&html, text);
    const char *kept = html.length > 0 ? arena_strndup(arena, (const char *)html.bytes, html.length) : "";
    buffer_free(&html);
    return kept;
}

static void append_head(struct buffer *out, const struct quantization_report *report, struct arena *arena)
{
    static const char style[] =
        "body{font:15px/1.5 system-ui,sans-serif;max-width:860px;margin:2em auto;padding:0 "
        "1em;color:#222;background:#fff}"
        "h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}svg{display:block;max-width:100%;height:auto}"
        "svg text{font:11px system-ui,sans-serif;fill:#444}.axis{stroke:#999}.grid{stroke:#e5e5e5}"
        ".front{fill:none;stroke:#2b6cb0;stroke-width:1.5}.best{fill:#2b6cb0}.other{fill:#bbb}"
        ".choice{fill:#c05621}.bar{fill:#7aa6d4}.normal{fill:none;stroke:#c05621;stroke-dasharray:3 2}"
        "table{border-collapse:collapse}td,th{padding:1px 12px 1px "
        "0;text-align:right;font-variant-numeric:tabular-nums}"
        "td:first-child,th:first-child,td:last-child,th:last-child{text-align:left}tr.choice{font-weight:600}"
        ".few{display:flex;flex-wrap:wrap;gap:12px}.few div{width:262px}summary{cursor:pointer}"
        "@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}svg text{fill:#bbb}.grid{stroke:#333}}";
    const char *name = html_text(report->model->checkpoint->model_name, arena);
    buffer_printf(out,
                  "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
                  "<meta name=\"viewport\" content=\"width=device-width\">\n<title>%s: quantizations</title>\n"
                  "<style>%s</style>\n<h1>%s</h1>\n<p>The size and error of each file in <code>gguf/</code>. The error "
                  "is the root mean square difference of the matrices from F32, divided by their own, in %s%s. Made by "
                  "wfs %s.</p>\n",
                  name, style, name, report->all ? "all weights" : "a sample of the weights",
                  report->by_importance ? "; each counts by the importance of its column" : "", WFS_VERSION);
}

static void append_advice(struct buffer *out, const struct quantization_report *report)
{
    const struct quantization *choice = quantization_choice(report->rows, report->n_rows);
    char size[SIZE_TEXT];
    if (choice == NULL) {
        buffer_append_text(out, "<p><strong>No file has a small loss: take the largest that fits.</strong></p>\n");
        return;
    }
    buffer_printf(out,
                  "<p><strong>Recommended: %s, %s, error %.3g %%</strong>, the smallest file with a small "
                  "loss:</p>\n<pre>wfs cp MODEL gguf/model-%s.gguf .</pre>\n",
                  choice->mix->name, size_text(choice->file_bytes, size), 100 * choice->relative_error,
                  choice->mix->name);
}

/* Error against size. */

enum { PLOT_WIDTH = 820, PLOT_HEIGHT = 440, LEFT = 56, RIGHT = 20, TOP = 12, BOTTOM = 40, LABEL_HEIGHT = 12 };

struct box {
    double x, y, width;
};

struct scatter {
    struct buffer *out;
    double least_bytes, most_bytes, least_error, most_error; /* errors: powers of ten */
    struct box taken[256];                                   /* areas of points and labels */
    size_t n_taken;
};

static double place_x(const struct scatter *plot, uint64_t bytes)
{
    double share = ((double)bytes - plot->least_bytes) / (plot->most_bytes - plot->least_bytes);
    return LEFT + share * (PLOT_WIDTH - LEFT - RIGHT);
}

static double place_y(const struct scatter *plot, double error)
{
    double share = (log10(error) - plot->least_error) / (plot->most_error - plot->least_error);
    return PLOT_HEIGHT - BOTTOM - share * (PLOT_HEIGHT - TOP - BOTTOM);
}

static bool is_shown(const struct quantization *row)
{
    return row->is_possible && row->relative_error > 0;
}

static void take(struct scatter *plot, struct box box)
{
    if (plot->n_taken < sizeof plot->taken / sizeof *plot->taken)
        plot->taken[plot->n_taken++] = box;
}

static struct scatter scatter_of(const struct quantization_report *report, struct buffer *out)
{
    struct scatter plot = {.out = out, .least_bytes = HUGE_VAL, .least_error = -1};
    for (size_t i = 0; i < report->n_rows; i++) {
        const struct quantization *row = &report->rows[i];
        if (!is_shown(row))
            continue;
        plot.least_bytes = fmin(plot.least_bytes, (double)row->file_bytes);
        plot.most_bytes = fmax(plot.most_bytes, (double)row->file_bytes);
        plot.least_error = fmin(plot.least_error, floor(log10(row->relative_error)));
    }
    double margin = 0.04 * (plot.most_bytes - plot.least_bytes) + 1;
    plot.least_bytes = fmax(plot.least_bytes - margin, 0);
    plot.most_bytes += 2 * margin;
    for (size_t i = 0; i < report->n_rows; i++)
        if (is_shown(&report->rows[i]))
            take(&plot, (struct box){place_x(&plot, report->rows[i].file_bytes) - 5,
                                     place_y(&plot, report->rows[i].relative_error) + 5, 10});
    return plot;
}

static void append_axes(const struct scatter *plot)
{
    enum { TICKS = 7, HALF_LABEL = 30 };
    char size[SIZE_TEXT];
    double bottom = PLOT_HEIGHT - BOTTOM;
    for (double power = plot->least_error; power <= plot->most_error; power++) {
        double y = place_y(plot, pow(10, power));
        buffer_printf(plot->out,
                      "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                      "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g %%</text>\n",
                      LEFT, PLOT_WIDTH - RIGHT, y, y, LEFT - 6, y + 4, 100 * pow(10, power));
    }
    double step = plot_step(plot->most_bytes - plot->least_bytes, TICKS);
    for (double bytes = ceil(plot->least_bytes / step) * step; bytes <= plot->most_bytes; bytes += step) {
        double x = place_x(plot, (uint64_t)bytes);
        const char *anchor = x > PLOT_WIDTH - HALF_LABEL ? "end" : "middle";
        buffer_printf(plot->out,
                      "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>"
                      "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n",
                      x, x, bottom, bottom + 4, x, bottom + 16, anchor, size_text((uint64_t)bytes, size));
    }
    buffer_printf(plot->out, "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n", LEFT,
                  PLOT_WIDTH - RIGHT, bottom, bottom);
    buffer_printf(plot->out,
                  "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">size of the file; the error goes up by powers of "
                  "ten</text>\n",
                  (LEFT + PLOT_WIDTH - RIGHT) / 2, PLOT_HEIGHT - 6);
}

static bool is_free(const struct scatter *plot, const struct box *box)
{
    if (box->x < LEFT || box->x + box->width > PLOT_WIDTH || box->y < LABEL_HEIGHT)
        return false;
    for (const struct box *other = plot->taken; other < plot->taken + plot->n_taken; other++)
        if (box->x < other->x + other->width && other->x < box->x + box->width &&
            fabs(box->y - other->y) < LABEL_HEIGHT)
            return false;
    return true;
}

/* Adds a label beside a point, where it covers no other one; none if every place is taken. */
static void append_label(struct scatter *plot, double x, double y, const char *name)
{
    double width = 7.2 * (double)strlen(name); /* at most, in the fonts that browsers have */
    const struct box places[] = {{x + 7, y + 4, width},         {x - 7 - width, y + 4, width},
                                 {x - width / 2, y - 9, width}, {x - width / 2, y + 18, width},
                                 {x + 6, y - 9, width},         {x - 6 - width, y + 18, width},
                                 {x + 24, y - 16, width},       {x - 24 - width, y + 24, width},
                                 {x + 40, y - 28, width},       {x - 40 - width, y + 38, width}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (!is_free(plot, &places[i]))
            continue;
        take(plot, places[i]);
        if (fabs(places[i].y - y) > 14)
            buffer_printf(plot->out, "<line class=\"axis\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", x, y,
                          places[i].x > x ? places[i].x : places[i].x + width, places[i].y - 4);
        buffer_printf(plot->out, "<text x=\"%.1f\" y=\"%.1f\">%s</text>\n", places[i].x, places[i].y, name);
        return;
    }
}

static int by_size(const void *a, const void *b)
{
    const struct quantization *const *one = a, *const *other = b;
    return ((*one)->file_bytes > (*other)->file_bytes) - ((*one)->file_bytes < (*other)->file_bytes);
}

/* Finds the rows that are best for their size, the smallest first, and returns their number. */
static size_t find_front(const struct quantization_report *report, const struct quantization **front)
{
    size_t n_front = 0;
    for (size_t i = 0; i < report->n_rows; i++)
        if (is_shown(&report->rows[i]) && quantization_is_best(report->rows, report->n_rows, &report->rows[i]))
            front[n_front++] = &report->rows[i];
    qsort(front, n_front, sizeof *front, by_size);
    return n_front;
}

static void append_points(struct scatter *plot, const struct quantization_report *report, bool best)
{
    const struct quantization *choice = quantization_choice(report->rows, report->n_rows);
    for (const struct quantization *row = report->rows; row < report->rows + report->n_rows; row++) {
        if (!is_shown(row) || quantization_is_best(report->rows, report->n_rows, row) != best)
            continue;
        double x = place_x(plot, row->file_bytes), y = place_y(plot, row->relative_error);
        const char *kind = best ? "best" : "other";
        if (row == choice)
            kind = "choice";
        char size[SIZE_TEXT];
        buffer_printf(plot->out,
                      "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"><title>%s: %s, %.3g %%</title></circle>\n",
                      kind, x, y, row == choice ? 6 : 4, row->mix->name, size_text(row->file_bytes, size),
                      100 * row->relative_error);
        append_label(plot, x, y, row->mix->name);
    }
}

static void append_scatter(struct buffer *out, const struct quantization_report *report,
                           const struct quantization *const *front, size_t n_front)
{
    struct scatter plot = scatter_of(report, out);
    buffer_append_text(out, "<h2>Error against size</h2>\n<p>Files on the line have the least error of all files up to "
                            "their size: take the largest that fits.</p>\n");
    buffer_printf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"error against size\">\n", PLOT_WIDTH,
                  PLOT_HEIGHT);
    append_axes(&plot);
    buffer_append_text(out, "<polyline class=\"front\" points=\"");
    for (size_t i = 0; i < n_front; i++)
        buffer_printf(out, "%.1f,%.1f ", place_x(&plot, front[i]->file_bytes),
                      place_y(&plot, front[i]->relative_error));
    buffer_append_text(out, "\"/>\n");
    append_points(&plot, report, true);
    append_points(&plot, report, false);
    buffer_append_text(out, "</svg>\n");
}

/* Error by layer and kind. */

enum { MAP_LEFT = 150, MAP_ROW = 18, MAP_TOP = 18, MAP_WIDTH = 820, MOST_COLUMN = 26, MOST_LAYERS = 1024 };

struct map {
    char kinds[WEIGHT_MOST_KINDS][KIND_NAME];
    size_t n_kinds;
    uint64_t n_layers;
};

static size_t kind_row(struct map *map, const char *kind)
{
    size_t row = 0;
    while (row < map->n_kinds && strcmp(map->kinds[row], kind) != 0)
        row++;
    if (row == map->n_kinds && row < WEIGHT_MOST_KINDS)
        strcpy(map->kinds[map->n_kinds++], kind);
    return row;
}

static void map_make(struct map *map, const struct quantization *row)
{
    map->n_kinds = 0;
    map->n_layers = 0;
    for (size_t i = 0; i < row->n_tensors; i++) {
        char kind[KIND_NAME];
        uint64_t layer;
        bool in_layer = tensor_kind(row->tensors[i].name, kind, &layer);
        kind_row(map, kind);
        if (in_layer && layer < MOST_LAYERS && layer >= map->n_layers)
            map->n_layers = layer + 1;
    }
}

/* Appends the colour of an error, on a logarithmic scale: light for 0.1 % and less, dark for 30 % and more. */
static void append_colour(struct buffer *out, double error)
{
    static const double light[] = {255, 247, 230}, middle[] = {240, 140, 80}, dark[] = {110, 10, 20};
    double share = error > 0 ? (log10(error) + 3) / (log10(0.3) + 3) : 0;
    share = fmin(fmax(share, 0), 1);
    const double *from = share < 0.5 ? light : middle, *to = share < 0.5 ? middle : dark;
    double way = share < 0.5 ? 2 * share : 2 * share - 1;
    buffer_append_text(out, "#");
    for (int i = 0; i < 3; i++)
        buffer_printf(out, "%02x", (unsigned)(from[i] + way * (to[i] - from[i])));
}

static void append_cell(struct buffer *out, double x, double y, double width, const struct quantized_tensor *tensor,
                        struct arena *arena)
{
    buffer_printf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"", x, y, width, MAP_ROW - 2);
    append_colour(out, tensor->relative_error);
    buffer_printf(out, "\"><title>%s as %s: %.3g %%</title></rect>\n", html_text(tensor->name, arena),
                  tensor->type->name, 100 * tensor->relative_error);
}

static void append_map(struct buffer *out, struct map *map, const struct quantization *row, struct arena *arena)
{
    map_make(map, row);
    double width = map->n_layers > 0 ? (double)(MAP_WIDTH - MAP_LEFT) / (double)map->n_layers : MOST_COLUMN;
    width = fmin(width, MOST_COLUMN);
    buffer_printf(out, "<svg viewBox=\"0 0 %d %zu\" role=\"img\" aria-label=\"error by layer and kind\">\n", MAP_WIDTH,
                  MAP_TOP + MAP_ROW * map->n_kinds);
    for (uint64_t layer = 0; layer<map->n_layers; layer += map->n_layers> 40 ? 10 : 5)
        buffer_printf(out, "<text x=\"%.1f\" y=\"12\">%" PRIu64 "</text>\n", MAP_LEFT + width * (double)layer, layer);
    for (size_t i = 0; i < map->n_kinds; i++)
        buffer_printf(out, "<text x=\"%d\" y=\"%zu\" text-anchor=\"end\">%s</text>\n", MAP_LEFT - 8,
                      MAP_TOP + MAP_ROW * i + 12, html_text(map->kinds[i], arena));
    for (size_t i = 0; i < row->n_tensors; i++) {
        char kind[KIND_NAME];
        uint64_t layer = 0;
        tensor_kind(row->tensors[i].name, kind, &layer);
        size_t place = kind_row(map, kind);
        if (place < WEIGHT_MOST_KINDS && layer < MOST_LAYERS)
            append_cell(out, MAP_LEFT + width * (double)layer, MAP_TOP + (double)(MAP_ROW * place),
                        width > 4 ? width - 1.5 : width, &row->tensors[i], arena);
    }
    buffer_append_text(out, "</svg>\n");
}

static void append_maps(struct buffer *out, const struct quantization_report *report,
                        const struct quantization *const *front, size_t n_front, struct arena *arena)
{
    const struct quantization *choice = quantization_choice(report->rows, report->n_rows);
    struct map *map = arena_alloc(arena, sizeof *map);
    buffer_append_text(out,
                       "<h2>Error by layer and kind of tensor</h2>\n<p>Each cell is a matrix; light is 0.1 %, dark "
                       "30 %. Point at a cell to see its type and error.</p>\n");
    for (size_t i = 0; i < n_front; i++) {
        bool is_open = front[i] == choice || (choice == NULL && i + 1 == n_front);
        buffer_printf(out, "<details%s><summary>%s, %.3g %%%s</summary>\n", is_open ? " open" : "", front[i]->mix->name,
                      100 * front[i]->relative_error, front[i] == choice ? ": recommended" : "");
        append_map(out, map, front[i], arena);
        buffer_append_text(out, "</details>\n");
    }
}

/* Histograms. */

enum { HISTOGRAM_WIDTH = 262, HISTOGRAM_HEIGHT = 110, DECADES = 6 };

/* Returns the height of a share of the weights, on a logarithmic scale. */
static double share_height(double share)
{
    double height = share > 0 ? (log10(share) + DECADES) / DECADES : 0;
    return fmax(height, 0) * (HISTOGRAM_HEIGHT - 16);
}

static void append_histogram(struct buffer *out, const struct weight_kind *kind, struct arena *arena)
{
    const double bar = (double)HISTOGRAM_WIDTH / WEIGHT_BINS, floor_y = HISTOGRAM_HEIGHT - 14;
    const double step = 1.0 / WEIGHT_BINS_PER_DEVIATION;
    buffer_printf(out, "<div><strong>%s</strong><svg viewBox=\"0 0 %d %d\">\n", html_text(kind->name, arena),
                  HISTOGRAM_WIDTH, HISTOGRAM_HEIGHT);
    for (int i = 0; i < WEIGHT_BINS; i++)
        buffer_printf(out, "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>", bar * i,
                      floor_y - share_height(kind->shares[i]), bar - 0.5, share_height(kind->shares[i]));
    buffer_append_text(out, "\n<polyline class=\"normal\" points=\"");
    for (int i = 0; i < WEIGHT_BINS; i++) {
        double at = (i - WEIGHT_BINS / 2) * step;
        buffer_printf(out, "%.1f,%.1f ", bar * (i + 0.5), floor_y - share_height(step * exp(-at * at / 2) / 2.5066));
    }
    buffer_append_text(out, "\"/>\n");
    static const struct {
        int at;
        const char *anchor;
    } ticks[] = {{-8, "start"}, {-4, "middle"}, {0, "middle"}, {4, "middle"}, {8, "end"}};
    for (size_t i = 0; i < sizeof ticks / sizeof *ticks; i++)
        buffer_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">%d&#963;</text>",
                      bar * (ticks[i].at / step + WEIGHT_BINS / 2 + 0.5), HISTOGRAM_HEIGHT - 2, ticks[i].anchor,
                      ticks[i].at);
    buffer_printf(out, "</svg>%zu tensor%s, &#963; %.3g to %.3g, the largest weight %.3g&#963;</div>\n",
                  kind->n_tensors, kind->n_tensors == 1 ? "" : "s", kind->least_deviation, kind->largest_deviation,
                  kind->largest);
}

static void append_histograms(struct buffer *out, const struct quantization_report *report, struct arena *arena)
{
    buffer_append_text(
        out, "<h2>Weights</h2>\n<p>The distribution of the weights of each kind of matrix, in standard "
             "deviations (&#963;) of their own tensor. The vertical axis shows powers of ten down to one in a "
             "million; the line is the normal distribution. Weights far outside it cost blocks with few bits "
             "the precision of their other weights. The outermost bars include all weights further out.</p>\n<div "
             "class=\"few\">\n");
    for (size_t i = 0; i < report->n_kinds; i++)
        append_histogram(out, &report->kinds[i], arena);
    buffer_append_text(out, "</div>\n");
}

static void append_table(struct buffer *out, const struct quantization_report *report, struct arena *arena)
{
    const struct quantization *choice = quantization_choice(report->rows, report->n_rows);
    buffer_append_text(out,
                       "<h2>All files</h2>\n<table><tr><th>type<th>size<th>bits per weight<th>error<th>loss</tr>\n");
    for (const struct quantization *row = report->rows; row < report->rows + report->n_rows; row++) {
        char size[SIZE_TEXT];
        if (!row->is_possible)
            continue;
        buffer_printf(out, "<tr%s><td>%s<td>%s<td>%.3f<td>%.3g %%<td>%s%s%s</tr>\n",
                      row == choice ? " class=\"choice\"" : "", row->mix->name, size_text(row->file_bytes, size),
                      row->bits_per_weight, 100 * row->relative_error, quantization_word(row->relative_error),
                      quantization_is_best(report->rows, report->n_rows, row) ? ", best of its size" : "",
                      row == choice ? ", recommended" : "");
    }
    buffer_append_text(out, "</table>\n");
    for (const struct quantization *row = report->rows; row < report->rows + report->n_rows; row++)
        if (!row->is_possible)
            buffer_printf(out, "<p>%s is left out: %s</p>\n", row->mix->name, html_text(row->reason.message, arena));
    buffer_append_text(out, "</html>\n");
}

void print_quantization_html(const struct quantization_report *report)
{
    struct buffer out = {0};
    struct arena *arena = arena_new();
    const struct quantization **front = arena_array(arena, report->n_rows + 1, sizeof *front);
    size_t n_front = find_front(report, front);
    append_head(&out, report, arena);
    append_advice(&out, report);
    append_scatter(&out, report, front, n_front);
    append_maps(&out, report, front, n_front, arena);
    append_histograms(&out, report, arena);
    append_table(&out, report, arena);
    fwrite(out.bytes, 1, out.length, stdout);
    arena_free(arena);
    buffer_free(&out);
}
