/* The order of tensors of NVFP4. The expected ones are those of what convert_hf_to_gguf.py wrote of a GLM-4.5 of two
 * layers (config.json has n_routed_experts), and of the same with num_local_experts. */
#include "models/family/nvfp4.h"
#include "tests/unit/check.h"

#include <string.h>

#define EXPERTS                                                                                                        \
    "blk.1.ffn_gate_exps.weight", "blk.1.ffn_gate_exps.scale", "blk.1.ffn_up_exps.weight",                             \
        "blk.1.ffn_up_exps.input_scale", "blk.1.ffn_down_exps.weight"
#define SORTED_EXPERTS                                                                                                 \
    "blk.1.ffn_down_exps.weight", "blk.1.ffn_gate_exps.weight", "blk.1.ffn_gate_exps.scale",                           \
        "blk.1.ffn_up_exps.weight", "blk.1.ffn_up_exps.input_scale"
#define MORE_EXPERTS "blk.2.ffn_down_exps.weight", "blk.2.ffn_gate_exps.weight"
#define FIRST        "rope_freqs.weight", "blk.0.attn_q.weight", "blk.0.attn_q.scale", "blk.0.attn_q.input_scale"
#define SHARED       "blk.1.ffn_down_shexp.weight", "blk.1.ffn_down_shexp.scale"
#define LAST         "output.weight"

enum { N_TENSORS = 14 };

static const char *const as_they_come[N_TENSORS] = {FIRST, EXPERTS, SHARED, MORE_EXPERTS, LAST};
static const char *const by_layers[N_TENSORS] = {FIRST, SORTED_EXPERTS, SHARED, MORE_EXPERTS, LAST};
static const char *const at_the_end[N_TENSORS] = {FIRST, SHARED, SORTED_EXPERTS, MORE_EXPERTS, LAST};

static void check(bool experts_are_last, const char *const *expected)
{
    static const uint64_t one = 1;
    static const float zero;
    struct arena *arena = arena_new();
    struct tensor_set *set = tensor_set_new(arena);
    const struct view *view = view_numbers(arena, 1, &one, &zero);
    for (size_t i = 0; i < N_TENSORS; i++)
        tensor_set_add_view(set, as_they_come[i], view);
    nvfp4_order(set, 1, N_TENSORS - 1, experts_are_last);
    for (size_t i = 0; i < N_TENSORS; i++)
        CHECK_TEXT(set->tensors[i].name, expected[i]);
    arena_free(arena);
}

int main(void)
{
    check(false, by_layers);
    check(true, at_the_end);
    return check_done();
}
