/* The bytes that a progress announces are those that are measured. */
#include "fs/cli/quantization.h"

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

int main(void)
{
    measures(0, 5, false, 5);
    measures(32, 0, false, 32 * RUN);
    measures(62, 5, false, 62 * RUN + 5); /* a sample is no smaller than 32 runs, and every second would be */
    measures(64, 0, false, 32 * RUN);
    measures(98, 0, false, 32 * RUN);
    measures(98, 5, true, 98 * RUN + 5);
    return check_done();
}
