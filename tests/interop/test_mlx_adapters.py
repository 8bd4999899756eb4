"""Adapters that mlx-lm trained (adapters.safetensors): weights merged with -o lora= are those of fuse()."""
import json
import pathlib
import tempfile

from interop import check, done, skip, wfs

try:
    import mlx.core
    import numpy
    from mlx import nn
    from mlx_lm.tuner.lora import LoRAEmbedding, LoRALinear
    from safetensors.numpy import load, save_file
except ImportError as error:
    skip(str(error))

SHAPES = {"model.embed_tokens": (96, 64), "model.layers.0.self_attn.q_proj": (64, 64), "model.layers.0.mlp.up_proj": (160, 64), "lm_head": (96, 64)}
ADAPTED = ("model.embed_tokens", "model.layers.0.self_attn.q_proj", "model.layers.0.mlp.up_proj")
SCALE = 2.5


def adapted(name, weight, random):
    """The layer with an adapter of random numbers."""
    if "embed" in name:
        layer = nn.Embedding(*weight.shape)
    else:
        layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    layer.weight = mlx.core.array(weight)
    adapter = (LoRAEmbedding if "embed" in name else LoRALinear).from_base(layer, r=4, scale=SCALE)
    for half in ("lora_a", "lora_b"):
        setattr(adapter, half, mlx.core.array(random.standard_normal(getattr(adapter, half).shape, dtype="f4")))
    return adapter


with tempfile.TemporaryDirectory() as directory:
    folder, random = pathlib.Path(directory), numpy.random.default_rng(5)
    (folder / "base").mkdir()
    (folder / "adapter").mkdir()
    base = {f"{name}.weight": random.standard_normal(shape, dtype="f4") for name, shape in SHAPES.items()}
    save_file(base, folder / "base" / "model.safetensors")
    (folder / "base" / "config.json").write_text(json.dumps({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}))
    layers = {name: adapted(name, base[f"{name}.weight"], random) for name in ADAPTED}
    halves = {f"{name}.{half}": numpy.array(getattr(layer, half)) for name, layer in layers.items() for half in ("lora_a", "lora_b")}
    save_file(halves, folder / "adapter" / "adapters.safetensors")
    settings = {"fine_tune_type": "lora", "num_layers": 1, "lora_parameters": {"rank": 4, "dropout": 0.0, "scale": SCALE}}
    (folder / "adapter" / "adapter_config.json").write_text(json.dumps(settings))
    made = wfs("cat", "-o", f"lora={folder / 'adapter'}", folder / "base", "model.safetensors")
    if check(made.returncode == 0, made.stderr.decode().strip()):
        ours = load(made.stdout)
        for name, weight in base.items():
            layer = layers.get(name.removesuffix(".weight"))
            expected = numpy.array(layer.fuse().weight) if layer else weight
            check(numpy.allclose(ours[name], expected, rtol=1e-5, atol=1e-5), f"{name} is not mlx-lm's")
            check(layer is None or not numpy.allclose(weight, expected), f"{name} is changed")
done()
