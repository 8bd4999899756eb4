/* What a table of rows, and tensors that it is applied to, may have wrong: one line each, with the place. That rows
 * work is in there_and_back.c. */
#include "models/relation/relation.h"

#include "tests/unit/check.h"

#define NAMES16 "a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p"

static void check_table(const char *here, const char *there, const char *axes, const char *wanted)
{
    struct arena *arena = arena_new();
    const struct relation_row rows[] = {{here, there, axes}, {0}};
    const struct relation_row *const tables[] = {rows, NULL};
    struct error error = {""};
    const struct relation *relation = relation_new(arena, "test", NULL, tables, &error);
    CHECK_NAMED((relation == NULL) == (wanted != NULL), here);
    if (relation == NULL && wanted != NULL)
        CHECK_TEXT(error.message, wanted);
    arena_free(arena);
}

static void check_tables(void)
{
    check_table("a.{}.b", "c.{}", NULL, NULL);
    check_table(NAMES16, NAMES16, NULL, NULL);
    check_table(NAMES16 ", q", "x", NULL, "'" NAMES16 ", q': more than 16 names: ' q'");
    check_table("a, b", "c", NULL, "'a, b': a rearrangement is missing");
    check_table("a", "b", "(i o -> o i", "'a': '(i o -> o i': column 6: expected a name, 1, ... or (");
    check_table("a, b", "c", "x -> y", "'a, b': 'x -> y' rearranges 1 tensors, but the row names 2");
    check_table("a.{}.{}.{}.{}", "b.{}.{}.{}.{}", NULL, "'a.{}.{}.{}.{}': more than 3 numbers");
    check_table("a.{}, b", "c", "x, y -> (x + y)", "'a.{}, b': the numbers of gathered tensors differ from 'a.{}'");
}

/* Applying. */

static const struct relation_row rows[] = {
    {"model.layers.{}.experts.{expert}.up", "blk.{}.up_exps"},
    {"model.layers.{}.q", "blk.{}.q", "(head d) c -> head d c"},
    {"model.layers.{}.gate, model.layers.{}.fc", "blk.{}.both", "x c, y c -> (x + y) c"},
    {"model.norm", "norm"},
    {"norm", "norm", .forward_only = true},
    {0},
};

struct product {
    struct arena *arena;
    unsigned n_written;
};

static const struct view *read_view(void *context, const struct tensor *tensor, const char *shown, struct error *error)
{
    (void)shown;
    (void)error;
    return tensor_view(tensor, ((struct product *)context)->arena);
}

static void count(void *context, const char *name, const struct view *view)
{
    (void)name;
    (void)view;
    ((struct product *)context)->n_written++;
}

struct shape {
    const char *name;
    uint64_t rows, columns;
};

/* What comes of tensors of these names and shapes: how many are made, or the error. */
static void check_apply(const struct shape *shapes, size_t n_shapes, unsigned n_wanted, const char *wanted)
{
    static const float zeros[64];
    const struct relation_row *const tables[] = {rows, NULL};
    struct arena *arena = arena_new();
    struct product product = {arena, 0};
    struct error error = {""};
    struct dimensions dimensions = {.n_layers = 2};
    struct tensor_set *set = tensor_set_new(arena);
    dimensions_set(&dimensions, "head", 2);
    dimensions_set(&dimensions, "expert", 2);
    for (size_t i = 0; i < n_shapes; i++)
        tensor_set_add_view(set, shapes[i].name, view_numbers(arena, 2, &shapes[i].rows, zeros));
    CHECK(tensor_set_seal(set, &error));
    const struct relation_job job = {
        .relation = relation_new(arena, "test", NULL, tables, &error),
        .direction = FORWARD,
        .dimensions = &dimensions,
        .dimensions_name = "config.json",
        .set = set,
        .arena = arena,
        .context = &product,
        .read = read_view,
        .write = count,
    };
    bool applied = job.relation != NULL && relation_apply(&job, &error);
    CHECK_NAMED(applied == (wanted == NULL), shapes[0].name);
    if (applied)
        CHECK(product.n_written == n_wanted);
    else if (wanted != NULL)
        CHECK_TEXT(error.message, wanted);
    arena_free(arena);
}

#define APPLY(n_wanted, wanted, ...)                                                                                   \
    do {                                                                                                               \
        const struct shape shapes[] = {__VA_ARGS__};                                                                   \
        check_apply(shapes, sizeof shapes / sizeof *shapes, n_wanted, wanted);                                         \
    } while (0)

static void check_applied(void)
{
    APPLY(2, NULL, {"model.layers.0.q", 4, 3}, {"model.norm", 1, 4});
    APPLY(1, NULL, {"model.layers.1.experts.0.up", 2, 3}, {"model.layers.1.experts.1.up", 2, 3});
    APPLY(0, "tensor 'model.layers.0.k' is unknown to the family test", {"model.layers.0.k", 4, 3});
    APPLY(0, "tensor 'model.layers.2.q' is beyond the 2 layers of config.json", {"model.layers.2.q", 4, 3});
    APPLY(0, "tensor 'model.layers.0.experts.2.up': index 2 is not one of the 2 experts of config.json",
          {"model.layers.0.experts.2.up", 2, 3});
    APPLY(0, "layer 1 has only 1 of the 2 tensors that test puts together", {"model.layers.1.experts.1.up", 2, 3},
          {"model.norm", 1, 4});
    APPLY(0, "layer 0 has only 1 of the 2 tensors that test puts together", {"model.layers.0.gate", 2, 3},
          {"model.norm", 1, 4});
    APPLY(0, "too few tensors for config.json (expert: 2)", {"model.layers.1.experts.1.up", 2, 3});
    APPLY(0, "tensor 'model.layers.0.q': shape [5, 3] does not fit '(head d) c' where head 2",
          {"model.layers.0.q", 5, 3});
    APPLY(0, "number 1 of blk.0.up_exps has another shape than the first", {"model.layers.0.experts.0.up", 2, 3},
          {"model.layers.0.experts.1.up", 3, 2});
}

int main(void)
{
    check_tables();
    check_applied();
    return check_done();
}
