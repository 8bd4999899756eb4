#include "models/families/kimi/kda.h"

#include "base/text.h"

#define KDA(at)                                                                                                        \
    {at ".dt_bias", "blk.{}.ssm_dt.bias", .parallel = "row"}, {at ".b_proj", "blk.{}.ssm_beta", .parallel = "row"},    \
        {at ".q_conv1d", "blk.{}.ssm_conv1d_q", "c 1 k -> 1 c 1 k", "c", .when = "!flat_convolution"},                 \
        {at ".k_conv1d", "blk.{}.ssm_conv1d_k", "c 1 k -> 1 c 1 k", "c", .when = "!flat_convolution"},                 \
        {at ".v_conv1d", "blk.{}.ssm_conv1d_v", "c 1 k -> 1 c 1 k", "c", .when = "!flat_convolution"},                 \
        {at ".q_conv1d", "blk.{}.ssm_conv1d_q", "c k -> 1 c 1 k", "c", .when = "flat_convolution"},                    \
        {at ".k_conv1d", "blk.{}.ssm_conv1d_k", "c k -> 1 c 1 k", "c", .when = "flat_convolution"},                    \
        {at ".v_conv1d", "blk.{}.ssm_conv1d_v", "c k -> 1 c 1 k", "c", .when = "flat_convolution"},                    \
    {                                                                                                                  \
        at ".o_norm", "blk.{}.ssm_norm"                                                                                \
    }

const struct relation_row kda_self_attention_tensors[] = {KDA("model.layers.{}.self_attn"), {0}};
const struct relation_row kda_attention_tensors[] = {KDA("model.layers.{}.attention"), {0}};

void kda_look(struct model_builder *builder)
{
    const struct tensor_set *set = builder->model->checkpoint->tensors;
    for (size_t i = 0; i < set->n_tensors; i++)
        if (set->tensors[i].rank == 2 && text_ends_with(set->tensors[i].name, ".q_conv1d.weight")) {
            dimensions_set(&builder->dimensions, "flat_convolution", 1);
            return;
        }
}
