"""Makes tests/data/comfy: a small model with the names of Qwen-Image, and what comfy-quants makes of it.

Needs torch, safetensors and comfy-quants, commit 55f0a26 (pip install git+https://github.com/Comfy-Org/comfy-quants): tests/data/make_comfy.py
"""
import pathlib

import torch
from comfy_quants.backends.inference_model_export import write_fp8_inference_checkpoint_from_safetensors
from comfy_quants.backends.mxfp8_model_export import write_mxfp8_inference_checkpoint_from_safetensors
from comfy_quants.backends.nvfp4_model_export import write_nvfp4_inference_checkpoint_from_safetensors
from comfy_quants.model_adapters.qwen_contracts.qwen_image import get_qwen_image_static_contract
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).parent / "comfy"
MAKERS = {
    "fp8_e4m3": ("fp8_e4m3fn", write_fp8_inference_checkpoint_from_safetensors),
    "mxfp8": ("mxfp8", write_mxfp8_inference_checkpoint_from_safetensors),
    "nvfp4": ("nvfp4", write_nvfp4_inference_checkpoint_from_safetensors),
}
COLUMNS, ROWS = 96, 32
PARTS = ["timestep_embedder.linear_2", "img_in", "attn.to_", "norm_added_q", "img_mlp", "txt_mlp.net.2", "norm_out.linear", "proj_out"]  # that the model has


def modules():
    """Names of modules, and whether the tool quantizes them."""
    transformer = get_qwen_image_static_contract().transformer
    for module in transformer.pre_modules + transformer.block_modules + transformer.post_modules:
        if any(part in module.name_template for part in PARTS):
            yield module.name_template.format(block=0), module.quantizable


def make_source():
    torch.manual_seed(11)
    tensors = {}
    for name, _ in modules():
        is_vector = "norm" in name and not name.endswith("linear")
        tensors[f"{name}.weight"] = torch.randn(*([COLUMNS] if is_vector else [ROWS, COLUMNS])).bfloat16()
        if not is_vector:
            tensors[f"{name}.bias"] = torch.randn(ROWS).bfloat16()
    block = "transformer_blocks.0."
    tensors[f"{block}attn.to_q.weight"] = torch.zeros(ROWS, COLUMNS).bfloat16()
    tensors[f"{block}attn.to_k.weight"][:, :64] = -0.0
    tensors[f"{block}attn.to_v.weight"] *= 2.0 ** torch.randint(-60, 2, (ROWS, 1))
    tensors[f"{block}img_mlp.net.2.weight"] = torch.randn(160, COLUMNS) * 2.0 ** torch.randint(-20, 2, (160, 1))  # two tiles of rows
    tensors[f"{block}img_mlp.net.2.bias"] = torch.randn(160).bfloat16()
    tensors[f"{block}txt_mlp.net.2.weight"] = torch.randn(ROWS, COLUMNS).half()
    return {name: tensor.contiguous() for name, tensor in tensors.items()}


def main():
    HERE.mkdir(exist_ok=True)
    source = HERE / "model.safetensors"
    tensors = make_source()
    save_file(tensors, source)
    for name, (file, write) in MAKERS.items():
        rows = [
            {"source_name": f"{module}.weight", "name": f"{module}.weight", "quant_dtype": name, "storage_dtype": "uint8", "shape": list(tensors[f"{module}.weight"].shape)}
            for module, is_quantized in modules() if is_quantized
        ]  # fmt: skip
        index = {"format": {"name": name}, "tensors": rows}
        write(source_checkpoint=source, output_checkpoint=HERE / f"model-{file}.safetensors", tensor_index=index, device="cpu", copy_config=False)


main()
