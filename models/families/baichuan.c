/* Baichuan 1 and 2. conversion/baichuan.py, except the names of tensors, where it calls itself without end: wfs writes
 * the names that llama.cpp's loader expects. */
#include "models/families/shared.h"

static const struct relation_row tensors[] = {
    {"model.layers.{}.self_attn.W_pack", "blk.{}.attn_q, blk.{}.attn_k, blk.{}.attn_v",
     "(query head half pair + key head half pair + value head half pair) c -> "
     "(query head pair half) c, (key head pair half) c, (value head half pair) c",
     "head"},
    {0},
};

const struct family baichuan_family = {
    .name = "baichuan",
    .summary = "Baichuan 1 and 2",
    .hf = FAMILY_NAMES({"BaichuanForCausalLM"}, {"BaiChuanForCausalLM"}),
    .tensors = {tensors, decoder_tensors},
    .keys = {base_keys, KEYS({"tensor_data_layout", GGUF_STRING, ALWAYS, .text = "Meta AI original pth"},
                             {"rope.dimension_count", GGUF_U32, .compute = compute_hidden_per_head})},
    .vocabs = {&spm_vocab},
    .dimensions = {qkv_dimensions},
    .note = "the converter fails on Baichuan; tensors are called as llama.cpp reads them",
};
