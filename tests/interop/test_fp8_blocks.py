"""fp8/block/ has the bytes of torch's arithmetic, as scripts that convert checkpoints to DeepSeek's FP8 blocks do it, and is read with its own values."""
import json
import pathlib
import tempfile

from interop import cat, check, done, skip, wfs

try:
    import numpy
    import safetensors.torch
    import torch
    import torch.nn.functional as functional
except ImportError as error:
    skip(str(error))

KEPT = ("norm", "embed", "router", "mlp.gate.", "lm_head", "eh_proj", "weights_proj")
BLOCK = 128


def quantize(weight):
    """Codes and scales: the largest magnitude of each block over 448 in F32, and the quotient rounded to F8_E4M3."""
    rows, columns = weight.shape
    down, across = -(-rows // BLOCK), -(-columns // BLOCK)
    blocks = functional.pad(weight, (0, across * BLOCK - columns, 0, down * BLOCK - rows)).reshape(down, BLOCK, across, BLOCK)
    scales = blocks.abs().amax((1, 3)).float() / torch.finfo(torch.float8_e4m3fn).max
    codes = (blocks / scales[:, None, :, None]).clamp(-448, 448).reshape(down * BLOCK, across * BLOCK)
    return codes[:rows, :columns].to(torch.float8_e4m3fn).contiguous(), scales


def expected(tensors):
    made = {}
    for name, tensor in tensors.items():
        made[name] = tensor
        if name.endswith(".weight") and tensor.dim() == 2 and not any(kept in name for kept in KEPT):
            made[name], made[name.removesuffix("weight") + "weight_scale_inv"] = quantize(tensor)
    return made


def make(dtype):
    shapes = {"self_attn.q_proj": (256, 384), "self_attn.kv_a_proj_with_mqa": (200, 384), "mlp.up_proj": (1, 384), "mlp.down_proj": (384, 130),
              "mlp.gate_proj": (129, 1), "mlp.gate": (8, 384), "mlp.experts.0.up_proj": (130, 257), "input_layernorm": (384,),
              "self_attn.q_a_layernorm": (128,), "conv": (128, 1, 4)}  # fmt: skip
    tensors = {f"model.layers.{i}.{name}.weight": torch.randn(shape) for i in range(2) for name, shape in shapes.items()}
    tensors |= {"model.embed_tokens.weight": torch.randn(64, 384), "lm_head.weight": torch.randn(64, 384), "model.norm.weight": torch.ones(384)}
    tensors["model.layers.0.self_attn.q_proj.bias"] = torch.randn(256)
    up = tensors["model.layers.0.self_attn.q_proj.weight"]
    up[:128] *= 2.0 ** torch.randint(-40, 30, (128, 1))
    up[130, 140], up[200, 300] = -(2.0**60), 2.0**-60
    tensors["model.layers.1.self_attn.kv_a_proj_with_mqa.weight"] *= 2.0**-20 if dtype == torch.float16 else 2.0**-70
    tensors = {name: tensor.to(dtype) for name, tensor in tensors.items()}
    tensors["model.layers.1.mlp.down_proj.weight"] = tensors["model.layers.1.mlp.down_proj.weight"].float()
    return tensors


def write(folder, files):
    folder.mkdir()
    for name, tensors in files.items():
        safetensors.torch.save_file(tensors, folder / name, {"format": "pt"})
    if len(files) > 1:
        index = {"weight_map": {tensor: name for name, tensors in files.items() for tensor in tensors}, "metadata": {}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "config.json").write_text(json.dumps({"architectures": ["SomeForCausalLM"], "model_type": "some", "torch_dtype": "bfloat16"}))


def compare(source, files, scratch):
    for name, tensors in files.items():
        safetensors.torch.save_file(expected(tensors), scratch / "expected", {"format": "pt"})
        check(cat(source, f"fp8/block/{name}") == (scratch / "expected").read_bytes(), f"{source.name}: {name} differs from torch's")
    config = json.loads(cat(source, "fp8/block/config.json"))
    packing = config.pop("quantization_config")
    check(config == json.loads((source / "config.json").read_text()), f"{source.name}: config.json {config}")
    quantized = {name for tensors in files.values() for name, tensor in expected(tensors).items() if tensor.dtype == torch.float8_e4m3fn}
    kept = sorted(name.removesuffix(".weight") for tensors in files.values() for name in tensors if name not in quantized)
    wanted = {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128], "modules_to_not_convert": kept}
    packing["modules_to_not_convert"].sort()
    check(packing == wanted, f"{source.name}: {packing}")
    index = json.loads(cat(source, "fp8/block/model.safetensors.index.json"))["weight_map"]
    check(index == {tensor: name for name, tensors in files.items() for tensor in expected(tensors)}, f"{source.name}: {index}")


def read_back(source, files, scratch):
    """The values that wfs reads in the directory are codes times scales, in F32."""
    copy = scratch / f"{source.name}-copy"
    check(wfs("cp", "-r", source, "fp8/block", copy).returncode == 0, f"{source.name}: cp")
    for tensors in files.values():
        for name, tensor in expected(tensors).items():
            if tensor.dtype != torch.float8_e4m3fn:
                continue
            scales = expected(tensors)[name.removesuffix("weight") + "weight_scale_inv"]
            spread = scales.repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)[: tensor.shape[0], : tensor.shape[1]]
            found = numpy.frombuffer(cat(copy, f"tensors/{name}/f32"), "<f4").reshape(tensor.shape)
            check(numpy.array_equal(found, (tensor.float() * spread).numpy()), f"{source.name}: {name} is read with other values")


def zeros(scratch):
    """A block of zeros stays zeros, where the scripts divide by a scale of 0."""
    weight = torch.randn(256, 256).bfloat16()
    weight[:128, 128:] = 0
    write(scratch / "zeros", {"model.safetensors": {"model.layers.0.mlp.up_proj.weight": weight}})
    check(wfs("cp", "-r", scratch / "zeros", "fp8/block", scratch / "zeros-copy").returncode == 0, "zeros: cp")
    found = numpy.frombuffer(cat(scratch / "zeros-copy", "tensors/model.layers.0.mlp.up_proj.weight/f32"), "<f4").reshape(256, 256)
    check(not found[:128, 128:].any() and numpy.isfinite(found).all() and found[:128, :128].all(), "zeros: a block of zeros")


def fused(scratch):
    """Experts in one tensor are taken apart."""
    stacked = torch.randn(2, 256, 128)
    write(scratch / "fused", {"model.safetensors": {"model.layers.0.mlp.experts.gate_up_proj": stacked}})
    parts = {f"model.layers.0.mlp.experts.{i}.{name}_proj.weight": matrix.contiguous()
             for i in range(2) for name, matrix in zip(("gate", "up"), stacked[i].chunk(2))}  # fmt: skip
    safetensors.torch.save_file(expected(parts), scratch / "expected", {"format": "pt"})
    check(cat(scratch / "fused", "fp8/block/model.safetensors") == (scratch / "expected").read_bytes(), "fused: differs from torch's")


def main():
    torch.manual_seed(5)
    with tempfile.TemporaryDirectory() as directory:
        scratch = pathlib.Path(directory)
        for dtype in torch.bfloat16, torch.float16, torch.float32:
            tensors = make(dtype)
            if dtype == torch.float16:
                tensors = {name: tensor.clamp(-60000, 60000) for name, tensor in tensors.items()}
            names = sorted(tensors)
            files = {"model.safetensors": tensors}
            if dtype == torch.bfloat16:
                files = {f"model-0000{i + 1}-of-00002.safetensors": {name: tensors[name] for name in names[i::2]} for i in range(2)}
            source = scratch / str(dtype).removeprefix("torch.")
            write(source, files)
            compare(source, files, scratch)
            read_back(source, files, scratch)
        zeros(scratch)
        fused(scratch)
    done()


main()
