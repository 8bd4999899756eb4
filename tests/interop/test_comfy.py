"""comfy/ has the codes and scales of comfy_kitchen, computed in F32 on a CPU, and is read with the values that comfy_kitchen dequantizes. Its FP8 is
torch's quotient by the largest magnitude over 448, which comfy-quants writes; tests/data/comfy has a model that the tool quantized."""
import json
import pathlib
import tempfile

from interop import cat, check, done, skip

try:
    import comfy_kitchen
    import numpy
    import safetensors.torch
    import torch
    from comfy_kitchen.tensor import TensorCoreMXFP8Layout, TensorCoreNVFP4Layout, TensorWiseINT8Layout
except ImportError as error:
    skip(str(error))

FORMATS = {"fp8_e4m3fn": "float8_e4m3fn", "mxfp8": "mxfp8", "nvfp4": "nvfp4", "int8": "int8_tensorwise"}


def quantize(name, weight):
    """The parts of a layer by their endings, and its values in F32."""
    if name == "fp8_e4m3fn":
        scale = (weight.abs().amax() / 448).clamp(min=1e-12) if weight.any() else torch.ones(())
        codes = (weight / scale).clamp(-448, 448).to(torch.float8_e4m3fn)
        return {"": codes, "_scale": scale}, codes.float() * scale
    layout = {"mxfp8": TensorCoreMXFP8Layout, "nvfp4": TensorCoreNVFP4Layout, "int8": TensorWiseINT8Layout}[name]
    codes, params = layout.quantize(weight, **({"per_channel": True} if name == "int8" else {}))
    parts = layout.state_dict_tensors(codes, params)
    if name == "mxfp8":
        parts["_scale"] = parts["_scale"].view(torch.uint8)
    return parts, layout.dequantize(codes, params)


def make(dtype):
    """A model that is recognized as Flux, with layers of several tiles of scales, and others that cannot be quantized."""
    shapes = {"img_in": (32, 64), "double_blocks.0.img_attn.proj": (288, 320), "double_blocks.0.img_mlp.0": (128, 64), "double_blocks.0.img_mlp.2": (32, 1056),
              "double_blocks.0.txt_attn.proj": (64, 96), "single_blocks.0.linear1": (32, 33024), "single_blocks.0.linear2": (40, 64), "single_blocks.0.modulation.lin": (64, 40)}  # fmt: skip
    tensors = {f"{name}.weight": torch.randn(shape) for name, shape in shapes.items()}
    tensors |= {"double_blocks.0.img_attn.proj.bias": torch.randn(288), "double_blocks.0.img_attn.norm.key_norm.scale": torch.randn(8), "conv.weight": torch.randn(4, 4, 2, 2)}
    tensors["double_blocks.0.img_attn.proj.weight"] *= 2.0 ** torch.randint(-12, 6, (288, 1))
    tensors["double_blocks.0.img_mlp.0.weight"][:, :32] = 0
    tensors["double_blocks.0.txt_attn.proj.weight"] *= 2.0 ** torch.randint(-20, -10, (64, 96))
    return {name: tensor.to(dtype) for name, tensor in tensors.items()}


def bits(tensor):
    return tensor.dtype, tuple(tensor.shape), tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def is_layer(name, weight, multiple):
    return name.endswith(".weight") and weight.dim() == 2 and name != "img_in.weight" and all(side % multiple == 0 for side in weight.shape)


def compare(source, tensors, name):
    made = safetensors.torch.load(cat(source, f"comfy/model-{name}.safetensors"))
    copy = source.with_suffix(f".{name}.safetensors")
    safetensors.torch.save_file(made, copy)
    multiple = {"mxfp8": 32, "nvfp4": 16}.get(name, 1)
    for key, tensor in tensors.items():
        if not is_layer(key, tensor, multiple):
            check(bits(made.pop(key)) == bits(tensor), f"{source.name}, {name}: {key} is changed")
            continue
        parts, values = quantize(name, tensor.float())
        for ending, part in parts.items():
            check(bits(made.pop(key + ending)) == bits(part), f"{source.name}, {name}: {key}{ending}")
        layer = key.removesuffix(".weight")
        mark = json.loads(made.pop(f"{layer}.comfy_quant").numpy().tobytes())
        check(mark.pop("format") == FORMATS[name] and mark == ({"full_precision_matrix_mult": True} if name == "fp8_e4m3fn" else {}), f"{name}: {mark}")
        if name == "fp8_e4m3fn":
            check(made.pop(f"{layer}.input_scale") == 1, f"{key}: input_scale")
        found = numpy.frombuffer(cat(copy, f"tensors/{key}/f32"), "<f4").reshape(tensor.shape)
        check(numpy.array_equal(found, values.numpy()), f"{source.name}, {name}: {key} is read with other values")
    check(not made, f"{source.name}, {name}: {list(made)}")


def main():
    torch.manual_seed(7)
    comfy_kitchen.registry.disable("cuda")
    with tempfile.TemporaryDirectory() as directory:
        for dtype in torch.bfloat16, torch.float16, torch.float32:
            source = pathlib.Path(directory, f"{str(dtype).removeprefix('torch.')}.safetensors")
            tensors = make(dtype)
            safetensors.torch.save_file(tensors, source)
            for name in FORMATS:
                compare(source, tensors, name)
    done()


main()
