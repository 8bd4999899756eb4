"""Writes tests/data/modelopt: small models, and what ModelOpt exports of them in NVFP4, weights only.

Needs torch, transformers 4.57.6 and nvidia-modelopt 0.47.0. Llama has blocks of zeros, of tiny and of large weights, and a negative zero. DeepSeek V2 has
a matrix for each expert, and queries and keys that read one input; Llama 4 has the experts of a layer in one tensor, with inputs before outputs.
"""
import copy
import pathlib
import shutil

import modelopt.torch.quantization as quantization
import torch
import transformers
from modelopt.torch.export import export_hf_checkpoint

HERE = pathlib.Path(__file__).resolve().parent / "modelopt"
SIZES = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1, head_dim=16, vocab_size=16,
             max_position_embeddings=32, tie_word_embeddings=False, torch_dtype=torch.bfloat16)  # fmt: skip
EXPERTS = dict(SIZES, intermediate_size=16, moe_intermediate_size=16, num_experts_per_tok=1)
DEEPSEEK_V2 = dict(EXPERTS, num_hidden_layers=2, first_k_dense_replace=1, n_routed_experts=2, n_shared_experts=1, topk_method="greedy", n_group=1,
                   topk_group=1, q_lora_rank=None, kv_lora_rank=16, qk_rope_head_dim=16, qk_nope_head_dim=16, v_head_dim=16, num_key_value_heads=2)  # fmt: skip
LLAMA4 = dict(EXPERTS, num_local_experts=2, intermediate_size_mlp=16, interleave_moe_layer_step=1)


def vary(model):
    up = model.model.layers[0].mlp.up_proj.weight
    up[0, :16], up[1, :16], up[3, 0] = 0, 1e-9, -0.0
    up[2, :32] *= 30


def make(name, class_, config, change=lambda model: None):
    torch.manual_seed(4)
    model = class_(config).bfloat16()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, 0.1)
        change(model)
    model.save_pretrained(HERE / name / "model")
    quantization.quantize(model, copy.deepcopy(quantization.W4A16_NVFP4_CFG), forward_loop=lambda made: made(torch.arange(2, 12)[None]))
    with torch.inference_mode():
        export_hf_checkpoint(model, dtype=torch.bfloat16, export_dir=HERE / name / "exported")
    (HERE / name / "model" / "generation_config.json").unlink()
    (HERE / name / "exported" / "generation_config.json").unlink()
    shutil.rmtree(HERE / name / "exported" / "modelopt_state.pth", ignore_errors=True)


make("llama", transformers.LlamaForCausalLM, transformers.LlamaConfig(**SIZES), vary)
make("deepseek_v2", transformers.DeepseekV2ForCausalLM, transformers.DeepseekV2Config(**DEEPSEEK_V2))
make("llama4", transformers.Llama4ForCausalLM, transformers.Llama4TextConfig(**LLAMA4))
