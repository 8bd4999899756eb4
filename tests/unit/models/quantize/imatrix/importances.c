/* A matrix goes by GGUF's names; the checkpoint is tests/data/gguf/models/mixtral-tiny, three experts of 32 and 48. */
#include "models/formats.h"
#include "models/quantize/imatrix.h"

#include "tests/unit/check.h"

#include <stdlib.h>

enum { HIDDEN = 32, INNER = 48, EXPERTS = 3 };

static const struct importance *of(const struct checkpoint *checkpoint, const struct importance *importances,
                                   const char *name)
{
    const struct tensor *tensor = tensor_set_find_text(checkpoint->tensors, name);
    return CHECK(tensor != NULL) ? &importances[tensor - checkpoint->tensors->tensors] : importances;
}

static void relate(const struct checkpoint *checkpoint, const struct imatrix *imatrix, const float *values)
{
    static const struct imatrix_filter all;
    struct arena *arena = arena_new();
    const struct importance *importances =
        importances_of(checkpoint, &(struct shown_tensors){.set = checkpoint->tensors}, imatrix, &all, arena);
    CHECK_NAMED(of(checkpoint, importances, "model.layers.1.self_attn.q_proj.weight")->columns == values,
                "rows in another order");
    CHECK_NAMED(of(checkpoint, importances, "model.layers.1.block_sparse_moe.experts.2.w2.weight")->columns ==
                    values + 2 * INNER,
                "an expert");
    CHECK(of(checkpoint, importances, "model.layers.1.block_sparse_moe.experts.2.w2.weight")->n_columns == INNER);
    CHECK_NAMED(of(checkpoint, importances, "model.layers.1.self_attn.v_proj.weight")->columns == NULL,
                "an entry of another size");
    CHECK_NAMED(of(checkpoint, importances, "model.layers.1.self_attn.k_proj.weight")->columns == NULL, "no entry");
    CHECK_NAMED(of(checkpoint, importances, "model.norm.weight")->columns == NULL, "not a matrix");
    arena_free(arena);
}

int main(void)
{
    static const float values[EXPERTS * INNER];
    static struct imatrix_entry entries[] = {
        {"blk.1.attn_q.weight", values, HIDDEN, true},
        {"blk.1.attn_v.weight", values, HIDDEN - 1, true},
        {"blk.1.ffn_down_exps.weight", values, EXPERTS * INNER, true},
    };
    const struct imatrix imatrix = {.file = "FILE", .entries = entries, .n_entries = sizeof entries / sizeof *entries};
    char path[4096];
    struct error error;
    snprintf(path, sizeof path, "%s/gguf/models/mixtral-tiny", getenv("WFS_TEST_DATA"));
    const struct checkpoint *checkpoint = checkpoint_open(path, formats, &(struct open_options){0}, &error);
    if (CHECK(checkpoint != NULL)) {
        relate(checkpoint, &imatrix, values);
        CHECK(importances_of(checkpoint, NULL, NULL, NULL, NULL) == NULL);
    }
    checkpoint_close(checkpoint);
    return check_done();
}
