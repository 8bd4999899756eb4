"""Adapters that mlx-lm trained (adapters.safetensors), LoRA and DoRA: weights merged with -o lora= are those of fuse()."""
import json
import pathlib
import tempfile

from interop import check, done, skip, wfs

try:
    import mlx.core
    import numpy
    from mlx import nn
    from mlx_lm.tuner.dora import DoRAEmbedding, DoRALinear
    from mlx_lm.tuner.lora import LoRAEmbedding, LoRALinear
    from safetensors.numpy import load, save_file
except ImportError as error:
    skip(str(error))

SHAPES = {"model.embed_tokens": (96, 64), "model.layers.0.self_attn.q_proj": (64, 64), "model.layers.0.mlp.up_proj": (160, 64), "lm_head": (96, 64)}
ADAPTED = ("model.embed_tokens", "model.layers.0.self_attn.q_proj", "model.layers.0.mlp.up_proj")
SCALE = 2.5


KINDS = {"lora": (LoRAEmbedding, LoRALinear), "dora": (DoRAEmbedding, DoRALinear)}


def adapted(kind, name, weight, random):
    """The layer with an adapter of random numbers."""
    of_embedding, of_linear = KINDS[kind]
    if "embed" in name:
        layer = nn.Embedding(*weight.shape)
    else:
        layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    layer.weight = mlx.core.array(weight)
    adapter = (of_embedding if "embed" in name else of_linear).from_base(layer, r=4, scale=SCALE)
    for part in parts(kind):
        setattr(adapter, part, mlx.core.array(random.standard_normal(getattr(adapter, part).shape, dtype="f4")))
    return adapter


def parts(kind):
    return ("lora_a", "lora_b", "m") if kind == "dora" else ("lora_a", "lora_b")


def compare(folder, kind):
    random = numpy.random.default_rng(5)
    (folder / "base").mkdir()
    (folder / "adapter").mkdir()
    base = {f"{name}.weight": random.standard_normal(shape, dtype="f4") for name, shape in SHAPES.items()}
    save_file(base, folder / "base" / "model.safetensors")
    (folder / "base" / "config.json").write_text(json.dumps({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}))
    layers = {name: adapted(kind, name, base[f"{name}.weight"], random) for name in ADAPTED}
    tensors = {f"{name}.{part}": numpy.array(getattr(layer, part)) for name, layer in layers.items() for part in parts(kind)}
    save_file(tensors, folder / "adapter" / "adapters.safetensors")
    settings = {"fine_tune_type": kind, "num_layers": 1, "lora_parameters": {"rank": 4, "dropout": 0.0, "scale": SCALE}}
    (folder / "adapter" / "adapter_config.json").write_text(json.dumps(settings))
    made = wfs("cat", "-o", f"lora={folder / 'adapter'}", folder / "base", "model.safetensors")
    if not check(made.returncode == 0, f"{kind}: {made.stderr.decode().strip()}"):
        return
    ours = load(made.stdout)
    for name, weight in base.items():
        layer = layers.get(name.removesuffix(".weight"))
        expected = numpy.array(layer.fuse().weight) if layer else weight
        check(numpy.allclose(ours[name], expected, rtol=1e-5, atol=1e-5), f"{kind}: {name} is not mlx-lm's")
        check(layer is None or not numpy.allclose(weight, expected), f"{kind}: {name} is not changed")


for kind in KINDS:
    with tempfile.TemporaryDirectory() as directory:
        compare(pathlib.Path(directory), kind)
done()
