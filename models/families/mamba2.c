/* conversion/mamba.py, Mamba2Model. */
#include "models/families/mamba2.h"

#define MIXER(at)                                                                                                      \
    {at ".A_log", "blk.{}.ssm_a", "row -> row 1", .map = &minus_exp}, {at ".D", "blk.{}.ssm_d", "row -> row 1"},       \
        {at ".dt_bias", "blk.{}.ssm_dt.bias"}, {at ".conv1d.weight", "blk.{}.ssm_conv1d.weight", "c 1 k -> c k"},      \
        {at ".conv1d.bias", "blk.{}.ssm_conv1d.bias"}, {at ".in_proj", "blk.{}.ssm_in"},                               \
        {at ".norm", "blk.{}.ssm_norm", "(group d) -> group d"},                                                       \
    {                                                                                                                  \
        at ".out_proj", "blk.{}.ssm_out"                                                                               \
    }

const struct relation_row mamba2_layer_tensors[] = {MIXER("model.layers.{}.mamba"), {0}};
const struct relation_row mamba2_backbone_tensors[] = {MIXER("backbone.layers.{}.mixer"), {0}};

void mamba2_add_groups(struct facts *facts, const struct hparams *hparams, const char *keys)
{
    enum { MOST = 1 << 24 };
    struct error unused;
    uint64_t n_groups;
    if (hparams_count(hparams, keys, 1, MOST, &n_groups, &unused))
        facts_set(facts, "group", n_groups);
}

bool mamba2_pad_vocabulary(struct synthesis *synthesis, uint64_t multiple, struct error *error)
{
    enum { MOST = 1 << 24 };
    uint64_t n_tokens;
    if (!hparams_count(synthesis->model->hparams, "vocab_size", 0, MOST, &n_tokens, error))
        return false;
    return hparams_override(synthesis->model->hparams, "vocab_size", (n_tokens + multiple - 1) / multiple * multiple,
                            error);
}
