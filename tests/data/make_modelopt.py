"""Writes tests/data/modelopt: a small Llama, and what ModelOpt exports of it in NVFP4, weights only.

Needs torch, transformers 4.57.6 and nvidia-modelopt 0.47.0. Blocks of zeros, of tiny and of large weights, and a negative zero are among the weights.
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


def main():
    torch.manual_seed(4)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES)).bfloat16()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, 0.1)
        up = model.model.layers[0].mlp.up_proj.weight
        up[0, :16], up[1, :16], up[3, 0] = 0, 1e-9, -0.0
        up[2, :32] *= 30
    model.save_pretrained(HERE / "model")
    quantization.quantize(model, copy.deepcopy(quantization.W4A16_NVFP4_CFG), forward_loop=lambda made: made(torch.arange(2, 12)[None]))
    with torch.inference_mode():
        export_hf_checkpoint(model, dtype=torch.bfloat16, export_dir=HERE / "exported")
    (HERE / "model" / "generation_config.json").unlink()
    (HERE / "exported" / "generation_config.json").unlink()
    shutil.rmtree(HERE / "exported" / "modelopt_state.pth", ignore_errors=True)


main()
