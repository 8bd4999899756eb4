/* Samples of weights are spread over the whole tensor. */
#include "fs/lib/info/quantization.h"

#include "tests/unit/check.h"

#include <math.h>
#include <stdlib.h>

enum {
    RUN = 2048,
    RUNS = 63,
    ZEROS = 40
}; /* runs: nearly twice as many as are sampled, and a tensor that begins with
    * zeros */

static void ends_count(void)
{
    static float weights[RUNS * RUN];
    const uint64_t shape[] = {RUNS, RUN};
    struct arena *arena = arena_new();
    struct gguf_model model = {.tensors = tensor_set_new(arena)};
    struct weight_kind *kinds = NULL;
    struct error error;
    size_t n_kinds = 0;
    for (size_t i = (size_t)ZEROS * RUN; i < sizeof weights / sizeof *weights; i++)
        weights[i] = 1;
    tensor_set_add_view(model.tensors, "blk.0.ffn_up.weight", view_numbers(arena, 2, shape, weights));
    CHECK(tensor_set_seal(model.tensors, &error) && weights_measure(&model, &kinds, &n_kinds, &error));
    if (CHECK(n_kinds == 1)) {
        double zeros = kinds[0].shares[WEIGHT_BINS / 2];
        CHECK_TEXT(kinds[0].name, "ffn_up");
        CHECK(fabs(zeros - (double)ZEROS / RUNS) < 0.05);
    }
    free(kinds);
    arena_free(arena);
}

int main(void)
{
    ends_count();
    return check_done();
}
