/* conversion/mamba.py, Mamba2Model. */
#include "models/families/mamba/mamba2.h"

#define MIXER(at)                                                                                                      \
    {at ".A_log", "blk.{}.ssm_a", "row -> row 1", "row", .map = &minus_exp},                                           \
        {at ".D", "blk.{}.ssm_d", "row -> row 1", "row"}, {at ".dt_bias", "blk.{}.ssm_dt.bias", .parallel = "row"},    \
        {at ".conv1d.weight", "blk.{}.ssm_conv1d.weight",                                                              \
         "(channel + half state_group state) 1 k -> (channel + half state_group state) k", "channel state_group"},     \
        {at ".conv1d.bias", "blk.{}.ssm_conv1d.bias", "(channel + half state_group state)", "channel state_group"},    \
        {at ".in_proj", "blk.{}.ssm_in", "(half channel + half state_group state + mamba_head) ...",                   \
         "channel state_group mamba_head"},                                                                            \
        {at ".norm", "blk.{}.ssm_norm", "(state_group d) -> state_group d", "row"},                                    \
    {                                                                                                                  \
        at ".out_proj", "blk.{}.ssm_out", .parallel = "column"                                                         \
    }

const struct relation_row mamba2_layer_tensors[] = {MIXER("model.layers.{}.mamba"), {0}};
const struct relation_row mamba2_backbone_tensors[] = {MIXER("backbone.layers.{}.mixer"), {0}};

bool mamba2_pad_vocabulary(struct model_builder *builder, uint64_t multiple, struct error *error)
{
    enum { MOST = 1 << 24 };
    uint64_t n_tokens;
    if (!hparams_count(builder->model->hparams, "vocab_size", 0, MOST, &n_tokens, error))
        return false;
    return hparams_override(builder->model->hparams, "vocab_size", (n_tokens + multiple - 1) / multiple * multiple,
                            error);
}
