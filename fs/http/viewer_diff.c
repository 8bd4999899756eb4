
#include "fs/http/html.h"
#include "fs/http/viewer.h"
#include "fs/tree/tensor_sample.h"
#include "quant/views/convert.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_SECONDS = 2, MOST_LAYERS = 1024, NO_LAYER = MOST_LAYERS, MOST_SHOWN = 500, BAR = 200 };

struct difference {
    size_t index;
    double relative;
};

struct comparison {
    const struct shown_tensors *shown, *others;
    double squares[MOST_LAYERS + 1], differences[MOST_LAYERS + 1]; /* by layer, and those of tensors without one */
    size_t n_of_layer[MOST_LAYERS + 1];
    struct difference *items; /* what was measured */
    size_t n_items, n_missing, n_reshaped, n_valueless, n_late;
    struct arena *arena;
};

/* Returns the first number between dots in a name, or NO_LAYER. */
static size_t layer_of(const struct tensor *tensor)
{
    const char *end = tensor->name + tensor->name_length;
    for (const char *c = tensor->name; c < end; c++) {
        size_t n = strspn(c + 1, "0123456789");
        if (*c == '.' && n > 0 && n <= 4 && c[1 + n] == '.' && strtoul(c + 1, NULL, 10) < MOST_LAYERS)
            return strtoul(c + 1, NULL, 10);
    }
    return NO_LAYER;
}

static const struct view *values_of(const struct tensor *tensor, struct arena *arena)
{
    const char *reason = tensor->refusal;
    const struct view *view = reason == NULL ? tensor_view(tensor, arena) : NULL;
    return view != NULL && convert_possible(view, encoding_of(&f32_dtype), &reason) ? view : NULL;
}

static bool has_shape(const struct tensor *tensor, const struct tensor *other)
{
    return tensor->rank == other->rank &&
           memcmp(tensor->shape, other->shape, tensor->rank * sizeof *tensor->shape) == 0;
}

static void compare_values(struct comparison *all, size_t index, const struct tensor *tensor,
                           const struct tensor *other)
{
    const struct view *view = values_of(tensor, all->arena), *others = values_of(other, all->arena);
    double squares, differences;
    struct error error;
    if (view == NULL || others == NULL || !tensor_difference(view, others, &squares, &differences, &error)) {
        all->n_valueless++;
        return;
    }
    size_t layer = layer_of(tensor);
    all->squares[layer] += squares;
    all->differences[layer] += differences;
    all->n_of_layer[layer]++;
    double relative = squares > 0 ? sqrt(differences / squares) : differences > 0 ? HUGE_VAL : 0;
    all->items[all->n_items++] = (struct difference){index, relative};
}

static void compare(struct comparison *all)
{
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    all->items = arena_array(all->arena, shown_tensors_count(all->shown) + 1, sizeof *all->items);
    for (size_t i = 0; i < shown_tensors_count(all->shown); i++) {
        struct tensor room, other_room;
        size_t found;
        const struct tensor *tensor = shown_tensors_at(all->shown, i, &room);
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (!shown_tensors_find(all->others, tensor->name, tensor->name_length, &found)) {
            all->n_missing++;
        } else if (!has_shape(tensor, shown_tensors_at(all->others, found, &other_room))) {
            all->n_reshaped++;
        } else if (now.tv_sec - start.tv_sec > MOST_SECONDS) {
            all->n_late++;
        } else {
            compare_values(all, i, tensor, shown_tensors_at(all->others, found, &other_room));
        }
    }
}

static void put_percent(struct buffer *out, double relative)
{
    buffer_printf(out, "<td class=\"n\" data-n=\"%.9g\">", relative);
    buffer_printf(out, isfinite(relative) ? "%.3g %%" : "from zero", 100 * relative);
    buffer_append_text(out, "</td>");
}

static void put_layers(struct buffer *out, const struct comparison *all)
{
    double relative[MOST_LAYERS + 1], most = 0;
    for (size_t i = 0; i <= MOST_LAYERS; i++) {
        relative[i] = all->squares[i] > 0 ? sqrt(all->differences[i] / all->squares[i])
                                          : (all->differences[i] > 0 ? HUGE_VAL : 0);
        most = isfinite(relative[i]) ? fmax(most, relative[i]) : most;
    }
    buffer_append_text(out, "<h2>By layer</h2>\n<table><tr><th>layer</th><th class=\"n\">tensors</th><th "
                            "class=\"n\">difference</th><th></th></tr>\n");
    for (size_t i = 0; i <= MOST_LAYERS; i++) {
        if (all->n_of_layer[i] == 0)
            continue;
        buffer_append_text(out, "<tr><td>");
        buffer_printf(out, i == NO_LAYER ? "none" : "%zu", i);
        buffer_printf(out, "</td><td class=\"n\">%zu</td>", all->n_of_layer[i]);
        put_percent(out, relative[i]);
        buffer_printf(out,
                      "<td><svg width=\"%d\" height=\"14\"><rect class=\"bar\" width=\"%.1f\" height=\"14\"/></svg>"
                      "</td></tr>\n",
                      BAR, most > 0 ? BAR * fmin(relative[i] / most, 1) : 0);
    }
    buffer_append_text(out, "</table>\n");
}

static int by_difference(const void *a, const void *b)
{
    const struct difference *one = a, *other = b;
    if (one->relative != other->relative)
        return (one->relative < other->relative) - (one->relative > other->relative);
    return (one->index > other->index) - (one->index < other->index);
}

static void put_most(struct buffer *out, const struct comparison *all)
{
    buffer_append_text(out, "<h2>By tensor</h2>\n<table class=\"sort\"><tr><th>name</th><th "
                            "class=\"n\">difference</th></tr>\n");
    for (size_t i = 0; i < all->n_items && i < MOST_SHOWN; i++) {
        buffer_append_text(out, "<tr><td>");
        viewer_put_tensor_link(out, all->shown, all->items[i].index);
        buffer_append_text(out, "</td>");
        put_percent(out, all->items[i].relative);
        buffer_append_text(out, "</tr>\n");
    }
    buffer_append_text(out, "</table>\n");
}

static void put_left_out(struct buffer *out, size_t count, const char *what)
{
    if (count > 0)
        buffer_printf(out, "<p>%zu tensor%s left out: %s.</p>\n", count, count == 1 ? " is" : "s are", what);
}

void viewer_answer_diff(const struct repository *model, const struct repository *other, struct answer *answer)
{
    struct comparison *all = arena_alloc(answer->arena, sizeof *all);
    *all = (struct comparison){
        .shown = tree_shown(model->tree), .others = tree_shown(other->tree), .arena = answer->arena};
    compare(all);
    qsort(all->items, all->n_items, sizeof *all->items, by_difference);
    struct buffer *out = html_begin(answer, arena_printf(answer->arena, "%s and %s", model->base, other->base));
    buffer_append_text(out, "<p><a href=\"?\">");
    html_put_text(out, model->base);
    buffer_append_text(out, "</a></p>\n<p>A difference is the root mean square of what differs, divided by that of the "
                            "first model's values, in a sample of each tensor; <code>wfs diff</code> compares "
                            "exactly.</p>\n");
    put_left_out(out, all->n_missing, "the other model has none of that name");
    put_left_out(out, all->n_reshaped, "they have other shapes there");
    put_left_out(out, all->n_valueless, "they have no values as numbers, or a range cannot be read");
    put_left_out(out, all->n_late, "the time that a page has was over");
    put_layers(out, all);
    put_most(out, all);
    html_end(out);
}
