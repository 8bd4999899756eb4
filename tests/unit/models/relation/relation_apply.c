/* What rows make of tensors: names, order and values, there and back. Expected values follow from numpy's reshape and
 * transpose of 0, 1, 2 ... */
#include "models/relation/relation.h"

#include "tests/unit/check.h"
#include "tests/unit/numbers.h"

#include <inttypes.h>

enum { MOST = 24 };

static const struct relation_row particular[] = {
    {"^layers.{}.up", "blk.{}.particular", .when = "sparse"},
    {"^layers.{}.experts.{expert}.gate_up", "blk.{}.gate_exps, blk.{}.up_exps",
     "(gate + up) c -> expert gate c, expert up c"},
    {0},
};

static const struct relation_row rows[] = {
    {"^layers.{}.q", "blk.{}.q", "(head half d) ... -> (head d half) ..."},
    {"^layers.{}.experts.{expert}.w", "blk.{}.w_exps"},
    {"^layers.{}.part{a}.of{b}", "blk.{}.of{b}.part{a}"},
    {"^layers.{}.both", "blk.{}.first, blk.{}.second", "(x + y) ... -> x ..., y ..."},
    {"^layers.{}.up", "blk.{}.up"},
    {"^layers.{}.conv", "blk.{}.conv", "c 1 k -> c k"},
    {"^layers.{}.wide", "blk.{}.wide", "one c -> one c"},
    {"^norm", "output_norm", .map = &plus_one},
    {"shared", "token_embd", .first_counts = true},
    {"encoder.shared", "token_embd", .first_counts = true, .forward_only = true},
    {"^layers.{}.unused*", NULL},
    {"plain.{}", "blk.{}.marked", .when = "has:blk.{}.mark"},
    {"other.{}", "blk.{}.marked", .when = "!has:blk.{}.mark"},
    {"mark.{}", "blk.{}.mark"},
    {0},
};

struct described {
    struct arena *arena;
    char text[1024];
};

static const struct view *read_view(void *context, const struct tensor *tensor, const char *shown, struct error *error)
{
    struct described *described = context;
    if (strcmp(tensor->name, "layers.1.conv.weight") == 0) {
        error_set(error, "'%s' cannot be read", shown);
        return NULL;
    }
    return tensor_view(tensor, described->arena);
}

/* "NAME [SHAPE] VALUES; " */
static void write_text(void *context, const char *name, const struct view *view)
{
    struct described *described = context;
    struct error error;
    float values[MOST];
    char *out = described->text + strlen(described->text);
    out += sprintf(out, "%s%s [", *described->text != '\0' ? "; " : "", name);
    for (unsigned axis = 0; axis < view->rank; axis++)
        out += sprintf(out, "%s%" PRIu64, axis > 0 ? " " : "", view->shape[axis]);
    out += sprintf(out, "]");
    if (view->dtype != &f32_dtype || view->n_elements > MOST ||
        !read_numbers(view, 0, view_units(view), values, &error)) {
        sprintf(out, " not read");
        return;
    }
    for (uint64_t i = 0; i < view->n_elements; i++)
        out += sprintf(out, " %g", (double)values[i]);
}

struct stored {
    const char *name;
    uint64_t shape[3];
    float first; /* the others count up from it */
};

static void add_tensor(struct tensor_set *set, struct arena *arena, const struct stored *stored)
{
    unsigned rank = 0;
    uint64_t n = 1;
    for (; rank < 3 && stored->shape[rank] != 0; rank++)
        n *= stored->shape[rank];
    float *values = arena_array(arena, n, sizeof *values);
    for (uint64_t i = 0; i < n; i++)
        values[i] = stored->first + (float)i;
    tensor_set_add_view(set, stored->name, view_numbers(arena, rank, stored->shape, values));
}

static void check_apply(enum direction direction, const char *fact, const struct stored *tensors, size_t n_tensors,
                        const char *wanted)
{
    const struct relation_row *const tables[] = {particular, rows, NULL};
    struct described described = {.arena = arena_new()};
    struct error error = {""};
    struct dimensions dimensions = {.n_layers = 2};
    struct tensor_set *set = tensor_set_new(described.arena);
    dimensions_set(&dimensions, "head", 2);
    dimensions_set(&dimensions, "half", 2);
    dimensions_set(&dimensions, "expert", 2);
    if (fact != NULL)
        dimensions_set(&dimensions, fact, 1);
    for (size_t i = 0; i < n_tensors; i++)
        add_tensor(set, described.arena, &tensors[i]);
    CHECK(tensor_set_seal(set, &error));
    const struct relation_job job = {
        .relation = relation_new(described.arena, "test", "model.", tables, &error),
        .direction = direction,
        .dimensions = &dimensions,
        .dimensions_name = "config.json",
        .set = set,
        .arena = described.arena,
        .context = &described,
        .read = read_view,
        .write = write_text,
    };
    bool applied = job.relation != NULL && relation_apply(&job, &error);
    CHECK_TEXT(applied ? described.text : error.message, wanted);
    arena_free(described.arena);
}

#define APPLY(direction, fact, wanted, ...)                                                                            \
    do {                                                                                                               \
        const struct stored tensors[] = {__VA_ARGS__};                                                                 \
        check_apply(direction, fact, tensors, sizeof tensors / sizeof *tensors, wanted);                               \
    } while (0)

static void check_values(void)
{
    APPLY(FORWARD, NULL, "blk.1.q.weight [8] 0 2 1 3 4 6 5 7", {"layers.1.q.weight", {8}});
    APPLY(BACKWARD, NULL, "model.layers.1.q.weight [8] 0 2 1 3 4 6 5 7", {"blk.1.q.weight", {8}});
    APPLY(FORWARD, NULL, "blk.0.q.bias [4 2] 0 1 2 3 4 5 6 7", {"layers.0.q.bias", {4, 2}});
    APPLY(FORWARD, NULL, "output_norm.weight [2] 1 2", {"norm.weight", {2}});
    APPLY(BACKWARD, NULL, "model.norm.weight [2] -1 0", {"output_norm.weight", {2}});
}

static void check_names(void)
{
    APPLY(FORWARD, NULL, "blk.1.of3.part2.bias [1] 0", {"layers.1.part2.of3.bias", {1}});
    APPLY(BACKWARD, NULL, "model.layers.1.part2.of3.bias [1] 0", {"blk.1.of3.part2.bias", {1}});
    APPLY(BACKWARD, "bare", "norm.weight [1] -1", {"output_norm.weight", {1}});
    APPLY(FORWARD, "bare", "output_norm.weight [1] 1", {"norm.weight", {1}});
    APPLY(FORWARD, NULL, "blk.0.up.weight [1] 0", {"layers.0.up.weight", {1}});
    APPLY(FORWARD, "sparse", "blk.0.particular.weight [1] 0", {"layers.0.up.weight", {1}});
    APPLY(BACKWARD, NULL, "plain.0.weight [1] 0; mark.0.weight [1] 1; other.1.weight [1] 2",
          {"blk.0.marked.weight", {1}}, {"blk.0.mark.weight", {1}, 1}, {"blk.1.marked.weight", {1}, 2});
    APPLY(FORWARD, NULL, "token_embd.weight [1] 0", {"shared.weight", {1}}, {"encoder.shared.weight", {1}, 5});
    APPLY(FORWARD, NULL, "token_embd.weight [1] 5", {"encoder.shared.weight", {1}, 5}, {"shared.weight", {1}});
    APPLY(BACKWARD, NULL, "shared.weight [1] 0", {"token_embd.weight", {1}});
    APPLY(FORWARD, NULL, "", {"layers.7.unused.weight", {1}});
}

/* Members are gathered wherever they are; the result is there where the last one is met. */
static void check_members(void)
{
    APPLY(FORWARD, NULL, "output_norm.weight [1] 1; blk.0.w_exps.weight [2 1 2] 8 9 0 1; blk.1.w_exps.weight [2 1] 4 2",
          {"layers.0.experts.1.w.weight", {1, 2}}, {"layers.1.experts.1.w.weight", {1}, 2}, {"norm.weight", {1}},
          {"layers.0.experts.0.w.weight", {1, 2}, 8}, {"layers.1.experts.0.w.weight", {1}, 4});
    APPLY(BACKWARD, NULL, "model.layers.0.experts.0.w.weight [1 2] 0 1; model.layers.0.experts.1.w.weight [1 2] 2 3",
          {"blk.0.w_exps.weight", {2, 1, 2}});
    APPLY(FORWARD, NULL, "blk.0.gate_exps [2 1 2] 0 1 4 5; blk.0.up_exps [2 1 2] 2 3 6 7",
          {"layers.0.experts.1.gate_up", {2, 2}, 4}, {"layers.0.experts.0.gate_up", {2, 2}});
    APPLY(BACKWARD, NULL,
          "model.layers.0.experts.0.gate_up [2 2] 0 1 10 11; model.layers.0.experts.1.gate_up [2 2] 2 3 12 13",
          {"blk.0.gate_exps", {2, 1, 2}}, {"blk.0.up_exps", {2, 1, 2}, 10});
    APPLY(FORWARD, NULL, "tensor 'layers.0.experts.2.w': index 2 is not one of the 2 experts of config.json",
          {"layers.0.experts.2.w", {1}});
    APPLY(FORWARD, NULL, "too few tensors for config.json (expert: 2)", {"layers.0.experts.0.w", {1}});
    APPLY(FORWARD, NULL, "layer 0 has only 1 of the 2 tensors that test puts together",
          {"layers.0.experts.0.w.weight", {1}}, {"layers.0.experts.1.w.bias", {1}}, {"layers.7.unused", {1}},
          {"layers.8.unused", {1}});
}

static void check_sections(void)
{
    APPLY(FORWARD, NULL, "blk.0.first [1 2] 0 1; blk.0.second [1 2] 2 3", {"layers.0.both", {2, 2}});
    APPLY(BACKWARD, NULL, "model.layers.0.both [2 2] 4 5 0 1", {"blk.0.second", {1, 2}}, {"blk.0.first", {1, 2}, 4});
    APPLY(BACKWARD, NULL, "layer 1 has only 1 of the 2 tensors that test puts together", {"blk.1.first", {1, 2}},
          {"blk.0.mark", {1}});
}

/* GGUF loses leading dimensions of 1, which a row knows. */
static void check_ones(void)
{
    APPLY(FORWARD, NULL, "blk.0.conv.weight [2 3] 0 1 2 3 4 5", {"layers.0.conv.weight", {2, 1, 3}});
    APPLY(BACKWARD, NULL, "model.layers.0.conv.weight [2 1 3] 0 1 2 3 4 5", {"blk.0.conv.weight", {2, 3}});
    APPLY(BACKWARD, NULL, "model.layers.0.conv.weight [1 1 3] 0 1 2", {"blk.0.conv.weight", {3}});
    APPLY(BACKWARD, NULL, "model.layers.0.wide [1 3] 0 1 2", {"blk.0.wide", {3}});
}

static void check_errors(void)
{
    APPLY(FORWARD, NULL, "'layers.1.conv.weight' cannot be read", {"layers.1.conv.weight", {2, 1, 3}});
    APPLY(FORWARD, NULL, "tensor 'layers.2.up' is beyond the 2 layers of config.json", {"layers.2.up", {1}});
    APPLY(BACKWARD, NULL, "tensor 'model.layers.0.up' is unknown to the family test", {"model.layers.0.up", {1}});
    APPLY(FORWARD, NULL, "tensor 'model.layers.0.up' is unknown to the family test", {"model.layers.0.up", {1}});
}

int main(void)
{
    check_values();
    check_names();
    check_members();
    check_sections();
    check_ones();
    check_errors();
    return check_done();
}
