/* The bytes that a progress announces are those that are measured; which files are the best of their size. */
#include "fs/lib/info/quantization.h"

#include "tests/unit/check.h"

enum { RUN = 2048 };

/* A tensor of that many runs and `more` elements is measured in `n_measured` elements. */
static void measures(uint64_t n_runs, uint64_t more, bool all, uint64_t n_measured)
{
    static const float zeros[100 * RUN];
    const uint64_t shape[] = {n_runs * RUN + more};
    struct arena *arena = arena_new();
    struct gguf_model model = {.tensors = tensor_set_new(arena)};
    tensor_set_add_view(model.tensors, "a", view_numbers(arena, 1, shape, zeros));
    CHECK(quantization_bytes(&model, all) == n_measured * sizeof(float));
    arena_free(arena);
}

static void compares(void)
{
    static const struct quantization rows[] = {
        {.is_possible = true, .file_bytes = 10, .relative_error = 0.5},
        {.is_possible = true, .file_bytes = 12, .relative_error = 0.5}, /* no better than the smaller one */
        {.is_possible = true, .file_bytes = 14, .relative_error = 0.2},
        {.is_possible = true, .file_bytes = 14, .relative_error = 0.2}, /* the same again */
        {.is_possible = false, .file_bytes = 1, .relative_error = 0},
        {.is_possible = true, .file_bytes = 14, .relative_error = 0.3},
        {.is_possible = true, .file_bytes = 20, .relative_error = 0.1},
    };
    static const bool best[] = {true, false, true, false, true, false, true};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK(quantization_is_best(rows, sizeof rows / sizeof *rows, &rows[i]) == best[i]);
}

int main(void)
{
    compares();
    measures(0, 5, false, 5);
    measures(32, 0, false, 32 * RUN);
    measures(62, 5, false, 62 * RUN + 5); /* a sample is no smaller than 32 runs, and every second would be */
    measures(64, 0, false, 32 * RUN);
    measures(98, 0, false, 32 * RUN);
    measures(98, 5, true, 98 * RUN + 5);
    return check_done();
}
