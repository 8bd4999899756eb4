/* Factors beside weights of NVFP4: which are there, and what they hold. When the converter takes one for 1 is what
 * numpy says of the numbers here: numpy.allclose(scales, 1, atol=1e-6) of those of experts, abs(scale - 1) < 1e-6 of
 * one. */
#include "models/family/nvfp4.h"

#include "tests/unit/check.h"
#include "tests/unit/numbers.h"

#include <math.h>

static const struct relation_row rows[] = {
    {"model.layers.{}.experts.{expert}.up", "blk.{}.up_exps"},
    {"model.layers.{}.q", "blk.{}.q"},
    {"model.layers.{}.dropped", NULL},
    {0},
};

enum { MAX_WEIGHTS = 4 };

/* A stored weight; a factor of 0 is none. */
struct weight {
    const char *name;
    float scale, input_scale;
    bool is_plain; /* it has factors, but no blocks */
};

static bool fail(const struct view *view, uint64_t first, uint64_t count, void *out, struct error *error)
{
    (void)view, (void)first, (void)count, (void)out;
    return error_set(error, "x.safetensors: gone");
}

/* A factor that is -1 cannot be read. */
static const struct view *factor_of(struct arena *arena, float value)
{
    static const struct view_op unreadable = {.name = "unreadable", .read = fail};
    static const uint64_t one = 1;
    if (value == 0)
        return NULL;
    if (value != -1)
        return view_numbers(arena, 1, &one, arena_copy(arena, &value, sizeof value));
    struct view *view = arena_alloc(arena, sizeof *view);
    view_init(view, arena, &unreadable, &f32_dtype, 1, &one);
    return view;
}

static void add(void *context, const char *name, const struct view *view)
{
    char *text = context;
    float values[MAX_WEIGHTS];
    struct error error;
    CHECK(view->dtype == &f32_dtype && view->rank == 1 && view->n_elements <= MAX_WEIGHTS &&
          read_numbers(view, 0, view->n_elements, values, &error));
    text += strlen(text);
    text += sprintf(text, "%s:", name);
    for (uint64_t i = 0; i < view->n_elements; i++)
        text += sprintf(text, " %.9g", (double)values[i]);
    strcpy(text, "\n");
}

/* What is beside the tensor `name` where these weights are stored, or the error. */
static void check(const struct weight *weights, size_t n_weights, const char *name, const char *expected)
{
    static const float zero;
    static const uint64_t one = 1;
    const struct relation_row *const tables[] = {rows, NULL};
    struct arena *arena = arena_new();
    struct error error = {""};
    struct dimensions dimensions = {.n_layers = 2};
    struct tensor_set *set = tensor_set_new(arena);
    struct unpacked all[MAX_WEIGHTS] = {{0}};
    struct unpacked_forms forms[MAX_WEIGHTS] = {{0}};
    const struct unpacked *unpacked[MAX_WEIGHTS + 1] = {NULL};
    char text[1024] = "";
    dimensions_set(&dimensions, "expert", 2);
    const struct view *view = view_numbers(arena, 1, &one, &zero);
    for (size_t i = 0; i < n_weights; i++) {
        tensor_set_add_view(set, weights[i].name, view);
        all[i] = (struct unpacked){.name = weights[i].name, .forms = &forms[i]};
        forms[i] = (struct unpacked_forms){
            .blocks = weights[i].is_plain ? NULL : view,
            .factors = {factor_of(arena, weights[i].scale), factor_of(arena, weights[i].input_scale)},
        };
        unpacked[i] = &all[i];
    }
    tensor_set_add_view(set, "model.layers.1.q.weight", view); /* was never packed */
    const struct relation_job job = {
        .relation = relation_new(arena, "test", NULL, tables, &error),
        .direction = FORWARD,
        .dimensions = &dimensions,
        .set = set,
        .arena = arena,
    };
    struct nvfp4_scales *factors = nvfp4_scales_read(&job, unpacked, &error);
    if (factors != NULL)
        nvfp4_scales_beside(factors, name, add, text);
    CHECK_TEXT(factors != NULL ? text : error.message, expected);
    nvfp4_scales_free(factors);
    arena_free(arena);
}

#define BESIDE(name, expected, ...)                                                                                    \
    do {                                                                                                               \
        const struct weight weights[] = {__VA_ARGS__};                                                                 \
        check(weights, sizeof weights / sizeof *weights, name, expected);                                              \
    } while (0)

#define Q   "model.layers.0.q.weight"
#define UP0 "model.layers.0.experts.0.up.weight"
#define UP1 "model.layers.0.experts.1.up.weight"

static void test_one(void)
{
    BESIDE("blk.0.q.weight", "blk.0.q.scale: 2\nblk.0.q.input_scale: 0.5\n", {Q, 2, .5f});
    BESIDE("blk.0.q.weight", "blk.0.q.input_scale: 0.5\n", {Q, 0, .5f});
    BESIDE("blk.0.q.weight", "blk.0.q.scale: 2\n", {Q, 2, 1});
    BESIDE("blk.0.q.weight", "", {Q, 1, 1});
    BESIDE("blk.0.q.weight", "", {Q, 2, 2, .is_plain = true});
    BESIDE("blk.1.q.weight", "", {Q, 2, 2});
    BESIDE("blk.0.q.weight", "blk.0.q.scale: 2\n", {"model.layers.0.dropped.weight", 3}, {"unknown", 4}, {Q, 2});
    BESIDE("blk.0.q.weight", "tensor '" Q "': x.safetensors: gone", {Q, 2, -1});
}

static void test_experts(void)
{
    BESIDE("blk.0.up_exps.weight", "blk.0.up_exps.scale: 2 3\nblk.0.up_exps.input_scale: 1 5\n", {UP1, 3, 5}, {UP0, 2});
    BESIDE("blk.0.up_exps.weight", "", {UP0, 1, 1}, {UP1, 1});
    BESIDE("blk.0.up_exps.weight", "blk.0.up_exps.scale: 2 1\n", {UP0, 2},
           {"model.layers.0.experts.2.up.weight", 7}); /* beyond those that there are */
}

/* Neighbours of 1 in F32 are 1.2e-7 apart above it. */
static void test_ones(void)
{
    BESIDE("blk.0.q.weight", "", {Q, 1.0000008f});
    BESIDE("blk.0.q.weight", "blk.0.q.scale: 1.00000203\n", {Q, 1.000002f});
    BESIDE("blk.0.q.weight", "blk.0.q.scale: 0.999998987\n", {Q, .999999f}); /* 1.01e-6 away */
    BESIDE("blk.0.q.weight", "blk.0.q.scale: nan\n", {Q, NAN});
    BESIDE("blk.0.up_exps.weight", "", {UP0, 1.00001f}, {UP1, .99999f});
    BESIDE("blk.0.up_exps.weight", "blk.0.up_exps.scale: 1 1.00001204\n", {UP1, 1.000012f});
    BESIDE("blk.0.up_exps.weight", "blk.0.up_exps.scale: 1 nan\n", {UP1, NAN});
}

int main(void)
{
    test_one();
    test_experts();
    test_ones();
    nvfp4_scales_free(NULL);
    return check_done();
}
