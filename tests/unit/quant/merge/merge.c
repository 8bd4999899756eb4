/* Tensors merged by each method, against hashes of what mergekit makes of the same numbers (tests/data/merges.txt). */
#include "quant/merge/merge.h"

#include "base/encodings.h"
#include "tests/unit/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_MODELS = 16, MAX_RANK = 3, HASH = 16 };

/* A line of the file. */
struct test {
    char text[512];
    const char *method, *hash;
    uint64_t shape[MAX_RANK], n;
    unsigned rank;
    size_t n_models, n_with_base, odd, seed, skip;
    struct merge_model models[MAX_MODELS];
    struct merge_operands operands;
};

struct method {
    const char *name;
    merge_function *merge;
    bool signs;
    enum merge_sparsifier sparsifier;
    bool normalize, rescale; /* unless the line says otherwise */
};

static const struct method methods[] = {
    {"linear", merge_linear, .normalize = true},
    {"passthrough", merge_scaled},
    {"task_arithmetic", merge_task_arithmetic},
    {"ties", merge_task_arithmetic, true, MERGE_MAGNITUDE, true},
    {"breadcrumbs", merge_task_arithmetic, false, MERGE_MAGNITUDE_OUTLIERS},
    {"breadcrumbs_ties", merge_task_arithmetic, true, MERGE_MAGNITUDE_OUTLIERS},
    {"dare_linear", merge_task_arithmetic, false, MERGE_RANDOM, false, true},
    {"dare_ties", merge_task_arithmetic, true, MERGE_RANDOM, false, true},
    {"della", merge_task_arithmetic, true, MERGE_DELLA, true, true},
    {"della_linear", merge_task_arithmetic, false, MERGE_DELLA, false, true},
    {"karcher", merge_karcher},
    {"model_stock", merge_model_stock},
    {"multislerp", merge_multislerp, .normalize = true},
    {"nearswap", merge_nearswap},
    {"nuslerp", merge_nuslerp},
    {"sce", merge_sce},
    {"slerp", merge_slerp},
};

/* The same as numbers() of tests/data/make_merges.py. */
static const struct view *numbers(struct arena *arena, const struct test *test, int model)
{
    static const float odd_ones[] = {INFINITY, -INFINITY, NAN, -0.0f, 1e38f, 70000};
    float *values = arena_array(arena, test->n, sizeof *values);
    for (uint64_t i = 0; i < test->n; i++) {
        int64_t at = (int64_t)i, base = (at * 7919 + 104729) % 10007 - 5003;
        int64_t step = at / 64 % 8 == 5 ? 0 : (at * (7907 + 2 * model) + at / 97 + model * 31) % 251 - 125;
        values[i] = (float)base / 16384 + (model == 0 ? 0 : (float)step / (float)(1 << (12 + model)));
        if (test->odd == 2)
            values[i] = 0;
        for (int j = 0; j < 6 && test->odd == 1; j++)
            if (at % 1000 == 17 * j + model)
                values[i] = odd_ones[j];
    }
    return view_numbers(arena, test->rank, test->shape, values);
}

/* Makes all NaNs one. */
static void unite_nans(unsigned char *units, uint64_t n, const struct dtype *dtype)
{
    float *values = malloc(n * sizeof *values);
    dtype_kernels(dtype).decode(units, values, n);
    for (uint64_t i = 0; i < n; i++)
        values[i] = isnan(values[i]) ? NAN : values[i];
    dtype_kernels(dtype).encode(values, units, n);
    free(values);
}

static const struct method *find_method(const char *name)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}

static void read_shape(struct test *test, const char *text)
{
    test->n = 1;
    for (char *end; test->rank < MAX_RANK; text = end + 1) {
        test->shape[test->rank] = strtoull(text, &end, 10);
        test->n *= test->shape[test->rank++];
        if (*end != 'x')
            break;
    }
}

/* Sets a parameter that each model has its own of. */
static bool read_own(struct test *test, const char *key, const char *values)
{
    static const struct {
        const char *key;
        size_t offset;
    } own[] = {{"weight", offsetof(struct merge_model, weight)},
               {"scale", offsetof(struct merge_model, scale)},
               {"density", offsetof(struct merge_model, density)},
               {"gamma", offsetof(struct merge_model, gamma)},
               {"epsilon", offsetof(struct merge_model, epsilon)}};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (strcmp(own[i].key, key) != 0)
            continue;
        for (size_t model = 0; model < MAX_MODELS && values != NULL; model++) {
            *(double *)(void *)((char *)&test->models[model] + own[i].offset) = strtod(values, NULL);
            values = strchr(values, ',');
            values = values != NULL ? values + 1 : NULL;
        }
        return true;
    }
    return false;
}

static bool read_number(struct test *test, const char *key, const char *value)
{
    struct {
        const char *key;
        size_t *count;
    } counts[] = {{"models", &test->n_models},
                  {"base", &test->n_with_base},
                  {"seed", &test->seed},
                  {"skip", &test->skip},
                  {"odd", &test->odd}};
    struct {
        const char *key;
        double *number;
    } numbers[] = {{"lambda", &test->operands.lambda},
                   {"t", &test->operands.t},
                   {"eps", &test->operands.eps},
                   {"tol", &test->operands.tol},
                   {"select_topk", &test->operands.select_topk}};
    struct {
        const char *key;
        bool *flag;
    } flags[] = {{"normalize", &test->operands.normalize},     {"normalize_weights", &test->operands.normalize},
                 {"rescale", &test->operands.rescale},         {"filter_wise", &test->operands.filter_wise},
                 {"nuslerp_flatten", &test->operands.flatten}, {"nuslerp_row_wise", &test->operands.row_wise}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (strcmp(counts[i].key, key) == 0)
            return *counts[i].count = strtoull(value, NULL, 10), true;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(numbers[i].key, key) == 0)
            return *numbers[i].number = strtod(value, NULL), true;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (strcmp(flags[i].key, key) == 0)
            return *flags[i].flag = value[0] == '1', true;
    return false;
}

static bool read_option(struct test *test, char *option)
{
    char *value = strchr(option, '=');
    if (value == NULL)
        return false;
    *value++ = '\0';
    if (strcmp(option, "sha256") == 0)
        test->hash = value;
    else if (strcmp(option, "max_iter") == 0)
        test->operands.max_iter = (unsigned)strtoul(value, NULL, 10);
    else
        return read_own(test, option, value) || read_number(test, option, value);
    return true;
}

/* Reads a line; false if there is something in it that this test does not know. */
static bool read_line(struct test *test, const char *line, const struct method **ret_method)
{
    bool good = true;
    snprintf(test->text, sizeof test->text, "%s", line);
    test->method = strtok(test->text, " \n");
    *ret_method = test->method != NULL ? find_method(test->method) : NULL;
    const char *dtype = strtok(NULL, " \n"), *shape = dtype != NULL ? strtok(NULL, " \n") : NULL;
    if (*ret_method == NULL || shape == NULL)
        return false;
    test->operands = (struct merge_operands){.dtype = dtype_by_name(dtype),
                                             .lambda = 1,
                                             .eps = 1e-8,
                                             .tol = 1e-5,
                                             .select_topk = 1,
                                             .max_iter = 10,
                                             .flatten = true};
    test->operands.signs = (*ret_method)->signs;
    test->operands.sparsifier = (*ret_method)->sparsifier;
    test->operands.normalize = (*ret_method)->normalize;
    test->operands.rescale = (*ret_method)->rescale;
    for (int i = 0; i < MAX_MODELS; i++)
        test->models[i] = (struct merge_model){.weight = 1, .density = 1, .gamma = 0.01, .epsilon = 0.15};
    read_shape(test, shape);
    for (char *option; good && (option = strtok(NULL, " \n")) != NULL;)
        good = read_option(test, option);
    return good && test->hash != NULL && test->n_models > 0 && test->n_models <= MAX_MODELS;
}

static const struct view *make_view(struct arena *arena, struct test *test, const struct method *method)
{
    for (size_t i = 0; i < test->n_models; i++)
        test->models[i].view = numbers(arena, test, (int)i + 1);
    test->operands.base = test->n_with_base > 0 ? numbers(arena, test, 0) : NULL;
    test->operands.models = test->models;
    test->operands.n_models = test->n_models;
    test->operands.random = mersenne_new(arena, (uint32_t)test->seed);
    test->operands.first_word = test->skip;
    test->operands.findings = findings_new(arena);
    return method->merge(arena, &test->operands);
}

/* The whole against the hash, and then ranges, first from a view that nothing was read from, against the whole. */
static void check_view(const struct view *view, const struct view *again, const struct test *test, const char *line)
{
    size_t unit = view->dtype->block_bytes;
    unsigned char *whole = malloc(test->n * unit), *part = malloc(test->n * unit + 1);
    char hash[SHA256_HEX + 1];
    struct error error;
    bool good = view->dtype == test->operands.dtype && view_read(view, 0, test->n, whole, &error);
    unite_nans(whole, test->n, view->dtype);
    sha256_hex(whole, test->n * unit, hash);
    CHECK_NAMED(good && strncmp(hash, test->hash, HASH) == 0, line);
    const uint64_t firsts[] = {test->n / 2, test->n - 1, 0, test->n / 3}, counts[] = {3, 1, 9, test->n / 2};
    for (int i = 0; i < 4; i++) {
        uint64_t left = test->n - firsts[i], n = counts[i] < left ? counts[i] : left;
        good = good && view_read(again, firsts[i], n, part + 1, &error);
        unite_nans(part + 1, n, view->dtype);
        good = good && memcmp(part + 1, whole + firsts[i] * unit, n * unit) == 0;
    }
    CHECK_NAMED(good, "ranges");
    free(whole);
    free(part);
}

static void check_line(const char *line)
{
    static struct test test;
    const struct method *method;
    struct arena *arena = arena_new();
    test = (struct test){0};
    if (CHECK_NAMED(read_line(&test, line, &method), line))
        check_view(make_view(arena, &test, method), make_view(arena, &test, method), &test, line);
    arena_free(arena);
}

/* Three models that are the base have no direction, and so no mean of it. */
static void check_no_direction(void)
{
    static struct test test;
    const struct method *method;
    struct arena *arena = arena_new();
    struct error error;
    unsigned char units[8];
    test = (struct test){0};
    CHECK(read_line(&test, "multislerp F32 2x2 models=3 base=1 weight=1,1,1 odd=2 sha256=0", &method));
    CHECK(!view_read(make_view(arena, &test, method), 1, 2, units, &error));
    CHECK_TEXT(error.message, "multislerp: the weighted mean of the 3 models' directions is 0; change their weights");
    arena_free(arena);
}

int main(void)
{
    char path[512], line[512];
    snprintf(path, sizeof path, "%s/merges.txt", getenv("WFS_TEST_DATA"));
    FILE *file = fopen(path, "r");
    CHECK_NAMED(file != NULL, path);
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        check_line(line);
    if (file != NULL)
        fclose(file);
    check_no_direction();
    return check_done();
}
